package neighbors_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// TestNearestIsExact compares Nearest with a sort by ‖x − z‖², for points whose distances are equal in float32,
// for duplicates, and for numbers beyond the range of float32. The distances are exact in float64.
func TestNearestIsExact(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d = 5000, 3
	rows := 1100 // more than one tile
	if required.FewCases() {
		rows = 60
	}
	for _, c := range []struct {
		name          string
		offset, scale float64
		limit, k      int
	}{
		{"spread over 2¹⁶ steps", 0, 1, 1 << 16, 5},
		{"many duplicates", 0, 1, 6, 10},
		{"far from 0", 1 << 20, 1, 1 << 5, 5},
		{"tiny", 0, 0x1p-140, 1 << 10, 3},
		{"beyond float32", 0, 0x1p200, 1 << 10, 100},
		{"all equal", 7, 1, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 0))
			points := func(n int) backend.Host[float64] {
				h := backend.NewHost[float64](n, d)
				for i := range h.Data {
					h.Data[i] = (c.offset + float64(r.IntN(c.limit))) * c.scale
				}
				return h
			}
			z, x := points(n), points(rows)
			s := neighbors.Samples{Kernel: kernels.Linear{}, Points: numeric.DensePoints(z), Weight: slices.Repeat([]float64{1}, n)}
			s.Own = s.Points.Diagonal(s.Kernel)
			visited := 0
			err := s.Nearest(t.Context(), dev, numeric.DensePoints(x), c.k, func(i int, list []int, keys []float64) {
				if i != visited {
					t.Fatalf("row %d after row %d", i, visited-1)
				}
				visited++
				square, order := make([]float64, n), make([]int, n)
				for j := range n {
					order[j] = j
					for p, v := range z.Row(j) {
						square[j] += (x.Row(i)[p] - v) * (x.Row(i)[p] - v)
					}
				}
				slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(square[a], square[b]) })
				if !slices.Equal(list, order[:c.k]) {
					t.Fatalf("row %d: the neighbors are %v, want %v", i, list, order[:c.k])
				}
				own := numeric.Dot(x.Row(i), x.Row(i))
				for m, key := range keys {
					if key+own != square[list[m]] {
						t.Fatalf("row %d: the squared distance of sample %d is %v, want %v", i, list[m], key+own, square[list[m]])
					}
				}
			})
			if err != nil || visited != rows {
				t.Fatal(visited, err)
			}
		})
	}
}

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestPotrfPreservesTriangle: the triangle that the factor does not occupy does not change
// in any bit, for one leaf of cuSOLVER, whose algorithm depends on the order, and for
// several. A real GPU uses the orders of production, the simulated one small orders.
func TestPotrfPreservesTriangle(t *testing.T) {
	Need(t)
	const seed = 3
	t.Logf("seed %d", seed)
	dev, err := openAt(cudatest.WithSolver, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	orders := []int{1000, 16384, 20000}
	if isSimulated(dev) {
		SmallCuts(t)
		orders = []int{10, 97, 100, 130}
	}
	q := dev.F64().(*queue[float64])
	for _, n := range orders {
		h := backend.NewHost[float64](n, n)
		var fill sync.WaitGroup
		for i := range n {
			fill.Go(func() {
				row, rng := h.Row(i), rand.New(rand.NewPCG(seed, uint64(i)))
				for j := range row {
					row[j] = rng.Float64()
				}
				row[i] += float64(n)
			})
		}
		fill.Wait()
		a, err := q.New(n, n)
		if err == nil {
			err = q.Upload(a, h)
		}
		if err == nil {
			err = q.PotrfPreserve(a)
		}
		got := backend.NewHost[float64](n, n)
		if err == nil {
			err = q.Download(got, a)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range i {
				if got.Row(i)[j] != h.Row(i)[j] {
					t.Fatalf("order %d: element %d, %d is %v, and was %v", n, i, j, got.Row(i)[j], h.Row(i)[j])
				}
			}
		}
		a.Free()
	}
}

// TestWorkOfSolver: if there is no memory for the workspace of cuSOLVER, it gets smaller
// triangles, and the factor is the same up to rounding.
func TestWorkOfSolver(t *testing.T) {
	Need(t)
	SmallCuts(t)
	cuts.lower, cuts.copied = 300, 300
	const n, largest = 400, 150
	h := backend.NewHost[float64](n, n)
	for i := range n {
		for j := range n {
			h.Row(i)[j] = 1 / float64(1+max(i-j, j-i))
		}
		h.Row(i)[i] += 4
	}
	for _, ul := range []backend.Uplo{backend.Lower, backend.Upper} {
		dev, err := openAt(cudatest.WithSolver, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d, orders := dev.(*device), []int{}
		q, real := d.F64().(*queue[float64]), d.libraries.Solver.Call
		factor := func() backend.Host[float64] {
			a, err := q.New(n, n)
			if err == nil {
				err = q.Upload(a, h)
			}
			if err == nil {
				err = q.Potrf(ul, a)
			}
			got := backend.NewHost[float64](n, n)
			if err == nil {
				err = q.Download(got, a)
			}
			if err != nil {
				t.Fatal(err)
			}
			a.Free()
			return got
		}
		want := factor()
		d.libraries.Solver.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			r := real(s, args...)
			switch s.Name {
			case "cusolverDnXpotrf_bufferSize":
				if args[3] > largest {
					p := args[8]
					**(**uint64)(unsafe.Pointer(&p)) = 1 << 50
				}
			case "cusolverDnXpotrf":
				orders = append(orders, int(args[3]))
			}
			return r
		}
		got := factor()
		if len(orders) == 0 || slices.Max(orders) > largest {
			t.Errorf("cuSOLVER was given triangles of the orders %v", orders)
		}
		for i, v := range got.Data {
			// The condition number of the matrix is below 4.
			if diff := math.Abs(v - want.Data[i]); !(diff <= n*0x1p-50) {
				t.Fatalf("%v: element %d is %v, in one triangle %v", ul, i, v, want.Data[i])
			}
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

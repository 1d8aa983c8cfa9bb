package handles

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// TestNeighbors compares Neighbors with a search through all distances.
func TestNeighbors(t *testing.T) {
	ctx, d := context.Background(), open(t, "")
	x, _ := samples(t, 9, 5)
	z, _ := samples(t, 30, 5)
	const k = 4
	rows, squares := make([]int64, 9*k), make([]float64, 9*k)
	if err := Neighbors(ctx, d, float64s(x), float64s(z), k, rows, squares); err != nil {
		t.Fatal(err)
	}
	for i := range x.Rows {
		last := 0.0
		for j := range k {
			got, index := squares[i*k+j], int(rows[i*k+j])
			if want := squaredDistance(x.Row(i), z.Row(index)); got != want || got < last {
				t.Errorf("row %d: neighbor %d is sample %d at %v, want %v ≥ %v", i, j, index, got, want, last)
			}
			last = got
		}
		nearer := 0
		for l := range z.Rows {
			if squaredDistance(x.Row(i), z.Row(l)) < last {
				nearer++
			}
		}
		if nearer != k-1 {
			t.Errorf("row %d: %d samples are nearer than neighbor %d", i, nearer, k)
		}
	}
	for _, test := range []struct {
		k    int
		rows int
		want string
	}{{0, 0, "k must be from 1"}, {31, 9 * 31, "k must be from 1"}, {2, 17, "the result is 9×2"}} {
		if err := Neighbors(ctx, d, float64s(x), float64s(z), test.k, make([]int64, test.rows), make([]float64, test.rows)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("k = %d: %v, want %q", test.k, err, test.want)
		}
	}
}

// TestCosines compares Cosines with math.Cos.
func TestCosines(t *testing.T) {
	ctx, d := context.Background(), open(t, "")
	x, _ := samples(t, 9, 5)
	w, _ := samples(t, 7, 5)
	b, out := []float64{0, 1, 2, 3, 4, 5, 6}, make([]float64, 9*7)
	if err := Cosines(ctx, d, 0.5, float64s(x), float64s(w), b, out); err != nil {
		t.Fatal(err)
	}
	for i := range x.Rows {
		for j := range w.Rows {
			angle, size := b[j], math.Abs(b[j])
			for p, v := range x.Row(i) {
				angle += v * w.Row(j)[p]
				size += math.Abs(v * w.Row(j)[p])
			}
			// The tolerance allows for d + 1 rounding errors of both angles and one of the cosine.
			if got, want := out[i*7+j], 0.5*math.Cos(angle); math.Abs(got-want) > 0x1p-53*(2*6*size+2) {
				t.Errorf("row %d, column %d: %v, want %v", i, j, got, want)
			}
		}
	}
	x.Data[3] = math.NaN()
	for _, test := range []struct {
		w    backend.Host[float64]
		want string
	}{{w, "x: row 1, column 4 is NaN"}, {w.View(0, 0, 7, 4), ""}} {
		if err := Cosines(ctx, d, 1, float64s(x), float64s(test.w), b, out); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestEmptySamples checks that matrices without rows or columns are refused.
func TestEmptySamples(t *testing.T) {
	ctx, d := context.Background(), open(t, "")
	x, _ := samples(t, 9, 5)
	const want = "w is 0×5, but needs at least one row and one column"
	if err := Cosines(ctx, d, 0.5, float64s(x), Matrix{F64: backend.Host[float64]{Cols: 5, Stride: 5}}, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

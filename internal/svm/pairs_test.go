package svm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// TestSharedGram checks that machines that share k(X, X) find the same minima as machines that do not share it, also
// after shrinking. The matrix must be part of the planned memory, and must not be shared if the plan exceeds the limit.
func TestSharedGram(t *testing.T) {
	t.Log("seed 71")
	for name, n := range map[string]int{"cpu": 3300, "ref": 90} { // shrinking occurs in a pair of 2200 rows
		t.Run(name, func(t *testing.T) { testSharedGram(t, backendtest.Device(t, name), n) })
	}
}

func testSharedGram(t *testing.T, dev backend.Device, n int) {
	r := rand.New(rand.NewPCG(71, 0))
	const classes, tol = 3, 1e-6
	x := backend.NewHost[float64](n, sharedFeatures)
	rows := make([][]int, classes)
	for i := range n {
		for j := range x.Cols {
			x.Row(i)[j] = r.NormFloat64()
		}
		x.Row(i)[i%classes] += 4
		rows[i%classes] = append(rows[i%classes], i)
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1
	}
	params, err := Params{Tol: tol}.WithDefaults(n)
	if err != nil {
		t.Fatal(err)
	}
	own := &Pairs{Kernel: kernels.Gaussian{Sigma: 8}, X: numeric.DensePoints(x), Weights: weights, Rows: rows, Names: []string{"a", "b", "c"}, C: 1, Params: params}
	shared := *own
	own.Allot(dev, own.Bytes(dev, n)) // enough memory without a shared matrix
	shared.Allot(dev, 0)
	if own.shareGram || !shared.shareGram {
		t.Fatalf("shared with the memory of separate rows: %t; with all memory: %t", own.shareGram, shared.shareGram)
	}
	if with, without := shared.Bytes(dev, n), own.Bytes(dev, n); with < 8*int64(n)*int64(n) {
		t.Errorf("the plan is %d bytes with the matrix, %d without it", with, without)
	}
	want, err := own.Solve(run.NewTask(t.Context(), dev, nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := shared.Solve(run.NewTask(t.Context(), dev, nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range want {
		// The distance of each objective from the minimum is at most its duality gap.
		g, w := got[pair], want[pair]
		if d := math.Abs(g.Objective - w.Objective); !(d <= g.Duality+w.Duality) {
			t.Errorf("pair %d: objectives %v and %v differ by %v, the duality gaps are %v and %v", pair, g.Objective, w.Objective, d, g.Duality, w.Duality)
		}
		if !(g.Duality <= 2*float64(n)*tol) { // violations of at most tol, times α_i ≤ 1
			t.Errorf("pair %d: duality gap %v", pair, g.Duality)
		}
	}
}

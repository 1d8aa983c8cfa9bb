package learners_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// TestAnyMatrix checks that the predictions of a model have the same bits for every gonum type of x and y.
func TestAnyMatrix(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 12
	r := rand.New(rand.NewPCG(8, 8))
	// The matrix is symmetric, because a mat.SymDense can hold no other matrix.
	s := mat.NewSymDense(n, nil)
	padded := mat.NewDense(n+2, n+3, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, r.NormFloat64())
		}
	}
	view := padded.Slice(1, n+1, 2, n+2).(*mat.Dense)
	view.Copy(s)
	labels := mat.NewDense(n, 3, nil)
	for i := range n {
		labels.Set(i, 1, float64(i%2))
	}
	y := mat.NewVecDense(n, mat.Col(nil, 1, labels))
	fit := func(x, y mat.Matrix) *mat.Dense {
		t.Helper()
		ctx := context.Background()
		m, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 3}, Lambda: 0.1, NoIntercept: true}.Fit(ctx, dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(ctx, dev, x)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := fit(mat.DenseCopyOf(s), y)
	for name, x := range map[string]mat.Matrix{"part": view, "symmetric": s, "transposed": view.T(), "twice": mat.Transpose{Matrix: view.T()}} {
		if !mat.Equal(fit(x, y), want) {
			t.Errorf("seed 8, 8: x as %s has other predictions", name)
		}
	}
	for name, y := range map[string]mat.Matrix{"column": labels.ColView(1), "row transposed": mat.TransposeVec{Vector: y}.T(), "part": labels.Slice(0, n, 1, 2)} {
		if !mat.Equal(fit(s, y), want) {
			t.Errorf("seed 8, 8: y as %s has other predictions", name)
		}
	}
	classes := learners.Classes{Labels: []float64{0, 1}}
	decision := mat.NewDense(n, 1, nil)
	for i := range n {
		decision.Set(i, 0, want.At(i, 0)-0.5)
	}
	pred := classes.Decide(decision)
	score, err := validate.ScoreClassification(classes, nil, labels.ColView(1), validate.Outcome{Values: pred, Decision: decision}, nil)
	copyScore, err2 := validate.ScoreClassification(classes, nil, mat.DenseCopyOf(y), validate.Outcome{Values: pred, Decision: decision}, nil)
	if err != nil || err2 != nil || score.AUC == nil || *score.AUC != *copyScore.AUC || score.N != n {
		t.Errorf("scores %+v and %+v, %v, %v", score, copyScore, err, err2)
	}
	if _, err := validate.ScoreClassification(classes, nil, nil, validate.Outcome{Values: pred, Decision: decision}, nil); err == nil {
		t.Error("a score without y")
	}
}

package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestCommandsPredictTheMostProbableClass checks that every command gives the labels of the library for an svc
// model with probabilities. On noise, as here, the most probable class often differs from the class that the decision
// values imply (scikit-learn #31222).
func TestCommandsPredictTheMostProbableClass(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 1")
	r := rand.New(rand.NewPCG(1, 0))
	for _, classes := range []int{2, 4} {
		x, y := mat.NewDense(120, 30, nil), mat.NewDense(120, 1, nil)
		for i := range 120 {
			for j := range 30 {
				x.Set(i, j, r.NormFloat64())
			}
			y.Set(i, 0, float64(i%7%classes))
		}
		m, err := learners.SVC{Kernel: kernels.Linear{}, Probabilities: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		for _, proba := range []bool{true, false} {
			o, err := (&app{}).outcomes(t.Context(), dev, m, x, proba)
			if err != nil {
				t.Fatal(err)
			}
			if !mat.Equal(o.Values, want) || mat.Equal(o.Values, m.Classes().Decide(o.Decision)) || (o.Proba != nil) != proba {
				t.Errorf("%d classes, probabilities asked for: %v: the labels are not those of the model", classes, proba)
			}
			for i := 0; proba && i < 120; i++ {
				row := o.Proba.RawRowView(i)
				if row[m.Classes().Index(o.Values.At(i, 0))] != slices.Max(row) {
					t.Errorf("%d classes, row %d: label %v, probabilities %v", classes, i, o.Values.At(i, 0), row)
				}
			}
		}
	}
}

package validate_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// TestDependence compares the partial dependence with weighted averages of predictions for rows in which the test
// has replaced the columns.
func TestDependence(t *testing.T) {
	const n = 30
	dev, s := backendtest.Device(t, "ref"), normals(t, n, 3, 2)
	x := mat.DenseCopyOf(s.X)
	classes := mat.NewDense(n, 1, nil)
	weights := make([]float64, n)
	for i := range n {
		classes.Set(i, 0, float64(i%3))
		weights[i] = float64(i % 4)
	}
	for name, y := range map[string]*mat.Dense{"kernel-ridge": s.Y, "logistic": classes, "svc": classes} {
		m, err := fitter(t, name, nil)(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := validate.DependenceParams{First: 1, Grid: [][]float64{{0, 1}, {-0.5, 2}}, Weights: weights}
		got, err := validate.Dependence(t.Context(), dev, m, x, p)
		if err != nil {
			t.Fatal(err)
		}
		for g, values := range p.Grid {
			replaced := mat.DenseCopyOf(x)
			for i := range n {
				copy(replaced.RawRowView(i)[1:], values)
			}
			f, err := m.Predict(t.Context(), dev, replaced)
			if c, ok := m.(learners.Classifier); ok {
				f, err = c.Decision(t.Context(), dev, replaced)
			}
			if c, ok := learners.As[learners.Prober](m); ok {
				f, err = c.Proba(t.Context(), dev, replaced)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, outputs := f.Dims()
			if _, cols := got.Dims(); cols != outputs {
				t.Fatalf("%s: %d outputs, want %d", name, cols, outputs)
			}
			for j := range outputs {
				want := stat.Mean(mat.Col(nil, j, f), weights)
				checkClose(t, name, got.At(g, j), want, 4*0x1p-52*math.Abs(want))
			}
		}
		for name, p := range map[string]validate.DependenceParams{
			"no grid":        {},
			"a column":       {First: 3, Grid: [][]float64{{1}}},
			"a width":        {First: 2, Grid: [][]float64{{1, 2}}},
			"a first column": {First: -1, Grid: [][]float64{{1}}},
			"weights":        {Grid: [][]float64{{1}}, Weights: weights[1:]},
		} {
			if _, err := validate.Dependence(t.Context(), dev, m, x, p); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if _, err := validate.Dependence(t.Context(), dev, nil, x, p); err == nil {
			t.Error("no model: no error")
		}
	}
}

func TestGrid(t *testing.T) {
	if got := validate.Grid([]float64{3, 1, 3, 2, 1}); !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("few values: %v", got)
	}
	column := make([]float64, 1001)
	for i := range column {
		column[i] = float64(1000 - i)
	}
	got := validate.Grid(column)
	// The interpolated 5 % quantile of 0 … 1000 is between 49 and 51, the 95 % quantile between 949 and 951.
	if len(got) != 40 || math.Abs(got[0]-50) > 1 || math.Abs(got[39]-950) > 1 || !slices.IsSorted(got) {
		t.Errorf("many values: %v", got)
	}
	for i := range column {
		if i > 20 {
			column[i] = 7
		}
	}
	if got := validate.Grid(column); len(got) != 22 {
		t.Errorf("few different values: %v", got)
	}
}

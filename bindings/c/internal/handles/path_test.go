package handles

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// refit solves (K + λW⁻¹ 1; 1ᵀ 0)(α; b) = (y; 0) for the given rows by Gaussian elimination. It returns the
// predictions for row i and the condition number of the matrix.
func refit(g, y backend.Host[float64], w []float64, intercept bool, lambda float64, rows []int, i int) (f []float64, condition float64) {
	n := len(rows)
	order := n
	if intercept {
		order++
	}
	a, rhs := mat.NewDense(order, order, nil), mat.NewDense(order, y.Cols, nil)
	row := mat.NewDense(1, order, nil)
	for r, from := range rows {
		for c, column := range rows {
			a.Set(r, c, g.Row(from)[column])
		}
		a.Set(r, r, a.At(r, r)+lambda/w[from])
		if intercept {
			a.Set(r, n, 1)
			a.Set(n, r, 1)
			row.Set(0, n, 1)
		}
		rhs.SetRow(r, y.Row(from))
		row.Set(0, r, g.Row(i)[from])
	}
	var solution, value mat.Dense
	solution.Solve(a, rhs)
	value.Mul(row, &solution)
	return value.RawRowView(0), mat.Cond(a, 2)
}

// TestPathAgainstRefits compares leave-one-out errors with the errors of n fits, and the other scores with their
// definitions in terms of the matrix H, whose column i holds the predictions of a fit to the i-th unit vector.
func TestPathAgainstRefits(t *testing.T) {
	const n, d = 24, 3
	x, y1 := samples(t, n, d)
	y := backend.NewHost[float64](n, 2)
	for i := range n {
		y.Row(i)[0], y.Row(i)[1] = y1.Row(i)[0], 3+math.Cos(y1.Row(i)[0])
	}
	ones, weights := make([]float64, n), make([]float64, n)
	for i := range n {
		ones[i], weights[i] = 1, 0.5+float64(i%4)
	}
	weights[5], weights[n-1] = 0, 0
	lambdas := []float64{1e-3, 0.1, 1, 40}
	dev := open(t, "cpu")
	for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 1.5}, kernels.Linear{}, kernels.Polynomial{Degree: 2, C: 1}, kernels.Precomputed{}} {
		points := float64s(x)
		g := gramOf(kernels.Laplacian{Sigma: 2}, x, x)
		if _, precomputed := k.(kernels.Precomputed); precomputed {
			points = float64s(g)
		} else {
			g = gramOf(k, x, x)
		}
		for _, w := range [][]float64{nil, weights} {
			for _, intercept := range []bool{false, true} {
				to := PathScores{GCV: make([]float64, len(lambdas)*2), LOO: make([]float64, len(lambdas)*2), Errors: make([]float64, len(lambdas)*n*2), DegreesOfFreedom: make([]float64, len(lambdas))}
				p := PathProblem{Kernel: k.String(), Weights: w, Intercept: intercept, Lambdas: lambdas}
				if _, err := Path(context.Background(), dev, p, points, float64s(y), to); err != nil {
					t.Fatal(err)
				}
				if w == nil {
					w = ones
				}
				for l, lambda := range lambdas {
					checkPoint(t, p, l, lambda, g, y, w, to)
				}
			}
		}
	}
}

func checkPoint(t *testing.T, p PathProblem, l int, lambda float64, g, y backend.Host[float64], w []float64, to PathScores) {
	t.Helper()
	n := y.Rows
	var included []int
	for i, v := range w {
		if v > 0 {
			included = append(included, i)
		}
	}
	units := backend.NewHost[float64](n, n)
	for i := range n {
		units.Row(i)[i] = 1
	}
	loo, squares, total, freedom, maxCondition := make([]float64, y.Cols), make([]float64, y.Cols), 0.0, 0.0, 1.0
	errorsOf := to.Errors[l*n*y.Cols:]
	checkNear := func(name string, got, want, scale float64) {
		t.Helper()
		// Elimination has a backward error of at most n² roundings for systems of this size.
		if !(math.Abs(got-want) <= float64(n*n)*0x1p-53*maxCondition*scale) {
			t.Errorf("%+v, λ %v: %s %v, want %v, condition %.2g", p, lambda, name, got, want, maxCondition)
		}
	}
	for pos, i := range included {
		remaining := append(append([]int{}, included[:pos]...), included[pos+1:]...)
		f, condition := refit(g, y, w, p.Intercept, lambda, remaining, i)
		maxCondition = max(maxCondition, condition)
		fit, _ := refit(g, y, w, p.Intercept, lambda, included, i)
		unit, _ := refit(g, units, w, p.Intercept, lambda, included, i)
		freedom += unit[i]
		total += w[i]
		for j := range y.Cols {
			e, r := y.Row(i)[j]-f[j], y.Row(i)[j]-fit[j]
			checkNear("error", errorsOf[i*y.Cols+j], e, 10)
			loo[j] += w[i] * e * e
			squares[j] += w[i] * r * r
		}
	}
	for i, v := range w {
		if v == 0 && (errorsOf[i*y.Cols] != 0 || errorsOf[i*y.Cols+1] != 0) {
			t.Errorf("%+v, λ %v: row %d has no weight and the error %v", p, lambda, i, errorsOf[i*y.Cols])
		}
	}
	rows := float64(len(included))
	residualFreedom := rows - freedom
	checkNear("freedom", to.DegreesOfFreedom[l], freedom, rows)
	for j := range y.Cols {
		checkNear("loo", to.LOO[l*y.Cols+j], loo[j]/total, 100)
		gcv := rows * squares[j] / residualFreedom / residualFreedom
		checkNear("gcv", to.GCV[l*y.Cols+j], gcv, 1000*(1+gcv)*(rows/residualFreedom))
	}
}

// TestPathChooses checks the kernel that Path chooses, and the reasons for a λ without a solution.
func TestPathChooses(t *testing.T) {
	ctx, d := context.Background(), open(t, "cpu")
	x, y := samples(t, 20, 2)
	copy(x.Row(1), x.Row(0)) // two rows are equal, so that K is singular
	loo := make([]float64, 2)
	text, err := Path(ctx, d, PathProblem{Lambdas: []float64{0, 1}}, float64s(x), float64s(y), PathScores{LOO: loo})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kernel string
		Failed []struct {
			Lambda float64
			Reason string
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	m, err := Fit(ctx, d, Learner{Name: "kernel-ridge"}, float64s(x), float64s(y), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := m.bundle.Model.State().Params["kernel"].(string); got.Kernel != want {
		t.Errorf("kernel %s, kernel-ridge uses %s", got.Kernel, want)
	}
	if len(got.Failed) != 1 || got.Failed[0].Lambda != 0 || !strings.Contains(got.Failed[0].Reason, "not positive definite") {
		t.Errorf("failed: %+v", got.Failed)
	}
	if !math.IsNaN(loo[0]) || !(loo[1] > 0) {
		t.Errorf("scores %v", loo)
	}
	if _, err := Path(ctx, d, PathProblem{Lambdas: []float64{0}}, float64s(x), float64s(y), PathScores{}); !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("no solution: %v", err)
	}
	for _, test := range []struct {
		p    PathProblem
		to   PathScores
		text string
	}{
		{PathProblem{}, PathScores{}, "the list of lambdas is empty"},
		{PathProblem{Lambdas: []float64{1, -1}}, PathScores{}, "lambda 2 must be a finite number ≥ 0, got -1"},
		{PathProblem{Lambdas: []float64{math.NaN()}}, PathScores{}, "lambda 1 must be a finite number"},
		{PathProblem{Lambdas: []float64{1}}, PathScores{LOO: loo}, "loo: the result has 1 number"},
		{PathProblem{Lambdas: []float64{1}, Kernel: "abacus()"}, PathScores{}, "unknown kernel"},
		{PathProblem{Lambdas: []float64{1}, Kernel: "precomputed()"}, PathScores{}, "20×2"},
		{PathProblem{Lambdas: []float64{1}, Weights: make([]float64, 20), Kernel: "linear()"}, PathScores{}, "weights: all are 0"},
		{PathProblem{Lambdas: []float64{1}, Memory: 1000}, PathScores{}, "memory"},
	} {
		if _, err := Path(ctx, d, test.p, float64s(x), float64s(y), test.to); err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%+v: %v, want %q", test.p, err, test.text)
		}
	}
}

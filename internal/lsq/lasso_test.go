package lsq

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// indicators returns samples of categorical columns, each with `levels` categories of decreasing frequencies and
// one 0/1 feature for each category. If standard is set, each feature is scaled to standard deviation 1.
func indicators(n, columns, levels int, standard bool, seed uint64) (x, y backend.Host[float64]) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = backend.NewHost[float64](n, columns*levels), backend.NewHost[float64](n, 1)
	effects := make([]float64, x.Cols)
	for p := range effects {
		effects[p] = r.NormFloat64()
	}
	counts := make([]float64, x.Cols)
	for i := range n {
		y.Data[i] = 0.5 * r.NormFloat64()
		for c := range columns {
			u := r.Float64()
			p := c*levels + int(float64(levels)*u*u)
			x.Row(i)[p] = 1
			counts[p]++
			y.Data[i] += effects[p]
		}
	}
	for p, v := range counts {
		if mean := v / float64(n); standard && v > 0 && mean < 1 {
			for i := range n {
				x.Row(i)[p] = (x.Row(i)[p] - mean) / math.Sqrt(mean*(1-mean))
			}
		}
	}
	return x, y
}

// gapOf returns the objective and its duality gap, computed only from x, y and the residual y − ȳ − (x − x̄)w.
func gapOf(x, y backend.Host[float64], w []float64, lambda float64) (objective, gap float64) {
	n, d := x.Rows, x.Cols
	means, mean := make([]float64, d), 0.0
	for i := range n {
		for p, v := range x.Row(i) {
			means[p] += v / float64(n)
		}
		mean += y.Data[i] / float64(n)
	}
	var squares, ry, ones, maxSlope float64
	slope := make([]float64, d)
	for i := range n {
		r := y.Data[i] - mean
		for p, v := range x.Row(i) {
			r -= (v - means[p]) * w[p]
		}
		squares += r * r
		ry += r * (y.Data[i] - mean)
		for p, v := range x.Row(i) {
			slope[p] += r * (v - means[p])
		}
	}
	for p := range d {
		ones += math.Abs(w[p])
		maxSlope = max(maxSlope, math.Abs(slope[p]))
	}
	scale := min(1, lambda/2/maxSlope)
	return squares + lambda*ones, squares*(1+scale*scale) + lambda*ones - 2*scale*ry
}

// TestLassoOfIndicators fits the lasso to many indicator features, in one case more than rows, for single λ and
// along a path. It checks that a fit reaches a duality gap of 1e-10‖y‖², computed from the data, in fewer steps
// than the number of features plus the number of rows. Sweeps alone would take more than 10,000 steps.
func TestLassoOfIndicators(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, c := range []struct {
		n, columns, levels int
		standard           bool
	}{{300, 3, 20, true}, {300, 3, 20, false}, {300, 6, 30, true}, {200, 4, 80, true}, {200, 2, 150, false}} {
		t.Logf("%d rows of %d × %d, seed 41", c.n, c.columns, c.levels)
		x, y := indicators(c.n, c.columns, c.levels, c.standard, 41)
		s, err := New(t.Context(), numeric.DensePoints(x), y, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		all := []float64{10, 1, 0.1, 1e-3, 1e-5}
		for first := range all {
			for _, lambdas := range [][]float64{all[first : first+1], all[first:]} {
				const tol = 1e-10
				fits, err := s.Lasso(run.NewTask(t.Context(), dev, nil), Lasso{Lambdas: lambdas, Method: CoordinateDescent, Tol: tol, MaxIter: 10000})
				if err != nil {
					t.Fatal(err)
				}
				for i, f := range fits {
					lambda := lambdas[i]
					objective, gap := gapOf(x, y, f.Coef.Data, lambda)
					t.Logf("λ %g of %v: objective %.12g, gap %.2g by the data, %.2g by the fit; %d steps, %d weights", lambda, lambdas, objective, gap, f.Gap, f.Iters, f.Support)
					total, _ := gapOf(x, y, make([]float64, x.Cols), 0)
					if len(f.Warnings) > 0 {
						t.Errorf("λ %g of %v: %v", lambda, lambdas, f.Warnings)
					}
					// The second term bounds the rounding error of the gap computed from the data.
					if !(gap <= tol*total+float64(c.n)*epsilon*4*total) {
						t.Errorf("λ %g of %v: the duality gap is %.2g of ‖y‖²", lambda, lambdas, gap/total)
					}
					if f.Iters > c.n+x.Cols {
						t.Errorf("λ %g of %v: %d steps", lambda, lambdas, f.Iters)
					}
				}
			}
		}
	}
}

// TestFitsLeaveSamples checks that fits without an intercept do not change the samples, whose memory they share.
func TestFitsLeaveSamples(t *testing.T) {
	x, y := indicators(300, 3, 20, true, 43)
	originals := [][]float64{slices.Clone(x.Data), slices.Clone(y.Data)}
	s, err := New(t.Context(), numeric.DensePoints(x), y, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	task := run.NewTask(t.Context(), backendtest.Device(t, "cpu"), nil)
	if _, err := s.Lasso(task, Lasso{Lambdas: []float64{1}, Method: CoordinateDescent, Tol: 1e-6, MaxIter: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.residual(task, backend.NewHost[float64](x.Cols, 1)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.Data, originals[0]) || !slices.Equal(y.Data, originals[1]) {
		t.Error("a fit has changed the samples")
	}
}

// TestLassoBeyondRounding checks that a tolerance below the rounding error gives a warning with the gap, and that
// the iteration does not take all allowed steps.
func TestLassoBeyondRounding(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	reached := 0
	for _, lambda := range []float64{1, 0.1, 1e-3, 1e-5} {
		// Nearly equal columns have large weights that cancel each other.
		x, y := indicators(200, 3, 20, false, 42)
		for i := range x.Rows {
			for p := range 20 {
				x.Row(i)[20+p] = x.Row(i)[p] + 1e-4*x.Row(i)[20+p]
			}
		}
		s, err := New(t.Context(), numeric.DensePoints(x), y, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		fits, err := s.Lasso(run.NewTask(t.Context(), dev, nil), Lasso{Lambdas: []float64{lambda}, Method: CoordinateDescent, Tol: 1e-300, MaxIter: 10000})
		if err != nil {
			t.Fatal(err)
		}
		f := fits[0]
		t.Logf("λ %g: %d steps, gap %.2g; %v", lambda, f.Iters, f.Gap, f.Warnings)
		if f.Iters == 10000 {
			t.Errorf("λ %g: gap %v after %d steps", lambda, f.Gap, f.Iters)
		}
		if len(f.Warnings) == 1 && strings.Contains(f.Warnings[0], "rounding errors keep the duality gap at ") {
			reached++
		}
	}
	if reached == 0 {
		t.Error("no fit reported that rounding errors prevent convergence")
	}
}

package learners_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// heteroscedastic returns rows whose noise grows with x.
func heteroscedastic(rng *rand.Rand, n int) (x, y *mat.Dense) {
	x, y = mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		v := 4 * rng.Float64()
		x.Set(i, 0, v)
		y.Set(i, 0, math.Sin(2*v)+0.3*v*rng.ExpFloat64())
	}
	return x, y
}

// classesOfRows returns rows of three overlapping classes, one of which is rare.
func classesOfRows(rng *rand.Rand, n int) (x, y *mat.Dense) {
	x, y = mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		class := float64(rng.IntN(10) / 4) // 0 and 1 with probability 0.4 each, 2 with 0.2
		x.Set(i, 0, 1.5*class+rng.NormFloat64())
		y.Set(i, 0, class)
	}
	return x, y
}

// covered returns the fraction of the targets that are between the bounds.
func covered(y, lower, upper *mat.Dense) float64 {
	n, _ := y.Dims()
	covered := 0
	for i := range n {
		if v := y.At(i, 0); lower.At(i, 0) <= v && v <= upper.At(i, 0) {
			covered++
		}
	}
	return float64(covered) / float64(n)
}

// checkCoverage reports an error unless the mean coverage is in the interval [low, high] or within
// 4 standard errors of it. The draws are independent.
func checkCoverage(t *testing.T, name string, draws []float64, low, high float64) {
	t.Helper()
	mean, deviation := stat.MeanStdDev(draws, nil)
	margin := 4 * deviation / math.Sqrt(float64(len(draws)))
	if mean < low-margin || mean > high+margin {
		t.Errorf("%s: coverage %.4f ± %.4f, want %v to %v", name, mean, margin, low, high)
	}
	t.Logf("%s: coverage %.4f ± %.4f", name, mean, margin)
}

// TestCalibratedCoverage checks that the intervals and sets of models calibrated on m rows contain the targets of
// new rows with probability ⌈level (m+1)⌉/(m+1), or for sets at least this probability.
func TestCalibratedCoverage(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	rng := rand.New(rand.NewPCG(3, 4))
	const level, rows, draws = 0.8, 29, 400
	exact := math.Ceil(level*(rows+1)) / (rows + 1)
	fit := func(name string, task learners.Task, draw func(*rand.Rand, int) (x, y *mat.Dense)) learners.Model {
		d, err := learners.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		fit, err := d.Make(task, nil)
		if err != nil {
			t.Fatal(err)
		}
		x, y := draw(rng, 60)
		m, err := fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, name := range []string{"svr", "kernel-knn", "lasso", "gaussian-process"} {
		m := fit(name, learners.Regression, heteroscedastic)
		var list []float64
		for range draws {
			x, y := heteroscedastic(rng, rows)
			c, err := learners.Calibrate(t.Context(), dev, m, x, y)
			if err != nil {
				t.Fatal(err)
			}
			x, y = heteroscedastic(rng, 20)
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			lower, upper, err := c.Intervals(f, level)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, covered(y, lower, upper))
		}
		checkCoverage(t, name, list, exact, exact)
	}
	for _, name := range []string{"svc", "logistic", "kernel-logistic", "ridge"} {
		m := fit(name, learners.Classification, classesOfRows).(learners.Classifier)
		var list []float64
		for range draws {
			x, y := classesOfRows(rng, rows)
			c, err := learners.Calibrate(t.Context(), dev, m, x, y)
			if err != nil {
				t.Fatal(err)
			}
			x, y = classesOfRows(rng, 20)
			sets, err := c.PredictionSets(t.Context(), dev, m, x, level)
			if err != nil {
				t.Fatal(err)
			}
			coverage := 0.0
			for i := range 20 {
				coverage += sets.At(i, m.Classes().Index(y.At(i, 0))) / 20
			}
			list = append(list, coverage)
		}
		checkCoverage(t, name, list, exact, 1)
	}
}

// TestJackknifeCoverage checks, over random training sets, that the intervals of kernel ridge and ridge contain
// the targets of new rows with a probability that is near the level and at least 2·level − 1.
func TestJackknifeCoverage(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, c := range []struct {
		name string
		fit  func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error)
	}{
		{"kernel ridge", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 0.3}, Lambda: 0.01})},
		{"ridge", ridge(dev, learners.Ridge{Lambda: 1, Intervals: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const level, n, draws = 0.9, 49, 200
			var list, naive []float64
			for range draws {
				x, y := heteroscedastic(rng, n)
				m, err := c.fit(x, y, nil)
				if err != nil {
					t.Fatal(err)
				}
				train, err := learners.Calibrate(t.Context(), dev, m, x, y)
				if err != nil {
					t.Fatal(err)
				}
				x, y = heteroscedastic(rng, 50)
				lower, upper, err := m.Intervals(t.Context(), dev, x, level)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, covered(y, lower, upper))
				f, err := m.Predict(t.Context(), dev, x)
				if err != nil {
					t.Fatal(err)
				}
				if lower, upper, err = train.Intervals(f, level); err != nil {
					t.Fatal(err)
				}
				naive = append(naive, covered(y, lower, upper))
			}
			checkCoverage(t, c.name, list, level, (1+level)/2)
			if c.name == "kernel ridge" && stat.Mean(naive, nil) >= 2*level-1 {
				t.Errorf("residuals of the training rows cover %.3f: the case is too easy to show anything", stat.Mean(naive, nil))
			}
		})
	}
}

// TestCalibrationScores compares an interval with one computed by hand, and checks the errors for invalid levels.
func TestCalibrationScores(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(4, 1, []float64{0, 1, 2, 3})
	m, err := learners.Ridge{NoIntercept: true}.Fit(t.Context(), dev, mat.NewDense(1, 1, []float64{1}), mat.NewDense(1, 1, []float64{1}), learners.Options{}) // f(x) = x
	if err != nil {
		t.Fatal(err)
	}
	c, err := learners.Calibrate(t.Context(), dev, m, x, mat.NewDense(4, 1, []float64{0.5, 1, 0, 4}))
	if err != nil {
		t.Fatal(err)
	}
	lower, upper, err := c.Intervals(mat.NewDense(1, 1, []float64{10}), 0.6) // errors 0, 0.5, 1, 2; rank ⌈0.6·5⌉ = 3
	if err != nil || lower.At(0, 0) != 9 || upper.At(0, 0) != 11 {
		t.Errorf("interval [%v, %v], %v; want [9, 11]", lower, upper, err)
	}
	if _, _, err := c.Intervals(x, 0.81); err == nil || err.Error() != "learners: calibration: level 0.81 needs at least 5 rows that were not used for the fit, but there are 4" {
		t.Errorf("level 0.81 of 4 rows: %v", err)
	}
	if _, _, err := c.Intervals(x, 0.8); err != nil {
		t.Errorf("level 0.8 of 4 rows: %v", err)
	}
	for _, level := range []float64{0, 1, -1, math.NaN()} {
		if _, _, err := c.Intervals(x, level); err == nil {
			t.Errorf("level %v: no error", level)
		}
	}
	if err := (&learners.Calibration{Scores: backend.Host[float64]{Rows: 1, Cols: 2, Stride: 2, Data: []float64{2, 1}}}).Check(m); err == nil {
		t.Error("scores in descending order are not refused")
	}
}

package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// leftOut returns a copy of m in which row i is omitted.
func leftOut(m *mat.Dense, i int) *mat.Dense {
	n, d := m.Dims()
	out := mat.NewDense(n-1, d, nil)
	for k, to := 0, 0; k < n; k++ {
		if k != i {
			out.SetRow(to, m.RawRowView(k))
			to++
		}
	}
	return out
}

// TestJackknifeAgainstRefits compares the bounds of the intervals with bounds computed by their
// definition, from one refit for each omitted sample.
func TestJackknifeAgainstRefits(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	rng := rand.New(rand.NewPCG(1, 2))
	const n, d, outputs, points = 23, 3, 2, 7
	random := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		m.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, m)
		return m
	}
	x, y, z := random(n, d), random(n, outputs), random(points, d)
	y.Apply(func(_, _ int, v float64) float64 { return 10 + v }, y)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 0.5 + rng.Float64()
	}
	withZeros := slices.Clone(weights)
	withZeros[4], withZeros[20] = 0, 0
	for _, c := range []struct {
		name    string
		fit     func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error)
		weights []float64
	}{
		{"kernel ridge", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1.5}, Lambda: 0.3, NoIntercept: true}), nil},
		{"kernel ridge, weights", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1.5}, Lambda: 0.3, NoIntercept: true}), weights},
		{"kernel ridge, weights of 0", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1.5}, Lambda: 0.3}), withZeros},
		{"kernel ridge, intercept", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Laplacian{Sigma: 2}, Lambda: 0.01}), nil},
		{"kernel ridge, a lambda for each target", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambdas: []float64{0.1, 10}}), nil},
		{"kernel ridge, linear", kernelRidge(dev, learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 0.5}), weights},
		{"ridge", ridge(dev, learners.Ridge{Lambda: 0.7, Intervals: true}), nil},
		{"ridge, weights", ridge(dev, learners.Ridge{Lambda: 0.7, Intervals: true}), withZeros},
		{"ridge, no intercept", ridge(dev, learners.Ridge{Lambdas: []float64{0.7, 3}, NoIntercept: true, Intervals: true}), weights},
		{"least squares", ridge(dev, learners.Ridge{Intervals: true}), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := c.fit(x, y, c.weights)
			if err != nil {
				t.Fatal(err)
			}
			const level = 0.8
			var low, high [points][outputs][]float64
			for i := range n {
				if c.weights != nil && c.weights[i] == 0 {
					continue
				}
				var w []float64
				if c.weights != nil {
					w = slices.Delete(slices.Clone(c.weights), i, i+1)
				}
				reduced, err := c.fit(leftOut(x, i), leftOut(y, i), w)
				if err != nil {
					t.Fatal(err)
				}
				atSample, err := reduced.Predict(t.Context(), dev, mat.NewDense(1, d, x.RawRowView(i)))
				if err != nil {
					t.Fatal(err)
				}
				f, err := reduced.Predict(t.Context(), dev, z)
				if err != nil {
					t.Fatal(err)
				}
				for k := range points {
					for j := range outputs {
						e := math.Abs(y.At(i, j) - atSample.At(0, j))
						low[k][j] = append(low[k][j], f.At(k, j)-e)
						high[k][j] = append(high[k][j], f.At(k, j)+e)
					}
				}
			}
			lower, upper, err := m.Intervals(t.Context(), dev, z, level)
			if err != nil {
				t.Fatal(err)
			}
			restored, err := learners.Restore(m.State())
			if err != nil {
				t.Fatal(err)
			}
			lower2, upper2, err := restored.(learners.Jackknife).Intervals(t.Context(), dev, z, level)
			if err != nil {
				t.Fatal(err)
			}
			if !mat.Equal(lower, lower2) || !mat.Equal(upper, upper2) {
				t.Error("a restored model has other intervals")
			}
			// The tolerance is n·2⁻⁵² times the condition number (n + λ max 1/w)/(λ min 1/w) < 1e4, times n·max y for
			// the size of y.
			tol := 1e4 * n * 0x1p-52 * n * mat.Max(y)
			for k := range points {
				for j := range outputs {
					slices.Sort(low[k][j])
					slices.Sort(high[k][j])
					m := len(low[k][j])
					rank := int(math.Ceil(level * float64(m+1)))
					if want := low[k][j][m-rank]; !(math.Abs(lower.At(k, j)-want) <= tol) {
						t.Errorf("lower bound %d of output %d: got %v, refits give %v", k, j, lower.At(k, j), want)
					}
					if want := high[k][j][rank-1]; !(math.Abs(upper.At(k, j)-want) <= tol) {
						t.Errorf("upper bound %d of output %d: got %v, refits give %v", k, j, upper.At(k, j), want)
					}
				}
			}
		})
	}
}

func kernelRidge(dev backend.Device, l learners.KernelRidge) func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error) {
	return func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error) {
		return l.Fit(context.Background(), dev, x, y, learners.Options{Weights: weights})
	}
}

func ridge(dev backend.Device, l learners.Ridge) func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error) {
	return func(x, y *mat.Dense, weights []float64) (learners.Jackknife, error) {
		return l.Fit(context.Background(), dev, x, y, learners.Options{Weights: weights})
	}
}

package glm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// TestLossOfManyParts compares the loss and the gradient with sums over the samples, for dense and sparse samples
// in parts of more than 512 samples. It checks that the gradient does not depend on the number of workers.
func TestLossOfManyParts(t *testing.T) {
	const n, d = 64*partRows + 700, 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := backend.NewHost[float64](n, d)
	for i := range x.Data {
		if i%4 > 0 {
			x.Data[i] = rng.NormFloat64()
		}
	}
	sparse := numeric.SparsePoints(x.CSR())
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = rng.Float64()
	}
	weights[700] = 0
	for _, test := range []struct {
		classes   int
		reference bool
	}{{2, false}, {3, false}, {3, true}} {
		classes := test.classes
		class := make([]int, n)
		for i := range class {
			class[i] = rng.IntN(classes)
		}
		class[700] = -1
		p := Problem{X: numeric.DensePoints(x), Class: class, Classes: classes, Weights: weights, Lambda: 0.5, Intercept: true, Reference: test.reference}
		columns, reference := p.columns()
		theta := backend.NewHost[float64](d+1, columns)
		for i := range theta.Data {
			theta.Data[i] = rng.NormFloat64()
		}
		var first backend.Host[float64]
		for at, threads := range []int{1, 3, 1, 3} {
			if at%2 == 0 {
				first = backend.Host[float64]{}
			}
			if at == 2 {
				p.X = sparse
			}
			dev := backendtest.Device(t, "cpu", backend.Config{Threads: threads})
			l, err := newLogit(run.NewTask(t.Context(), dev, nil), p.X, class, weights, columns, reference, p.Lambda, p.Intercept)
			if err != nil {
				t.Fatal(err)
			}
			defer l.free()
			if at < 2 && len(l.gradients) < 2 || chunks(n, partRows) <= len(l.gradients) {
				t.Fatalf("%d gradients of %d samples", len(l.gradients), n)
			}
			point, err := l.pointAt(theta)
			if err != nil {
				t.Fatal(err)
			}
			if first.Data != nil {
				if !slices.Equal(point.gradient.Data, first.Data) {
					t.Errorf("%d classes: the gradient depends on the number of workers", classes)
				}
				continue
			}
			first = point.gradient
			value, gradient, size := plainLoss(p, l.mean, theta)
			// The limit covers the rounding errors of n terms and of their sum.
			limit := 4 * n * epsilon * size
			if math.Abs(point.value-value) > limit {
				t.Errorf("%d classes: loss %v, want %v", classes, point.value, value)
			}
			for i, want := range gradient.Data {
				if got := point.gradient.Data[i]; math.Abs(got-want) > limit {
					t.Errorf("%d classes: gradient %d is %v, want %v ± %.2g", classes, i, got, want, limit)
				}
			}
		}
	}
}

// plainLoss computes the loss and its gradient sample by sample, and the sum of the absolute terms.
func plainLoss(p Problem, mean []float64, theta backend.Host[float64]) (value float64, gradient backend.Host[float64], size float64) {
	d := p.X.Cols
	gradient = backend.NewHost[float64](d+1, theta.Cols)
	for i := range p.X.Rows {
		if p.Weights[i] == 0 {
			continue
		}
		x := append(slices.Clone(p.X.Point(i)), 1)
		for q, m := range mean {
			x[q] -= m
		}
		f := make([]float64, theta.Cols)
		for q, v := range x {
			for c, w := range theta.Row(q) {
				f[c] += w * v
			}
		}
		first := 0 // the class of column 0 of θ
		if p.Classes == 2 {
			f, first = []float64{0, f[0]}, 1
		} else if p.Reference {
			f = append(f, 0)
		}
		sum := 0.0
		for _, v := range f {
			sum += math.Exp(v)
		}
		loss := math.Log(sum) - f[p.Class[i]]
		value += p.Weights[i] * loss
		size += p.Weights[i] * loss
		for c := range theta.Cols {
			r := math.Exp(f[c+first]) / sum
			if p.Class[i] == c+first {
				r--
			}
			for q, v := range x {
				gradient.Row(q)[c] += p.Weights[i] * r * v
				size += math.Abs(p.Weights[i] * r * v)
			}
		}
	}
	for q := range d {
		for c, w := range theta.Row(q) {
			value += p.Lambda / 2 * w * w
			gradient.Row(q)[c] += p.Lambda * w
		}
	}
	return value, gradient, size
}

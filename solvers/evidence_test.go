package solvers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// plainEvidence evaluates the formula of Evidence with gonum's Cholesky factor.
func plainEvidence(p solvers.Problem, fit bool) (log float64, scale []float64) {
	n := p.X.Rows
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)))
		}
		c.SetSym(i, i, c.At(i, i)+p.Lambda)
	}
	var chol mat.Cholesky
	if !chol.Factorize(c) {
		panic("not positive definite")
	}
	for j := range p.Y.Cols {
		y := mat.NewVecDense(n, nil)
		for i := range n {
			y.SetVec(i, p.Y.Row(i)[j])
		}
		var a mat.VecDense
		if err := chol.SolveVecTo(&a, y); err != nil {
			panic(err)
		}
		q, s := mat.Dot(y, &a), 1.0
		if fit {
			s = q / float64(n)
		}
		scale = append(scale, s)
		log -= (q/s + float64(n)*math.Log(2*math.Pi*s) + chol.LogDet()) / 2
	}
	return log, scale
}

// TestLogEvidence compares the evidence with gonum's value, and its derivatives with central differences, which
// have a truncation error of h² times the third derivative, and the rounding error of the evidence divided by h.
func TestLogEvidence(t *testing.T) {
	rng := pathRandom(t)
	for _, name := range pathDevices {
		dev := backendtest.Device(t, name)
		for _, n := range []int{1, 5, 60, 300} {
			if n == 300 && (name == "ref" || testing.Short()) {
				continue
			}
			for _, text := range []string{"gaussian(sigma=1.5)", "gaussian(sigma=[1,2,0.7])", "2*gaussian(sigma=[1,2,0.7]) + 0.3", "matern52(sigma=2)*polynomial(degree=2,c=1) + linear()"} {
				k, err := kernels.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, fit := range []bool{false, true} {
					p := solvers.Problem{Kernel: k, X: normals(rng, n, 3), Y: normals(rng, n, 2), Lambda: 0.3}
					what := fmt.Sprintf("%s n=%d %s fit=%v", name, n, text, fit)
					e, err := solvers.LogEvidence(context.Background(), dev, p, solvers.EvidenceParams{FitScale: fit, Gradient: true})
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					want, scale := plainEvidence(p, fit)
					tol := 1e-11 * (math.Abs(want) + float64(n)) // n rounding errors times a condition number of some hundreds
					if math.Abs(e.Log-want) > tol || math.Abs(e.Scale[1]-scale[1]) > 1e-11*scale[1] {
						t.Errorf("%s: %v with scales %v, want %v with %v", what, e.Log, e.Scale, want, scale)
					}
					const h = 1e-4
					slope := func(change func(f float64) solvers.Problem) float64 {
						larger, _ := plainEvidence(change(math.Exp(h)), fit)
						smaller, _ := plainEvidence(change(math.Exp(-h)), fit)
						return (larger - smaller) / (2 * h)
					}
					near := func(name string, got, want float64) {
						if !(math.Abs(got-want) <= 1e-5*(math.Abs(want)+float64(n))) {
							t.Errorf("%s: derivative with respect to %s is %v, by differences %v", what, name, got, want)
						}
					}
					near("ln lambda", e.Gradient[len(e.Gradient)-1], slope(func(f float64) solvers.Problem { q := p; q.Lambda *= f; return q }))
					params := kernels.Params(k)
					if len(e.Gradient) != len(params)+1 {
						t.Fatalf("%s: %d derivatives of %d parameters", what, len(e.Gradient), len(params))
					}
					for i, q := range params {
						near(q.Name, e.Gradient[i], slope(func(f float64) solvers.Problem {
							values := make([]float64, len(params))
							for j, r := range params {
								values[j] = r.Value
							}
							values[i] *= f
							r := p
							if r.Kernel, err = kernels.WithParams(k, values); err != nil {
								t.Fatal(err)
							}
							return r
						}))
					}
				}
			}
		}
	}
}

// TestScaleDerivatives compares the derivatives by scaleSums with those of an equal product kernel, which are computed
// from one matrix ∂K/∂θ for each parameter. The expanded terms of scaleSums are up to 2¹⁶ (maxScaled²): the sums have
// rounding errors of about 2⁻⁵²·2¹⁶·n. In the last problem, scaleSums does not apply.
func TestScaleDerivatives(t *testing.T) {
	rng := pathRandom(t)
	n := 300 // two blocks of columns
	for i, name := range pathDevices {
		dev := backendtest.Device(t, name)
		for j, spread := range []float64{1, 60, 1e4} {
			if required.FewCases() && (i+j)%2 == 0 {
				continue
			}
			k := kernels.Gaussian{Sigmas: []float64{1, 2, 0.7}}
			p := solvers.Problem{X: normals(rng, n, 3), Y: normals(rng, n, 2), Lambda: 0.3, Weights: constant(n, 2)}
			for i := range n / 2 { // move half of the samples away from the others
				p.X.Row(i)[0] += spread
			}
			gradient := func(k kernels.Kernel) []float64 {
				p.Kernel = k
				e, err := solvers.LogEvidence(context.Background(), dev, p, solvers.EvidenceParams{FitScale: true, Gradient: true})
				if err != nil {
					t.Fatal(err)
				}
				return e.Gradient
			}
			for _, pair := range [][2]kernels.Kernel{{k, kernels.Product{k, kernels.Constant{Value: 1}}}, {kernels.Scaled{Weight: 2, Kernel: k}, kernels.Product{kernels.Constant{Value: 2}, k}}} {
				got, want := gradient(pair[0]), gradient(pair[1])
				for i, v := range got[:len(got)-1] {
					if !(math.Abs(v-want[i]) <= 0x1p-36*float64(n)) {
						t.Errorf("%s, spread %v, %v: derivative %d is %v, want %v", name, spread, pair[0], i+1, v, want[i])
					}
				}
			}
		}
	}
}

// TestLogEvidenceWeights checks that a weight counts repetitions of a sample.
func TestLogEvidenceWeights(t *testing.T) {
	rng := pathRandom(t)
	n := 12
	x, y, weights := normals(rng, n, 2), normals(rng, n, 1), make([]float64, n)
	var rx, ry []float64
	for i := range n {
		weights[i] = float64(i % 4)
		for range i % 4 {
			rx, ry = append(rx, x.Row(i)...), append(ry, y.Row(i)...)
		}
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: x, Y: y, Weights: weights, Lambda: 0.1}
	q := solvers.Problem{
		Kernel: p.Kernel, Lambda: p.Lambda,
		X: backend.Host[float64]{Rows: len(ry), Cols: 2, Stride: 2, Data: rx},
		Y: backend.Host[float64]{Rows: len(ry), Cols: 1, Stride: 1, Data: ry},
	}
	for _, fit := range []bool{false, true} {
		par := solvers.EvidenceParams{FitScale: fit, Gradient: true}
		a, err := solvers.LogEvidence(context.Background(), backendtest.Device(t, "cpu"), p, par)
		if err != nil {
			t.Fatal(err)
		}
		b, err := solvers.LogEvidence(context.Background(), backendtest.Device(t, "cpu"), q, par)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range [][2]float64{{a.Log, b.Log}, {a.Scale[0], b.Scale[0]}, {a.Gradient[0], b.Gradient[0]}, {a.Gradient[1], b.Gradient[1]}} {
			if math.Abs(v[0]-v[1]) > 1e-11*(1+math.Abs(v[1])) { // n² rounding errors times a condition number of some hundreds
				t.Errorf("fit=%v: weighted %+v, repeated %+v", fit, a, b)
				break
			}
		}
	}
}

func TestVariance(t *testing.T) {
	rng := pathRandom(t)
	for _, name := range pathDevices {
		dev := backendtest.Device(t, name)
		for _, n := range []int{1, 40, 150} {
			p := solvers.Problem{Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, X: normals(rng, n, 2), Y: normals(rng, n, 1), Lambda: 0.05, Weights: make([]float64, n)}
			for i := range p.Weights {
				p.Weights[i] = 0.5 + rng.Float64()
			}
			points := normals(rng, 300, 2)
			copy(points.Row(0), p.X.Row(0))
			u, err := solvers.NewUncertainty(context.Background(), dev, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := u.Variance(context.Background(), dev, points, 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				dense, err := u.Variance(context.Background(), dev, points, 0)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(dense, got) {
					t.Fatalf("%s n=%d: the factor that was kept gives other bits", name, n)
				}
				if now, _ := dev.InUse(); now != 0 {
					t.Fatalf("%s n=%d: %d bytes are left on the device", name, n, now)
				}
			}
			c := mat.NewSymDense(n, nil)
			for i := range n {
				for j := range i + 1 {
					c.SetSym(i, j, kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)))
				}
				c.SetSym(i, i, c.At(i, i)+p.Lambda/p.Weights[i])
			}
			var chol mat.Cholesky
			if !chol.Factorize(c) {
				t.Fatal("not positive definite")
			}
			for r := range points.Rows {
				k, s := mat.NewVecDense(n, nil), mat.VecDense{}
				for i := range n {
					k.SetVec(i, kernels.Eval(p.Kernel, p.X.Row(i), points.Row(r)))
				}
				if err := chol.SolveVecTo(&s, k); err != nil {
					t.Fatal(err)
				}
				want := 1 - mat.Dot(k, &s)
				if tol := 10 * 0x1p-52 * float64(n) * chol.Cond(); math.Abs(got[r]-want) > tol {
					t.Fatalf("%s n=%d: variance %d is %v, want %v ± %.1g", name, n, r, got[r], want, tol)
				}
			}
		}
	}
}

func TestEvidenceRefuses(t *testing.T) {
	rng, dev := pathRandom(t), backendtest.Device(t, "cpu")
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, 50, 2), Y: normals(rng, 50, 1), Lambda: 1}
	for _, c := range []struct {
		change func(p *solvers.Problem, par *solvers.EvidenceParams)
		want   string
	}{
		{func(p *solvers.Problem, _ *solvers.EvidenceParams) { p.Lambda = 0 }, "lambda, the variance of the noise, must be > 0, got 0"},
		{func(p *solvers.Problem, _ *solvers.EvidenceParams) { p.Intercept = true }, "an intercept has no prior"},
		{func(_ *solvers.Problem, par *solvers.EvidenceParams) { par.Memory = 100 }, "100 B may be used"},
		{func(_ *solvers.Problem, par *solvers.EvidenceParams) { par.Memory = -1 }, "memory must be ≥ 0"},
		{func(p *solvers.Problem, _ *solvers.EvidenceParams) {
			p.Kernel, p.Lambda = kernels.Gaussian{Sigma: 1e3}, 1e-20
		}, "raise lambda"},
	} {
		q, par := p, solvers.EvidenceParams{}
		c.change(&q, &par)
		if _, err := solvers.LogEvidence(context.Background(), dev, q, par); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	zero := p
	zero.Y = backend.NewHost[float64](50, 1)
	if e, err := solvers.LogEvidence(context.Background(), dev, zero, solvers.EvidenceParams{FitScale: true}); err != nil || e.Scale[0] != 1 {
		t.Errorf("targets of zero: %+v, %v", e, err)
	}
	u, err := solvers.NewUncertainty(context.Background(), dev, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Variance(context.Background(), dev, normals(rng, 3, 4), 0); err == nil || !strings.Contains(err.Error(), "points have 4 columns, x has 2") {
		t.Error(err)
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if _, err := solvers.LogEvidence(ctx, dev, p, solvers.EvidenceParams{}); !errors.Is(err, stop) {
		t.Error(err)
	}
	if now, _ := dev.InUse(); now != 0 {
		t.Errorf("%d bytes are left", now)
	}
}

// TestEvidenceMemory checks that the number of bytes in the error for too little memory suffices as a limit.
func TestEvidenceMemory(t *testing.T) {
	rng := pathRandom(t)
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, 300, 2), Y: normals(rng, 300, 2), Lambda: 1, Weights: constant(300, 1)}
	p.Weights[5] = 0
	u, err := solvers.NewUncertainty(context.Background(), backendtest.Device(t, "cpu"), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(dev backend.Device, memory int64) error{
		"value": func(dev backend.Device, memory int64) error {
			_, err := solvers.LogEvidence(context.Background(), dev, p, solvers.EvidenceParams{Memory: memory})
			return err
		},
		"gradient": func(dev backend.Device, memory int64) error {
			_, err := solvers.LogEvidence(context.Background(), dev, p, solvers.EvidenceParams{Memory: memory, Gradient: true})
			return err
		},
		"variance": func(dev backend.Device, memory int64) error {
			_, err := u.Variance(context.Background(), dev, normals(rng, 100, 2), memory)
			return err
		},
	} {
		dev := backendtest.Device(t, "cpu")
		var budget *solvers.BudgetError
		if err := run(dev, 1); !errors.As(err, &budget) {
			t.Fatalf("%s: %v", name, err)
		}
		if err := run(dev, budget.Needed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, peak := dev.InUse(); peak > budget.Needed || float64(peak) < 0.9*float64(budget.Needed) {
			t.Errorf("%s: took %d bytes, planned %d", name, peak, budget.Needed)
		}
	}
}

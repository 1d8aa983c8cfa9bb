package sparse

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// bits is the precision of the recomputed evidence. The Cholesky factorization loses slightly more than 53 bits.
const bits = 300

func exactly(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }

func plus(a, b *big.Float) *big.Float  { return new(big.Float).SetPrec(bits).Add(a, b) }
func minus(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(bits).Sub(a, b) }
func times(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(bits).Mul(a, b) }
func over(a, b *big.Float) *big.Float  { return new(big.Float).SetPrec(bits).Quo(a, b) }

// denseEvidence recomputes the log evidence of p's model from Φ, α and μ. The result bound is twice the sum of the
// bounds on two errors of p.value: (k+1)ε Σ|μφ| for f = Φμ, and tr(|H⁻¹||ΔH|) for log|H|, with |ΔH_ij| ≤ (n+k+4)ε
// √(H_ii H_jj).
func denseEvidence(t *testing.T, p *laplace) (value, bound float64) {
	t.Helper()
	n, k := p.phi.phi.Rows, len(p.active)
	h := make([][]*big.Float, k) // H, which its factor overwrites
	for a, j := range p.active {
		h[a] = make([]*big.Float, k)
		for b := range h[a] {
			h[a][b] = exactly(0)
		}
		h[a][a] = exactly(p.alpha[j])
		value += math.Log(p.alpha[j])/2 - p.alpha[j]*p.mu[a]*p.mu[a]/2
	}
	for i := range n {
		row, f, size := p.phi.phi.Row(i), exactly(0), 0.0
		for a, j := range p.active {
			f = plus(f, times(exactly(p.mu[a]), exactly(row[j])))
			size += math.Abs(p.mu[a] * row[j])
		}
		z, _ := f.Float64()
		w := p.phi.weight[i]
		curve := w * expit(z) * expit(-z)
		if p.positive[i] {
			z = -z
		}
		value -= w * (math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))))
		bound += 2 * w * epsilon * (float64(k+1)*size*expit(z) + 4*math.Log1p(math.Exp(-math.Abs(z))) + 4*math.Max(z, 0))
		for a, j := range p.active {
			for b, l := range p.active {
				h[a][b] = plus(h[a][b], times(exactly(curve), times(exactly(row[j]), exactly(row[l]))))
			}
		}
	}
	diagonal := make([]float64, k)
	for a := range h {
		diagonal[a], _ = h[a][a].Float64()
	}
	inverse := make([][]*big.Float, k) // inverse of L
	for a := range h {
		for b := range a + 1 {
			sum := h[a][b]
			for c := range b {
				sum = minus(sum, times(h[a][c], h[b][c]))
			}
			if a > b {
				h[a][b] = over(sum, h[b][b])
				continue
			}
			if sum.Sign() <= 0 {
				t.Fatalf("H is not positive definite at function %d in %d bits", a, bits)
			}
			h[a][a] = new(big.Float).SetPrec(bits).Sqrt(sum)
			v, _ := h[a][a].Float64()
			value -= math.Log(v)
			bound += 4 * epsilon * math.Abs(math.Log(v))
		}
		inverse[a] = make([]*big.Float, k)
		for b := range k {
			sum := exactly(0)
			if a == b {
				sum = exactly(1)
			}
			for c := range a {
				sum = minus(sum, times(h[a][c], inverse[c][b]))
			}
			inverse[a][b] = over(sum, h[a][a])
		}
	}
	for a := range k {
		for b := range k {
			sum := exactly(0)
			for c := range k {
				sum = plus(sum, times(inverse[c][a], inverse[c][b]))
			}
			v, _ := sum.Float64()
			bound += float64(n+k+4) * epsilon * math.Abs(v) * math.Sqrt(diagonal[a]*diagonal[b])
		}
	}
	return value, bound
}

// hardProblems returns problems whose likelihood or basis is near the limits of float64.
func hardProblems(seed uint64) []struct {
	name   string
	kernel kernels.Kernel
	x, y   backend.Host[float64]
	spread float64 // the weights are 10^spread for half of the n rows and 10^−spread for the other half
} {
	r := rand.New(rand.NewPCG(seed, 0))
	type problem = struct {
		name   string
		kernel kernels.Kernel
		x, y   backend.Host[float64]
		spread float64
	}
	var list []problem
	for _, data := range []string{"separable", "duplicate rows", "nearly duplicate rows", "one row of a class", "contradicting duplicates"} {
		const n = 24
		x, y := backend.NewHost[float64](n, 2), backend.NewHost[float64](n, 1)
		for i := range n {
			x.Row(i)[0], x.Row(i)[1] = r.NormFloat64(), r.NormFloat64()
			if i%3 > 0 && strings.Contains(data, "duplicate") {
				copy(x.Row(i), x.Row(i-1))
				if data == "nearly duplicate rows" {
					x.Row(i)[0] += 1e-9 * r.NormFloat64()
				}
			}
			y.Data[i] = math.Copysign(1, x.Row(i)[0])
			if data == "contradicting duplicates" && i%3 == 2 || data == "one row of a class" {
				y.Data[i] = -1
			}
		}
		if data == "one row of a class" {
			y.Data[5] = 1
		}
		for _, k := range []kernels.Kernel{
			kernels.Gaussian{Sigma: 1e-3}, kernels.Gaussian{Sigma: 1}, kernels.Gaussian{Sigma: 1e3}, kernels.Gaussian{Sigma: 1e5},
			kernels.Linear{}, kernels.Polynomial{Degree: 20, C: 1}, kernels.Sigmoid{A: 1, C: 1},
		} {
			for _, spread := range []float64{0, 3, 6} {
				list = append(list, problem{fmt.Sprintf("%s, %v, weights 1e±%g", data, k, spread), k, x, y, spread})
			}
		}
	}
	return list
}

// TestRefusedStepKeepsTheBestModel checks that a fit with a step to a model that is singular to working precision
// returns the model before such a step, with its evidence and a warning.
func TestRefusedStepKeepsTheBestModel(t *testing.T) {
	const seed = 20261125
	t.Logf("seed %d", seed)
	dev := backendtest.Device(t, "cpu")
	refusals := 0
	for _, c := range hardProblems(seed) {
		task := run.NewTask(t.Context(), dev, nil)
		weights := make([]float64, c.x.Rows)
		for i := range weights {
			weights[i] = math.Pow(10, c.spread*float64(1-2*(i%2)))
		}
		b, err := newBasis(task, Problem{Kernel: c.kernel, X: c.x, Weights: weights})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p, err := newLaplace(task, b)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		p.begin(c.y, 0)
		if err := p.maximize(1e-6, 300); err != nil {
			t.Errorf("%s: %v", c.name, err)
			p.free()
			continue
		}
		value, bound := denseEvidence(t, p)
		if !(math.Abs(p.value-value) <= bound) {
			t.Errorf("%s: the log evidence is %v, %v from its model, which rounding may change by %.2g", c.name, p.value, value, bound)
		}
		for i, v := range p.trace[1:] {
			if !(v > p.trace[i]) {
				t.Errorf("%s: step %d: the evidence falls from %v to %v", c.name, i+2, p.trace[i], v)
			}
		}
		if strings.Contains(p.warning, "the model is the best one before") {
			refusals++
		}
		p.free()
	}
	// The number of refused steps depends on rounding errors: TestEveryRefusedFactorization forces refusals.
	t.Logf("%d fits ended at a step that was refused", refusals)
}

// brittle is a backend whose factorization number failAt fails.
type brittle struct {
	backend.Backend[float64]
	count  *int
	failAt int
}

func (b brittle) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	if *b.count++; *b.count == b.failAt {
		return &backend.PivotError{Index: 0}
	}
	return b.Backend.Potrf(ul, a)
}

// TestEveryRefusedFactorization checks that fits for regression and classification still return a model if any one
// factorization after the first model fails.
func TestEveryRefusedFactorization(t *testing.T) {
	const seed = 20261126
	t.Logf("seed %d", seed)
	dev := backendtest.Device(t, "cpu")
	r := rand.New(rand.NewPCG(seed, 0))
	const n = 30
	x, signs, y := backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1)
	weights := make([]float64, n)
	for i := range n {
		x.Data[i], weights[i] = 3*r.NormFloat64(), 1
		y.Data[i] = math.Sin(x.Data[i]) + 0.1*r.NormFloat64()
		signs.Data[i] = math.Copysign(1, y.Data[i])
	}
	problem := Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: x, Weights: weights}
	for name, c := range map[string]struct {
		first int // number of factorizations for the first model
		fit   func(*run.Task) (*Result, error)
	}{
		"rvc": {0, func(task *run.Task) (*Result, error) {
			return Classification(task, problem, signs, Params{Tol: 1e-3, MaxIter: 100})
		}},
		"rvm": {1, func(task *run.Task) (*Result, error) {
			return Regression(task, problem, y, Sequential, Params{Tol: 1e-3, MaxIter: 100})
		}},
		"rvm, fixed-point": {1, func(task *run.Task) (*Result, error) {
			return Regression(task, problem, y, FixedPoint, Params{Tol: 1e-3, MaxIter: 100})
		}},
	} {
		fit := func(failAt int) (r *Result, calls int, err error) {
			task := run.NewTask(t.Context(), dev, nil)
			task.B = brittle{task.B, &calls, failAt}
			r, err = c.fit(task)
			return r, calls, err
		}
		_, calls, err := fit(0)
		if err != nil {
			t.Fatal(err)
		}
		first := c.first
		if name == "rvc" { // count the factorizations for the model with φ_0 alone
			task := run.NewTask(t.Context(), dev, nil)
			task.B = brittle{task.B, &first, 0}
			b, _ := newBasis(task, problem)
			p, _ := newLaplace(task, b)
			p.begin(signs, 0)
			if err := p.mode(); err != nil {
				t.Fatal(err)
			}
			if err := p.statistics(); err != nil {
				t.Fatal(err)
			}
			p.free()
		}
		for call := first + 1; call <= calls; call++ {
			r, _, err := fit(call)
			if err != nil {
				t.Errorf("%s: factorization %d of %d: %v", name, call, calls, err)
				continue
			}
			if r.Evidence-r.Evidence != 0 || r.Points.Rows == 0 {
				t.Errorf("%s: factorization %d of %d: log evidence %v of %d points", name, call, calls, r.Evidence, r.Points.Rows)
			}
			for _, trace := range r.Traces {
				if len(trace) == 0 {
					continue
				}
				if initial := trace[0]; !(r.Evidence >= initial-1e-9*(1+math.Abs(initial))) {
					t.Errorf("%s: factorization %d of %d: log evidence %v is below the first, %v", name, call, calls, r.Evidence, initial)
				}
			}
		}
	}
}

// Package sparse implements relevance vector machines, sparse models that maximize the evidence.
package sparse

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/spread"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// Problem specifies the basis φ_0 = 1 and φ_j = k(x_j, ·) for the rows x_j of Points. The weight of
// function j has the prior N(0, 1/α_j). The α maximize the evidence, and most α are infinite.
type Problem struct {
	Kernel  kernels.Kernel
	X       backend.Host[float64] // n×d
	Points  backend.Host[float64] // m×d; if Points has no rows, the points are the rows of X; Classification requires this
	Weights []float64             // weights of the rows, > 0
}

// Params holds the settings of the search.
type Params struct {
	Tol     float64 // smallest gain of the log evidence that justifies a step
	MaxIter int     // maximum number of steps
}

// Method names a method to maximize the evidence.
type Method string

const (
	// Sequential adds, changes or deletes in each step the basis function with the largest gain of the
	// evidence (Tipping and Faul 2003). A step takes O(n·m) operations with m functions in the model.
	Sequential Method = "sequential"
	// FixedPoint starts with all functions. It repeats α_j ← γ_j/μ_j² and σ² ← ‖t − Φμ‖²/(N − Σ_j γ_j), where γ_j = 1 −
	// α_jΣ_jj, and prunes functions whose α diverges (Tipping 2001). A step with m functions takes O(m³) operations.
	FixedPoint Method = "fixed-point"
)

// Result is a model f(x) = Σ_j μ_j k(x_j, x) + μ_0. It has at least one point; its weight may be 0.
type Result struct {
	Points    backend.Host[float64] // the x_j with a finite α_j, m×d
	Coef      backend.Host[float64] // the μ_j of these points, one column for each target
	Intercept []float64             // μ_0
	Root      backend.Host[float64] // for Regression: R of the posterior covariance RRᵀ of μ_0 (row 0) and μ_j
	Noise     float64               // for Regression: σ²
	Functions int                   // number of functions with a finite α; Classification does not count φ_0
	Steps     int
	Modes     int         // for Classification: number of modes of the posterior that were computed
	Evidence  float64     // log evidence, summed over the targets
	Traces    [][]float64 // the log evidence of each target after each step
	Warning   string      // why the search ended before Tol was reached; "" if Tol was reached
}

// Regression fits y, n×1, with noise of variance σ²/w_i, where σ² also maximizes the evidence.
func Regression(t *run.Task, p Problem, y backend.Host[float64], method Method, par Params) (*Result, error) {
	b, err := newBasis(t, p)
	if err != nil {
		return nil, err
	}
	if r := b.constant(y); r != nil {
		return r, t.Step("solve", 1)
	}
	e, err := newEvidence(t, b, y)
	if err != nil {
		return nil, err
	}
	if method == FixedPoint {
		err = e.fixedPoint(par.Tol, par.MaxIter)
	} else {
		err = e.sequential(par.Tol, par.MaxIter)
	}
	if err = e.keepBest(err); err != nil {
		return nil, err
	}
	r := &Result{Noise: 1 / e.beta, Functions: len(e.active), Steps: len(e.trace), Evidence: e.value, Traces: [][]float64{e.trace}, Warning: e.warning, Intercept: make([]float64, 1)}
	r.Points, r.Coef, r.Intercept[0], r.Root = b.model(e.active, e.mu, e.root)
	return r, t.Step("solve", 1)
}

// constant returns a model with φ_0 alone if y is constant up to rounding, and nil for any other y. The noise of
// the model is the rounding error of y.
func (b *basis) constant(y backend.Host[float64]) *Result {
	var s spread.Spread
	for i := range y.Rows {
		s.Add(y.Row(i)[0])
	}
	if !s.Constant() {
		return nil
	}
	r := &Result{Noise: max(elementary.Pow(epsilon*s.Mean(), 2), 0x1p-1022), Functions: 1, Intercept: make([]float64, 1)}
	root := backend.NewHost[float64](1, 1)
	root.Data[0] = math.Sqrt(r.Noise / b.total)
	r.Evidence = -b.total * elementary.Log(2*math.Pi*r.Noise) / 2
	r.Traces = [][]float64{{r.Evidence}}
	r.Points, r.Coef, r.Intercept[0], r.Root = b.model([]int{0}, []float64{s.Mean()}, root)
	return r
}

// Classification fits each column of signs, ±1, by Laplace's approximation of the evidence. The
// values f of the model are log odds.
func Classification(t *run.Task, p Problem, signs backend.Host[float64], par Params) (*Result, error) {
	b, err := newBasis(t, p)
	if err != nil {
		return nil, err
	}
	l, err := newLaplace(t, b)
	if err != nil {
		return nil, err
	}
	defer l.free()
	machines := signs.Cols
	r := &Result{Intercept: make([]float64, machines)}
	line := make(map[int][]float64) // for each function, its weights for all columns of signs
	for c := range machines {
		l.begin(signs, c)
		l.base, l.fraction = 0.05+0.95*float64(c)/float64(machines), 0.95/float64(machines)
		if err := l.maximize(par.Tol, par.MaxIter); err != nil {
			return nil, err
		}
		for a, j := range l.active {
			if j == 0 {
				r.Intercept[c] = l.mu[a]
				continue
			}
			if line[j] == nil {
				line[j] = make([]float64, machines)
			}
			line[j][c] = l.mu[a]
		}
		if r.Warning == "" {
			r.Warning = l.warning
		}
		r.Steps += l.steps
		r.Modes += l.modes
		r.Evidence += l.value
		r.Traces = append(r.Traces, l.trace)
	}
	var list []int
	for j := range line {
		list = append(list, j)
	}
	slices.Sort(list)
	r.Functions = len(list)
	count := max(len(list), 1)
	r.Points, r.Coef = backend.NewHost[float64](count, p.X.Cols), backend.NewHost[float64](count, machines)
	copy(r.Points.Row(0), p.X.Row(0))
	for i, j := range list {
		copy(r.Points.Row(i), p.X.Row(j-1))
		copy(r.Coef.Row(i), line[j])
	}
	return r, t.Step("solve", 1)
}

// basis holds Φ for the rows of weight > 0, with φ_0 = 1 and φ_j = k(x_j, ·).
type basis struct {
	x      backend.Host[float64] // the points
	phi    backend.Host[float64] // n×(m+1)
	weight []float64
	total  float64 // Σ w
}

// Bytes returns an upper bound on the memory of a fit, in bytes, for m functions in addition to φ_0.
func Bytes(method Method, n, m, d int) int64 {
	columns, matrices := int64(m)+1, int64(4)
	if method == Sequential {
		matrices = 2
	}
	return 8 * (columns*(matrices*columns+int64(n)+1) + int64(n)*int64(d))
}

func newBasis(t *run.Task, p Problem) (*basis, error) {
	b := &basis{x: p.X, weight: p.Weights}
	for _, w := range p.Weights {
		b.total += w
	}
	z, square := backend.Host[float64]{}, p.Points.Rows == 0
	if !square {
		b.x, z = p.Points, p.Points
	}
	n, m := p.X.Rows, b.x.Rows
	gram, err := t.B.New(n, m)
	if err != nil {
		return nil, err
	}
	defer gram.Free()
	b.phi = backend.NewHost[float64](max(n, m+1), m+1).View(0, 0, n, m+1) // at least m+1 rows of memory, which a step of the fixed-point method reuses
	values := b.phi.View(0, 1, n, m)
	err = run.Placed(t.B, p.X, z, func(x, z backend.Matrix[float64]) error {
		if square {
			z = x
		}
		t.B.Gram(gram, p.Kernel, x, z)
		return t.B.Download(values, gram)
	})
	if err != nil {
		return nil, err
	}
	for i := range n {
		if i%64 == 0 && t.Ctx.Err() != nil {
			return nil, context.Cause(t.Ctx)
		}
		b.phi.Row(i)[0] = 1
		row := values.Row(i)
		if square {
			row = row[:i+1]
		}
		for j, v := range row {
			if v-v != 0 {
				return nil, kernels.Overflow(fmt.Errorf("values of the kernel %v overflow: scale the features down", p.Kernel))
			}
			if square {
				values.Row(j)[i] = v
			}
		}
	}
	return b, t.Step("gram", 0.05)
}

// model returns the points of the active functions, their weights, the weight of φ_0, and R with the row of φ_0 first.
func (b *basis) model(active []int, mu []float64, root backend.Host[float64]) (points, weights backend.Host[float64], intercept float64, rows backend.Host[float64]) {
	m := 0
	for _, j := range active {
		if j > 0 {
			m++
		}
	}
	count := max(m, 1) // a model has at least one point, whose weight may be 0
	points, weights = backend.NewHost[float64](count, b.x.Cols), backend.NewHost[float64](count, 1)
	rows = backend.NewHost[float64](count+1, root.Cols)
	copy(points.Row(0), b.x.Row(0))
	pos := 0
	for p, j := range active {
		if j == 0 {
			intercept = mu[p]
			copy(rows.Row(0), root.Row(p))
			continue
		}
		copy(points.Row(pos), b.x.Row(j-1))
		weights.Data[pos] = mu[p]
		copy(rows.Row(pos+1), root.Row(p))
		pos++
	}
	return points, weights, intercept, rows
}

const epsilon = 0x1p-52

// Probabilities returns the probabilities of the classes. If f has one column, it holds the log
// odds of the second of two classes. Otherwise column c holds the log odds of class c against all
// other classes, and the probabilities are normalized to sum to 1.
func Probabilities(f *mat.Dense) *mat.Dense {
	n, cols := f.Dims()
	out := mat.NewDense(n, max(cols, 2), nil)
	for i := range n {
		row := out.RawRowView(i)
		if cols == 1 {
			row[0], row[1] = expit(-f.At(i, 0)), expit(f.At(i, 0))
			continue
		}
		sum := 0.0
		for c, v := range f.RawRowView(i) {
			row[c] = math.Max(expit(v), math.SmallestNonzeroFloat64*(1<<52))
			sum += row[c]
		}
		for c := range row {
			row[c] /= sum
		}
	}
	return out
}

// expit returns 1/(1 + e^−v) to full precision for both signs of v.
func expit(v float64) float64 {
	if v >= 0 {
		return 1 / (1 + elementary.Exp(-v))
	}
	e := elementary.Exp(v)
	return e / (1 + e)
}

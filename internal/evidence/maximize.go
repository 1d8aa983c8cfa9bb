// Package evidence finds the parameters of a Gaussian process that maximize its marginal likelihood.
package evidence

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/floats"
)

// search holds the state of Maximize.
type search struct {
	ctx              context.Context
	dev              backend.Device
	problem          solvers.Problem // has the kernel and λ of the first start
	par              Params
	params           []kernels.Param
	low, high        []float64 // bounds of the box; the last entry bounds ln λ
	start            []float64
	defaultLogLambda float64 // logarithm of a λ well above rounding errors: a tenth of the mean of k(x, x)

	evaluations int
	err         error // error of the last evaluation
	point       []float64
	value       float64 // −log p at point
	gradient    []float64
	candidates  []Candidate
	bestPoint   []float64   // in a local search on a part of the samples: the point with the smallest value so far
	bestValue   float64     // value at bestPoint
	ends        [][]float64 // end points of the local searches on a part of the samples
}

// Candidate is a point at which the likelihood was computed.
type Candidate struct {
	Kernel  kernels.Kernel
	Lambda  float64
	Log     float64 // log marginal likelihood
	Seconds float64 // duration of the evaluation
	// Slope is the largest absolute derivative of Log with respect to a parameter, or to the logarithm of a
	// positive parameter, without derivatives that point out of the box.
	Slope float64
	// Warning is not "" if the local search that evaluated the point reached the limit of evaluations. It contains
	// advice in the format of package message.
	Warning string
}

const (
	// maxLogDistance bounds the logarithm of a parameter's ratio to its start: ln 100,000, as in scikit-learn.
	maxLogDistance = 11.5
	// minNoise is the smallest ratio of λ to the mean of k(x, x). For smaller λ, the rounding error of K may exceed λ.
	minNoise = 1e-9
	// maxNoise is the largest ratio of λ to the mean of k(x, x). For larger λ, K is negligible.
	maxNoise = 1e6
	// maxEvaluations is the maximum number of evaluations for one start of Maximize.
	maxEvaluations = 150
)

func newSearch(ctx context.Context, dev backend.Device, p solvers.Problem, par Params) (*search, error) {
	par.Gradient = true
	h := &search{ctx: ctx, dev: dev, problem: p, par: par, params: kernels.Params(p.Kernel)}
	for _, q := range h.params {
		v, distance := q.Value, 1e3*max(1, math.Abs(q.Value))
		low, high := max(v-distance, q.Min), min(v+distance, q.Max)
		if q.Log {
			// The smallest float64 replaces a parameter of 0, which has no logarithm.
			v = elementary.Log(max(v, math.SmallestNonzeroFloat64))
			low, high = max(v-maxLogDistance, elementary.Log(q.Min)), min(v+maxLogDistance, elementary.Log(q.Max))
		}
		h.start, h.low, h.high = append(h.start, v), append(h.low, low), append(h.high, high)
	}
	x := numeric.DensePoints(p.X)
	if p.Sparse != nil {
		x = numeric.SparsePoints(*p.Sparse)
	}
	mean := 0.0
	for i := range x.Rows {
		mean += x.Diag(p.Kernel, i) / float64(x.Rows)
	}
	if !(mean > 0) || math.IsInf(mean, 1) {
		return nil, fmt.Errorf("the search needs a kernel with a finite mean of k(x, x) > 0; it is %v for %v", mean, p.Kernel)
	}
	h.defaultLogLambda = elementary.Log(mean / 10)
	h.problem.Lambda = cmp.Or(p.Lambda, mean/10)
	l := elementary.Log(h.problem.Lambda)
	h.start = append(h.start, l)
	h.low = append(h.low, min(l, elementary.Log(minNoise*mean)))
	h.high = append(h.high, max(l, elementary.Log(maxNoise*mean)))
	return h, nil
}

// Params holds the settings of Maximize.
type Params struct {
	solvers.EvidenceParams
	Restarts int    // number of starts in addition to the point of the problem
	Seed     uint64 // seed of the restarts and of the part of the samples
	// Report, if not nil, is called with two numbers of evaluations: with all samples, and with a
	// part of the samples. Each number is at most 150 for each start.
	Report func(evaluations, partEvaluations int)
	// Evaluate, if not nil, replaces solvers.LogEvidence. The search then uses all samples from the beginning.
	Evaluate func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error)
}

// log returns the likelihood of p.
func (h *search) log(p solvers.Problem) (*solvers.Evidence, error) {
	if h.par.Evaluate != nil {
		return h.par.Evaluate(p.Kernel, p.Lambda)
	}
	return solvers.LogEvidence(h.ctx, h.dev, p, h.par.EvidenceParams)
}

// Maximize returns the points that a search for the largest log marginal likelihood has evaluated, sorted so that the
// best is first. The search uses L-BFGS (Liu and Nocedal 1989) over the continuous parameters of p.Kernel and λ, on
// logarithmic scales for positive parameters. It starts from the point of p and from Restarts random points (see
// starts). The parameters stay within the bounds of their rules, and in a box around the first start. Outside the box,
// the likelihood is replaced by its value at the nearest point of the box minus a quarter of the squared distance.
//
// With 800 samples or more, the local searches from the starts use a random quarter of the samples, but at least
// 400 and at most 2000. The search then continues with all samples from the best of their end points: see finish.
//
// The results always include the point with the kernel p.Kernel and a λ of a tenth of the mean of k(x, x). A
// p.Lambda of 0 means this λ. If the likelihood cannot be computed at any start, the search starts at this point.
// Points whose likelihood cannot be computed (see attempt.Numeric) are omitted. If the likelihood cannot be
// computed at any point, Maximize returns the error.
//
// Columns of zeros in p.Y are omitted from the likelihood. If all columns are zero, the first start is the only
// point, and a p.Lambda of 0 means 0.1.
func Maximize(ctx context.Context, dev backend.Device, p solvers.Problem, par Params) ([]Candidate, error) {
	targets := nonzeroColumns(p.Y)
	if targets.Cols == 0 {
		p.Lambda = cmp.Or(p.Lambda, 0.1)
		e, err := (&search{ctx: ctx, dev: dev, par: par}).log(p)
		if err != nil {
			return nil, err
		}
		return []Candidate{{Kernel: p.Kernel, Lambda: p.Lambda, Log: e.Log}}, nil
	}
	p.Y = targets
	h, err := newSearch(ctx, dev, p, par)
	if err != nil {
		return nil, err
	}
	starts := h.starts()
	if err := h.climbParts(starts); err != nil {
		return nil, err
	}
	for _, x := range starts {
		if len(h.ends) > 0 {
			break
		}
		if err := h.climb(x, 1e-5); err != nil {
			return nil, err
		}
	}
	x := slices.Clone(h.start)
	x[len(x)-1] = h.defaultLogLambda
	if len(h.candidates) == 0 {
		err = h.climb(x, 1e-5)
	} else if !floats.Equal(x, h.start) {
		h.evaluate(x)
		err = h.fatalError()
	}
	if err != nil {
		return nil, err
	}
	if len(h.candidates) == 0 {
		return nil, fmt.Errorf("the likelihood could not be computed at any starting point: %w", h.err)
	}
	slices.SortStableFunc(h.candidates, func(a, b Candidate) int { return cmp.Compare(b.Log, a.Log) })
	// Remove duplicates: a line search may return to a point, and points outside the box are moved to its boundary.
	return slices.CompactFunc(h.candidates, func(a, b Candidate) bool {
		return a.Log == b.Log && a.Lambda == b.Lambda && a.Kernel.String() == b.Kernel.String()
	}), nil
}

// nonzeroColumns returns h without the columns that are zero.
func nonzeroColumns(h backend.Host[float64]) backend.Host[float64] {
	var list []int
	for j := range h.Cols {
		for i := range h.Rows {
			if h.Row(i)[j] != 0 {
				list = append(list, j)
				break
			}
		}
	}
	if len(list) == h.Cols {
		return h
	}
	nonzero := backend.NewHost[float64](h.Rows, len(list))
	for i := range h.Rows {
		for k, j := range list {
			nonzero.Row(i)[k] = h.Row(i)[j]
		}
	}
	return nonzero
}

// starts returns the first start and par.Restarts random starts. A random start multiplies each parameter of the first
// start by 10ᵘ, with u uniform between −1 and 1. It does not change a kernel parameter whose field Log is not set. If a
// kernel, which may be a term of a sum or a factor of a product, has d length scales of single features, they are
// multiplied by 10ᵘ/√d with u between −½ and ½.
func (h *search) starts() [][]float64 {
	rng := rand.New(rand.NewPCG(h.par.Seed, 2))
	features := map[string]int{} // the number of length scales of single features in each kernel
	for _, q := range h.params {
		if kernel, _, ok := strings.Cut(q.Name, "sigma["); ok {
			features[kernel]++
		}
	}
	starts := make([][]float64, h.par.Restarts+1)
	for i := range starts {
		starts[i] = slices.Clone(h.start)
		for k := range starts[i] {
			if i == 0 || k < len(h.params) && !h.params[k].Log {
				continue
			}
			u := 2*rng.Float64() - 1
			if k < len(h.params) {
				if kernel, _, ok := strings.Cut(h.params[k].Name, "sigma["); ok {
					starts[i][k] -= elementary.Log(float64(features[kernel])) / 2
					u /= 2
				}
			}
			starts[i][k] += math.Ln10 * u
		}
	}
	return starts
}

// climb is one run of L-BFGS. It ends when the largest derivative, divided by the number n of samples, is tol/√n.
// It need not converge, because the field candidates holds every point that it evaluated.
func (h *search) climb(x []float64, tol float64) error {
	tol *= math.Sqrt(float64(h.problem.Y.Rows))
	evaluations, firstCandidate := h.evaluations, len(h.candidates)
	h.evaluate(x)
	if math.IsInf(h.value, 1) {
		return h.fatalError() // the value at the start is not finite
	}
	limited := h.descend(x, tol, evaluations+maxEvaluations)
	if err := h.fatalError(); err != nil {
		return err
	}
	if limited {
		for i := range h.candidates[firstCandidate:] {
			if c := &h.candidates[firstCandidate+i]; c.Slope > tol {
				c.Warning = fmt.Sprintf("a local search has not converged within %d evaluations: the log likelihood still changes by %.2g for each unit of the logarithm of a parameter, more than %.2g: {start again from the $kernel that was found}",
					maxEvaluations, c.Slope, tol)
			}
		}
	}
	return nil
}

// descend runs L-BFGS (Nocedal and Wright 2006, algorithm 7.4) from x, at which the value is known. It returns true if
// h has counted `limit` evaluations. Otherwise it ends when all derivatives are below tol, when four successive steps
// together have decreased the value v by less than 10⁻⁷ + 10⁻¹⁰|v|, or when rounding errors prevent a step.
func (h *search) descend(x []float64, tol float64, limit int) (limited bool) {
	const maxPairs = 15
	type pair struct {
		s, y  []float64
		sy, a float64
	}
	var pairs []pair
	value, gradient := h.value, slices.Clone(h.gradient)
	reference, smallSteps := value, 0
	for floats.Norm(gradient, math.Inf(1)) >= tol {
		direction, step := slices.Clone(gradient), 1.0
		for i := range slices.Backward(pairs) {
			p := &pairs[i]
			p.a = numeric.Dot(p.s, direction) / p.sy
			numeric.Axpy(-p.a, p.y, direction)
		}
		if k := len(pairs); k > 0 {
			floats.Scale(pairs[k-1].sy/numeric.Dot(pairs[k-1].y, pairs[k-1].y), direction)
		} else {
			step = 1 / math.Sqrt(numeric.Dot(gradient, gradient))
		}
		for _, p := range pairs {
			numeric.Axpy(p.a-numeric.Dot(p.y, direction)/p.sy, p.s, direction)
		}
		floats.Scale(-1, direction)
		slope := numeric.Dot(gradient, direction)
		if !(slope < 0) {
			return false
		}
		// Double the step while the value decreases, and then bisect.
		low, high, lowValue, highValue := 0.0, math.Inf(1), value, math.NaN()
		trial := make([]float64, len(x))
		for {
			floats.AddScaledTo(trial, x, step, direction)
			if floats.Equal(trial, x) {
				return false
			}
			h.evaluate(trial)
			if h.fatalError() != nil {
				return false
			}
			if h.evaluations >= limit {
				return true
			}
			minValue := lowValue
			if highValue < minValue {
				minValue = highValue
			}
			lower, newSlope, bounded := h.value <= minValue, numeric.Dot(h.gradient, direction), !math.IsInf(high, 1)
			if lower && math.Abs(newSlope) < 0.9*math.Abs(slope) {
				break
			}
			next := 2 * step
			switch {
			case lower && !bounded && newSlope <= 0:
				low, lowValue = step, h.value
			case lower && newSlope < 0, !lower && bounded && !(lowValue <= highValue):
				low, lowValue = step, h.value
				next = (low + high) / 2
			default:
				high, highValue = step, h.value
				next = (low + high) / 2
			}
			if next == step {
				return false
			}
			step = next
		}
		p := pair{s: make([]float64, len(x)), y: make([]float64, len(x))}
		floats.SubTo(p.s, trial, x)
		floats.SubTo(p.y, h.gradient, gradient)
		p.sy = numeric.Dot(p.s, p.y)
		pairs = append(pairs[max(0, len(pairs)-maxPairs+1):], p)
		x, value, gradient = trial, h.value, slices.Clone(h.gradient)
		if reference-value > 1e-10*max(math.Abs(value), math.Abs(reference))+1e-7 {
			reference, smallSteps = value, 0
		} else if smallSteps++; smallSteps == 4 {
			return false
		}
	}
	return false
}

// fatalError returns the error that ends the whole search, or nil. Numerical errors (attempt.Numeric) do not end it.
func (h *search) fatalError() error {
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	if h.err != nil && !attempt.Numeric(h.err) {
		return h.err
	}
	return nil
}

// evaluate computes the fields value and gradient at x, unless they have already been computed at x.
func (h *search) evaluate(x []float64) {
	if h.point != nil && floats.Equal(h.point, x) {
		return
	}
	h.point = append(h.point[:0], x...)
	h.gradient = make([]float64, len(x))
	h.value = math.Inf(1)
	if h.fatalError() != nil {
		return
	}
	clipped := make([]float64, len(x))
	for i, v := range x {
		clipped[i] = min(max(v, h.low[i]), h.high[i])
	}
	p, start := h.problem, time.Now()
	var err error
	if p.Kernel, p.Lambda, err = h.kernelAt(clipped); err == nil {
		var e *solvers.Evidence
		if e, err = h.log(p); err == nil {
			h.value = -e.Log
			maxSlope := 0.0
			for i := range x {
				slope := e.Gradient[i]
				if slope > 0 && clipped[i] < h.high[i] || slope < 0 && clipped[i] > h.low[i] {
					maxSlope = max(maxSlope, math.Abs(slope))
				}
				h.gradient[i] = -slope
				if excess := x[i] - clipped[i]; excess != 0 {
					h.gradient[i] = excess / 2
					h.value += excess * excess / 4
				}
			}
			if h.value < h.bestValue {
				h.bestPoint, h.bestValue = append(h.bestPoint[:0:0], x...), h.value
			}
			h.candidates = append(h.candidates, Candidate{Kernel: p.Kernel, Lambda: p.Lambda, Log: e.Log, Seconds: time.Since(start).Seconds(), Slope: maxSlope})
		}
	}
	h.err = err
	h.evaluations++
	if h.par.Report != nil {
		h.par.Report(h.evaluations, 0)
	}
}

// kernelAt returns the kernel and λ of a point.
func (h *search) kernelAt(x []float64) (kernels.Kernel, float64, error) {
	values := make([]float64, len(h.params))
	for i, q := range h.params {
		values[i] = x[i]
		if q.Log {
			values[i] = q.Nearest(elementary.Exp(x[i])) // exp(ln Max) may exceed Max by rounding
			if q.Value == 0 {
				values[i] = 0
			}
		}
	}
	k, err := kernels.WithParams(h.problem.Kernel, values)
	return k, elementary.Exp(x[len(x)-1]), err
}

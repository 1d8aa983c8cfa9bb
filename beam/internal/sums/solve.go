package sums

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/solvers"
)

// Problem is the problem to solve with the sums of a Gatherer:
//
//	minimize Σ_i (y_i − φ(x_i)ᵀβ − b)² + λ βᵀSβ
//
// with λ unscaled, and b = 0 unless there is an intercept, which is not penalized.
type Problem struct {
	Basis       Basis
	Targets     int       // t
	TargetShift []float64 // y₀ as in the Gatherer; nil means zeros and is required without an intercept
	Lambda      float64   // ≥ 0
	Intercept   bool
}

// Solution holds β and b of a Problem, for features and targets as given to Add, before any shift.
type Solution struct {
	Beta      backend.Host[float64] // M×t; for Fourier, the coefficients of the scaled functions
	Intercept []float64
	Residual  float64 // relative residual of the normal equations: see equationSolution
	Jitter    float64
	// Squares are Σ_i (y_i − f(x_i))² of each target over the summed rows, computed from the sums
	// with an error of about 2⁻⁴⁰ of Σ (y_i − y₀)².
	Squares []float64
}

// equations unpacks s. If there is an intercept, it centers ΦᵀΦ and Φᵀy with pairs of float64, so that no accuracy
// is lost if φ is far from 0.
func (p Problem) equations(ctx context.Context, dev backend.Device, s *Sums) (*equations, error) {
	m, t := p.Basis.Size(), p.Targets
	q := m + t + 1
	if s.Len() != p.Basis.Sums(t) {
		return nil, fmt.Errorf("sums: got %d sums, which do not match %d functions and %d targets", s.Len(), m, t)
	}
	if s.Rows == 0 {
		return nil, errors.New("sums: there are no rows")
	}
	e := &equations{
		gram: backend.NewHost[float64](m, m), right: backend.NewHost[float64](m, t), lambda: p.Lambda,
		rows: float64(s.Rows), meanPhi: make([]float64, m), meanY: make([]float64, t),
	}
	entry := func(i, j int) float64 {
		h, l := s.high[packedIndex(i, j)], s.low[packedIndex(i, j)]
		if p.Intercept {
			ih, il := s.high[packedIndex(q-1, i)], s.low[packedIndex(q-1, i)]
			jh := s.high[packedIndex(q-1, j)] / e.rows
			// Subtract the product of the sums of columns i and j, divided by n. The product of the high parts is
			// exact as the pair (ph, pl).
			ph := ih * jh
			pl := math.FMA(ih, jh, -ph)
			jl := (math.FMA(-jh, e.rows, s.high[packedIndex(q-1, j)]) + s.low[packedIndex(q-1, j)]) / e.rows
			pl += ih*jl + il*jh
			h, l = add(h, l, -ph, -pl)
		}
		return h + l
	}
	for i := range m {
		for j := range i + 1 {
			e.gram.Row(i)[j] = entry(i, j)
		}
	}
	for i := range t {
		for j := range m {
			e.right.Row(j)[i] = entry(m+i, j)
		}
	}
	if p.Intercept {
		for j := range m {
			e.meanPhi[j] = s.Value(packedIndex(q-1, j)) / e.rows
		}
		for j := range t {
			e.meanY[j] = s.Value(packedIndex(q-1, m+j)) / e.rows
		}
	}
	var err error
	e.penalty, err = p.Basis.Penalty(dev.F64().With(ctx, nil))
	return e, err
}

// Solve solves p for the sums of all rows. It uses only the fields Memory and Tol of par. It returns the same
// errors as solvers.SolveNystrom.
func (p Problem) Solve(ctx context.Context, dev backend.Device, s *Sums, par solvers.StreamParams) (*Solution, error) {
	if err := p.Basis.Check(); err != nil {
		return nil, err
	}
	if p.TargetShift != nil && !p.Intercept {
		return nil, errors.New("sums: shifted targets need an intercept")
	}
	e, err := p.equations(ctx, dev, s)
	if err != nil {
		return nil, err
	}
	res, err := e.solve(ctx, dev, par.Tol, par.Memory)
	if err != nil {
		return nil, err
	}
	sol := &Solution{Beta: res.beta, Residual: res.residual, Jitter: res.jitter}
	p.intercept(e, sol)
	sol.Squares, err = p.Squares(s, sol)
	return sol, err
}

func (p Problem) intercept(e *equations, sol *Solution) {
	sol.Intercept = make([]float64, p.Targets)
	for j := range sol.Intercept {
		if !p.Intercept {
			continue
		}
		b := e.meanY[j]
		for i, v := range e.meanPhi {
			b -= v * sol.Beta.Row(i)[j]
		}
		if p.TargetShift != nil {
			b += p.TargetShift[j]
		}
		for i, v := range p.Basis.Shift {
			b -= v * sol.Beta.Row(i)[j]
		}
		sol.Intercept[j] = b
	}
}

// Squares returns Σ_i (y_i − f(x_i))² of each target over the rows of s, which may differ from the rows to which
// sol was fitted. With v = (−β; 1; −b) and Z as in Gatherer this is vᵀZᵀZv, added as pairs of float64. A negative
// result is a rounding error, and is replaced by 0.
func (p Problem) Squares(s *Sums, sol *Solution) ([]float64, error) {
	m, t := p.Basis.Size(), p.Targets
	if s.Len() != p.Basis.Sums(t) {
		return nil, fmt.Errorf("sums: got %d sums, which do not match %d functions and %d targets", s.Len(), m, t)
	}
	entry := func(i, j int) float64 { return s.high[packedIndex(max(i, j), min(i, j))] }
	squares := make([]float64, t)
	c := make([]float64, m)
	for k := range t {
		// The sums are over the shifted targets and functions. Convert the intercept to these.
		b := sol.Intercept[k]
		if p.TargetShift != nil {
			b -= p.TargetShift[k]
		}
		for i := range c {
			c[i] = sol.Beta.Row(i)[k]
		}
		for i, v := range p.Basis.Shift {
			b += v * c[i]
		}
		var h, l float64
		term := func(a, v float64) {
			ph := a * v
			h, l = add(h, l, ph, math.FMA(a, v, -ph))
		}
		y, ones := m+k, m+t
		for i := range m {
			row := 0.0
			first := packedIndex(i, 0)
			for j, v := range c[:i] {
				row += v * s.high[first+j]
			}
			term(c[i], 2*row+c[i]*entry(i, i)-2*entry(y, i)+2*b*entry(ones, i))
		}
		term(1, entry(y, y))
		term(-2*b, entry(ones, y))
		term(b*b, entry(ones, ones))
		squares[k] = max(h+l, 0)
	}
	return squares, nil
}

// Posterior returns the Gaussian process whose mean is sol, a solution of p for the sums s. squares holds Σ_i (y_i
// − f(x_i))² of each target. A basis of the kind Centers needs a Root. If unit is set, the scale s² of the process
// is 1; otherwise see stream.Posterior.
func (p Problem) Posterior(ctx context.Context, dev backend.Device, s *Sums, sol *Solution, squares []float64, unit bool) (*stream.Posterior, error) {
	if p.Basis.Kind == Centers && p.Basis.Root.Rows == 0 || !(p.Lambda > 0) {
		return nil, errors.New("sums: a posterior needs a basis whose penalty is the identity, and lambda > 0")
	}
	e, err := p.equations(ctx, dev, s)
	if err != nil {
		return nil, err
	}
	m := p.Basis.Size()
	err = solvers.Reserve(ctx, dev, 0, "posterior", 1, func(int) int64 { return numeric.Bytes(numeric.Elements(m+1, m+1)) })
	if err != nil {
		return nil, err
	}
	q := stream.Posterior{Weight: e.rows, Lambda: p.Lambda, Unit: unit, Quadratic: make([]float64, p.Targets)}
	for j := range q.Quadratic {
		if p.Intercept && p.constant(s, j) { // a constant target equals b, so that its quadratic term is 0
			continue
		}
		q.Quadratic[j] = squares[j] / p.Lambda
		for i := range m {
			q.Quadratic[j] += sol.Beta.Row(i)[j] * sol.Beta.Row(i)[j]
		}
	}
	if p.Basis.Kind == Centers {
		last := Triangle(m + p.Targets + 1)
		h, l := s.high[last], s.low[last]
		for i := range m {
			h, l = add(h, l, -s.high[packedIndex(i, i)], -s.low[packedIndex(i, i)])
		}
		q.ResidualTrace = max(0, h+l)
	}
	var mean []float64
	if p.Intercept {
		mean = e.meanPhi
		for j, v := range p.Basis.Shift {
			mean[j] += v
		}
	}
	return stream.PosteriorOf(ctx, dev, q, e.sum(), p.Basis.Root, mean)
}

// constant reports whether target j is constant up to rounding errors. The sums s are over z = y − y₀, where y₀ is
// p.TargetShift[j]. If y₀ is in the range of y and y is not constant, Σ(z − mean z)² is at least Σz²/n.
func (p Problem) constant(s *Sums, j int) bool {
	y, ones := p.Basis.Size()+j, p.Basis.Size()+p.Targets
	square, sum := s.Value(packedIndex(y, y)), s.Value(packedIndex(ones, y))
	return square-sum*sum/float64(s.Rows) <= PlainRows*0x1p-53*square
}

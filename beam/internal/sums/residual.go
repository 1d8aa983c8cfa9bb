package sums

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// A Measurer computes sums of the residuals of a solution in a separate pass over the samples. With
// e = Y − ΦB − b the sums are
//
//	Φᵀe, M×t by rows; 1ᵀe, t; Σ e², t
//
// It subtracts ΦB + b from Y before it sums, so that the error of the residual is relative to e.
type Measurer struct {
	b         backend.Backend[float64]
	phi       *deviceBasis
	m, t      int
	panel     panel // buffered rows; its targets are y − b
	residuals backend.Host[float64]
	product   backend.Host[float64]

	z, e, beta, r backend.Matrix[float64] // z and e: panels of Φ and of e; r: Φᵀe
	sums          *Sums
}

// MeasuredLen returns the number of sums of a Measurer.
func MeasuredLen(m, t int) int { return (m + 2) * t }

// NewMeasurer allocates a Measurer for sol, a solution of p.
func NewMeasurer(dev backend.Device, p Problem, sol *Solution) (*Measurer, error) {
	if err := p.Basis.Check(); err != nil {
		return nil, err
	}
	g := &Measurer{b: dev.F64(), m: p.Basis.Size(), t: p.Targets}
	if sol.Beta.Rows != g.m || sol.Beta.Cols != g.t {
		return nil, fmt.Errorf("sums: a solution of %d×%d does not fit %d functions and %d targets", sol.Beta.Rows, sol.Beta.Cols, g.m, g.t)
	}
	intercept := make([]float64, g.t)
	for j := range intercept {
		intercept[j] = sol.Intercept[j]
		for i, v := range p.Basis.Shift {
			intercept[j] += v * sol.Beta.Row(i)[j]
		}
	}
	g.panel = newPanel(p.Basis.Features, g.t, intercept)
	g.residuals, g.product = backend.NewHost[float64](PanelRows, g.t), backend.NewHost[float64](g.m, g.t)
	g.sums = NewSums(MeasuredLen(g.m, g.t))
	var err error
	if g.phi, err = p.Basis.toDevice(g.b, PanelRows); err != nil {
		return nil, fmt.Errorf("sums: %w", err)
	}
	for _, a := range []struct {
		to         *backend.Matrix[float64]
		rows, cols int
	}{{&g.z, PanelRows, g.m}, {&g.e, PanelRows, g.t}, {&g.beta, g.m, g.t}, {&g.r, g.m, g.t}} {
		if *a.to, err = g.b.New(a.rows, a.cols); err != nil {
			g.Free()
			return nil, fmt.Errorf("sums: %w", err)
		}
	}
	if err := g.b.Upload(g.beta, sol.Beta); err != nil {
		g.Free()
		return nil, fmt.Errorf("sums: %w", err)
	}
	return g, nil
}

// Free releases the memory on the device.
func (g *Measurer) Free() {
	g.phi.free()
	for _, m := range []backend.Matrix[float64]{g.z, g.e, g.beta, g.r} {
		if m != nil {
			m.Free()
		}
	}
}

// Add adds rows as Gatherer.Add does.
func (g *Measurer) Add(x, y backend.Host[float64]) error {
	return g.panel.add(x, y, nil, g.multiply)
}

// multiply adds the sums of the buffered rows.
func (g *Measurer) multiply() error {
	r := g.panel.filled
	if r == 0 {
		return nil
	}
	x, y := g.panel.rows()
	z, e := g.z.View(0, 0, r, g.m), g.e.View(0, 0, r, g.t)
	if err := g.phi.fill(z, x); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	if err := g.b.Upload(e, y); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	g.b.Gemm(backend.NoTrans, backend.NoTrans, -1, z, g.beta, 1, e)
	g.b.Gemm(backend.Transpose, backend.NoTrans, 1, z, e, 0, g.r)
	if err := g.b.Download(g.product, g.r); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	residuals := g.residuals.View(0, 0, r, g.t)
	if err := g.b.Download(residuals, e); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	for i, v := range g.product.Data {
		g.sums.Add(i, v)
	}
	for i := range r {
		for j, v := range residuals.Row(i) {
			g.sums.Add(g.m*g.t+j, v)
			g.sums.Add((g.m+1)*g.t+j, v*v)
		}
	}
	g.sums.Rows += int64(r)
	g.panel.filled = 0
	return nil
}

// Take returns the sums over the rows added since the last Take and resets them.
func (g *Measurer) Take() (*Sums, error) {
	if err := g.multiply(); err != nil {
		return nil, err
	}
	s := g.sums
	g.sums = NewSums(MeasuredLen(g.m, g.t))
	return s, nil
}

// Measured holds the residual and the squared errors of a solution, computed from the samples.
type Measured struct {
	Residual float64               // the largest ‖Φᵀ(y − Φβ − b) − λSβ‖ / ‖Φᵀy‖ of a target, centered if there is an intercept: see numeric.ScaleOf
	Squares  []float64             // Σ (y − f(x))² of each target
	gradient backend.Host[float64] // Φᵀ(y − Φβ − b) − λSβ, M×t
}

// Measure computes the residual of sol from measured, the sums of a Measurer. s holds the sums of a Gatherer over
// the same rows. tol is the tolerance to which the residual will be compared.
func (p Problem) Measure(ctx context.Context, dev backend.Device, s, measured *Sums, sol *Solution, tol float64) (*Measured, error) {
	m, t := p.Basis.Size(), p.Targets
	if measured.Len() != MeasuredLen(m, t) || measured.Rows != s.Rows {
		return nil, fmt.Errorf("sums: the samples have changed between two passes: %d rows, then %d", s.Rows, measured.Rows)
	}
	e, err := p.equations(ctx, dev, s)
	if err != nil {
		return nil, err
	}
	functions := 0.0 // Σ ‖φ‖²
	for i := range m {
		functions += s.Value(packedIndex(i, i))
	}
	out := &Measured{Squares: make([]float64, t), gradient: backend.NewHost[float64](m, t)}
	for j := range t {
		out.Squares[j] = measured.Value((m+1)*t + j)
		var residualNorm, rightNorm float64
		for i := range m {
			v := measured.Value(i*t + j)
			if p.Intercept {
				v -= e.meanPhi[i] * measured.Value(m*t+j)
			}
			if e.penalty.Rows == 0 {
				v -= p.Lambda * sol.Beta.Row(i)[j]
			} else {
				for k := range m {
					v -= p.Lambda * e.penalty.Row(max(i, k))[min(i, k)] * sol.Beta.Row(k)[j]
				}
			}
			out.gradient.Row(i)[j] = v
			residualNorm = math.Hypot(residualNorm, v)
			rightNorm = math.Hypot(rightNorm, e.right.Row(i)[j])
		}
		terms := math.Sqrt(functions) * math.Sqrt(s.Value(packedIndex(m+j, m+j)))
		const rounding = PlainRows * 0x1p-53 // relative error of an entry of Φᵀy: see the package's comment
		out.Residual = max(out.Residual, numeric.Ratio(residualNorm, numeric.ScaleOf(rightNorm, terms, rounding, tol)))
	}
	return out, nil
}

// Correct returns sol after one step of iterative refinement with the measured residual: β + (G +
// λS)⁻¹(Φᵀ(y − Φβ − b) − λSβ) (Björck 1987).
func (p Problem) Correct(ctx context.Context, dev backend.Device, s *Sums, sol *Solution, measured *Measured) (*Solution, error) {
	e, err := p.equations(ctx, dev, s)
	if err != nil {
		return nil, err
	}
	// The correction needs only a low accuracy.
	e.right = measured.gradient
	res, err := e.solve(ctx, dev, 0.5, 0)
	if err != nil {
		return nil, err
	}
	corrected := &Solution{Beta: backend.NewHost[float64](sol.Beta.Rows, sol.Beta.Cols), Residual: sol.Residual, Jitter: res.jitter}
	for i, v := range sol.Beta.Data {
		corrected.Beta.Data[i] = v + res.beta.Data[i]
	}
	p.intercept(e, corrected)
	corrected.Squares, err = p.Squares(s, corrected)
	return corrected, err
}

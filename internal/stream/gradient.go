package stream

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// GradientBytes returns the device memory of Gradient, in bytes.
func GradientBytes(n, m, t int) int64 {
	rows := PieceRows(n, m)
	return numeric.Bytes(numeric.Total(numeric.Elements(3*m+2*rows, m), numeric.Elements(3*m+1, t), numeric.Elements(2*m+rows, 1)))
}

// Gradient returns the derivatives of p.Bound with respect to the parameters of the kernel, as in
// kernels.Gradient, and last with respect to ln λ, for the preconditioner of Whole, its solution and its
// posterior. The centers are constant. It takes one pass, and 3nM² + 4M³ operations.
//
// The derivatives follow from those with respect to Φ = k(X, c), S = k(c, c) = TᵀT and k(x_i, x_i), in
// which the solution β and s² are constant because they are optimal. With V = ΦT⁻¹, its weighted mean v̄,
// H = AAᵀ, γ = Tβ, and the residuals r of the t outputs,
//
//	∂/∂Φ = W(V(tI/λ − tH⁻¹) + t1v̄ᵀH⁻¹ + r diag(1/λs²)γᵀ)T⁻ᵀ,  ∂/∂k(x_i, x_i) = −tw_i/2λ
//	∂/∂S = T⁻¹(tI − tλH⁻¹/2 − tH/2λ − tΣw v̄v̄ᵀ/2λ − γ diag(1/2s²)γᵀ)T⁻ᵀ
//	∂/∂ln λ = (Σ_j Q_j − ‖γ_j‖²/s_j² − t(λ tr H⁻¹ + N − M) + tRest/λ)/2
//
// where Q_j is the quotient of Quadratic and s_j², and N is Σw, or Σw − 1 with an intercept.
func (w *Equations) Gradient(pre *Preconditioner, s *Solution, p *Posterior) ([]float64, error) {
	f := pre.Preconditioner.(*falkon)
	g := &gradient{Equations: w, f: f, p: p, c: w.basis.(*Centers), outputs: float64(w.t)}
	g.derivatives = kernels.Gradient(g.c.Kernel)
	g.sums = make([]float64, len(g.derivatives)+1)
	for i, v := range w.selves {
		g.sums[i] -= g.outputs * v / (2 * w.Lambda)
	}
	defer func() {
		for _, m := range g.placed {
			w.mem.Free(m)
		}
	}()
	if err := g.prepare(s); err != nil {
		return nil, err
	}
	if err := g.addCenters(); err != nil {
		return nil, err
	}
	return g.sums, w.each(g.addPiece)
}

// gradient is the state of Gradient.
type gradient struct {
	*Equations
	f            *falkon
	p            *Posterior
	c            *Centers
	derivatives  []kernels.Kernel
	outputs      float64 // t
	sums         []float64
	placed       []backend.Matrix[float64]
	byS, solved  backend.Matrix[float64] // ∂/∂S, and (tI/λ − tH⁻¹)T⁻ᵀ
	bar, dk      backend.Matrix[float64] // ∂/∂Φ and ∂k/∂θ of a piece
	beta, scaled backend.Matrix[float64] // β and β diag(1/λs²)
	bias, row    backend.Matrix[float64] // b and tv̄ᵀH⁻¹T⁻ᵀ
	ones         backend.Matrix[float64]
	columns      []float64
}

// place copies h to the device, where the copy remains until Gradient returns.
func (g *gradient) place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	m, err := g.mem.Place(h)
	if err == nil {
		g.placed = append(g.placed, m)
	}
	return m, err
}

// prepare computes the matrices that all pieces share, and ∂/∂ln λ.
func (g *gradient) prepare(s *Solution) error {
	m, rows := g.m, 0
	rows, _ = g.phi.Dims()
	var inverse backend.Matrix[float64] // H⁻¹
	for _, a := range []struct {
		to   *backend.Matrix[float64]
		rows int
	}{{&inverse, m}, {&g.byS, m}, {&g.solved, m}, {&g.bar, rows}, {&g.dk, rows}} {
		var err error
		if *a.to, err = g.mem.New(a.rows, m); err != nil {
			return err
		}
		g.placed = append(g.placed, *a.to)
	}
	gamma, mean, lower := backend.NewHost[float64](m, g.t), backend.NewHost[float64](m, 1), backend.NewHost[float64](m, m)
	halved, scaled := numeric.Clone(gamma), numeric.Clone(s.Beta)
	bias := backend.NewHost[float64](1, g.t)
	lambda := g.Lambda
	at := len(g.sums) - 1
	for i := range m {
		for k, v := range g.p.Factors.Row(i)[i:] {
			numeric.Axpy(v, s.Beta.Row(i+k), gamma.Row(i))
		}
		copy(lower.Row(i)[:i+1], g.p.Factors.Row(g.p.Factors.Rows - m + i)[:i+1])
		if g.p.Shift != nil {
			mean.Data[i] = numeric.Dot(lower.Row(i)[:i+1], g.p.Shift[:i+1])
		}
		for j, v := range gamma.Row(i) {
			halved.Row(i)[j] = v / (2 * g.p.Scale[j])
			scaled.Row(i)[j] /= lambda * g.p.Scale[j]
			g.sums[at] -= v * v / (2 * g.p.Scale[j])
		}
	}
	for j, v := range s.Bias {
		bias.Data[j] = v
		if g.feed.offset != nil {
			bias.Data[j] -= g.feed.offset[j]
		}
		g.sums[at] += g.p.Quadratic[j] / (2 * g.p.Scale[j])
	}
	b := g.b
	numeric.Zero(b, inverse)
	b.AddDiag([]float64{1}, inverse)
	numeric.SolveCholesky(b, g.f.a, inverse)
	diagonal, err := numeric.Diagonal(b, inverse)
	if err != nil {
		return err
	}
	count := g.p.Weight
	if g.p.Shift != nil {
		count--
	}
	g.sums[at] += g.outputs / 2 * (g.p.Rest/lambda - lambda*numeric.Trace(diagonal) - count + float64(m))

	if err := b.Upload(g.solved, lower); err != nil {
		return err
	}
	b.Gemm(backend.NoTrans, backend.Transpose, -g.outputs/(2*lambda), g.solved, g.solved, 0, g.byS)
	b.AddDiag([]float64{g.outputs}, g.byS)
	b.ColAxpy(numeric.Repeated(-g.outputs*lambda/2, m), inverse, g.byS)
	var placed [5]backend.Matrix[float64]
	for i, h := range []backend.Host[float64]{gamma, halved, mean, s.Beta, scaled} {
		if placed[i], err = g.place(h); err != nil {
			return err
		}
	}
	b.Gemm(backend.NoTrans, backend.Transpose, -1, placed[0], placed[1], 1, g.byS)
	b.Gemm(backend.NoTrans, backend.Transpose, -g.outputs*g.p.Weight/(2*lambda), placed[2], placed[2], 1, g.byS)
	b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, g.f.t, g.byS)
	b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.f.t, g.byS)

	g.beta, g.scaled = placed[3], placed[4]
	if g.bias, err = g.place(bias); err != nil {
		return err
	}
	if g.ones, err = g.place(numeric.Column(numeric.Repeated(1.0, rows))); err != nil {
		return err
	}
	if g.row, err = g.place(backend.NewHost[float64](1, m)); err != nil {
		return err
	}
	b.Gemm(backend.Transpose, backend.NoTrans, g.outputs, placed[2], inverse, 0, g.row)
	b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.f.t, g.row)
	numeric.Zero(b, g.solved)
	b.ColAxpy(numeric.Repeated(-g.outputs, m), inverse, g.solved)
	b.AddDiag([]float64{g.outputs / lambda}, g.solved)
	b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.f.t, g.solved)
	g.columns = make([]float64, m)
	return nil
}

// addCenters adds the terms of ∂/∂S.
func (g *gradient) addCenters() error {
	rows, _ := g.phi.Dims()
	rows = min(rows, (g.m+1)/2) // Gram of two equal matrices would write only the lower triangle
	for i := 0; i < g.m; i += rows {
		r := min(rows, g.m-i)
		if err := g.add(g.byS.View(i, 0, r, g.m), g.c.c.View(i, 0, r, g.d)); err != nil {
			return err
		}
	}
	return nil
}

// addPiece adds the terms of ∂/∂Φ for a piece.
func (g *gradient) addPiece(p piece) error {
	b := g.b
	r, _ := p.y.Dims()
	bar, ones := g.bar.View(0, 0, r, g.m), g.ones.View(0, 0, r, 1)
	b.Gemm(backend.NoTrans, backend.NoTrans, -1, p.phi, g.beta, 1, p.y)
	b.Gemm(backend.NoTrans, backend.NoTrans, -1, ones, g.bias, 1, p.y)
	b.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, g.f.t, p.phi)
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, p.phi, g.solved, 0, bar)
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, ones, g.row, 1, bar)
	b.Gemm(backend.NoTrans, backend.Transpose, 1, p.y, g.scaled, 1, bar)
	if p.weights != nil {
		if err := numeric.ScaleRows(b, bar, bar, p.weights); err != nil {
			return err
		}
	}
	return g.add(bar, p.x)
}

// add adds the sums of the products of weights and ∂k(x, c)/∂θ.
func (g *gradient) add(weights, x backend.Matrix[float64]) error {
	r, _ := weights.Dims()
	dk := g.dk.View(0, 0, r, g.m)
	for i, d := range g.derivatives {
		g.b.Gram(dk, d, x, g.c.c)
		if err := g.b.ColDot(g.columns, weights, dk); err != nil {
			return err
		}
		g.sums[i] += numeric.Trace(g.columns)
	}
	return nil
}

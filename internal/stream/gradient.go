package stream

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// GradientBytes returns the device memory of Gradient for samples of d features, in bytes. The argument centers
// reports whether the basis is Centers.
func GradientBytes(n, m, d, t int, centers bool) int64 {
	rows := PieceRows(n, m)
	e := numeric.Total(numeric.Elements(2*m+2*rows, m), numeric.Elements(3*m+1, t), numeric.Elements(2*m+rows, 1))
	if centers {
		return numeric.Bytes(numeric.Total(e, numeric.Elements(m, m)))
	}
	return numeric.Bytes(numeric.Total(e, numeric.Elements(d+1, m)))
}

// Gradient returns the derivatives of p.Bound with respect to the parameters of the kernel, in the order of
// kernels.Gradient, followed by the derivative with respect to ln λ. The argument pre must come from FullFalkon or
// Normal, and s and p must be the solution and the posterior for pre. Gradient treats the centers, and the random
// numbers that determine the frequencies, as constants. It takes one pass, and 3nM² + 4M³ operations.
//
// The chain rule is applied to the derivatives with respect to Φ = k(X, c), S = k(c, c) and k(x_i, x_i) for t
// outputs, where β and s² are constants because they are optimal. With T, A and s² of p, let V = ΦT⁻¹, v̄ the
// weighted mean of its rows, H = AAᵀ and γ = Tβ. Let r be the n×t residuals, N the number Σw, or Σw − 1 with an
// intercept, and Q_j the element j of p.Quadratic, divided by s_j².
//
//	∂/∂Φ = W(V(tI/λ − tH⁻¹) + t1v̄ᵀH⁻¹ + r diag(1/λs²)γᵀ)T⁻ᵀ,  ∂/∂k(x_i, x_i) = −tw_i/2λ
//	∂/∂S = T⁻¹(tI − tλH⁻¹/2 − tH/2λ − tΣw v̄v̄ᵀ/2λ − γ diag(1/2s²)γᵀ)T⁻ᵀ
//	∂/∂ln λ = (Σ_j Q_j − ‖γ_j‖²/s_j² − t(λ tr H⁻¹ + N − M) + t·ResidualTrace/λ)/2
//
// For Fourier features T = I, and the terms VtI/λ in ∂/∂Φ and t·ResidualTrace/λ are absent.
func (w *Equations) Gradient(pre *Preconditioner, s *Solution, p *Posterior) ([]float64, error) {
	g := &gradient{Equations: w, p: p, outputs: float64(w.t)}
	switch phi := w.basis.(type) {
	case *Fourier:
		g.fourier, g.l = phi, pre.Preconditioner.(Factored).L
		g.sums = make([]float64, len(kernels.Params(phi.kernel))+1)
	case *Centers:
		f := pre.Preconditioner.(*falkon)
		g.c, g.l, g.root = phi, f.a, f.t
		g.derivatives = kernels.Gradient(phi.Kernel)
		g.sums = make([]float64, len(g.derivatives)+1)
	}
	for i, v := range w.traceGradient {
		g.sums[i] -= g.outputs * v / (2 * w.Lambda)
	}
	defer func() {
		for _, m := range g.temporary {
			w.mem.Free(m)
		}
	}()
	if err := g.prepare(s); err != nil {
		return nil, err
	}
	if g.fourier != nil {
		if err := w.forEachPiece(g.addPiece); err != nil {
			return nil, err
		}
		return g.sums, g.addFrequencies()
	}
	if err := g.addCenters(); err != nil {
		return nil, err
	}
	return g.sums, w.forEachPiece(g.addPiece)
}

type gradient struct {
	*Equations
	l, root          backend.Matrix[float64] // A and T; T is nil for Fourier, where T = I
	p                *Posterior
	c                *Centers // the basis, or nil for Fourier
	fourier          *Fourier // the basis, or nil for Centers
	derivatives      []kernels.Kernel
	outputs          float64 // the number t of outputs, as a float64
	sums             []float64
	temporary        []backend.Matrix[float64]
	byS, inverseDiff backend.Matrix[float64] // the derivatives of the evidence by the elements of S, and (tI/λ − tH⁻¹)T⁻ᵀ
	phiBar, dk       backend.Matrix[float64] // ∂/∂Φ and ∂k/∂θ of a piece
	beta, scaled     backend.Matrix[float64] // β and β diag(1/λs²)
	bias, row        backend.Matrix[float64] // b and tv̄ᵀH⁻¹T⁻ᵀ
	ones             backend.Matrix[float64]
	byOmega          backend.Matrix[float64] // the transpose of ∂/∂ω, d×D
	byScale          backend.Matrix[float64] // 1×D, whose sum is the derivative with respect to ln Scale
	begun            float64                 // 0 before the first piece has set byOmega and byScale, then 1
	columns          []float64
}

// placeTemporary copies h to the device. The copy is freed when Gradient returns.
func (g *gradient) placeTemporary(h backend.Host[float64]) (backend.Matrix[float64], error) {
	m, err := g.mem.Place(h)
	if err == nil {
		g.temporary = append(g.temporary, m)
	}
	return m, err
}

// prepare computes the matrices that all blocks of samples share, and the derivative with respect to ln λ.
func (g *gradient) prepare(s *Solution) error {
	m, rows := g.m, 0
	rows, _ = g.phi.Dims()
	var inverse backend.Matrix[float64] // receives H⁻¹
	type size struct {
		to         *backend.Matrix[float64]
		rows, cols int
	}
	sizes := []size{{&inverse, m, m}, {&g.inverseDiff, m, m}, {&g.phiBar, rows, m}, {&g.dk, rows, m}}
	if g.fourier != nil {
		sizes = append(sizes, size{&g.byOmega, g.d, m / 2}, size{&g.byScale, 1, m / 2})
	} else {
		sizes = append(sizes, size{&g.byS, m, m})
	}
	for _, a := range sizes {
		var err error
		if *a.to, err = g.mem.New(a.rows, a.cols); err != nil {
			return err
		}
		g.temporary = append(g.temporary, *a.to)
	}
	gamma, mean, lower := backend.NewHost[float64](m, g.t), backend.NewHost[float64](m, 1), backend.NewHost[float64](m, m)
	halved, scaled := numeric.Clone(gamma), numeric.Clone(s.Beta)
	bias := backend.NewHost[float64](1, g.t)
	lambda, scale := g.Lambda, g.p.scales(g.p.count())
	lambdaIndex := len(g.sums) - 1
	for i := range m {
		if g.root == nil {
			copy(gamma.Row(i), s.Beta.Row(i))
		} else {
			for k, v := range g.p.Factors.Row(i)[i:] {
				numeric.Axpy(v, s.Beta.Row(i+k), gamma.Row(i))
			}
		}
		copy(lower.Row(i)[:i+1], g.p.Factors.Row(g.p.Factors.Rows - m + i)[:i+1])
		if g.p.Shift != nil {
			mean.Data[i] = numeric.Dot(lower.Row(i)[:i+1], g.p.Shift[:i+1])
		}
		for j, v := range gamma.Row(i) {
			halved.Row(i)[j] = v / (2 * scale[j])
			scaled.Row(i)[j] /= lambda * scale[j]
			g.sums[lambdaIndex] -= v * v / (2 * scale[j])
		}
	}
	for j, v := range s.Bias {
		bias.Data[j] = v
		if g.feed.offset != nil {
			bias.Data[j] -= g.feed.offset[j]
		}
		g.sums[lambdaIndex] += g.p.Quadratic[j] / (2 * scale[j])
	}
	b := g.b
	numeric.Zero(b, inverse)
	b.AddDiag([]float64{1}, inverse)
	numeric.SolveCholesky(b, g.l, inverse)
	diagonal, err := numeric.Diagonal(b, inverse)
	if err != nil {
		return err
	}
	count := g.p.count()
	g.sums[lambdaIndex] += g.outputs / 2 * (g.p.ResidualTrace/lambda - lambda*numeric.Trace(diagonal) - count + float64(m))

	var operands [5]backend.Matrix[float64]
	for i, h := range []backend.Host[float64]{gamma, halved, mean, s.Beta, scaled} {
		if operands[i], err = g.placeTemporary(h); err != nil {
			return err
		}
	}
	if g.root != nil {
		if err := b.Upload(g.inverseDiff, lower); err != nil {
			return err
		}
		b.Gemm(backend.NoTrans, backend.Transpose, -g.outputs/(2*lambda), g.inverseDiff, g.inverseDiff, 0, g.byS)
		b.AddDiag([]float64{g.outputs}, g.byS)
		b.ColAxpy(numeric.Repeated(-g.outputs*lambda/2, m), inverse, g.byS)
		b.Gemm(backend.NoTrans, backend.Transpose, -1, operands[0], operands[1], 1, g.byS)
		b.Gemm(backend.NoTrans, backend.Transpose, -g.outputs*g.p.Weight/(2*lambda), operands[2], operands[2], 1, g.byS)
		b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, g.root, g.byS)
		b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.root, g.byS)
	}

	g.beta, g.scaled = operands[3], operands[4]
	if g.bias, err = g.placeTemporary(bias); err != nil {
		return err
	}
	if g.ones, err = g.placeTemporary(numeric.Column(numeric.Repeated(1.0, rows))); err != nil {
		return err
	}
	if g.row, err = g.placeTemporary(backend.NewHost[float64](1, m)); err != nil {
		return err
	}
	b.Gemm(backend.Transpose, backend.NoTrans, g.outputs, operands[2], inverse, 0, g.row)
	numeric.Zero(b, g.inverseDiff)
	b.ColAxpy(numeric.Repeated(-g.outputs, m), inverse, g.inverseDiff)
	if g.root != nil {
		b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.root, g.row)
		b.AddDiag([]float64{g.outputs / lambda}, g.inverseDiff)
		b.Trsm(backend.Right, backend.Upper, backend.Transpose, 1, g.root, g.inverseDiff)
	}
	g.columns = make([]float64, m)
	return nil
}

// addCenters adds the part of the gradient that depends on the kernel matrix S of the centers to g.sums.
func (g *gradient) addCenters() error {
	rows, _ := g.phi.Dims()
	rows = min(rows, (g.m+1)/2) // keep the matrices of Gram different: for equal matrices it may write only the lower triangle
	for i := 0; i < g.m; i += rows {
		r := min(rows, g.m-i)
		if err := g.add(g.byS.View(i, 0, r, g.m), g.c.c.View(i, 0, r, g.d)); err != nil {
			return err
		}
	}
	return nil
}

// addPiece adds the contribution of a piece to the gradient: to g.sums, or for Fourier to byOmega and byScale.
func (g *gradient) addPiece(p piece) error {
	b := g.b
	r, _ := p.y.Dims()
	phiBar, ones := g.phiBar.View(0, 0, r, g.m), g.ones.View(0, 0, r, 1)
	b.Gemm(backend.NoTrans, backend.NoTrans, -1, p.phi, g.beta, 1, p.y)
	b.Gemm(backend.NoTrans, backend.NoTrans, -1, ones, g.bias, 1, p.y)
	if g.root != nil {
		b.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, g.root, p.phi)
	}
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, p.phi, g.inverseDiff, 0, phiBar)
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, ones, g.row, 1, phiBar)
	b.Gemm(backend.NoTrans, backend.Transpose, 1, p.y, g.scaled, 1, phiBar)
	if p.weights != nil {
		if err := numeric.ScaleRows(b, phiBar, phiBar, p.weights); err != nil {
			return err
		}
	}
	if g.fourier != nil {
		return g.addFourier(phiBar, p)
	}
	return g.add(phiBar, p.x)
}

// add adds Σ_ij weights_ij ∂k(x_i, c_j)/∂θ to g.sums for each parameter θ.
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

// addFourier adds the contribution of a piece to byOmega and byScale. For a frequency ω, let c and
// c′ be the values of its cosine and sine, and ḡ and ḡ′ the columns of ∂/∂Φ for them. Then
//
//	∂/∂ω = Σ_i (ḡ′_i c_i − ḡ_i c′_i)x_i,  ∂/∂ln Scale = Σ_i ḡ_i c_i + ḡ′_i c′_i
func (g *gradient) addFourier(phiBar backend.Matrix[float64], p piece) error {
	r, m := phiBar.Dims()
	frequencies := m / 2
	products := g.dk.View(0, 0, r, m)
	err := numeric.EachBlock(g.b, phiBar, 2*m, func(from int, h backend.Host[float64]) error {
		phi := backend.NewHost[float64](h.Rows, m)
		if err := g.b.Download(phi, p.phi.View(from, 0, h.Rows, m)); err != nil {
			return err
		}
		run.Parallel(h.Rows, func(first, last int) {
			for i := first; i < last; i++ {
				byPhi, values := h.Row(i), phi.Row(i)
				for j, byCosine := range byPhi[:frequencies] {
					bySine, cosine, sine := byPhi[frequencies+j], values[j], values[frequencies+j]
					byPhi[j] = float64(bySine*cosine) - float64(byCosine*sine)
					byPhi[frequencies+j] = float64(byCosine*cosine) + float64(bySine*sine)
				}
			}
		})
		return g.b.Upload(products.View(from, 0, h.Rows, m), h)
	})
	if err != nil {
		return err
	}
	g.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.x, products.View(0, 0, r, frequencies), g.begun, g.byOmega)
	g.b.Gemm(backend.Transpose, backend.NoTrans, 1, g.ones.View(0, 0, r, 1), products.View(0, frequencies, r, frequencies), g.begun, g.byScale)
	g.begun = 1
	return nil
}

// addFrequencies converts byOmega and byScale to derivatives with respect to the parameters, in g.sums.
func (g *gradient) addFrequencies() error {
	byOmega, byScale := backend.NewHost[float64](g.d, g.m/2), backend.NewHost[float64](1, g.m/2)
	if err := g.b.Download(byOmega, g.byOmega); err != nil {
		return err
	}
	if err := g.b.Download(byScale, g.byScale); err != nil {
		return err
	}
	return g.fourier.addDerivatives(g.ctx, byOmega, numeric.Trace(byScale.Data), g.sums[:len(g.sums)-1])
}

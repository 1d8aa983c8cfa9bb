package band

import (
	"context"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Factor holds the Cholesky factor L of B + λI for one λ. B is block tridiagonal. The blocks of L, with G_0 = 0, are
//
//	L_jj L_jjᵀ = S_j = B_jj + λI − G_j G_jᵀ,  L_{j+1,j} = G_{j+1} = B_{j+1,j} L_jj⁻ᵀ
//
// The factors for a group of λ share two matrices: x holds the blocks X_j = L_jj⁻¹, and g holds the blocks G_{j+1}ᵀ.
// The blocks with the same j are adjacent, one below the other, in the order of the λ.
type Factor struct {
	lambda        float64
	x, g          backend.Matrix[float64] // group·n × width
	member, group int                     // index of λ in its group, and number of λ in the group
	Trace         float64                 // tr (B + λI)⁻¹, if it was requested
	LogDet        float64                 // log det (B + λI)
}

// inverse returns X_j = L_jj⁻¹ of Factor, and coupling returns G_{j+1}ᵀ.
func (l *Factor) inverse(f *form, j int) backend.Matrix[float64] {
	first, n := f.rows(j)
	return l.x.View(first*l.group+l.member*n, 0, n, n)
}

func (l *Factor) coupling(f *form, j int) backend.Matrix[float64] {
	first, n := f.rows(j)
	_, m := f.rows(j + 1)
	return l.g.View(first*l.group+l.member*n, 0, n, m)
}

// factorScratch is a worker's memory for computing a Factor and solving: width × width matrices.
type factorScratch struct {
	b backend.Backend[float64]
	s [5]backend.Matrix[float64]
}

func newFactorScratch(b backend.Backend[float64], mem *run.Arena, width int) (*factorScratch, error) {
	w := &factorScratch{b: b}
	var err error
	for i := range w.s {
		if w.s[i], err = mem.New(width, width); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// factor computes L of B + λI = LLᵀ. It returns a *backend.PivotError if a pivot is at most tol, the magnitude of the
// rounding errors of B.
//
// If trace is set, factor also computes tr (B + λI)⁻¹ as the derivative of log det (B + λI) with respect to λ (Golub
// and von Matt 1997, for the bidiagonal case). With the derivatives S′_j of S_j (see Factor), where S′_0 = I,
//
//	tr = Σ_j tr(X_j S′_j X_jᵀ),  S′_{j+1} = I + G_{j+1} (X_j S′_j X_jᵀ) G_{j+1}ᵀ
func (f *form) factor(ctx context.Context, w *factorScratch, to *Factor, tol float64, trace bool) error {
	b := w.b
	to.Trace, to.LogDet = 0, 0
	for j := range f.blocks() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, n := f.rows(j)
		s, d := w.s[0].View(0, 0, n, n), w.s[3].View(0, 0, n, n)
		shifted := backend.NewHost[float64](n, n)
		copy(shifted.Data, f.diag[j].Data)
		for i := range n {
			shifted.Row(i)[i] += to.lambda
		}
		if err := b.Upload(s, shifted); err != nil {
			return err
		}
		if j > 0 {
			g := to.coupling(f, j-1)
			b.Syrk(backend.Lower, backend.Transpose, -1, g, 1, s)
		}
		if err := b.Potrf(backend.Lower, s); err != nil {
			return err
		}
		l := shifted // shifted is not needed anymore, so l reuses its memory
		if err := b.Download(l, s); err != nil {
			return err
		}
		for i := range n {
			p := l.Row(i)[i]
			if p*p <= tol {
				return &backend.PivotError{Index: first + i, Value: p * p}
			}
			to.LogDet += 2 * elementary.Log(p)
		}
		x := to.inverse(f, j)
		clear(l.Data)
		for i := range n {
			l.Row(i)[i] = 1
		}
		if err := b.Upload(x, l); err != nil {
			return err
		}
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, s, x)

		var g backend.Matrix[float64]
		m := 0 // number of rows of the next block
		if j < len(f.subdiag) {
			e := f.subdiag[j]
			m = e.Rows
			g = to.coupling(f, j)
			if err := b.Upload(g, numeric.Transpose(e)); err != nil {
				return err
			}
			b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, s, g)
		}
		if !trace {
			continue
		}
		// w.s[1] holds S′_j, and s will hold X S′ Xᵀ.
		deriv, xs := w.s[1].View(0, 0, n, n), w.s[2].View(0, 0, n, n)
		if j == 0 {
			if err := b.Upload(deriv, l); err != nil { // l is I
				return err
			}
		}
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, deriv, 0, xs)
		sums := make([]float64, n)
		// Σ_ij (X S′)_ij X_ij is the trace of X S′ Xᵀ.
		if err := b.ColDot(sums, xs, x); err != nil {
			return err
		}
		for _, v := range sums {
			to.Trace += v
		}
		if m > 0 {
			b.Gemm(backend.NoTrans, backend.Transpose, 1, xs, x, 0, d)
			gs := w.s[4].View(0, 0, m, n)
			b.Gemm(backend.Transpose, backend.NoTrans, 1, g, d, 0, gs)
			next := w.s[1].View(0, 0, m, m)
			b.Gemm(backend.NoTrans, backend.NoTrans, 1, gs, g, 0, next)
			b.AddDiag([]float64{1}, next)
		}
	}
	return b.Sync()
}

// solve overwrites the n × t matrix Y with (B + λI)⁻¹ Y and waits for the device. z is scratch of the same shape.
func (f *form) solve(b backend.Backend[float64], l *Factor, y, z backend.Matrix[float64]) error {
	_, t := y.Dims()
	last := f.blocks() - 1
	// block(j, m) returns the rows of m that belong to block j.
	block := func(j int, m backend.Matrix[float64]) backend.Matrix[float64] {
		first, n := f.rows(j)
		return m.View(first, 0, n, t)
	}
	for j := 0; j <= last; j++ {
		if j > 0 {
			b.Gemm(backend.Transpose, backend.NoTrans, -1, l.coupling(f, j-1), block(j-1, z), 1, block(j, y))
		}
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, l.inverse(f, j), block(j, y), 0, block(j, z))
	}
	for j := last; j >= 0; j-- {
		if j < last {
			b.Gemm(backend.NoTrans, backend.NoTrans, -1, l.coupling(f, j), block(j+1, y), 1, block(j, z))
		}
		b.Gemm(backend.Transpose, backend.NoTrans, 1, l.inverse(f, j), block(j, z), 0, block(j, y))
	}
	return b.Sync()
}

// rounding returns the largest pivot that may consist only of rounding errors (see numeric.PivotTol). Each element of B
// is a sum of n terms.
func (f *form) rounding() float64 {
	return 8 * numeric.Epsilon * math.Sqrt(float64(f.n)) * f.norm
}

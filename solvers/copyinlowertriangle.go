package solvers

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// copyInLowerTriangle is a symmetric matrix in a square, whose factor is made in the upper
// triangle: below the diagonal K stays, for the residual of the first solution.
type copyInLowerTriangle struct {
	b    backend.Backend[float64]
	k    backend.PreserveBackend[float64]
	a    backend.Matrix[float64]
	diag []float64 // of A, after factor
	own  []float64 // what stands on the diagonal then
}

// preserveOrder is from what order on evaluating K again is slow enough for the other
// half of the memory to be worth it.
const preserveOrder = 4096

// preserves reports whether dual keeps K where that fits.
func (z *sizes) preserves(par Params) bool {
	if _, ok := z.dev.F64().(backend.PreserveBackend[float64]); !ok {
		return false
	}
	return par.Operator == Stored64 || par.Operator == OperatorAuto && z.n >= preserveOrder
}

func newCopyInLowerTriangle(mem *run.Arena, b backend.Backend[float64], n int) (symmetric[float64], error) {
	a, err := mem.New(n, n)
	if err != nil {
		return nil, err
	}
	return &copyInLowerTriangle{b: b, k: b.(backend.PreserveBackend[float64]), a: a}, nil
}

func (s *copyInLowerTriangle) Free() { s.a.Free() }
func (s *copyInLowerTriangle) gram(k kernels.Kernel, x backend.Matrix[float64]) {
	s.b.Gram(s.a, k, x, x)
}
func (s *copyInLowerTriangle) addDiag(d []float64)          { s.b.AddDiag(d, s.a) }
func (s *copyInLowerTriangle) diagonal() ([]float64, error) { return diagonal(s.b, s.a) }

func (s *copyInLowerTriangle) mul(q, p backend.Matrix[float64]) {
	s.b.Symm(backend.Lower, 1, s.a, p, 0, q)
}

func (s *copyInLowerTriangle) factor(bool) (err error) {
	if s.diag, err = s.diagonal(); err != nil {
		return err
	}
	if err = s.k.PotrfPreserve(s.a); err != nil {
		return err
	}
	s.own, err = s.diagonal()
	return err
}

func (s *copyInLowerTriangle) solve(r backend.Matrix[float64]) {
	s.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, s.a, r)
	s.b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, s.a, r)
}

// A product is K·V by what an inner solver has of K in float64.
type product interface {
	// times queues q ← B p for a B that differs from K + λW⁻¹ on its diagonal
	// alone, by what it returns.
	times(q, p backend.Matrix[float64]) []float64
}

// times is that of the factored matrix.
func (s *copyInLowerTriangle) times(q, p backend.Matrix[float64]) []float64 {
	s.mul(q, p)
	d := make([]float64, len(s.diag))
	for i := range d {
		d[i] = s.diag[i] - s.own[i]
	}
	return d
}

package solvers

import "github.com/mercer-go/mercer/backend"

// apply waits: X ← op(Q) X for an n × t matrix, t ≤ the columns of scratch,
// which are two width × t matrices.
func (f *bandForm) apply(op backend.Trans, x backend.Matrix[float64], scratch [2]backend.Matrix[float64]) error {
	_, cols := x.Dims()
	count := f.reflections()
	for i := range count {
		j := i
		if op == backend.NoTrans {
			j = count - 1 - i
		}
		v, t := f.reflector(j)
		m, _ := v.Dims()
		f.reflect(v, t, op, x.View(f.n-m, 0, m, cols), scratch)
	}
	return f.b.Sync()
}

// reflector returns V and T of reflection j.
func (f *bandForm) reflector(j int) (v, t backend.Matrix[float64]) {
	first, count := f.rows(j)
	below := first + count
	return f.a.View(below, first, f.n-below, count), f.a.View(first, first, count, count)
}

// formQ replaces the reflectors by Qᵀ, from the last one on:
//
//	Qᵀ_j = ┌ I         ┐ (I − V_j T_jᵀ V_jᵀ)
//	       └   Qᵀ_{j+1} ┘
//
// V_j lies left of Qᵀ_j, in columns that become those of Q when V_j is done
// with.
func (f *bandForm) formQ() error {
	if f.formed {
		return nil
	}
	b := f.b
	for j := f.blocks() - 1; j > f.reflections(); j-- {
		f.identity(j)
	}
	for j := f.reflections() - 1; j >= 0; j-- {
		f.identity(j + 1)
		v, t := f.reflector(j)
		m, width := v.Dims()
		q := f.a.View(f.n-m, f.n-m, m, m)
		qv, qvt := f.w[0].View(0, 0, m, width), f.w[1].View(0, 0, m, width)
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, q, v, 0, qv)
		b.Gemm(backend.NoTrans, backend.Transpose, 1, qv, t, 0, qvt)
		b.Gemm(backend.NoTrans, backend.Transpose, -1, qvt, v, 1, q)
	}
	f.identity(0)
	f.formed = true
	return b.Sync()
}

// identity makes rows and columns of block j those of the identity, from the
// diagonal on.
func (f *bandForm) identity(j int) {
	first, count := f.rows(j)
	rest := f.n - first
	clearMatrix(f.b, f.a.View(first, first, rest, count))
	clearMatrix(f.b, f.a.View(first, first, count, rest))
	f.b.AddDiag([]float64{1}, f.a.View(first, first, count, count))
}

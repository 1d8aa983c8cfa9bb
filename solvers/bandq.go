package solvers

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// A group is a run of panels that are applied as one: I − V T Vᵀ with V of all
// their columns, which stand beside each other in A, zeros above them.
type group struct{ first, count int } // panels

// groups cuts the panels from the last one on; the group at the front may be
// smaller.
func (f *bandForm) groups() []group {
	var list []group
	for end := f.reflections(); end > 0; {
		count := min(end, wide(f.width)/f.width)
		end -= count
		list = append(list, group{end, count})
	}
	return list
}

// reflector is V of a group, and its first row in A.
func (f *bandForm) reflector(g group) (v backend.Matrix[float64], row int) {
	first, row := g.first*f.width, (g.first+1)*f.width
	return f.a.View(row, first, f.n-row, g.count*f.width), row
}

// tOf sets f.t to the T of a group.
func (f *bandForm) tOf(g group, v backend.Matrix[float64]) (backend.Matrix[float64], error) {
	_, cols := v.Dims()
	t := f.t.View(0, 0, cols, cols)
	if f.ts[g.first].Data == nil {
		var err error
		if f.ts[g.first], err = f.triangleOf(v, f.tau[g.first*f.width:][:cols], t); err != nil {
			return t, err
		}
	}
	return t, f.b.Upload(t, f.ts[g.first])
}

// apply waits: X ← op(Q) X for an n × t matrix; scratch are two matrices of wide
// rows and at least as many columns.
func (f *bandForm) apply(op backend.Trans, x backend.Matrix[float64], scratch [2]backend.Matrix[float64]) error {
	_, cols := x.Dims()
	list := f.groups()
	if op == backend.Transpose { // Qᵀ begins with the first panels
		slices.Reverse(list)
	}
	for _, g := range list {
		v, row := f.reflector(g)
		t, err := f.tOf(g, v)
		if err != nil {
			return err
		}
		f.reflect(v, t, op, x.View(row, 0, f.n-row, cols), scratch)
	}
	return f.b.Sync()
}

// formQ replaces the reflectors by Qᵀ, from the last group on:
//
//	Qᵀ_g = ┌ I          ┐ (I − V_g T_gᵀ V_gᵀ)
//	       └   Qᵀ_{g+1} ┘
//
// The columns of V_g become those of Q, so that a copy of V_g is taken.
func (f *bandForm) formQ() error {
	if f.formed {
		return nil
	}
	b := f.b
	for j := f.blocks() - 1; j > f.reflections(); j-- {
		f.identity(j)
	}
	for _, g := range f.groups() {
		from, row := f.reflector(g)
		m, cols := from.Dims()
		v := f.w[2].View(0, 0, m, cols)
		clearMatrix(b, v)
		b.ColAxpy(constants(cols, 1), from, v)
		t, err := f.tOf(g, v)
		if err != nil {
			return err
		}
		for j := g.first + g.count; j > g.first; j-- {
			f.identity(j)
		}
		q := f.a.View(row, row, m, m)
		qv, qvt := f.w[0].View(0, 0, m, cols), f.w[1].View(0, 0, m, cols)
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

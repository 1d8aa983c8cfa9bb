package cpu

import (
	"context"
	"slices"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/kernels"
)

// expansion is the function x ↦ k(x, Z) V with Z and V packed for products.
type expansion[T backend.Float] struct {
	engine *engine[T]
	gram   *gram[T] // the Gram matrix of Z and Z; its field kept holds the packed points
	kernel kernels.Kernel
	filled bool // whether a statistic needs a filler; a filler depends on X, so that Apply creates a new gram
	multipliers[T]
	d, t  int
	bytes int64
}

// NewExpansion implements backend.Expander.
func (q *queue[T]) NewExpansion(k kernels.Kernel, z, v backend.Host[T]) (backend.Expansion[T], error) {
	m, d, t := check.NewExpansion(k, z, v)
	f := &expansion[T]{engine: q.engine, kernel: k, d: d, t: t}
	given := q.Wrap(z).(*matrix[T])
	g := q.newGram(k, given, given)
	elements := m * (d + t)
	for _, p := range g.packs {
		elements += panels(m, q.engine.ukr.NR) * q.engine.ukr.NR * (p.features(d) + 1)
	}
	f.bytes = int64(elements) * int64(unsafe.Sizeof(*new(T)))
	if err := q.engine.device.memory.take(f.bytes); err != nil {
		return nil, err
	}

	own := &matrix[T]{device: q.engine.device, rows: m, cols: d, stride: d, data: pages.Zeros[T](m * d)}
	q.copy(own.host(), z)
	f.gram = q.newGram(k, own, own)
	f.filled = slices.ContainsFunc(f.gram.stats, func(st pairwise[T]) bool { return st.fill != nil })
	for j := 0; j < m; j += f.gram.size {
		block, _ := f.gram.pack(own, j, false, fresh[T])
		f.gram.kept = append(f.gram.kept, block)
	}
	f.multipliers, _ = q.engine.multipliersOf(view[T]{data: v.Data, rows: m, cols: t, rs: v.Stride, cs: 1}, fresh[T])
	if err := q.wait(); err != nil {
		f.Free()
		return nil, err
	}
	return f, nil
}

func (f *expansion[T]) Dims() (features, outputs int) { return f.d, f.t }

func (f *expansion[T]) Apply(ctx context.Context, dst, x backend.Host[T]) error {
	check.Apply(dst, x, f.d, f.t)
	if f.gram == nil {
		check.Freed("Apply")
	}
	q := &queue[T]{engine: f.engine, ctx: ctx}
	for i := range dst.Rows {
		clear(dst.Row(i))
	}
	if x.Rows == 0 || f.gram.z.rows == 0 || f.t == 0 {
		return q.wait()
	}
	points := &matrix[T]{device: f.engine.device, rows: x.Rows, cols: x.Cols, stride: x.Stride, data: x.Data}
	own := *f.gram
	own.q, own.x = q, points
	if f.filled {
		own = *q.newGram(f.kernel, points, f.gram.z)
		own.kept = f.gram.kept
	}
	g := gramMul[T]{gram: &own, t: f.t, multipliers: f.multipliers}
	g.general(view[T]{data: dst.Data, rows: dst.Rows, cols: dst.Cols, rs: dst.Stride, cs: 1})
	return q.wait()
}

func (f *expansion[T]) Free() {
	f.engine.device.memory.give(f.bytes)
	f.bytes, f.gram = 0, nil
}

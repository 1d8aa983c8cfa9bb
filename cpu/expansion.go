package cpu

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/kernels"
)

// expansion is the function x ↦ k(x, Z) V with Z and V packed for products.
type expansion[T backend.Float] struct {
	engine    *engine[T]
	gram      *gram[T] // the Gram matrix of Z and Z; its field packedZ holds the packed points
	kernel    kernels.Kernel
	hasFiller bool // whether a statistic needs a filler; a filler depends on X, so that Apply creates a new gram
	multipliers[T]
	d, t   int
	bytes  int64
	points sync.Pool // *point[T]
}

// point is memory that calls of Apply for one point reuse.
type point[T backend.Float] struct {
	q      queue[T]
	x      matrix[T]
	sum    gramMul[T]
	packed []packedPoints[T]
}

// NewExpansion implements backend.Expander.
func (q *queue[T]) NewExpansion(k kernels.Kernel, z, v backend.Host[T]) (backend.Expansion[T], error) {
	m, d, t := check.NewExpansion(k, z, v)
	f := &expansion[T]{engine: q.engine, kernel: k, d: d, t: t}
	wrapped := q.Wrap(z).(*matrix[T])
	g := q.newGram(k, wrapped, wrapped)
	elements := m * (d + t)
	for _, p := range g.packs {
		elements += panels(m, q.engine.ukr.NR) * q.engine.ukr.NR * (p.features(d) + 1)
	}
	f.bytes = int64(elements) * int64(unsafe.Sizeof(*new(T)))
	if err := q.engine.device.memory.reserve(f.bytes); err != nil {
		return nil, err
	}

	zCopy := &matrix[T]{device: q.engine.device, rows: m, cols: d, stride: d, data: pages.Zeros[T](m * d)}
	q.copy(zCopy.host(), z)
	f.gram = q.newGram(k, zCopy, zCopy)
	f.hasFiller = slices.ContainsFunc(f.gram.stats, func(st pairwise[T]) bool { return st.fill != nil })
	for j := 0; j < m; j += f.gram.size {
		block, _ := f.gram.pack(zCopy, j, false, fresh[T])
		f.gram.packedZ = append(f.gram.packedZ, block)
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
	if x.Rows == 1 && f.evaluatesPoint() {
		return f.applyPoint(ctx, dst.Row(0), x.Row(0))
	}
	points := &matrix[T]{device: f.engine.device, rows: x.Rows, cols: x.Cols, stride: x.Stride, data: x.Data}
	xGram := *f.gram
	xGram.q, xGram.x = q, points
	if f.hasFiller {
		xGram = *q.newGram(f.kernel, points, f.gram.z)
		xGram.packedZ = f.gram.packedZ
	}
	g := gramMul[T]{gram: &xGram, t: f.t, multipliers: f.multipliers}
	g.general(view[T]{data: dst.Data, rows: dst.Rows, cols: dst.Cols, rs: dst.Stride, cs: 1})
	return q.wait()
}

// evaluatesPoint reports whether Apply calls applyPoint instead of the method general for a single point. The
// setup of general takes longer than a thousand evaluations of a kernel with a small number of features.
func (f *expansion[T]) evaluatesPoint() bool {
	g := gramMul[T]{gram: f.gram, t: f.t}
	return !f.hasFiller && g.flops(1, f.gram.z.rows) < minParallelFlops &&
		!slices.ContainsFunc(f.gram.packs, func(p packing[T]) bool { return p.sparse || p.empty || p.step != 0 })
}

// applyPoint adds k(x, Z) V, a row of t numbers for the point x, to dst.
func (f *expansion[T]) applyPoint(ctx context.Context, dst, x []T) error {
	p, ok := f.points.Get().(*point[T])
	if !ok {
		p = f.newPoint()
	}
	defer f.points.Put(p)
	p.q.ctx, p.x.data = ctx, x
	s := f.engine.getScratch()
	defer f.engine.putScratch(s)
	for i, packing := range f.gram.packs {
		packing.rows(f.engine.packerA(s), p.packed[i], &p.x, 0, 1)
	}
	for i, z := range f.gram.packedZ {
		p.sum.addRows(s, p.packed, z, 0, i*f.gram.size, 0, 1, view[T]{data: dst, rows: 1, cols: f.t, rs: f.t, cs: 1})
	}
	p.x.data = nil
	return p.q.wait()
}

func (f *expansion[T]) newPoint() *point[T] {
	p := &point[T]{q: queue[T]{engine: f.engine}, x: matrix[T]{device: f.engine.device, rows: 1, cols: f.d, stride: f.d}}
	xGram := *f.gram
	xGram.q, xGram.x = &p.q, &p.x
	p.sum = gramMul[T]{gram: &xGram, t: f.t, multipliers: f.multipliers}
	for _, packing := range xGram.packs {
		d, w := packing.features(f.d), f.engine.ukr.MR
		memory := make([]T, w*(d+1))
		p.packed = append(p.packed, packedPoints[T]{panels: memory[:w*d], norms: memory[w*d:]})
	}
	return p
}

func (f *expansion[T]) Free() {
	f.engine.device.memory.release(f.bytes)
	f.bytes, f.gram = 0, nil
}

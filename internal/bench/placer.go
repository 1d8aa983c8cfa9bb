package bench

import "github.com/mercer-go/mercer/backend"

// A placer creates matrices on a device and frees them together. After an error, err, it creates no matrix.
type placer[T backend.Float] struct {
	q    backend.Backend[T]
	list []backend.Matrix[T]
	err  error
}

func (p *placer[T]) place(h backend.Host[T]) backend.Matrix[T] {
	return p.add(func() (backend.Matrix[T], error) { return backend.Place(p.q, h) })
}

func (p *placer[T]) alloc(rows, cols int) backend.Matrix[T] {
	return p.add(func() (backend.Matrix[T], error) { return p.q.New(rows, cols) })
}

func (p *placer[T]) add(create func() (backend.Matrix[T], error)) (m backend.Matrix[T]) {
	if p.err == nil {
		m, p.err = create()
	}
	if p.err == nil {
		p.list = append(p.list, m)
	}
	return m
}

func (p *placer[T]) free() {
	for _, m := range p.list {
		m.Free()
	}
	p.list = nil
}

// freeOnError returns err. If there is an error, it frees all matrices.
func (p *placer[T]) freeOnError() error {
	if p.err != nil {
		p.free()
	}
	return p.err
}

func twoTriangles[T backend.Float](q backend.Backend[T], l, b backend.Matrix[T]) {
	q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, b)
	q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, b)
}

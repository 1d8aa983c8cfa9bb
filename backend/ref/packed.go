package ref

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// packedMatrix implements backend.Packed; it stores the rows of the lower triangle consecutively.
type packedMatrix[T backend.Float] struct {
	n      int
	data   []T
	memory *allocation
	view   bool // a leading part of another packed matrix

	// With 16 bits per element, data holds the diagonal, and codes the elements below the diagonal, by rows.
	codes  []uint16
	coding *check.Coding
}

func (h *packedMatrix[T]) Order() int { return h.n }

func (h *packedMatrix[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, h.n)
	leading := *h
	leading.n, leading.view = n, true
	return &leading
}

// Free releases the memory; a second call does nothing.
func (h *packedMatrix[T]) Free() {
	if h.view || h.memory.freed.Swap(true) {
		return
	}
	h.memory.dev.release(h.memory.bytes)
	h.data, h.codes = nil, nil
}

// floatsOf is like packedOf, but also panics for a matrix with 16 bits per element.
func floatsOf[T backend.Float](d *device, op string, h backend.Packed[T]) *packedMatrix[T] {
	r := packedOf(d, op, h)
	if r.coding != nil {
		check.NoFixed(op)
	}
	return r
}

// packedOf returns h. It panics unless h is a packed matrix of d that is not freed.
func packedOf[T backend.Float](d *device, op string, h backend.Packed[T]) *packedMatrix[T] {
	r, ok := h.(*packedMatrix[T])
	if !ok || r.memory.dev != d {
		check.Foreign(op)
	}
	if r.memory.freed.Load() {
		check.Freed(op)
	}
	return r
}

// address returns a pointer to element (i, j), j ≤ i.
func (h *packedMatrix[T]) address(i, j int) *T {
	if h.coding != nil {
		return &h.data[i]
	}
	return &h.data[i*(i+1)/2+j]
}

// code returns a pointer to the code of element (i, j), j < i, or nil if the matrix has no codes.
func (h *packedMatrix[T]) code(i, j int) *uint16 {
	if h.coding == nil || i == j {
		return nil
	}
	return &h.codes[i*(i-1)/2+j]
}

func (h *packedMatrix[T]) at(i, j int) float64 {
	if code := h.code(i, j); code != nil {
		return h.coding.Value(*code)
	}
	return float64(*h.address(i, j))
}
func (h *packedMatrix[T]) set(i, j int, v float64) { *h.address(i, j) = T(v) }

func (q *queue[T]) PackedBytes(n int) int64 {
	check.NewPacked(n)
	// One of n and n+1 is even: n(n+1)/2 is an integer. The test in float64 avoids overflow.
	if float64(n)*(float64(n)+1)/2*float64(sizeof[T]()) >= math.MaxInt64 {
		return math.MaxInt64
	}
	even, odd := int64(n), int64(n)+1
	if n%2 == 1 {
		even, odd = odd, even
	}
	return even / 2 * odd * sizeof[T]()
}

func (q *queue[T]) NewPacked(n int) (backend.Packed[T], error) {
	bytes := q.PackedBytes(n)
	if err := q.dev.reserveBytes(bytes); err != nil {
		return nil, err
	}
	return &packedMatrix[T]{n: n, data: make([]T, bytes/sizeof[T]()), memory: &allocation{dev: q.dev, bytes: bytes}}, nil
}

func (q *queue[T]) FixedBytes(n int) int64 {
	check.NewPacked(n)
	if float64(n)*(float64(n)+16) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)*int64(n-1) + int64(n)*sizeof[T]()
}

func (q *queue[T]) NewFixed(n int) (backend.Packed[T], error) {
	bytes := q.FixedBytes(n)
	if err := q.dev.reserveBytes(bytes); err != nil {
		return nil, err
	}
	return &packedMatrix[T]{
		n: n, data: make([]T, n), codes: make([]uint16, n*(n-1)/2), coding: new(check.Coding),
		memory: &allocation{dev: q.dev, bytes: bytes},
	}, nil
}

func (q *queue[T]) UploadPacked(dst backend.Packed[T], first int, src backend.Host[T]) error {
	check.TransferPacked("UploadPacked", dst, first, src)
	to := floatsOf(q.dev, "UploadPacked", dst)
	if err := q.wait(); err != nil {
		return err
	}
	for r := range src.Rows {
		for j := range first + r + 1 {
			*to.address(first+r, j) = src.Data[r*src.Stride+j]
		}
	}
	return nil
}

func (q *queue[T]) DownloadPacked(dst backend.Host[T], src backend.Packed[T], first int) error {
	check.TransferPacked("DownloadPacked", src, first, dst)
	from := packedOf(q.dev, "DownloadPacked", src)
	if err := q.wait(); err != nil {
		return err
	}
	for r := range dst.Rows {
		for j := range first + r + 1 {
			dst.Data[r*dst.Stride+j] = T(from.at(first+r, j))
		}
	}
	return nil
}

func (q *queue[T]) GramPacked(dst backend.Packed[T], k kernels.Kernel, x backend.Matrix[T]) {
	n, d := check.GramPacked(dst, k, x)
	K, X := packedOf(q.dev, "GramPacked", dst), gridOf(q.dev, "GramPacked", x)
	if K.coding != nil {
		*K.coding = check.GramFixed(k, d)
	}
	eval := kernelFunc(k, X, X)
	progress := q.meter(flop.Gram(n, n, d, true), n)
	for i := range n {
		if q.stopped() {
			return
		}
		for j := range i + 1 {
			v := eval(i, j)
			if err := K.encode(i, j, v); err != nil {
				q.fail(err)
				return
			}
		}
		progress.step()
	}
}

// encode sets element (i, j) to v, or to the code of v, and returns an error if v has no code.
func (h *packedMatrix[T]) encode(i, j int, v float64) error {
	if h.coding == nil {
		h.set(i, j, v)
		return nil
	}
	if code := h.code(i, j); code != nil {
		a, b := h.coding.Factors()
		*code = uint16(math.RoundToEven(min(max(a*v+b, 0), math.MaxUint16)))
	} else {
		h.set(i, j, v)
	}
	return h.coding.Check(i, j, v)
}

func (q *queue[T]) AddDiagPacked(d []T, a backend.Packed[T]) {
	n := check.AddDiagPacked(d, a)
	A := packedOf(q.dev, "AddDiagPacked", a)
	q.addDiag(d, n, func(i int) *T { return A.address(i, i) })
}

func (q *queue[T]) DiagPacked(dst []T, a backend.Packed[T]) error {
	n := check.DiagPacked(dst, a)
	A := packedOf(q.dev, "DiagPacked", a)
	for i := range n {
		dst[i] = *A.address(i, i)
	}
	return q.wait()
}

// unpack returns a copy of the lower triangle in full storage for the loops of Symm, Potrf and Trsm.
func (h *packedMatrix[T]) unpack() grid[T] {
	g := grid[T]{rows: h.n, cols: h.n, rs: h.n, cs: 1, data: make([]T, h.n*h.n)}
	for i := range h.n {
		for j := range i + 1 {
			g.set(i, j, h.at(i, j))
		}
	}
	return g
}

func (q *queue[T]) SymmPacked(alpha T, a backend.Packed[T], b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.SymmPacked(a, b, c)
	A := packedOf(q.dev, "SymmPacked", a)
	q.symm(backend.Lower, alpha, A.unpack(), gridOf(q.dev, "SymmPacked", b), beta, gridOf(q.dev, "SymmPacked", c))
}

func (q *queue[T]) PotrfPacked(a backend.Packed[T]) error {
	A := floatsOf(q.dev, "PotrfPacked", a)
	L := A.unpack()
	err := q.potrf(L)
	for i := range A.n {
		for j := range i + 1 {
			A.set(i, j, L.at(i, j))
		}
	}
	return err
}

func (q *queue[T]) TrsmPacked(t backend.Trans, a backend.Packed[T], b backend.Matrix[T]) {
	check.TrsmPacked(t, a, b)
	L := floatsOf(q.dev, "TrsmPacked", a).unpack()
	q.trsm(t == backend.NoTrans, 1, L.op(t), gridOf(q.dev, "TrsmPacked", b))
}

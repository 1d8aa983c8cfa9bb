package ref

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// packedMatrix is the Packed: the rows of the lower triangle one behind the other.
type packedMatrix[T backend.Float] struct {
	n      int
	data   []T
	memory *allocation
	part   bool // of another half

	// With 16 bits for an element: data is the diagonal, and the codes are those of the
	// rows below it.
	codes  []uint16
	coding *backend.Coding
}

func (h *packedMatrix[T]) Order() int { return h.n }

func (h *packedMatrix[T]) Leading(n int) backend.Packed[T] {
	backend.CheckLeading(n, h.n)
	leading := *h
	leading.n, leading.part = n, true
	return &leading
}

// Free may be called again and does nothing then.
func (h *packedMatrix[T]) Free() {
	if h.part || h.memory.freed.Swap(true) {
		return
	}
	h.memory.dev.give(h.memory.bytes)
	h.data, h.codes = nil, nil
}

// ownFloat is ownPacked for methods that do not take one of 16 bits.
func ownFloat[T backend.Float](d *device, op string, h backend.Packed[T]) *packedMatrix[T] {
	r := ownPacked(d, op, h)
	if r.coding != nil {
		backend.NoFixed(op)
	}
	return r
}

// ownPacked returns h, which must be a live packed matrix of d.
func ownPacked[T backend.Float](d *device, op string, h backend.Packed[T]) *packedMatrix[T] {
	r, ok := h.(*packedMatrix[T])
	if !ok || r.memory.dev != d {
		backend.Foreign(op)
	}
	if r.memory.freed.Load() {
		backend.Freed(op)
	}
	return r
}

// address is where element (i, j) is, j ≤ i.
func (h *packedMatrix[T]) address(i, j int) *T {
	if h.coding != nil {
		return &h.data[i]
	}
	return &h.data[i*(i+1)/2+j]
}

// code is where that of element (i, j) is, j < i, or nil.
func (h *packedMatrix[T]) code(i, j int) *uint16 {
	if h.coding == nil || i == j {
		return nil
	}
	return &h.codes[i*(i-1)/2+j]
}

// at is the element of the lower triangle, symmetric that of the whole matrix.
func (h *packedMatrix[T]) at(i, j int) float64 {
	if code := h.code(i, j); code != nil {
		return h.coding.Value(*code)
	}
	return float64(*h.address(i, j))
}
func (h *packedMatrix[T]) symmetric(i, j int) float64 { return h.at(max(i, j), min(i, j)) }
func (h *packedMatrix[T]) set(i, j int, v float64)    { *h.address(i, j) = T(v) }

func (q *queue[T]) PackedBytes(n int) int64 {
	backend.CheckNewPacked(n)
	// One of n and n+1 is even; a float64 reports whether the product fits.
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
	if err := q.dev.takeBytes(bytes); err != nil {
		return nil, err
	}
	return &packedMatrix[T]{n: n, data: make([]T, bytes/sizeof[T]()), memory: &allocation{dev: q.dev, bytes: bytes}}, nil
}

func (q *queue[T]) FixedBytes(n int) int64 {
	backend.CheckNewPacked(n)
	if float64(n)*(float64(n)+16) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)*int64(n-1) + int64(n)*sizeof[T]()
}

func (q *queue[T]) NewFixed(n int) (backend.Packed[T], error) {
	bytes := q.FixedBytes(n)
	if err := q.dev.takeBytes(bytes); err != nil {
		return nil, err
	}
	return &packedMatrix[T]{
		n: n, data: make([]T, n), codes: make([]uint16, n*(n-1)/2), coding: new(backend.Coding),
		memory: &allocation{dev: q.dev, bytes: bytes},
	}, nil
}

func (q *queue[T]) UploadPacked(dst backend.Packed[T], first int, src backend.Host[T]) error {
	backend.CheckTransferPacked("UploadPacked", dst, first, src)
	to := ownFloat(q.dev, "UploadPacked", dst)
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
	backend.CheckTransferPacked("DownloadPacked", src, first, dst)
	from := ownPacked(q.dev, "DownloadPacked", src)
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
	n, d := backend.CheckGramPacked(dst, k, x)
	K, X := ownPacked(q.dev, "GramPacked", dst), own(q.dev, "GramPacked", x)
	if K.coding != nil {
		*K.coding = backend.CheckGramFixed(k, d)
	}
	eval := pair(k, X, X)
	progress := q.meter(backend.GramFlops(n, n, d, true), n)
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

// encode is set, by the code where there is one. The error is of a value that has none.
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
	n := backend.CheckAddDiagPacked(d, a)
	A := ownPacked(q.dev, "AddDiagPacked", a)
	if q.stopped() {
		return
	}
	for i := range n {
		v := d[0]
		if len(d) > 1 {
			v = d[i]
		}
		A.set(i, i, A.at(i, i)+float64(v))
	}
}

func (q *queue[T]) DiagPacked(dst []T, a backend.Packed[T]) error {
	n := backend.CheckDiagPacked(dst, a)
	A := ownPacked(q.dev, "DiagPacked", a)
	for i := range n {
		dst[i] = *A.address(i, i)
	}
	return q.wait()
}

func (q *queue[T]) SymmPacked(alpha T, a backend.Packed[T], b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	n, t := backend.CheckSymmPacked(a, b, c)
	A, B, C := ownPacked(q.dev, "SymmPacked", a), own(q.dev, "SymmPacked", b), own(q.dev, "SymmPacked", c)
	progress := q.meter(backend.SymmFlops(n, t), n)
	for i := range n {
		if q.stopped() {
			return
		}
		for j := range t {
			var s float64
			for p := range n {
				s += A.symmetric(i, p) * B.at(p, j)
			}
			C.update(i, j, float64(alpha), s, float64(beta))
		}
		progress.step()
	}
}

// PotrfPacked is Potrf in these rows.
func (q *queue[T]) PotrfPacked(a backend.Packed[T]) error {
	L := ownFloat(q.dev, "PotrfPacked", a)
	progress := q.meter(backend.PotrfFlops(L.n), L.n)
	for i := range L.n {
		if q.stopped() {
			break
		}
		for j := range i {
			v := L.at(i, j)
			for p := range j {
				v -= L.at(i, p) * L.at(j, p)
			}
			L.set(i, j, v/L.at(j, j))
		}
		v := L.at(i, i)
		for p := range i {
			v -= L.at(i, p) * L.at(i, p)
		}
		if pivot := float64(T(v)); !(pivot > 0) || math.IsInf(pivot, 1) {
			return &backend.PivotError{Index: i, Value: v}
		}
		L.set(i, i, math.Sqrt(v))
		progress.step()
	}
	return q.wait()
}

// TrsmPacked is substitution: row i needs those before it, or, with Lᵀ, those
// after it.
func (q *queue[T]) TrsmPacked(t backend.Trans, a backend.Packed[T], b backend.Matrix[T]) {
	n, m := backend.CheckTrsmPacked(t, a, b)
	L, B := ownFloat(q.dev, "TrsmPacked", a), own(q.dev, "TrsmPacked", b)
	progress := q.meter(backend.TrsmFlops(n, m), n)
	for step := range n {
		if q.stopped() {
			return
		}
		i, first, end := step, 0, step
		if t == backend.Transpose {
			i = n - 1 - step
			first, end = i+1, n
		}
		for j := range m {
			v := B.at(i, j)
			for p := first; p < end; p++ {
				v -= L.symmetric(i, p) * B.at(p, j)
			}
			B.set(i, j, v/L.at(i, i))
		}
		progress.step()
	}
}

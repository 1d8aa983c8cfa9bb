package cpu

import (
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// fixedMatrix is a symmetric Gram matrix with a code of 16 bits for each element. Panels of ukr.CodeRows rows of the
// lower triangle are divided into chunks of ukr.CodeSpan columns. The codes on and above the diagonal are 0.
type fixedMatrix[T backend.Float] struct {
	memory *matrix[T] // the memory of the whole matrix
	codes  []uint16
	diag   []T
	coding *check.Coding // mapping of codes to values, shared with all leading parts
	n      int
	view   bool // whether the matrix is a leading part of another matrix
}

const codeChunk = ukr.CodeRows * ukr.CodeSpan

// codesBefore returns the number of codes in the panels before panel p. The panels are divided into
// groups of CodeSpan/CodeRows panels; all panels of a group have the same number of chunks.
func codesBefore(p int) int {
	const panelsPerGroup = ukr.CodeSpan / ukr.CodeRows
	a, b := p/panelsPerGroup, p%panelsPerGroup
	return codeChunk * (a + 1) * (panelsPerGroup/2*a + b)
}

func (h *fixedMatrix[T]) Order() int { return h.n }

func (h *fixedMatrix[T]) Free() {
	if !h.view {
		h.memory.Free()
	}
}

func (h *fixedMatrix[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, h.n)
	return &fixedMatrix[T]{h.memory, h.codes, h.diag[:n], h.coding, n, true}
}

func (q *queue[T]) FixedBytes(n int) int64 {
	check.NewPacked(n)
	if 2*(float64(n)+2*codeChunk)*(float64(n)+2*codeChunk) >= math.MaxInt64 {
		return math.MaxInt64
	}
	codes := 2 * codesBefore(panels(n, ukr.CodeRows))
	return int64(codes + panels(n*int(unsafe.Sizeof(T(0))), cacheLine)*cacheLine)
}

func (q *queue[T]) NewFixed(n int) (backend.Packed[T], error) {
	bytes, size := q.FixedBytes(n), int(unsafe.Sizeof(T(0)))
	elements := int(bytes / int64(size))
	memory, err := q.allocate(1, elements, elements, bytes)
	if err != nil {
		return nil, err
	}
	codes := codesBefore(panels(n, ukr.CodeRows))
	return &fixedMatrix[T]{
		memory: memory,
		codes:  unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(memory.data))), codes),
		diag:   memory.data[codes*2/size:][:n],
		coding: new(check.Coding),
		n:      n,
	}, nil
}

// asFixed returns a as a matrix of 16 bits of this device that has not been freed, or nil if a is another kind.
func (q *queue[T]) asFixed(op string, a backend.Packed[T]) *fixedMatrix[T] {
	h, ok := a.(*fixedMatrix[T])
	if !ok {
		return nil
	}
	if h.memory.device != q.engine.device {
		check.Foreign(op)
	}
	if h.memory.data == nil {
		check.Freed(op)
	}
	return h
}

// code returns a pointer to the code of element (i, j), j < i.
func (h *fixedMatrix[T]) code(i, j int) *uint16 {
	index := codesBefore(i/ukr.CodeRows) + j/ukr.CodeSpan*codeChunk + i%ukr.CodeRows*ukr.CodeSpan + j%ukr.CodeSpan
	return &h.codes[index]
}

// value returns element (i, j), j ≤ i.
func (h *fixedMatrix[T]) value(i, j int) T {
	if i == j {
		return h.diag[i]
	}
	return T(h.coding.Value(*h.code(i, j)))
}

// evaluateToFixed evaluates the kernel on tiles in scratch memory and stores their codes in h.
func (base *gram[T]) evaluateToFixed(h *fixedMatrix[T], k kernels.Kernel) {
	*h.coding = check.GramFixed(k, base.d)
	g, q := &gramMul[T]{gram: base}, base.q
	tm, tn := g.tileSize()
	g.blocks(func(i0, j0 int, bx, bz []packedPoints[T]) {
		if j0 > i0 {
			return
		}
		rows, cols := min(g.size, h.n-i0), min(g.size, h.n-j0)
		tiles := evenGrid(rows, cols, tm, tn)
		q.parallel(tiles.tasks(), g.flops(rows, cols), func(s *scratch[T], task int) {
			i, j, rows, cols := tiles.block(task)
			elements := lower.count(rows, cols, j0+j-i0-i)
			if elements == 0 {
				return
			}
			tile := g.values(s, bx, bz, i0, j0, i, j, rows, cols)
			for r := range rows {
				if q.stopped() {
					return
				}
				q.encode(s, h, i0+i+r, j0+j, tile.data[tile.offset+r*tile.rs:][:cols])
			}
			q.count(2 * float64(elements) * float64(g.d))
		})
	})
}

// encode stores values as elements of row i of h from column j on, where column j is the first of a
// chunk. It omits elements above the diagonal.
func (q *queue[T]) encode(s *scratch[T], h *fixedMatrix[T], i, j int, values []T) {
	if d := i - j; d < len(values) {
		if d < 0 {
			return
		}
		h.diag[i] = values[d]
		if err := h.coding.Check(i, i, float64(values[d])); err != nil {
			q.fail(err)
		}
		values = values[:d]
	}
	a, b := h.coding.Factors()
	store := func(first int, x []T) {
		if len(x) == 0 {
			return
		}
		s.span = ukr.Span[T]{X: &x[0], N: len(x), A: T(a), B: T(b), Z: (*T)(unsafe.Pointer(h.code(i, j+first)))}
		q.engine.ukr.Encode(&s.span)
		if s.span.Flag == 0 {
			return
		}
		// The micro-kernel has found a value outside of the bounds. Check accepts values that
		// rounding has moved slightly out of the bounds.
		for c, v := range x {
			if err := h.coding.Check(i, j+first+c, float64(v)); err != nil {
				q.fail(err)
				return
			}
		}
	}
	fullLen := len(values) / ukr.CodeSpan * ukr.CodeSpan
	store(0, values[:fullLen])
	if tail := values[fullLen:]; len(tail) > 0 {
		last := s.growThird(ukr.CodeSpan)
		for c := copy(last, tail); c < len(last); c++ {
			last[c] = T(h.coding.Low) // the value of code 0
		}
		store(fullLen, last)
	}
}

// fixedColumns is the number of columns of B that are multiplied in one pass over the codes. For more than two
// columns, the codes are processed in groups of fixedSpan columns, which fit in the first-level cache.
const (
	fixedColumns = 16
	fixedSpan    = 512
)

// symmFixed computes C ← α A B + β C. An off-diagonal element of A is low + step·c_ij, where c_ij is its code. Row
// i of A B is therefore low·Σ_j b_j + step·Σ_j c_ij b_j plus the term of the diagonal.
func (q *queue[T]) symmFixed(alpha T, h *fixedMatrix[T], b view[T], beta T, c view[T]) {
	for j := 0; j < c.cols && !q.stopped(); j += fixedColumns {
		cols := min(fixedColumns, c.cols-j)
		q.symvFixed(alpha, h, b.block(0, j, h.n, cols), beta, c.block(0, j, h.n, cols))
	}
}

func (q *queue[T]) symvFixed(alpha T, h *fixedMatrix[T], b view[T], beta T, c view[T]) {
	n, cols, size := h.n, b.cols, groups(h.n)
	if n == 0 {
		return
	}
	ld := panels(n, ukr.CodeSpan) * ukr.CodeSpan
	v, freeV := q.engine.shared(ld * cols)
	defer freeV()
	total := make([]float64, cols)
	for j := range cols {
		column := v[j*ld:][:ld]
		clear(column[n:])
		for i := range n {
			column[i] = *b.at(i, j)
			total[j] += float64(column[i])
		}
	}
	groupSums, free := q.engine.newSums(ld, cols, size)
	defer free()
	lanes := q.engine.ukr.CodeLanes
	q.parallel(size, flop.Gemm(n, n, cols), func(s *scratch[T], g int) {
		groupSums.clear(g)
		sums := s.growSecond(cols * ukr.CodeRows * lanes)
		for block := g * thinRows; block < n && !q.stopped(); block += size * thinRows {
			for i := block; i < min(block+thinRows, n); i += ukr.CodeRows {
				clear(sums)
				q.addPanel(s, h, i, v, ld, groupSums.data[g*cols*ld:][:cols*ld], sums, cols)
				for j := range cols {
					for r := range ukr.CodeRows {
						sum := T(0)
						for _, v := range sums[(j*ukr.CodeRows+r)*lanes:][:lanes] {
							sum += v
						}
						groupSums.column(g, j)[i+r] += sum
					}
				}
			}
		}
	})
	q.rows(n, cols*size, func(lo, hi int) {
		for j := range cols {
			sum := groupSums.column(0, j)[lo:hi]
			for g := 1; g < size; g++ {
				q.engine.axpy(1, groupSums.column(g, j)[lo:hi], sum)
			}
			low := h.coding.Low
			for i, s := range sum {
				i += lo
				// The sums treat the diagonal element a_ii as an element with code 0, whose value
				// is low. The last term adds the difference, (a_ii − low)·b_i.
				w := low*total[j] + h.coding.Step*float64(s) + (float64(h.diag[i])-low)*float64(v[j*ld+i])
				store(c.at(i, j), T(float64(alpha)*w), beta)
			}
		}
	})
	if !q.stopped() {
		q.count(flop.Symm(n, cols))
	}
}

// addPanel multiplies by the panel P of codes that begins at row i. It adds P·v to sums, and it adds the product of
// Pᵀ and rows i … i+CodeRows−1 of v to x. The columns of v and of x are ld elements apart.
func (q *queue[T]) addPanel(s *scratch[T], h *fixedMatrix[T], i int, v []T, ld int, x, sums []T, cols int) {
	u := q.engine.ukr
	chunks, span := i/ukr.CodeSpan+1, fixedSpan/ukr.CodeSpan
	if cols <= 2 {
		span = chunks
	}
	panel := h.codes[codesBefore(i/ukr.CodeRows):]
	for k := 0; k < chunks; k += span {
		for j := 0; j < cols; j += 2 {
			offset := j*ld + k*ukr.CodeSpan
			s.codes = ukr.Codes[T]{
				Z: &panel[k*codeChunk], X: &x[offset], Y: &v[offset], A: &v[j*ld+i], B: &sums[j*ukr.CodeRows*u.CodeLanes],
				N: min(span, chunks-k), Ld: ld,
			}
			if j+1 < cols {
				u.Codes2(&s.codes)
			} else {
				u.Codes1(&s.codes)
			}
		}
	}
}

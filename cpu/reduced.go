package cpu

import (
	"errors"
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// The factorization of reduced precision multiplies 16-bit integers, which processors do at up to twice the rate of
// float32. Row l_i of a block column of L with nb columns is rounded to integers times the step ‖l_i‖/roundedNorm. By
// the Cauchy–Schwarz inequality, the inner product of two rows of integers is at most (roundedNorm + √nb/2)² =
// 1.07·10⁹, which fits in int32. Matrices with a diagonal element below reducedDiagonal are factored in float32.
//
// The rounded rows replace the rows of L below the diagonal block L₁₁ of the block column. This changes A by D
// L₁₁ᵀ, where D holds the rounding errors. If this change is too large, for example because the block column
// contains the largest eigenvectors of A, the block column is multiplied in float32.

// reducedBlock is the width nb of a block column. It is a variable so that tests can reduce it.
var reducedBlock = 256

// roundedNorm is the Euclidean norm of a row of L divided by the quantization step of the row. Because no element
// of a row exceeds the norm, the rounded integers are below 2¹⁵.
const roundedNorm = 1<<15 - 64

// reducedDiagonal is a lower limit for the diagonal elements of A. Above it, the product of the quantization steps
// of two rows of L does not underflow. The squares of the elements of a row that underflow in float32, below 2⁻¹⁵⁰,
// sum to less than 2⁻⁴⁶ of the diagonal element.
const reducedDiagonal = 0x1p-96

// ReducedUnit returns an estimate of the error of the elements of LLᵀ relative to A's diagonal. The measured root
// mean square error is 2⁻²¹ to 2⁻¹⁹ (Gaussian, Laplacian and cubic kernels, 3 to 50 features, n = 4000). The error
// is at most √nb·2⁻¹⁶ with nb = reducedBlock.
func (q *queue[T]) ReducedUnit() float64 {
	if unsafe.Sizeof(T(0)) == 8 || q.engine.device.tier.Pairs == 0 {
		return 0
	}
	return 1.0 / (1 << 19)
}

func (q *queue[T]) PotrfPackedReduced(a backend.Packed[T]) error {
	p := q.asPacked("PotrfPackedReduced", a)
	if q.ReducedUnit() == 0 || p.Order() <= 2*reducedBlock {
		return q.PotrfPacked(a)
	}
	if err := q.wait(); err != nil {
		return err
	}
	err := q.potrfReduced(p)
	if waitErr := q.wait(); waitErr != nil {
		return waitErr
	}
	return err
}

// potrfReduced first factors the trapezoid of A₁₁ and A₂₁ and subtracts L₂₁L₂₁ᵀ from A₂₂. It then factors A₂₂.
func (q *queue[T]) potrfReduced(p *packedMatrix[T]) error {
	r := reducedFactor[T]{queue: q}
	smallest := math.Inf(1)
	for i := range p.Order() {
		v := math.Abs(float64(*p.diagonal(i)))
		r.mean += v / float64(p.Order())
		smallest = min(smallest, v)
	}
	if !(smallest >= reducedDiagonal) {
		return q.potrfPacked(p)
	}
	trapezoid, a22 := p.rect.window(1, 0, p.Order(), p.n1).view(), p.rect.window(0, 0, p.n2, p.n2).view().t()
	if err := r.factor(trapezoid, a22); err != nil || q.stopped() {
		return err
	}
	err := r.factor(a22, a22.block(p.n2, p.n2, 0, 0))
	if pivot := new(backend.PivotError); errors.As(err, &pivot) {
		pivot.Index += p.n1
	}
	return err
}

type reducedFactor[T backend.Float] struct {
	*queue[T]
	mean float64 // mean absolute value of A's diagonal
}

// factor factors the lower trapezoid a like potrf. It also subtracts L₂L₂ᵀ from the lower triangle of corner, where L₂
// is the rectangle below the triangle of the factor.
func (r *reducedFactor[T]) factor(a, corner view[T]) error {
	// The first block column often has to be multiplied in float32, so it is narrower.
	w := min(reducedBlock/2, a.cols)
	blockNorm, err := r.factorNext(r.queue, a.block(0, 0, w, w), 0)
	for j := 0; err == nil && j+w < a.rows && w > 0 && !r.stopped(); {
		l11, a21 := a.block(j, j, w, w), a.block(j+w, j, a.rows-j-w, w)
		j += w
		r.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, l11, a21)
		l21, free := r.round(a21, blockNorm)
		trailing := a.block(j, j, a.rows-j, a.cols-j)
		w = min(reducedBlock, trailing.cols)
		r.multiply(nil, l21, 0, 0, trailing.block(0, 0, trailing.rows, w))
		r.multiply(func() {
			blockNorm, err = r.factorNext(r.serial(), trailing.block(0, 0, w, w), j)
		}, l21, w, w, trailing.block(w, w, trailing.rows-w, trailing.cols-w))
		first := a21.rows - corner.rows
		r.multiply(nil, l21, first, first, corner)
		free()
	}
	return err
}

// multiply subtracts L_i L_jᵀ from the lower part of C, where L_i holds the rows of l21 from row i on, and L_j the
// rows of l21 from row j on. One worker first runs lookahead if it is not nil.
func (r *reducedFactor[T]) multiply(lookahead func(), l21 roundedRows[T], i, j int, c view[T]) {
	a, b := l21.from(i, c.rows), l21.from(j, c.cols)
	if l21.steps == nil {
		r.gemmLookahead(lookahead, -1, a.view, b.view, l21.cols, 1, c, lower)
		return
	}
	r.gemmLookahead(lookahead, -1, a, b, l21.cols, 1, c, lower)
}

// factorNext factors a by factorBlock. It also returns an upper bound of the norm of a before the factorization:
// its largest row sum of absolute values.
func (r *reducedFactor[T]) factorNext(q *queue[T], a view[T], first int) (blockNorm float64, err error) {
	sums := make([]float64, a.rows)
	for i := range a.rows {
		for j := range i + 1 {
			v := math.Abs(float64(*a.at(i, j)))
			sums[i] += v
			if j < i {
				sums[j] += v
			}
		}
	}
	for _, s := range sums {
		blockNorm = max(blockNorm, s)
	}
	return blockNorm, q.factorBlock(a, first)
}

// round rounds the rows of a block column of L in place, and also returns them as integers with steps. The
// function free releases the memory of the integers.
//
// The norm of the change D L₁₁ᵀ of A is proportional to ‖L₁₁‖ ≤ √blockNorm and to the largest norm of a row. If
// √blockNorm times the largest norm of a row exceeds r.mean, round returns the unrounded rows as floats without steps.
func (r *reducedFactor[T]) round(a view[T], blockNorm float64) (rounded roundedRows[T], free func()) {
	steps := make([]T, a.rows+2*r.engine.ukr.NR) // padded to whole panels
	r.strips(a, false, func(s *scratch[T], i int, row []T) {
		steps[i] = T(math.Sqrt(float64(r.engine.ukr.Dot(len(row), &row[0], &row[0]))) / roundedNorm)
	})
	largest := 0.0
	for _, step := range steps {
		largest = max(largest, roundedNorm*float64(step))
	}
	if !(blockNorm*largest*largest <= r.mean*r.mean) {
		return roundedRows[T]{view: a, terms: a.cols}, func() {}
	}
	width := panels(a.cols, ukr.CodeSpan) * ukr.CodeSpan / 2
	ld := width + cacheLine/int(unsafe.Sizeof(T(0)))
	pairs, free := r.engine.shared(a.rows * ld)
	r.strips(a, true, func(s *scratch[T], i int, row []T) {
		r.engine.round16(s, row, steps[i], pairs[i*ld:][:width])
	})
	return roundedRows[T]{view[T]{data: pairs, rows: a.rows, cols: width, rs: ld, cs: 1}, steps, a.cols}, free
}

// strips runs f on the rows of a as contiguous slices: in place if the rows of a are contiguous,
// and otherwise on copies, which are copied back if write is true.
func (q *queue[T]) strips(a view[T], write bool, f func(s *scratch[T], i int, row []T)) {
	q.chunks(a.rows, transposeStrip, copyFlops(a.rows*a.cols), func(s *scratch[T], i, rows int) {
		block := a.block(i, 0, rows, a.cols)
		if a.cs == 1 {
			for r := range rows {
				f(s, i+r, block.data[block.offset+r*block.rs:][:a.cols])
			}
			return
		}
		ld := a.cols + 8
		work := view[T]{data: s.grow(rows * ld), rows: rows, cols: a.cols, rs: ld, cs: 1}
		q.engine.transpose(s, block.t(), work)
		for r := range rows {
			f(s, i+r, work.data[r*ld:][:a.cols])
		}
		if write {
			q.engine.transpose(s, work, block.t())
		}
	})
}

// transpose computes C ← Aᵀ for views with contiguous rows.
func (e *engine[T]) transpose(s *scratch[T], a, c view[T]) {
	t := &s.transpose
	t.A, t.C, t.M, t.N, t.Ars, t.Ldc, t.Part = a.at(0, 0), c.at(0, 0), a.rows, a.cols, a.rs, c.rs, ukr.Whole
	e.ukr.TransposeDirect(t)
}

// round16 rounds each element of x to the nearest multiple of step. It stores the multipliers, 16-bit integers, in z,
// two in each element of z, and pads them with zeros to a multiple of ukr.CodeSpan integers.
func (e *engine[T]) round16(s *scratch[T], x []T, step T, z []T) {
	inverse := 1 / step
	if math.IsInf(float64(inverse), 0) {
		inverse = 0 // the row is 0, or so small that it is rounded to 0
	}
	run := func(x, z []T) {
		s.span = ukr.Span[T]{X: &x[0], Z: &z[0], N: len(x), A: inverse, B: step}
		e.ukr.Round16(&s.span)
	}
	fullLen := len(x) / ukr.CodeSpan * ukr.CodeSpan
	if fullLen > 0 {
		run(x[:fullLen], z)
	}
	if tail := x[fullLen:]; len(tail) > 0 {
		var last [ukr.CodeSpan]T
		copy(last[:], tail)
		run(last[:], z[fullLen/2:])
		copy(tail, last[:])
	}
}

// roundedRows holds the rows of a block column as integers: each element of the view is a pair of
// 16-bit integers, and steps has a factor for each row. If steps is nil, the elements are floats.
type roundedRows[T backend.Float] struct {
	view[T]
	steps []T
	terms int // number of integers in a row, without the padding
}

// from returns rows i … i+rows−1.
func (r roundedRows[T]) from(i, rows int) roundedRows[T] {
	r.view = r.block(i, 0, rows, r.cols)
	if r.steps != nil {
		r.steps = r.steps[i:]
	}
	return r
}

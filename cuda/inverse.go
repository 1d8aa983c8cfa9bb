package cuda

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/flop"
)

// inverses contains the inverses of the diagonal blocks, of order cuts.fewOrder, of a packed factor in reduced
// precision. The factor is a preconditioner, with which every iteration solves for a small number of columns: a
// product with an inverse takes one launch, and a solve by cuBLAS takes many.
type inverses[T backend.Float] struct {
	device *device
	memory driver.DevicePtr // the inverses of blocks of A₁₁, then of A₂₂ᵀ, row-major
	order  int
}

// maxInverseBytes limits the bytes of the inverses of one factor: 4·cuts.fewOrder for each row. The memory is part
// of leftFree. Tests change the limit.
var maxInverseBytes int64 = 512 << 20

// invertedColumns is the largest number of right-hand sides that are solved by inverses. Package solvers iterates on
// this number of right-hand sides at a time.
const invertedColumns = 64

func (v *inverses[T]) close() error { return v.device.release(v.memory) }

// invert computes the inverses of a factor. It does nothing if h is a leading part of a matrix, if the device has
// too little memory, or if the inverses would exceed maxInverseBytes or 1/32 of the budget.
func (q *queue[T]) invert(h *packedMatrix[T]) error {
	a11, _, a22t := h.blocks()
	size, d := cuts.fewOrder, q.engine.device
	bytes := int64(ceil(h.n1, size)+ceil(h.n2, size)) * int64(size*size*sizeOf[T]())
	if h.parent != nil || bytes == 0 || bytes > min(maxInverseBytes, d.memory.limitBytes()/32) {
		return nil
	}
	p, err := d.alloc(bytes)
	if errors.Is(err, backend.ErrMemory) {
		return nil
	}
	if err != nil {
		return err
	}
	v := &inverses[T]{d, p, size}
	block := func(ul backend.Uplo, a *matrix[T], first int) error {
		for i := 0; i < a.rows; i += size {
			m := min(size, a.rows-i)
			x := v.block(first+i/size, m)
			err := firstOf(
				func() error { return q.scale(0, x.view(), whole, false) },
				func() error { return q.addDiag(x.diagonal(), 0, 1) },
				func() error {
					return q.trsm(backend.Left, ul, backend.NoTrans, 1, a.window(i, i, m, m), x, rounding{})
				},
			)
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = errors.Join(block(backend.Lower, a11, 0), block(backend.Upper, a22t, ceil(h.n1, size)))
	if err != nil {
		return errors.Join(err, d.api.Wait(d.stream), v.close())
	}
	h.inverses = v
	d.mu.Lock()
	d.stores = append(d.stores, v)
	d.mu.Unlock()
	return nil
}

// block returns the inverse of block i, whose order is m.
func (v *inverses[T]) block(i, m int) *matrix[T] {
	return &matrix[T]{device: v.device, ptr: v.memory + driver.DevicePtr(i*v.order*v.order*sizeOf[T]()), rows: m, cols: m, stride: v.order}
}

// freeInverses frees the inverses of h or, if h is a leading part, of the whole matrix.
func (h *packedMatrix[T]) freeInverses() error {
	if h.parent != nil {
		return h.parent.freeInverses()
	}
	v := h.inverses
	if v == nil {
		return nil
	}
	h.inverses = nil
	v.device.removeStore(v)
	return v.close()
}

// solvePart solves op(A) X = B in place. A is A₁₁ if ul is Lower, and A₂₂ᵀ if ul is Upper (see packedMatrix).
func (h *packedMatrix[T]) solvePart(q *queue[T], ul backend.Uplo, t backend.Trans, a, b *matrix[T]) error {
	v := h.inverses
	if v == nil || b.cols > invertedColumns || b.rows == 0 || b.cols == 0 {
		return q.trsm(backend.Left, ul, t, 1, a, b, rounding{})
	}
	first := 0
	if ul == backend.Upper {
		first = ceil(h.n1, v.order)
	}
	return q.scratch(int64(b.rows)*int64(b.cols)*int64(sizeOf[T]()), func(p driver.DevicePtr) error {
		x := &matrix[T]{device: b.device, ptr: p, rows: b.rows, cols: b.cols, stride: b.cols}
		return q.step(flop.Trsm(b.rows, b.cols), func() error {
			q.nested = true // several hundred short launches are then parts of one step
			defer func() { q.nested = false }()
			return firstOf(
				func() error { return q.solveInverted(v, first, ul, t, a, b, x) },
				func() error { return q.copy(x.view(), b.view(), whole) },
			)
		})
	})
}

// solveInverted computes X = op(A)⁻¹ B recursively on the halves of A, and overwrites B. The first
// diagonal block of A is block number `first` of v.
func (q *queue[T]) solveInverted(v *inverses[T], first int, ul backend.Uplo, t backend.Trans, a, b, x *matrix[T]) error {
	bl, n := q.engine.device.libraries.Blas, a.rows
	if n <= v.order {
		return q.blasGemm(bl, t, backend.NoTrans, 1, v.block(first, n), b, 0, x, rounding{})
	}
	n1 := ceil(ceil(n, v.order), 2) * v.order
	solveBlock := func(i, rows int) func() error {
		return func() error {
			return q.solveInverted(v, first+i/v.order, ul, t, a.window(i, i, rows, rows), b.window(i, 0, rows, b.cols), x.window(i, 0, rows, x.cols))
		}
	}
	offDiagonal := a.window(n1, 0, n-n1, n1)
	if ul == backend.Upper {
		offDiagonal = a.window(0, n1, n1, n-n1)
	}
	solveFirst, solveSecond := solveBlock(0, n1), solveBlock(n1, n-n1)
	b2, x1 := b.window(n1, 0, n-n1, b.cols), x.window(0, 0, n1, x.cols)
	if (ul == backend.Lower) != (t == backend.NoTrans) { // op(A) is an upper triangle
		solveFirst, solveSecond = solveSecond, solveFirst
		b2, x1 = b.window(0, 0, n1, b.cols), x.window(n1, 0, n-n1, x.cols)
	}
	return firstOf(solveFirst, func() error { return q.blasGemm(bl, t, backend.NoTrans, -1, offDiagonal, x1, 1, b2, rounding{}) }, solveSecond)
}

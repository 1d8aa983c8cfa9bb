package cuda

import (
	"encoding/binary"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// fixedMatrix is a symmetric Gram matrix with 16 bits per element. The lower triangle is stored in
// panels of `tile` rows. A panel is row-major and ends at the last column of its diagonal block.
// The diagonal follows after the panels, in T. See internal/ptx/fixed.cuh.
type fixedMatrix[T backend.Float] struct {
	memory  *matrix[T] // the memory of the whole matrix
	diag    driver.DevicePtr
	coding  *check.Coding // mapping of 16-bit codes to values, shared with all leading blocks of the matrix
	n       int
	leading bool // whether this is a leading block of another matrix
}

// codesOf returns the number of codes that a matrix of order n stores.
func codesOf(n int) int {
	panels, remainder := n/tile, n%tile
	return tile * (panels + 1) * (tile*panels/2 + remainder)
}

func (h *fixedMatrix[T]) Order() int { return h.n }

func (h *fixedMatrix[T]) Free() {
	if !h.leading {
		h.memory.Free()
	}
}

func (h *fixedMatrix[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, h.n)
	return &fixedMatrix[T]{h.memory, h.diag, h.coding, n, true}
}

func (h *fixedMatrix[T]) diagonal() view[T] { return view[T]{h.diag, h.n, 1, 1, 0} }

// args adds the first arguments of the device functions that decode the matrix or multiply by it.
func (h *fixedMatrix[T]) args(a *driver.Args, coding check.Coding) {
	a.Ptr(h.memory.ptr).Ptr(h.diag)
	scalarArg(a, T(coding.Low))
	scalarArg(a, T(coding.Step))
}

func (q *queue[T]) FixedBytes(n int) int64 {
	check.NewPacked(n)
	if 2*(float64(n)+tile)*(float64(n)+2*tile) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(2*codesOf(n) + sizeOf[T]()*n)
}

func (q *queue[T]) NewFixed(n int) (backend.Packed[T], error) {
	d, bytes := q.engine.device, q.FixedBytes(n)
	memory := &matrix[T]{device: d, owner: true}
	if bytes > 0 {
		p, err := d.allocate(bytes)
		if err != nil {
			return nil, err
		}
		memory.ptr = p
	}
	return &fixedMatrix[T]{memory: memory, diag: memory.ptr + driver.DevicePtr(2*codesOf(n)), coding: new(check.Coding), n: n}, nil
}

// fixed returns a as a *fixedMatrix if it is a *fixedMatrix of this device, and nil otherwise.
func (q *queue[T]) fixed(op string, a backend.Packed[T]) *fixedMatrix[T] {
	h, ok := a.(*fixedMatrix[T])
	if !ok {
		return nil
	}
	if h.memory.device != q.engine.device {
		check.Foreign(op)
	}
	return h
}

// gramFixed computes ranges of rows of k(X, X) in T and stores the codes of their elements in h. It waits for the
// device, and returns an error if a value is outside the range of the codes.
func (q *queue[T]) gramFixed(h *fixedMatrix[T], k kernels.Kernel, x *matrix[T], coding check.Coding) error {
	if h.n == 0 {
		return nil
	}
	p, err := q.program(k, x, x)
	if err != nil {
		return err
	}
	d := q.engine.device
	a, b := coding.Factors()
	err = q.scratch(8, func(statusPtr driver.DevicePtr) error {
		err := d.api.Clear(statusPtr, 8, d.stream)
		if err != nil {
			return err
		}
		err = q.forEachRange(0, 0, h.n, func(start int, m *matrix[T]) error {
			return q.step(flop.Gemm(m.rows, start, x.cols)+flop.Syrk(m.rows, x.cols), func() error {
				if err := q.gramRows(p, m.view().window(-start, 0, h.n, m.cols), x, x, start, m.rows); err != nil {
					return err
				}
				args := d.args.Reset().Int(m.rows).Long(start).Ptr(m.ptr).Long(m.stride)
				scalarArg(args, T(a))
				scalarArg(args, T(b))
				args.Ptr(h.memory.ptr).Ptr(h.diag).Ptr(statusPtr)
				return q.engine.launch("encode", spread(m.rows, m.cols))
			})
		})
		if err != nil {
			return err
		}
		var status [8]byte
		if err := d.copyToHost(statusPtr, status[:]); err != nil {
			return err
		}
		if code := binary.LittleEndian.Uint64(status[:]); code != 0 {
			return q.rangeError(int(^code>>32), int(uint32(^code)), k, x, coding)
		}
		return nil
	})
	if freeErr := p.free(); err == nil {
		err = freeErr
	}
	return err
}

// rangeError returns the error for element (i, j), whose value is outside the range of the codes.
func (q *queue[T]) rangeError(i, j int, k kernels.Kernel, x *matrix[T], coding check.Coding) error {
	var value [1]T
	err := q.scratch(int64(sizeOf[T]()), func(p driver.DevicePtr) error {
		if err := q.gram(view[T]{p, 1, 1, 1, 1}, k, x.window(i, 0, 1, x.cols), x.window(j, 0, 1, x.cols), whole); err != nil {
			return err
		}
		return q.engine.device.copyToHost(p, bytesOf(value[:]))
	})
	if err != nil {
		return err
	}
	return &backend.RangeError{I: i, J: j, Value: float64(value[0]), Low: coding.Low, High: coding.Value(math.MaxUint16)}
}

// symmFixed computes C ← α A B + β C for at most maxThinCols columns of B at a time. Every code of A is read once
// for each group of columns.
func (q *queue[T]) symmFixed(alpha T, h *fixedMatrix[T], coding check.Coding, b view[T], beta T, c view[T]) error {
	name, width := "fixed_symm", maxThinCols
	if c.cols == 1 {
		name = "fixed_symm1"
	}
	for j := 0; j < c.cols && h.n > 0; j += width {
		n := min(width, c.cols-j)
		B, C := b.window(0, j, h.n, n), c.window(0, j, h.n, n)
		err := q.symmTriangle(name, func(args *driver.Args) { h.args(args, coding) }, alpha, B, beta, C)
		if err != nil {
			return err
		}
	}
	return nil
}

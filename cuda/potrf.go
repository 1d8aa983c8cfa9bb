package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

// The status of a factorization has infoBytes bytes. It begins with an int that the device functions set. At the
// offset solverInfo it has an int that cuSOLVER sets, and at the offset pivotValue the value of the invalid pivot.
const (
	infoBytes  = 16
	solverInfo = 4
	pivotValue = 8
)

func (q *queue[T]) Potrf(ul backend.Uplo, a backend.Matrix[T]) error {
	check.Potrf(ul, a)
	A := q.ownMatrix("Potrf", a)
	return q.wait("potrf", func() error { return q.potrf(ul, A, rounding{}) })
}

// potrf factors by halving the triangle until cuSOLVER or, without cuSOLVER, one block of threads can factor it.
//
// potrf waits for the factorization, whose precision is r. At an invalid pivot it returns a *backend.PivotError.
func (q *queue[T]) potrf(ul backend.Uplo, a *matrix[T], r rounding) error {
	if a.rows == 0 {
		return nil
	}
	d := q.engine.device
	if err := d.api.Clear(d.info, infoBytes, d.stream); err != nil {
		return err
	}
	f := &factoring[T]{q: q, ul: ul, r: r}
	if a.rows >= cuts.minSolver {
		f.solver, f.maxOrder = d.libraries.Solver, f.order()
	}
	err := f.factor(a, 0)
	if err == nil {
		err = f.pivot()
	}
	return errors.Join(err, f.close())
}

// factoring holds the state of one Cholesky factorization.
type factoring[T backend.Float] struct {
	q        *queue[T]
	ul       backend.Uplo
	r        rounding
	solver   *driver.Solver // nil if this factorization does not use cuSOLVER
	maxOrder int            // the largest order that the solver factors

	triangleCopy, diagonal, work driver.DevicePtr // memory of the solver
	workBytes                    int64
	locked                       []byte
}

// order returns the largest order that cuSOLVER factors.
func (f *factoring[T]) order() int {
	maxOrder := cuts.maxCopied
	switch {
	case f.r.reduced:
		maxOrder = 2 * cuts.reduced // larger triangles are halved; their halves, of order > cuts.reduced, are large enough for cuSOLVER
	case f.ul == backend.Upper:
		maxOrder = cuts.maxInPlace
	}
	step := int(math.Cbrt(3 * f.q.libraryStep()))
	return min(maxOrder, max(step, cuts.minSolver))
}

// close frees the memory of cuSOLVER. No queued work uses it, because the method pivot has waited.
func (f *factoring[T]) close() error {
	d := f.q.engine.device
	var errs []error
	if f.diagonal != 0 {
		errs = append(errs, d.api.Wait(d.stream)) // if a step has failed, queued work may still use the memory
	}
	for _, p := range []driver.DevicePtr{f.triangleCopy, f.diagonal, f.work} {
		if p != 0 {
			errs = append(errs, d.release(p))
		}
	}
	if f.locked != nil {
		errs = append(errs, d.api.FreeHost(f.locked))
	}
	return errors.Join(errs...)
}

// pivot waits, and returns a *backend.PivotError if the factorization found an invalid pivot.
func (f *factoring[T]) pivot() error {
	d := f.q.engine.device
	if err := d.window.drain(d.api); err != nil {
		return err
	}
	var info [infoBytes]byte
	if err := d.copyToHost(d.info, info[:]); err != nil {
		return err
	}
	if argument := -int(int32(binary.LittleEndian.Uint32(info[solverInfo:]))); argument > 0 {
		return fmt.Errorf("cusolverDnXpotrf: argument %d is invalid", argument)
	}
	if row := int(int32(binary.LittleEndian.Uint32(info[:]))); row > 0 {
		return &backend.PivotError{Index: row - 1, Value: math.Float64frombits(binary.LittleEndian.Uint64(info[pivotValue:]))}
	}
	return nil
}

// factor computes the Cholesky factor by halving a, whose first row is row `first` of the whole matrix.
func (f *factoring[T]) factor(a *matrix[T], first int) error {
	q, n := f.q, a.rows
	switch {
	case n <= block:
		return f.block(a, first)
	case f.solver != nil && n >= cuts.minSolver && n <= f.maxOrder:
		err := f.solve(a, first)
		if !errors.Is(err, backend.ErrMemory) || n < 2*cuts.minSolver {
			return err
		}
		// cuSOLVER had too little memory for its workspace. The halves need less.
		f.maxOrder = n / 2
	}
	n1 := halfOrder(n)
	a11, a22 := a.window(0, 0, n1, n1), a.window(n1, n1, n-n1, n-n1)
	if err := f.factor(a11, first); err != nil {
		return err
	}
	if f.ul == backend.Lower {
		a21 := a.window(n1, 0, n-n1, n1)
		if err := q.trsm(backend.Right, backend.Lower, backend.Transpose, 1, a11, a21, f.r); err != nil {
			return err
		}
		if err := q.syrk(backend.Lower, backend.NoTrans, -1, a21, 1, a22, f.r); err != nil {
			return err
		}
	} else {
		a12 := a.window(0, n1, n1, n-n1)
		if err := q.trsm(backend.Left, backend.Upper, backend.Transpose, 1, a11, a12, f.r); err != nil {
			return err
		}
		if err := q.syrk(backend.Upper, backend.Transpose, -1, a12, 1, a22, f.r); err != nil {
			return err
		}
	}
	return f.factor(a22, first+n1)
}

// block factors a with a device function, which records an invalid pivot, and does nothing if one is already recorded.
func (f *factoring[T]) block(a *matrix[T], first int) error {
	q, n, v := f.q, a.rows, a.view()
	if f.ul == backend.Upper {
		v = v.t() // UᵀU = LLᵀ with L = Uᵀ
	}
	return q.step(flop.Potrf(n), func() error {
		d := q.engine.device
		args := d.args.Reset().Int(n)
		viewArg(args, v)
		args.Int(first).Ptr(d.info).Ptr(d.info + pivotValue)
		return q.engine.launch("potrf_block", driver.Grid{Blocks: [3]int{1, 1, 1}, Threads: [3]int{threads, 1, 1}})
	})
}

// solve factors a triangle with cuSOLVER, and waits for the factor. cuSOLVER does not report NaN or Inf in the
// matrix, so that solve checks the diagonal of the factor.
//
// A lower triangle is factored in a copy, because cuSOLVER does not define the contents of a failed factor: after a
// failure the device functions factor the triangle again. An upper triangle is factored in place, and the pivot and
// the leading factor are those of cuSOLVER.
func (f *factoring[T]) solve(a *matrix[T], first int) error {
	q, n, target := f.q, a.rows, a
	d := q.engine.device
	if f.diagonal == 0 {
		var err error
		if f.diagonal, err = d.alloc(int64(f.maxOrder) * int64(sizeOf[T]())); err != nil {
			return err
		}
	}
	if f.ul == backend.Lower {
		var err error
		if f.triangleCopy == 0 {
			if f.triangleCopy, err = d.alloc(int64(f.maxOrder) * int64(f.maxOrder) * int64(sizeOf[T]())); err != nil {
				return err
			}
		}
		target = &matrix[T]{device: d, ptr: f.triangleCopy, rows: n, cols: n, stride: n}
		if err := q.copy(a.view().t(), target.view(), upper); err != nil {
			return err
		}
	}
	if err := f.reserveWork(driver.Lower, target); err != nil {
		return err
	}
	err := firstOf(
		func() error {
			return q.copy(target.diagonal(), view[T]{f.diagonal, n, 1, 1, 1}, whole)
		},
		func() error {
			return q.step(flop.Potrf(n), func() error {
				return driver.Potrf[T](f.solver, driver.Lower, n, target.ptr, target.stride, f.work, f.workBytes, f.locked, d.info+solverInfo)
			})
		},
		func() error {
			args := d.args.Reset().Int(n)
			viewArg(args, target.view().t())
			args.Ptr(f.diagonal).Int(first).Ptr(d.info + solverInfo).Ptr(d.info).Ptr(d.info + pivotValue)
			return q.engine.launch("check_diag", driver.Grid{Blocks: [3]int{1, 1, 1}, Threads: [3]int{threads, 1, 1}})
		},
	)
	if err == nil {
		err = f.pivot()
	}
	if target == a {
		return err
	}
	if errors.Is(err, backend.ErrNotPosDef) {
		if err := d.api.Clear(d.info, infoBytes, d.stream); err != nil {
			return err
		}
		fallback := &factoring[T]{q: q, ul: f.ul}
		return firstOf(func() error { return fallback.factor(a, first) }, fallback.pivot)
	}
	if err != nil {
		return err
	}
	return q.copy(target.view().t(), a.view(), lower)
}

// reserveWork allocates the memory that cuSOLVER needs for a triangle.
func (f *factoring[T]) reserveWork(fill driver.Fill, a *matrix[T]) error {
	d := f.q.engine.device
	device, host, err := driver.PotrfWork[T](f.solver, fill, a.rows, a.ptr, a.stride)
	if err != nil {
		return err
	}
	if device = max(device, 1); device > f.workBytes {
		previous := f.work
		if f.work, err = d.alloc(device); err != nil {
			f.work = previous
			return err
		}
		f.workBytes = device
		if previous != 0 { // no queued work uses the old memory
			if err := d.release(previous); err != nil {
				return err
			}
		}
	}
	if int(host) > len(f.locked) {
		previous := f.locked
		if f.locked, err = d.api.AllocHost(int(host)); err != nil {
			f.locked = previous
			return err
		}
		if previous != nil {
			return d.api.FreeHost(previous)
		}
	}
	return nil
}

// copy computes b ← a on the given part of b.
func (q *queue[T]) copy(a, b view[T], part region) error {
	if b.rows == 0 || b.cols == 0 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(b.rows).Int(b.cols)
	viewArg(args, a)
	viewArg(args, b)
	args.Int(int(part))
	return q.engine.launch("copy", spread(b.rows, b.cols))
}

// PotrfPreserve copies the lower triangle of A to its upper triangle, and factors the upper
// triangle, for which cuSOLVER is faster.
func (q *queue[T]) PotrfPreserve(a backend.Matrix[T]) error {
	check.Potrf(backend.Lower, a)
	A := q.ownMatrix("PotrfPreserve", a)
	return q.wait("potrf", func() error {
		if err := q.copy(A.view().t(), A.view(), upper); err != nil {
			return err
		}
		return q.potrf(backend.Upper, A, rounding{})
	})
}

package cuda

import (
	"encoding/binary"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

func (q *queue[T]) Trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b backend.Matrix[T]) {
	backend.CheckTrsm(s, ul, t, a, b)
	A, B := q.own("Trsm", a), q.own("Trsm", b)
	q.run("trsm", func() error { return q.trsm(s, ul, t, alpha, A, B) })
}

func (q *queue[T]) trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b *matrix[T]) error {
	if b.rows == 0 || b.cols == 0 {
		return nil
	}
	if bl := q.engine.device.libraries.Blas; bl != nil && alpha != 0 {
		side := driver.Right
		if s == backend.Right {
			side = driver.Left
		}
		columns := b.cols
		if s == backend.Right {
			columns = b.rows
		}
		return q.step(backend.TrsmFlops(a.rows, columns), func() error {
			return driver.Trsm(bl, side, fillOf(ul), opOf(t), b.cols, b.rows, alpha, a.ptr, a.stride, b.ptr, b.stride)
		})
	}
	if alpha != 1 {
		if err := q.scale(alpha, b.view(), whole, true); err != nil {
			return err
		}
	}
	// op(A) X = B with a lower triangle: transposed, and in the other order.
	l, x := a.view().op(t), b.view()
	lowerTriangle := (ul == backend.Lower) == (t == backend.NoTrans)
	if s == backend.Right {
		l, x, lowerTriangle = l.t(), x.t(), !lowerTriangle
	}
	if !lowerTriangle {
		l, x = l.reversed(), x.rowsReversed()
	}
	return q.solveLower(l, x)
}

// solveLower is X ← L⁻¹ X, halving the triangle until it is a block.
func (q *queue[T]) solveLower(l, x view[T]) error {
	n, m := x.rows, x.cols
	if n <= block {
		return q.step(backend.TrsmFlops(n, m), func() error {
			args := q.engine.device.args.Reset().Int(n).Int(m)
			viewArg(args, l)
			viewArg(args, x)
			return q.engine.launch("trsm_block", driver.Grid{Blocks: [3]int{ceil(m, 64), 1, 1}, Threads: [3]int{64, 1, 1}})
		})
	}
	n1 := half(n)
	x1, x2 := x.part(0, 0, n1, m), x.part(n1, 0, n-n1, m)
	if err := q.solveLower(l.part(0, 0, n1, n1), x1); err != nil {
		return err
	}
	if err := q.product(-1, l.part(n1, 0, n-n1, n1), x1, 1, x2, whole, whole); err != nil {
		return err
	}
	return q.solveLower(l.part(n1, n1, n-n1, n-n1), x2)
}

// half is about half of n, a multiple of the block.
func half(n int) int { return ceil(n/2, block) * block }

// infoBytes is the memory in which factorisations say how they went: an int,
// and from byte 8 on the pivot.
const infoBytes = 16

// solverOrder is from what order on the library factors.
const solverOrder = 512

func (q *queue[T]) Potrf(ul backend.Uplo, a backend.Matrix[T]) error {
	n := backend.CheckPotrf(ul, a)
	A := q.own("Potrf", a)
	return q.wait("potrf", func() error {
		if n == 0 {
			return nil
		}
		d := q.engine.device
		if err := d.api.Clear(d.info, infoBytes, d.stream); err != nil {
			return err
		}
		if s := d.libraries.Solver; s != nil && n >= solverOrder {
			return q.libraryPotrf(s, ul, A)
		}
		if err := q.factor(ul, A, 0); err != nil {
			return err
		}
		return q.pivot(A)
	})
}

// pivot waits and returns a *backend.PivotError when a factorisation has met a
// bad pivot.
func (q *queue[T]) pivot(a *matrix[T]) error {
	d := q.engine.device
	if err := d.window.drain(d.api); err != nil {
		return err
	}
	var info [infoBytes]byte
	if err := d.get(d.info, info[:]); err != nil {
		return err
	}
	index := int(int32(binary.LittleEndian.Uint32(info[:])))
	if index == 0 {
		return nil
	}
	return &backend.PivotError{Index: index - 1, Value: math.Float64frombits(binary.LittleEndian.Uint64(info[8:]))}
}

// factor is Cholesky by halving; first is the number of a's first row.
func (q *queue[T]) factor(ul backend.Uplo, a *matrix[T], first int) error {
	n := a.rows
	if n <= block {
		v := a.view()
		if ul == backend.Upper {
			v = v.t() // UᵀU is LLᵀ of L = Uᵀ
		}
		return q.step(backend.PotrfFlops(n), func() error {
			d := q.engine.device
			args := d.args.Reset().Int(n)
			viewArg(args, v)
			args.Int(first).Ptr(d.info).Ptr(d.info + 8)
			return q.engine.launch("potrf_block", driver.Grid{Blocks: [3]int{1, 1, 1}, Threads: [3]int{threads, 1, 1}})
		})
	}
	n1 := half(n)
	part := func(i, j, rows, cols int) *matrix[T] { return a.View(i, j, rows, cols).(*matrix[T]) }
	a11, a22 := part(0, 0, n1, n1), part(n1, n1, n-n1, n-n1)
	if err := q.factor(ul, a11, first); err != nil {
		return err
	}
	if ul == backend.Lower {
		a21 := part(n1, 0, n-n1, n1)
		if err := q.trsm(backend.Right, backend.Lower, backend.Transpose, 1, a11, a21); err != nil {
			return err
		}
		if err := q.syrk(backend.Lower, backend.NoTrans, -1, a21, 1, a22); err != nil {
			return err
		}
	} else {
		a12 := part(0, n1, n1, n-n1)
		if err := q.trsm(backend.Left, backend.Upper, backend.Transpose, 1, a11, a12); err != nil {
			return err
		}
		if err := q.syrk(backend.Upper, backend.Transpose, -1, a12, 1, a22); err != nil {
			return err
		}
	}
	return q.factor(ul, a22, first+n1)
}

// libraryPotrf is one step, however long it takes.
func (q *queue[T]) libraryPotrf(s *driver.Solver, ul backend.Uplo, a *matrix[T]) error {
	d, n := q.engine.device, a.rows
	device, host, err := driver.PotrfWork[T](s, fillOf(ul), n, a.ptr, a.stride)
	if err != nil {
		return err
	}
	var locked []byte
	if host > 0 {
		if locked, err = d.api.AllocHost(int(host)); err != nil {
			return err
		}
		defer d.api.FreeHost(locked)
	}
	err = q.scratch(device, func(work driver.DevicePtr) error {
		return q.step(backend.PotrfFlops(n), func() error {
			return driver.Potrf[T](s, fillOf(ul), n, a.ptr, a.stride, work, device, locked, d.info)
		})
	})
	if err != nil {
		return err
	}
	err = q.pivot(a)
	if p, ok := err.(*backend.PivotError); ok {
		// The library does not tell the pivot; it leaves it on the diagonal.
		v := make([]T, 1)
		if err := d.get(a.at(p.Index, p.Index), bytesOf(v)); err != nil {
			return err
		}
		p.Value = float64(v[0])
	}
	return err
}

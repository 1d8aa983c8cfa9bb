package cuda

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func (q *queue[T]) Trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b backend.Matrix[T]) {
	check.Trsm(s, ul, t, a, b)
	A, B := q.ownMatrix("Trsm", a), q.ownMatrix("Trsm", b)
	q.run("trsm", func() error { return q.trsm(s, ul, t, alpha, A, B, rounding{}) })
}

// trsm solves a triangular system. If r specifies reduced precision, products with off-diagonal blocks round their
// operands. Diagonal blocks, of order cuts.reduced, use full precision.
func (q *queue[T]) trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b *matrix[T], r rounding) error {
	if b.rows == 0 || b.cols == 0 {
		return nil
	}
	if bl := q.engine.device.libraries.Blas; bl != nil && alpha != 0 {
		if rightHandSides(s, b) <= cuts.vectors && a.rows > cuts.fewOrder {
			if err := q.scale(alpha, b.view(), whole, true); err != nil {
				return err
			}
			return q.blasTrsv(bl, s, ul, t, a, b)
		}
		if alpha != 1 && !q.solveAtOnce(s, a, b, r) {
			if err := q.scale(alpha, b.view(), whole, true); err != nil {
				return err
			}
			alpha = 1
		}
		return q.blasTrsm(bl, s, ul, t, alpha, a, b, r)
	}
	if alpha != 1 {
		if err := q.scale(alpha, b.view(), whole, true); err != nil {
			return err
		}
	}
	// The system is transposed or reversed to the form op(A) X = B with a lower triangle op(A).
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

// blasTrsv solves for one right-hand side at a time. cuBLAS reads the row-major A as Aᵀ.
func (q *queue[T]) blasTrsv(bl *driver.Blas, s backend.Side, ul backend.Uplo, t backend.Trans, a, b *matrix[T]) error {
	systems, op := b.view().t(), opOf(1-t) // each row is the right-hand side of one system
	if s == backend.Right {
		systems, op = b.view(), opOf(t)
	}
	for j := range systems.rows {
		err := q.step(flop.Trsm(a.rows, 1), func() error {
			if err := q.engine.device.setTF32(false); err != nil {
				return err
			}
			x := systems.window(j, 0, 1, systems.cols)
			return driver.Trsv[T](bl, fillOf(ul), op, a.rows, a.ptr, a.stride, x.ptr, x.cs)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// solveAtOnce reports whether each right-hand side is solved by one call of cuBLAS with the whole triangle.
func (q *queue[T]) solveAtOnce(s backend.Side, a, b *matrix[T], r rounding) bool {
	maxOrder := cuts.solve
	if r.reduced {
		maxOrder = cuts.reduced
	}
	if rightHandSides(s, b) <= cuts.fewColumns {
		maxOrder = min(maxOrder, cuts.fewOrder)
	}
	return a.rows <= 2*block || a.rows <= maxOrder && flop.Trsm(a.rows, min(cuts.columns, rightHandSides(s, b))) <= q.libraryStep()
}

// rightHandSides returns the number of independent systems.
func rightHandSides[T backend.Float](s backend.Side, b *matrix[T]) int {
	if s == backend.Right {
		return b.rows
	}
	return b.cols
}

// blasTrsm halves the triangle until it is small enough for cuBLAS.
func (q *queue[T]) blasTrsm(bl *driver.Blas, s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b *matrix[T], r rounding) error {
	n, columns := a.rows, rightHandSides(s, b)
	if q.solveAtOnce(s, a, b, r) {
		width := columns
		if maxColumns := q.libraryStep() / flop.Trsm(n, 1); maxColumns < float64(columns) {
			width = min(max(int(maxColumns)/cuts.columns, 1)*cuts.columns, columns)
		}
		side := driver.Right
		if s == backend.Right {
			side = driver.Left
		}
		for j := 0; j < columns; j += width {
			bPart := b
			if s == backend.Right {
				bPart = b.window(j, 0, min(width, b.rows-j), b.cols)
			} else {
				bPart = b.window(0, j, b.rows, min(width, b.cols-j))
			}
			err := q.step(flop.Trsm(n, min(width, columns-j)), func() error {
				if err := q.engine.device.setTF32(false); err != nil {
					return err
				}
				return driver.Trsm(bl, side, fillOf(ul), opOf(t), bPart.cols, bPart.rows, alpha, a.ptr, a.stride, bPart.ptr, bPart.stride)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	n1 := halfOrder(n)
	a1, a2 := a.window(0, 0, n1, n1), a.window(n1, n1, n-n1, n-n1)
	offDiagonal := a.window(n1, 0, n-n1, n1)
	if ul == backend.Upper {
		offDiagonal = a.window(0, n1, n1, n-n1)
	}
	var b1, b2 *matrix[T]
	if s == backend.Right {
		b1, b2 = b.window(0, 0, b.rows, n1), b.window(0, n1, b.rows, b.cols-n1)
	} else {
		b1, b2 = b.window(0, 0, n1, b.cols), b.window(n1, 0, b.rows-n1, b.cols)
	}
	// With a lower op(A), op(A) X = B is solved for the first rows of X first, and X op(A) = B for the last columns.
	lowerTriangle := (ul == backend.Lower) == (t == backend.NoTrans)
	if lowerTriangle == (s == backend.Right) {
		a1, a2, b1, b2 = a2, a1, b2, b1
	}
	if err := q.blasTrsm(bl, s, ul, t, alpha, a1, b1, r); err != nil {
		return err
	}
	var err error
	if s == backend.Left {
		err = q.blasGemm(bl, t, backend.NoTrans, -1, offDiagonal, b1, 1, b2, r)
	} else {
		err = q.blasGemm(bl, backend.NoTrans, t, -1, b1, offDiagonal, 1, b2, r)
	}
	if err != nil {
		return err
	}
	return q.blasTrsm(bl, s, ul, t, alpha, a2, b2, r)
}

// solveLower computes X ← L⁻¹ X. It halves L until its order is at most block.
func (q *queue[T]) solveLower(l, x view[T]) error {
	n, m := x.rows, x.cols
	if n <= block {
		return q.step(flop.Trsm(n, m), func() error {
			args := q.engine.device.args.Reset().Int(n).Int(m)
			viewArg(args, l)
			viewArg(args, x)
			return q.engine.launch("trsm_block", driver.Grid{Blocks: [3]int{ceil(m, 64), 1, 1}, Threads: [3]int{64, 1, 1}})
		})
	}
	n1 := halfOrder(n)
	x1, x2 := x.window(0, 0, n1, m), x.window(n1, 0, n-n1, m)
	if err := q.solveLower(l.window(0, 0, n1, n1), x1); err != nil {
		return err
	}
	if err := q.product(-1, l.window(n1, 0, n-n1, n1), x1, 1, x2, whole, whole); err != nil {
		return err
	}
	return q.solveLower(l.window(n1, n1, n-n1, n-n1), x2)
}

// halfOrder returns about half of n, rounded up to a multiple of block.
func halfOrder(n int) int { return ceil(n/2, block) * block }

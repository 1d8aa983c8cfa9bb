package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func (q *queue[T]) Gemm(tA, tB backend.Trans, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Gemm(tA, tB, a, b, c)
	if x := q.asSparse("Gemm", a); x != nil {
		if tB != backend.NoTrans {
			check.Sparse("Gemm")
		}
		q.gemmSparse(tA, alpha, x, q.asMatrix("Gemm", b), beta, q.asMatrix("Gemm", c))
		return
	}
	q.gemm(alpha, q.asMatrix("Gemm", a).view().op(tA), q.asMatrix("Gemm", b).view().op(tB), beta, q.asMatrix("Gemm", c).view(), whole)
}

func (q *queue[T]) Syrk(ul backend.Uplo, t backend.Trans, alpha T, a backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Syrk(ul, t, a, c)
	q.syrk(ul, alpha, q.asMatrix("Syrk", a).view().op(t), beta, q.asMatrix("Syrk", c).view())
}

// syrk computes C ← α A Aᵀ + β C on a triangle.
func (q *queue[T]) syrk(ul backend.Uplo, alpha T, a view[T], beta T, c view[T]) {
	region := lower
	if ul == backend.Upper {
		region = upper
	}
	q.gemm(alpha, a, a.t(), beta, c, region)
}

func (q *queue[T]) Symm(ul backend.Uplo, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Symm(ul, a, b, c)
	q.symm(backend.Left, ul, alpha, q.asMatrix("Symm", a).view(), q.asMatrix("Symm", b).view(), beta, q.asMatrix("Symm", c).view())
}

// symm computes C ← α A B + β C or α B A + β C with A symmetric.
func (q *queue[T]) symm(side backend.Side, ul backend.Uplo, alpha T, a, b view[T], beta T, c view[T]) {
	if side == backend.Right && c.rows <= thinColumns {
		side, b, c = backend.Left, b.t(), c.t()
	}
	if side == backend.Left && c.cols <= symvColumns(a.rows) && a.cs == 1 && a.rows > 0 && c.cols > 0 {
		q.symv(ul, alpha, a, b, beta, c)
		return
	}
	if ul == backend.Upper {
		a = a.t()
	}
	if side == backend.Left {
		q.product(alpha, symmetric[T]{a}, b.t(), a.rows, beta, c, whole)
	} else {
		q.product(alpha, b, symmetric[T]{a}, a.rows, beta, c, whole)
	}
}

// gemm computes C ← α A B + β C on a region of C.
func (q *queue[T]) gemm(alpha T, a, b view[T], beta T, c view[T], region uplo) {
	thin := region == whole && a.rows > 0 && a.cols > 0 && b.cols > 0
	thin = thin && (c.cols <= thinColumns && a.rows*a.cols >= thinElements || c.rows <= thinColumns && b.rows*b.cols >= thinElements)
	switch {
	case !thin && q.trySmall(alpha, a, b, beta, c, region):
	case thin && c.cols <= thinColumns && a.contiguous():
		q.gemv(alpha, a, b, beta, c)
	case thin && c.rows <= thinColumns && b.contiguous():
		q.gemv(alpha, b.t(), a.t(), beta, c.t())
	case region == whole && fewColumns(a, c) && a.rows > 0 && a.cols > 0 && c.cols > 0:
		q.multiplyUnpacked(alpha, a, b, beta, c)
	default:
		q.product(alpha, a, b.t(), a.cols, beta, c, region)
	}
}

// product computes C ← α A B + β C on a region of C. A has k columns, and B is given as its transpose.
func (q *queue[T]) product(alpha T, a, bt operand[T], k int, beta T, c view[T], region uplo) {
	q.gemmLookahead(nil, alpha, a, bt, k, beta, c, region)
}

// gemmLookahead is like product, but one worker first runs the function lookahead. It contains
// loops 5 to 3 of the package documentation.
func (q *queue[T]) gemmLookahead(lookahead func(), alpha T, a, bt operand[T], k int, beta T, c view[T], region uplo) {
	if c.cs != 1 && c.rs == 1 {
		// The columns of C are contiguous, but micro-kernels store contiguous rows. Compute Cᵀ.
		a, bt, c, region = bt, a, c.t(), region.transposed()
	}
	m, n := c.rows, c.cols
	if m == 0 || n == 0 || k == 0 {
		if lookahead != nil {
			lookahead()
		}
		q.scale(beta, c, region)
		return
	}
	e := q.engine
	nr, size := e.ukr.NR, e.block
	packedB, free := e.shared(panels(min(n, size.nc), nr) * nr * min(k, size.kc))
	defer free()

	for jc := 0; jc < n; jc += size.nc { // loop 5
		nb := min(size.nc, n-jc)
		for pc := 0; pc < k; pc += size.kc { // loop 4
			kb := min(size.kc, k-pc)
			beta := beta
			if pc > 0 {
				beta = 1
			}
			moves := copyFlops(nb * kb)
			grain := min(packGrain/nr, panels(nb, 4*q.threads(moves)*nr)) * nr
			q.chunks(nb, grain, moves, func(s *scratch[T], j, cols int) {
				bt.pack(e.packerB(s), packedB[j*kb:], jc+j, pc, cols, kb)
			})
			flops := flop.Gemm(m, nb, kb)
			g := newGrid(m, nb, size, q.threads(flops))
			first := 0 // number of tasks before the tasks of the grid
			if lookahead != nil {
				first = 1
			}
			q.parallel(first+g.tasks(), flops, func(s *scratch[T], task int) { // loop 3
				if task < first {
					lookahead()
					return
				}
				i, j, rows, cols := g.block(task - first)
				elements := region.count(rows, cols, jc+j-i)
				if elements == 0 {
					return
				}
				packedA := s.grow(panels(rows, e.ukr.MR) * e.ukr.MR * kb)
				a.pack(e.packerA(s), packedA, i, pc, rows, kb)
				p := packed[T]{packedA, packedB[j*kb:], kb, nil, nil}
				terms := kb
				if x, ok := a.(roundedRows[T]); ok {
					p.rows, p.cols, terms = x.steps[i:], bt.(roundedRows[T]).steps[jc+j:], min(2*kb, x.terms-2*pc)
				}
				e.multiply(s, p, alpha, beta, c.block(i, jc+j, rows, cols), region, jc+j-i)
				q.count(2 * float64(elements) * float64(terms))
			})
			lookahead = nil
			if q.stopped() {
				return
			}
		}
	}
}

// A worker packs at most packGrain columns of B at a time, and at most a quarter of its share of the columns. With
// two workers, Gemm at n = 256 then reaches 87 to 91 GFLOP/s, and 81 to 84 if one worker packs all columns
// (float64, AMD EPYC of family 25, November 2026).
const packGrain = 512

// scale computes C ← β C on a region.
func (q *queue[T]) scale(beta T, c view[T], region uplo) {
	q.rows(c.rows, c.cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := region.columns(i, c.cols)
			for j := from; j < to; j++ {
				x := c.at(i, j)
				if beta == 0 {
					*x = 0
				} else {
					*x *= beta
				}
			}
		}
	})
}

// packed contains the panels of A and of B that a task multiplies, each with k columns. For integers (see
// reduced.go), rows and cols are the scale factors of the rows of A and the columns of B; otherwise they are nil.
type packed[T backend.Float] struct {
	a, b       []T
	k          int
	rows, cols []T
}

// multiply runs loops 2 and 1 of the package documentation for one task: c ← α A B + β c, where c is the part of C
// that belongs to the task, and p holds A and B. It stores only the elements in the given region of C.
func (e *engine[T]) multiply(s *scratch[T], p packed[T], alpha, beta T, c view[T], region uplo, offset int) {
	mr, nr := e.ukr.MR, e.ukr.NR
	for j := 0; j < c.cols; j += nr { // loop 2
		n := min(nr, c.cols-j)
		first, last := region.rows(c.rows, j, n, offset)
		from, to := region.fullRows(c.rows, j, n, offset)
		// Tiles that the diagonal crosses are computed in scratch memory and then copied.
		begin := first / mr * mr
		inner := min(max(panels(from, mr)*mr, begin), last)
		outer := max(to/mr*mr, inner)
		if to == c.rows {
			outer = max(c.rows, inner)
		}
		for i := begin; i < inner; i += mr {
			e.partial(s, p, alpha, beta, c, i, j, n, region, offset)
		}
		if inner < outer {
			s.tile = ukr.Tile[T]{
				A: &p.a[inner*p.k], B: &p.b[j*p.k], C: c.at(inner, j),
				K: p.k, M: outer - inner, N: n, Ldc: c.rs, Lda: mr * p.k,
				Alpha: alpha, Beta: beta,
			}
			e.tile(s, p, inner, j) // loop 1
		}
		for i := outer; i < last; i += mr {
			e.partial(s, p, alpha, beta, c, i, j, n, region, offset)
		}
	}
}

// tile runs the micro-kernel on s.tile, which begins at row i and column j of a task's part of C.
func (e *engine[T]) tile(s *scratch[T], p packed[T], i, j int) {
	if p.rows == nil {
		e.ukr.Gemm(&s.tile)
		return
	}
	s.scaled = ukr.Scaled[T]{Tile: s.tile, R: &p.rows[i], S: &p.cols[j]}
	e.ukr.Gemm16(&s.scaled)
}

// partial computes a register tile that the diagonal crosses, and stores its elements in the given region.
func (e *engine[T]) partial(s *scratch[T], p packed[T], alpha, beta T, c view[T], i, j, n int, region uplo, offset int) {
	mr, nr := e.ukr.MR, e.ukr.NR
	rows := min(mr, c.rows-i)
	s.tile = ukr.Tile[T]{
		A: &p.a[i*p.k], B: &p.b[j*p.k], C: &s.block[0],
		K: p.k, M: rows, N: n, Ldc: nr, Lda: mr * p.k,
		Alpha: alpha,
	}
	e.tile(s, p, i, j)
	for r := range rows {
		from, to := region.columns(i+r-j-offset, n)
		if from < to {
			start := c.offset + (i+r)*c.rs + j
			storeRow(c.data[start+from:start+to], s.block[r*nr+from:], beta)
		}
	}
}

// storeRow computes c ← v + β c for a row c of C.
func storeRow[T backend.Float](c, v []T, beta T) {
	v = v[:len(c)]
	switch beta {
	case 0:
		copy(c, v)
	case 1:
		for i, x := range v {
			c[i] += x
		}
	default:
		for i, x := range v {
			c[i] = x + beta*c[i]
		}
	}
}

package backend

import (
	"fmt"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

// The rules for the arguments of a Backend's methods, and the texts of the
// panics when one is broken. Every backend calls these first, so that misuse
// reads the same everywhere. "op: rule: got" is the form of a text.

func misuse(op, format string, args ...any) {
	panic("backend: " + op + ": " + fmt.Sprintf(format, args...))
}

// CheckView panics unless the part lies inside an r × c matrix.
func CheckView(i, j, rows, cols, r, c int) {
	host.CheckView("backend: Matrix", i, j, rows, cols, r, c)
}

// CheckNew panics unless rows and cols are ≥ 0.
func CheckNew(rows, cols int) {
	if rows < 0 || cols < 0 {
		misuse("New", "negative dimension: %d×%d", rows, cols)
	}
}

// CheckHost panics unless h is well formed.
func CheckHost[T Float](op string, h Host[T]) {
	if h.Rows < 0 || h.Cols < 0 || h.Stride < h.Cols {
		misuse(op, "bad host matrix: %d×%d with stride %d", h.Rows, h.Cols, h.Stride)
	}
	if h.Rows == 0 || h.Cols == 0 {
		return
	}
	// (Rows−1)·Stride + Cols may overflow; the quotient tells without it.
	room := len(h.Data) - h.Cols
	if room < 0 || h.Rows > 1 && h.Rows-1 > room/h.Stride {
		needs := (float64(h.Rows)-1)*float64(h.Stride) + float64(h.Cols)
		misuse(op, "host matrix %d×%d with stride %d needs %.0f elements, has %d", h.Rows, h.Cols, h.Stride, needs, len(h.Data))
	}
}

// CheckTransfer panics unless h is well formed and as large as m.
func CheckTransfer[T Float](op string, m Matrix[T], h Host[T]) {
	CheckHost(op, h)
	if r, c := m.Dims(); r != h.Rows || c != h.Cols {
		misuse(op, "matrix is %d×%d, host matrix is %d×%d", r, c, h.Rows, h.Cols)
	}
}

// CheckSameDims panics unless a and b have the same shape. The element types
// may differ.
func CheckSameDims(op string, a, b interface{ Dims() (int, int) }) {
	ar, ac := a.Dims()
	br, bc := b.Dims()
	if ar != br || ac != bc {
		misuse(op, "shapes differ: %d×%d and %d×%d", ar, ac, br, bc)
	}
}

func checkTrans(op string, t Trans) {
	if t > Transpose {
		misuse(op, "bad Trans %d", t)
	}
}

func checkUplo(op string, ul Uplo) {
	if ul > Upper {
		misuse(op, "bad Uplo %d", ul)
	}
}

func checkSquare[T Float](op, what string, a Matrix[T]) int {
	r, c := a.Dims()
	if r != c {
		misuse(op, "%s must be square, is %d×%d", what, r, c)
	}
	return r
}

func opDims[T Float](t Trans, a Matrix[T]) (int, int) {
	r, c := a.Dims()
	if t == Transpose {
		return c, r
	}
	return r, c
}

// CheckGemm panics unless op(A) is m × k, op(B) k × n and C m × n.
func CheckGemm[T Float](tA, tB Trans, a, b, c Matrix[T]) (m, n, k int) {
	checkTrans("Gemm", tA)
	checkTrans("Gemm", tB)
	m, k = opDims(tA, a)
	k2, n := opDims(tB, b)
	cr, cc := c.Dims()
	if k != k2 || cr != m || cc != n {
		misuse("Gemm", "shapes do not fit: op(A) %d×%d, op(B) %d×%d, C %d×%d", m, k, k2, n, cr, cc)
	}
	return m, n, k
}

// CheckSyrk panics unless C is n × n for op(A) n × k.
func CheckSyrk[T Float](ul Uplo, t Trans, a, c Matrix[T]) (n, k int) {
	checkUplo("Syrk", ul)
	checkTrans("Syrk", t)
	n, k = opDims(t, a)
	if cr := checkSquare("Syrk", "C", c); cr != n {
		misuse("Syrk", "shapes do not fit: op(A) %d×%d, C %d×%d", n, k, cr, cr)
	}
	return n, k
}

// CheckSymm panics unless A is m × m and B and C are m × n.
func CheckSymm[T Float](ul Uplo, a, b, c Matrix[T]) (m, n int) {
	checkUplo("Symm", ul)
	m = checkSquare("Symm", "A", a)
	br, n := b.Dims()
	cr, cc := c.Dims()
	if br != m || cr != m || cc != n {
		misuse("Symm", "shapes do not fit: A %d×%d, B %d×%d, C %d×%d", m, m, br, n, cr, cc)
	}
	return m, n
}

// CheckTrsm panics unless A is square and fits the side of B it stands on.
func CheckTrsm[T Float](s Side, ul Uplo, t Trans, a, b Matrix[T]) (m, n int) {
	if s > Right {
		misuse("Trsm", "bad Side %d", s)
	}
	checkUplo("Trsm", ul)
	checkTrans("Trsm", t)
	order := checkSquare("Trsm", "A", a)
	m, n = b.Dims()
	if s == Left && order != m || s == Right && order != n {
		misuse("Trsm", "shapes do not fit: A %d×%d on the %v of B %d×%d", order, order, s, m, n)
	}
	return m, n
}

// CheckPotrf panics unless A is square.
func CheckPotrf[T Float](ul Uplo, a Matrix[T]) (n int) {
	checkUplo("Potrf", ul)
	return checkSquare("Potrf", "A", a)
}

// CheckAddDiag panics unless A is n × n and d has 1 or n elements.
func CheckAddDiag[T Float](d []T, a Matrix[T]) (n int) {
	n = checkSquare("AddDiag", "A", a)
	if len(d) != 1 && len(d) != n {
		misuse("AddDiag", "d has %d elements for a %d×%d matrix; it must have 1 or %d", len(d), n, n, n)
	}
	return n
}

// CheckColumns panics unless X and Y have the same shape and v one element
// for each column.
func CheckColumns[T Float](op string, v []T, x, y Matrix[T]) (rows, cols int) {
	CheckSameDims(op, x, y)
	rows, cols = x.Dims()
	if len(v) != cols {
		misuse(op, "%d coefficients for %d columns", len(v), cols)
	}
	return rows, cols
}

// CheckGram panics unless X is n × d, Z m × d, dst n × m and the kernel's
// parameters obey their rules.
func CheckGram[T Float](dst Matrix[T], k kernels.Kernel, x, z Matrix[T]) (n, m, d int) {
	n, m, d = checkPoints("Gram", k, x, z)
	if r, c := dst.Dims(); r != n || c != m {
		misuse("Gram", "dst must be %d×%d, is %d×%d", n, m, r, c)
	}
	return n, m, d
}

// CheckGramMul panics unless X is n × d, Z m × d, V m × t, dst n × t and the
// kernel's parameters obey their rules.
func CheckGramMul[T Float](dst Matrix[T], k kernels.Kernel, x, z, v Matrix[T]) (n, m, d, t int) {
	n, m, d = checkPoints("GramMul", k, x, z)
	vr, t := v.Dims()
	if r, c := dst.Dims(); r != n || c != t || vr != m {
		misuse("GramMul", "shapes do not fit: k(X, Z) %d×%d, V %d×%d, dst %d×%d", n, m, vr, t, r, c)
	}
	return n, m, d, t
}

func checkPoints[T Float](op string, k kernels.Kernel, x, z Matrix[T]) (n, m, d int) {
	n, d = x.Dims()
	m, zd := z.Dims()
	if d != zd {
		misuse(op, "X has %d features, Z has %d", d, zd)
	}
	if k == nil {
		misuse(op, "the kernel is nil")
	}
	if err := k.Check(d); err != nil {
		misuse(op, "%v", err)
	}
	return n, m, d
}

// Freed panics: a matrix was used after its Free. Backends that can tell, say
// so.
func Freed(op string) { misuse(op, "a matrix was used after Free") }

// Foreign panics: a matrix was made by another device.
func Foreign(op string) { misuse(op, "a matrix belongs to another device") }

// CheckPoints returns an error that names the first row of x, called name, and
// the feature in it that break the rule of kernels.PointRule, both counted from
// 1; nil where the kernel has no rule. Such points give NaN, not a panic, where
// they are not checked.
func CheckPoints(k kernels.Kernel, name string, x Host[float64]) error {
	rule := kernels.PointRule(k)
	if rule == nil {
		return nil
	}
	for i := range x.Rows {
		if err := rule(x.Row(i)); err != nil {
			return fmt.Errorf("%s: row %d: %w", name, i+1, err)
		}
	}
	return nil
}

// Package check checks the arguments of a Backend's methods and panics if they violate a rule. Every backend calls
// these functions first, so that a panic has the same text "op: rule: got" on every device.
package check

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

func misuse(op, format string, args ...any) {
	panic("backend: " + op + ": " + fmt.Sprintf(format, args...))
}

// View panics unless the rows × cols submatrix at (i, j) is inside an r × c matrix.
func View(i, j, rows, cols, r, c int) {
	if err := host.CheckView(i, j, rows, cols, r, c); err != nil {
		panic("backend: " + err.Error())
	}
}

// New panics unless rows and cols are ≥ 0.
func New(rows, cols int) {
	if rows < 0 || cols < 0 {
		misuse("New", "negative dimension: %d×%d", rows, cols)
	}
}

// Host panics unless h is well formed.
func Host[T backend.Float](op string, h backend.Host[T]) {
	if h.Rows < 0 || h.Cols < 0 || h.Stride < h.Cols {
		misuse(op, "bad host matrix: %d×%d with stride %d", h.Rows, h.Cols, h.Stride)
	}
	if h.Rows == 0 || h.Cols == 0 {
		return
	}
	// The product (Rows−1)·Stride may overflow. The quotient lastStart/Stride cannot.
	lastStart := len(h.Data) - h.Cols
	if lastStart < 0 || h.Rows > 1 && h.Rows-1 > lastStart/h.Stride {
		needs := (float64(h.Rows)-1)*float64(h.Stride) + float64(h.Cols)
		misuse(op, "host matrix %d×%d with stride %d needs %.0f elements, has %d", h.Rows, h.Cols, h.Stride, needs, len(h.Data))
	}
}

// Transfer panics unless h is well formed and has the shape of m.
func Transfer[T backend.Float](op string, m backend.Matrix[T], h backend.Host[T]) {
	Host(op, h)
	if r, c := m.Dims(); r != h.Rows || c != h.Cols {
		misuse(op, "matrix is %d×%d, host matrix is %d×%d", r, c, h.Rows, h.Cols)
	}
}

// SameDims panics unless a and b have the same shape. The element types may differ.
func SameDims(op string, a, b interface{ Dims() (int, int) }) {
	ar, ac := a.Dims()
	br, bc := b.Dims()
	if ar != br || ac != bc {
		misuse(op, "shapes differ: %d×%d and %d×%d", ar, ac, br, bc)
	}
}

func validTrans(op string, t backend.Trans) {
	if t > backend.Transpose {
		misuse(op, "bad Trans %d", t)
	}
}

func validUplo(op string, ul backend.Uplo) {
	if ul > backend.Upper {
		misuse(op, "bad Uplo %d", ul)
	}
}

func square[T backend.Float](op, name string, a backend.Matrix[T]) int {
	r, c := a.Dims()
	if r != c {
		misuse(op, "%s must be square, is %d×%d", name, r, c)
	}
	return r
}

func opDims[T backend.Float](t backend.Trans, a backend.Matrix[T]) (int, int) {
	r, c := a.Dims()
	if t == backend.Transpose {
		return c, r
	}
	return r, c
}

// Gemm panics unless op(A) is m × k, op(B) is k × n and C is m × n.
func Gemm[T backend.Float](tA, tB backend.Trans, a, b, c backend.Matrix[T]) (m, n, k int) {
	validTrans("Gemm", tA)
	validTrans("Gemm", tB)
	m, k = opDims(tA, a)
	k2, n := opDims(tB, b)
	cr, cc := c.Dims()
	if k != k2 || cr != m || cc != n {
		misuse("Gemm", "shapes do not fit: op(A) %d×%d, op(B) %d×%d, C %d×%d", m, k, k2, n, cr, cc)
	}
	return m, n, k
}

// Syrk panics unless op(A) is n × k and C is n × n.
func Syrk[T backend.Float](ul backend.Uplo, t backend.Trans, a, c backend.Matrix[T]) (n, k int) {
	validUplo("Syrk", ul)
	validTrans("Syrk", t)
	n, k = opDims(t, a)
	if cr := square("Syrk", "C", c); cr != n {
		misuse("Syrk", "shapes do not fit: op(A) %d×%d, C %d×%d", n, k, cr, cr)
	}
	return n, k
}

// Symm panics unless A is m × m and B and C are m × n.
func Symm[T backend.Float](ul backend.Uplo, a, b, c backend.Matrix[T]) (m, n int) {
	validUplo("Symm", ul)
	m = square("Symm", "A", a)
	br, n := b.Dims()
	cr, cc := c.Dims()
	if br != m || cr != m || cc != n {
		misuse("Symm", "shapes do not fit: A %d×%d, B %d×%d, C %d×%d", m, m, br, n, cr, cc)
	}
	return m, n
}

// Trsm panics unless A is square and its order is the number of rows of B (side Left) or of columns of B (side Right).
func Trsm[T backend.Float](s backend.Side, ul backend.Uplo, t backend.Trans, a, b backend.Matrix[T]) (m, n int) {
	if s > backend.Right {
		misuse("Trsm", "bad Side %d", s)
	}
	validUplo("Trsm", ul)
	validTrans("Trsm", t)
	order := square("Trsm", "A", a)
	m, n = b.Dims()
	if s == backend.Left && order != m || s == backend.Right && order != n {
		misuse("Trsm", "shapes do not fit: A %d×%d on the %v of B %d×%d", order, order, s, m, n)
	}
	return m, n
}

// Potrf panics unless A is square.
func Potrf[T backend.Float](ul backend.Uplo, a backend.Matrix[T]) (n int) {
	validUplo("Potrf", ul)
	return square("Potrf", "A", a)
}

// AddDiag panics unless A is n × n and d has 1 or n elements.
func AddDiag[T backend.Float](d []T, a backend.Matrix[T]) (n int) {
	n = square("AddDiag", "A", a)
	if len(d) != 1 && len(d) != n {
		misuse("AddDiag", "d has %d elements for a %d×%d matrix; it must have 1 or %d", len(d), n, n, n)
	}
	return n
}

// Columns panics unless X and Y have the same shape and v has one element for each column.
func Columns[T backend.Float](op string, v []T, x, y backend.Matrix[T]) (rows, cols int) {
	SameDims(op, x, y)
	rows, cols = x.Dims()
	if len(v) != cols {
		misuse(op, "%d coefficients for %d columns", len(v), cols)
	}
	return rows, cols
}

// Gram panics unless X is n × d, Z is m × d, dst is n × m and the kernel's parameters are valid.
func Gram[T backend.Float](dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) (n, m, d int) {
	n, m, d = points("Gram", k, x, z)
	if r, c := dst.Dims(); r != n || c != m {
		misuse("Gram", "dst must be %d×%d, is %d×%d", n, m, r, c)
	}
	return n, m, d
}

// GramMul panics unless X is n × d, Z is m × d, V is m × t, dst is n × t and the kernel's parameters are valid.
func GramMul[T backend.Float](dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) (n, m, d, t int) {
	n, m, d = points("GramMul", k, x, z)
	vr, t := v.Dims()
	if r, c := dst.Dims(); r != n || c != t || vr != m {
		misuse("GramMul", "shapes do not fit: k(X, Z) %d×%d, V %d×%d, dst %d×%d", n, m, vr, t, r, c)
	}
	return n, m, d, t
}

func points[T backend.Float](op string, k kernels.Kernel, x, z backend.Matrix[T]) (n, m, d int) {
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

// Freed panics. Backends call it if they detect that a matrix was used after its Free.
func Freed(op string) { misuse(op, "a matrix was used after Free") }

// Foreign panics. Backends call it for a matrix that belongs to another device.
func Foreign(op string) { misuse(op, "a matrix belongs to another device") }

// A Coding is the mapping of values to codes of 16 bits: the value of code c is c·Step + Low.
type Coding struct{ Low, Step float64 }

// Factors returns the factors a and b for which the rounded number a·v + b is the code of a value v.
func (c Coding) Factors() (a, b float64) {
	if c.Step == 0 {
		return 0, 0
	}
	return 1 / c.Step, -c.Low / c.Step
}

// Value returns the value of a code.
func (c Coding) Value(code uint16) float64 { return c.Low + float64(code)*c.Step }

// Check returns a *backend.RangeError if the value of element (i, j) is outside the range of c by more than Step/2.
func (c Coding) Check(i, j int, value float64) error {
	low, high := c.Low, c.Value(math.MaxUint16)
	if value >= low-c.Step/2 && value <= high+c.Step/2 {
		return nil
	}
	return &backend.RangeError{I: i, J: j, Value: value, Low: low, High: high}
}

// GramFixed returns the coding of the kernel's values. It panics unless the kernel has bounds for d features.
func GramFixed(k kernels.Kernel, d int) (c Coding) {
	low, high, ok := kernels.Bounds(k, d)
	if !ok {
		misuse("GramPacked", "storage in 16 bits needs bounds of the kernel's values, and %v has none", k)
	}
	return Coding{Low: low, Step: max((high-low)/math.MaxUint16, 0x1p-20*max(-low, high))}
}

// NoFixed panics. Methods call it for a matrix with 16-bit elements that they do not support.
func NoFixed(op string) { misuse(op, "not supported for a matrix with 16 bits for each element") }

// NarrowPacked panics unless dst and src have the same order.
func NarrowPacked(dst backend.Packed[float32], src backend.Packed[float64]) {
	if dst.Order() != src.Order() {
		misuse("NarrowPacked", "orders differ: %d and %d", dst.Order(), src.Order())
	}
}

// NewPacked panics unless n ≥ 0.
func NewPacked(n int) {
	if n < 0 {
		misuse("NewPacked", "negative order: %d", n)
	}
}

// Leading panics unless a packed matrix of the given order has n leading rows: 0 ≤ n ≤ order.
func Leading(n, order int) {
	if n < 0 || n > order {
		misuse("Packed.Leading", "a packed matrix of order %d has no %d leading rows", order, n)
	}
}

// TransferPacked panics unless h is well formed and has the shape of rows first, first+1, … of a.
func TransferPacked[T backend.Float](op string, a backend.Packed[T], first int, h backend.Host[T]) {
	Host(op, h)
	n := a.Order()
	if first < 0 || first > n || h.Rows > n-first || h.Cols != first+h.Rows {
		misuse(op, "a %d×%d host matrix cannot hold the rows from row %d of a packed matrix of order %d", h.Rows, h.Cols, first, n)
	}
}

// GramPacked panics unless X has as many rows as dst and the kernel's parameters are valid. It returns the shape of X.
func GramPacked[T backend.Float](dst backend.Packed[T], k kernels.Kernel, x backend.Matrix[T]) (n, d int) {
	n, _, d = points("GramPacked", k, x, x)
	if dst.Order() != n {
		misuse("GramPacked", "dst must have order %d, has %d", n, dst.Order())
	}
	return n, d
}

// AddDiagPacked panics unless d has 1 or n elements, where n is the order of A.
func AddDiagPacked[T backend.Float](d []T, a backend.Packed[T]) (n int) {
	n = a.Order()
	if len(d) != 1 && len(d) != n {
		misuse("AddDiagPacked", "d has %d elements for a packed matrix of order %d; it must have 1 or %d", len(d), n, n)
	}
	return n
}

// DiagPacked panics unless dst has n elements, where n is the order of A.
func DiagPacked[T backend.Float](dst []T, a backend.Packed[T]) (n int) {
	n = a.Order()
	if len(dst) != n {
		misuse("DiagPacked", "dst has %d elements for a packed matrix of order %d", len(dst), n)
	}
	return n
}

// SymmPacked panics unless B and C are n × t, where n is the order of A.
func SymmPacked[T backend.Float](a backend.Packed[T], b, c backend.Matrix[T]) (n, t int) {
	n = a.Order()
	br, t := b.Dims()
	cr, cc := c.Dims()
	if br != n || cr != n || cc != t {
		misuse("SymmPacked", "shapes do not fit: A %d×%d, B %d×%d, C %d×%d", n, n, br, t, cr, cc)
	}
	return n, t
}

// TrsmPacked panics unless B is n × m, where n is the order of A.
func TrsmPacked[T backend.Float](t backend.Trans, a backend.Packed[T], b backend.Matrix[T]) (n, m int) {
	validTrans("TrsmPacked", t)
	n = a.Order()
	br, m := b.Dims()
	if br != n {
		misuse("TrsmPacked", "shapes do not fit: A %d×%d on the Left of B %d×%d", n, n, br, m)
	}
	return n, m
}

// NewExpansion panics unless Z is m × d, V is m × t and the kernel's parameters are valid.
func NewExpansion[T backend.Float](k kernels.Kernel, z, v backend.Host[T]) (m, d, t int) {
	Host("NewExpansion", z)
	Host("NewExpansion", v)
	if v.Rows != z.Rows {
		misuse("NewExpansion", "V has %d rows, Z has %d", v.Rows, z.Rows)
	}
	if k == nil {
		misuse("NewExpansion", "the kernel is nil")
	}
	if err := k.Check(z.Cols); err != nil {
		misuse("NewExpansion", "%v", err)
	}
	return z.Rows, z.Cols, v.Cols
}

// Apply panics unless X is n × d and dst is n × t.
func Apply[T backend.Float](dst, x backend.Host[T], d, t int) {
	Host("Apply", dst)
	Host("Apply", x)
	if x.Cols != d || dst.Cols != t || dst.Rows != x.Rows {
		misuse("Apply", "X is %d×%d and dst %d×%d; the expansion has %d features and %d outputs", x.Rows, x.Cols, dst.Rows, dst.Cols, d, t)
	}
}

// NewSparse panics unless x is well formed.
func NewSparse[T backend.Float](x backend.CSR[T]) {
	if err := x.Check(); err != nil {
		misuse("NewSparse", "%v", err)
	}
}

// ViewSparse is View for a sparse matrix. It also panics unless the view has all columns.
func ViewSparse(i, j, rows, cols, r, c int) {
	View(i, j, rows, cols, r, c)
	if cols != c {
		misuse("Matrix.View", "a view of a sparse matrix must have all %d columns, got %d", c, cols)
	}
}

// Sparse panics. A method calls it if an argument that must be dense is a sparse matrix.
func Sparse(op string) { misuse(op, "a matrix is sparse where a dense one is needed") }

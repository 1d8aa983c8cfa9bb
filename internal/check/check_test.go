package check

import (
	"fmt"
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// shape is a matrix without elements, for tests of dimensions.
type shape [2]int

func (s shape) Dims() (int, int)                                { return s[0], s[1] }
func (s shape) View(int, int, int, int) backend.Matrix[float64] { return s }
func (s shape) Free()                                           {}

// panicText returns the text with which f panics, or "" if it does not panic.
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// TestTexts checks the text of the panic for one misuse of each kind.
func TestTexts(t *testing.T) {
	gaussian := kernels.Gaussian{Sigma: 1}
	huge := math.MaxInt/2 + 1 // 2·huge overflows an int
	for _, c := range []struct {
		want string
		f    func()
	}{
		{"", func() { View(3, 4, 0, 0, 3, 4) }},
		{"", func() { View(1, 2, 2, 2, 3, 4) }},
		{"backend: Matrix.View: 2×2 at (2, 2) is outside a 3×4 matrix", func() { View(2, 2, 2, 2, 3, 4) }},
		{fmt.Sprintf("backend: Matrix.View: %d×1 at (1, 0) is outside a 3×4 matrix", math.MaxInt), func() { View(1, 0, math.MaxInt, 1, 3, 4) }},
		{"", func() { New(0, 0) }},
		{"backend: New: negative dimension: 3×-1", func() { New(3, -1) }},
		{"", func() {
			Transfer("Upload", shape{2, 3}, backend.Host[float64]{Rows: 2, Cols: 3, Stride: 5, Data: make([]float64, 8)})
		}},
		{"", func() { Transfer("Upload", shape{2, 0}, backend.Host[float64]{Rows: 2, Cols: 0, Stride: 0, Data: nil}) }},
		{"backend: Upload: bad host matrix: 2×3 with stride 2", func() {
			Transfer("Upload", shape{2, 3}, backend.Host[float64]{Rows: 2, Cols: 3, Stride: 2, Data: make([]float64, 8)})
		}},
		{"backend: Upload: host matrix 2×3 with stride 5 needs 8 elements, has 7", func() {
			Transfer("Upload", shape{2, 3}, backend.Host[float64]{Rows: 2, Cols: 3, Stride: 5, Data: make([]float64, 7)})
		}},
		{"backend: Upload: host matrix 1×3 with stride 5 needs 3 elements, has 2", func() {
			Transfer("Upload", shape{1, 3}, backend.Host[float64]{Rows: 1, Cols: 3, Stride: 5, Data: make([]float64, 2)})
		}},
		{fmt.Sprintf("backend: Upload: host matrix 3×3 with stride %d needs %d elements, has 9", huge, uint(2*huge)), func() {
			Host("Upload", backend.Host[float64]{Rows: 3, Cols: 3, Stride: huge, Data: make([]float64, 9)})
		}},
		{"backend: Download: matrix is 2×3, host matrix is 3×2", func() {
			Transfer("Download", shape{2, 3}, backend.Host[float64]{Rows: 3, Cols: 2, Stride: 2, Data: make([]float64, 6)})
		}},
		{"backend: Narrow: shapes differ: 2×3 and 3×2", func() { SameDims("Narrow", shape{2, 3}, shape{3, 2}) }},
		{"", func() { Gemm(backend.NoTrans, backend.Transpose, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"backend: Gemm: shapes do not fit: op(A) 2×3, op(B) 4×3, C 2×4", func() { Gemm(backend.NoTrans, backend.NoTrans, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"backend: Gemm: bad Trans 7", func() { Gemm(backend.NoTrans, 7, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"", func() { Syrk(backend.Upper, backend.Transpose, shape{2, 3}, shape{3, 3}) }},
		{"backend: Syrk: C must be square, is 3×2", func() { Syrk(backend.Upper, backend.NoTrans, shape{2, 3}, shape{3, 2}) }},
		{"backend: Syrk: shapes do not fit: op(A) 2×3, C 3×3", func() { Syrk(backend.Upper, backend.NoTrans, shape{2, 3}, shape{3, 3}) }},
		{"backend: Syrk: bad Uplo 2", func() { Syrk(2, backend.NoTrans, shape{2, 3}, shape{2, 2}) }},
		{"", func() { Symm(backend.Lower, shape{2, 2}, shape{2, 3}, shape{2, 3}) }},
		{"backend: Symm: shapes do not fit: A 2×2, B 3×2, C 3×2", func() { Symm(backend.Lower, shape{2, 2}, shape{3, 2}, shape{3, 2}) }},
		{"", func() { Trsm(backend.Right, backend.Lower, backend.NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Trsm: shapes do not fit: A 3×3 on the Left of B 2×3", func() { Trsm(backend.Left, backend.Lower, backend.NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Trsm: bad Side 2", func() { Trsm(2, backend.Lower, backend.NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Potrf: A must be square, is 2×3", func() { Potrf(backend.Lower, shape{2, 3}) }},
		{"", func() { AddDiag(make([]float64, 1), shape{3, 3}) }},
		{"", func() { AddDiag(make([]float64, 0), shape{0, 0}) }},
		{"backend: AddDiag: d has 2 elements for a 3×3 matrix; it must have 1 or 3", func() { AddDiag(make([]float64, 2), shape{3, 3}) }},
		{"backend: ColDot: 2 coefficients for 3 columns", func() { Columns("ColDot", make([]float64, 2), shape{4, 3}, shape{4, 3}) }},
		{"", func() { Gram(shape{2, 4}, gaussian, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: X has 3 features, Z has 2", func() { Gram(shape{2, 4}, gaussian, shape{2, 3}, shape{4, 2}) }},
		{"backend: Gram: dst must be 2×4, is 4×2", func() { Gram(shape{4, 2}, gaussian, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: the kernel is nil", func() { Gram(shape{2, 4}, nil, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: kernels: gaussian: sigma must be a finite number > 0, got 0", func() { Gram(shape{2, 4}, kernels.Gaussian{}, shape{2, 3}, shape{4, 3}) }},
		{"", func() { GramMul(shape{2, 5}, gaussian, shape{2, 3}, shape{4, 3}, shape{4, 5}) }},
		{"backend: GramMul: shapes do not fit: k(X, Z) 2×4, V 3×5, dst 2×5", func() { GramMul(shape{2, 5}, gaussian, shape{2, 3}, shape{4, 3}, shape{3, 5}) }},
		{"backend: Potrf: a matrix belongs to another device", func() { Foreign("Potrf") }},
		{"backend: Potrf: a matrix was used after Free", func() { Freed("Potrf") }},
	} {
		if got := panicText(c.f); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// TestDims checks the dimensions that the functions return.
func TestDims(t *testing.T) {
	if m, n, k := Gemm(backend.Transpose, backend.NoTrans, shape{3, 2}, shape{3, 4}, shape{2, 4}); m != 2 || n != 4 || k != 3 {
		t.Errorf("Gemm: m=%d n=%d k=%d", m, n, k)
	}
	if n, k := Syrk(backend.Lower, backend.Transpose, shape{3, 2}, shape{2, 2}); n != 2 || k != 3 {
		t.Errorf("Syrk: n=%d k=%d", n, k)
	}
	if n, m, d, p := GramMul(shape{2, 5}, kernels.Linear{}, shape{2, 3}, shape{4, 3}, shape{4, 5}); n != 2 || m != 4 || d != 3 || p != 5 {
		t.Errorf("GramMul: n=%d m=%d d=%d t=%d", n, m, d, p)
	}
}

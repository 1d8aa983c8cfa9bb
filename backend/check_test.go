package backend

import (
	"fmt"
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// shape is a matrix of which only the dimensions matter.
type shape [2]int

func (s shape) Dims() (int, int)                        { return s[0], s[1] }
func (s shape) View(int, int, int, int) Matrix[float64] { return s }
func (s shape) Free()                                   {}

// panicText returns what f panics with, or "".
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// The texts of misuse, one of each kind, with the call that is right beside
// each that is wrong.
func TestCheckTexts(t *testing.T) {
	gaussian := kernels.Gaussian{Sigma: 1}
	huge := math.MaxInt/2 + 1 // twice that is no int
	for _, c := range []struct {
		want string
		f    func()
	}{
		{"", func() { CheckView(3, 4, 0, 0, 3, 4) }},
		{"", func() { CheckView(1, 2, 2, 2, 3, 4) }},
		{"backend: Matrix.View: 2×2 at (2, 2) is outside a 3×4 matrix", func() { CheckView(2, 2, 2, 2, 3, 4) }},
		{fmt.Sprintf("backend: Matrix.View: %d×1 at (1, 0) is outside a 3×4 matrix", math.MaxInt), func() { CheckView(1, 0, math.MaxInt, 1, 3, 4) }},
		{"", func() { CheckNew(0, 0) }},
		{"backend: New: negative dimension: 3×-1", func() { CheckNew(3, -1) }},
		{"", func() {
			CheckTransfer("Upload", shape{2, 3}, Host[float64]{Rows: 2, Cols: 3, Stride: 5, Data: make([]float64, 8)})
		}},
		{"", func() { CheckTransfer("Upload", shape{2, 0}, Host[float64]{Rows: 2, Cols: 0, Stride: 0, Data: nil}) }},
		{"backend: Upload: bad host matrix: 2×3 with stride 2", func() {
			CheckTransfer("Upload", shape{2, 3}, Host[float64]{Rows: 2, Cols: 3, Stride: 2, Data: make([]float64, 8)})
		}},
		{"backend: Upload: host matrix 2×3 with stride 5 needs 8 elements, has 7", func() {
			CheckTransfer("Upload", shape{2, 3}, Host[float64]{Rows: 2, Cols: 3, Stride: 5, Data: make([]float64, 7)})
		}},
		{"backend: Upload: host matrix 1×3 with stride 5 needs 3 elements, has 2", func() {
			CheckTransfer("Upload", shape{1, 3}, Host[float64]{Rows: 1, Cols: 3, Stride: 5, Data: make([]float64, 2)})
		}},
		{fmt.Sprintf("backend: Upload: host matrix 3×3 with stride %d needs %d elements, has 9", huge, uint(2*huge)), func() { CheckHost("Upload", Host[float64]{Rows: 3, Cols: 3, Stride: huge, Data: make([]float64, 9)}) }},
		{"backend: Download: matrix is 2×3, host matrix is 3×2", func() {
			CheckTransfer("Download", shape{2, 3}, Host[float64]{Rows: 3, Cols: 2, Stride: 2, Data: make([]float64, 6)})
		}},
		{"backend: Narrow: shapes differ: 2×3 and 3×2", func() { CheckSameDims("Narrow", shape{2, 3}, shape{3, 2}) }},
		{"", func() { CheckGemm(NoTrans, Transpose, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"backend: Gemm: shapes do not fit: op(A) 2×3, op(B) 4×3, C 2×4", func() { CheckGemm(NoTrans, NoTrans, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"backend: Gemm: bad Trans 7", func() { CheckGemm(NoTrans, 7, shape{2, 3}, shape{4, 3}, shape{2, 4}) }},
		{"", func() { CheckSyrk(Upper, Transpose, shape{2, 3}, shape{3, 3}) }},
		{"backend: Syrk: C must be square, is 3×2", func() { CheckSyrk(Upper, NoTrans, shape{2, 3}, shape{3, 2}) }},
		{"backend: Syrk: shapes do not fit: op(A) 2×3, C 3×3", func() { CheckSyrk(Upper, NoTrans, shape{2, 3}, shape{3, 3}) }},
		{"backend: Syrk: bad Uplo 2", func() { CheckSyrk(2, NoTrans, shape{2, 3}, shape{2, 2}) }},
		{"", func() { CheckSymm(Lower, shape{2, 2}, shape{2, 3}, shape{2, 3}) }},
		{"backend: Symm: shapes do not fit: A 2×2, B 3×2, C 3×2", func() { CheckSymm(Lower, shape{2, 2}, shape{3, 2}, shape{3, 2}) }},
		{"", func() { CheckTrsm(Right, Lower, NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Trsm: shapes do not fit: A 3×3 on the Left of B 2×3", func() { CheckTrsm(Left, Lower, NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Trsm: bad Side 2", func() { CheckTrsm(2, Lower, NoTrans, shape{3, 3}, shape{2, 3}) }},
		{"backend: Potrf: A must be square, is 2×3", func() { CheckPotrf(Lower, shape{2, 3}) }},
		{"", func() { CheckAddDiag(make([]float64, 1), shape{3, 3}) }},
		{"", func() { CheckAddDiag(make([]float64, 0), shape{0, 0}) }},
		{"backend: AddDiag: d has 2 elements for a 3×3 matrix; it must have 1 or 3", func() { CheckAddDiag(make([]float64, 2), shape{3, 3}) }},
		{"backend: ColDot: 2 coefficients for 3 columns", func() { CheckColumns("ColDot", make([]float64, 2), shape{4, 3}, shape{4, 3}) }},
		{"", func() { CheckGram(shape{2, 4}, gaussian, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: X has 3 features, Z has 2", func() { CheckGram(shape{2, 4}, gaussian, shape{2, 3}, shape{4, 2}) }},
		{"backend: Gram: dst must be 2×4, is 4×2", func() { CheckGram(shape{4, 2}, gaussian, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: the kernel is nil", func() { CheckGram(shape{2, 4}, nil, shape{2, 3}, shape{4, 3}) }},
		{"backend: Gram: kernels: gaussian: sigma must be a finite number > 0, got 0", func() { CheckGram(shape{2, 4}, kernels.Gaussian{}, shape{2, 3}, shape{4, 3}) }},
		{"", func() { CheckGramMul(shape{2, 5}, gaussian, shape{2, 3}, shape{4, 3}, shape{4, 5}) }},
		{"backend: GramMul: shapes do not fit: k(X, Z) 2×4, V 3×5, dst 2×5", func() { CheckGramMul(shape{2, 5}, gaussian, shape{2, 3}, shape{4, 3}, shape{3, 5}) }},
		{"backend: Potrf: a matrix belongs to another device", func() { Foreign("Potrf") }},
		{"backend: Potrf: a matrix was used after Free", func() { Freed("Potrf") }},
	} {
		if got := panicText(c.f); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// What the checks return are the dimensions of the formulas.
func TestCheckDims(t *testing.T) {
	if m, n, k := CheckGemm(Transpose, NoTrans, shape{3, 2}, shape{3, 4}, shape{2, 4}); m != 2 || n != 4 || k != 3 {
		t.Errorf("Gemm: m=%d n=%d k=%d", m, n, k)
	}
	if n, k := CheckSyrk(Lower, Transpose, shape{3, 2}, shape{2, 2}); n != 2 || k != 3 {
		t.Errorf("Syrk: n=%d k=%d", n, k)
	}
	if n, m, d, p := CheckGramMul(shape{2, 5}, kernels.Linear{}, shape{2, 3}, shape{4, 3}, shape{4, 5}); n != 2 || m != 4 || d != 3 || p != 5 {
		t.Errorf("GramMul: n=%d m=%d d=%d t=%d", n, m, d, p)
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(NoTrans, Transpose, Lower, Upper, Left, Right, Side(5))
	if want := "NoTrans Transpose Lower Upper Left Right invalid(5)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlops(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Gemm", GemmFlops(2, 3, 4), 48},
		{"Syrk", SyrkFlops(3, 4), 48},
		{"Symm", SymmFlops(2, 3), 24},
		{"Trsm", TrsmFlops(3, 5), 45},
		{"Potrf", PotrfFlops(3), 14},
		{"Gram", GramFlops(2, 3, 4, false), 48},
		{"Gram, symmetric", GramFlops(3, 3, 4, true), 48},
		{"GramMul", GramMulFlops(2, 3, 4, 5), 108},
		{"no overflow", GemmFlops(1<<30, 1<<30, 1<<30), 0x1p91},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v flops, want %v", c.name, c.got, c.want)
		}
	}
}

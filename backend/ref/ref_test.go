package ref_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	"github.com/mercer-go/mercer/kernels"
)

func open(t testing.TB, c backend.Config) backend.Device {
	t.Helper()
	return backendtest.Device(t, "ref", c)
}

// upload returns a matrix with the given rows on b.
func upload(t *testing.T, b backend.Backend[float64], rows ...[]float64) backend.Matrix[float64] {
	t.Helper()
	return backendtest.Upload(t, b, backend.Host[float64]{Rows: len(rows), Cols: len(rows[0]), Stride: len(rows[0]), Data: slices.Concat(rows...)})
}

func download(t *testing.T, b backend.Backend[float64], m backend.Matrix[float64]) []float64 {
	t.Helper()
	return backendtest.Download(t, b, m).Data
}

func requireEqual(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

// cubic has the rows φ(x) = (1, x, x², x³) for x = −1, 0, 1.
var cubic = [][]float64{{1, -1, 1, -1}, {1, 0, 0, 0}, {1, 1, 1, 1}}

func TestGramOfCubicMap(t *testing.T) {
	b := open(t, backend.Config{}).F64()
	x := upload(t, b, cubic...)
	want := []float64{4, 1, 0, 1, 1, 1, 0, 1, 4}

	k := upload(t, b, []float64{7, 7, 7}, []float64{7, 7, 7}, []float64{7, 7, 7})
	b.Gemm(backend.NoTrans, backend.Transpose, 1, x, x, 0, k)
	requireEqual(t, "XXᵀ by Gemm", download(t, b, k), want)

	lower := []float64{4, 7, 7, 1, 1, 7, 0, 1, 4}
	k = upload(t, b, []float64{7, 7, 7}, []float64{7, 7, 7}, []float64{7, 7, 7})
	b.Syrk(backend.Lower, backend.NoTrans, 1, x, 0, k)
	requireEqual(t, "XXᵀ by Syrk", download(t, b, k), lower)
	k = upload(t, b, []float64{7, 7, 7}, []float64{7, 7, 7}, []float64{7, 7, 7})
	b.Gram(k, kernels.Linear{}, x, x)
	requireEqual(t, "linear kernel", download(t, b, k), lower)
	z := upload(t, b, cubic...)
	b.Gram(k, kernels.Linear{}, x, z)
	requireEqual(t, "linear kernel of two sets", download(t, b, k), want)
}

// TestGramOfXOR computes the Gram matrix of (xᵀz)² at the points (±1, ±1) of the XOR example. The expected values
// follow from the feature map (x₁², √2x₁x₂, x₂²).
func TestGramOfXOR(t *testing.T) {
	b := open(t, backend.Config{}).F64()
	rows := [][]float64{{1, 1}, {-1, 1}, {-1, -1}, {1, -1}}
	x, z := upload(t, b, rows...), upload(t, b, rows...)
	k, err := b.New(4, 4)
	if err != nil {
		t.Fatal(err)
	}
	b.Gram(k, kernels.Polynomial{Degree: 2}, x, z)
	requireEqual(t, "(xᵀz)²", download(t, b, k), []float64{4, 0, 4, 0, 0, 4, 0, 4, 4, 0, 4, 0, 0, 4, 0, 4})
}

// TestPotrfWorked tests a common textbook example: L = [[2 0 0] [6 1 0] [−8 5 3]], A = LLᵀ.
func TestPotrfWorked(t *testing.T) {
	b := open(t, backend.Config{}).F64()
	a := upload(t, b, []float64{4, 9, 9}, []float64{12, 37, 9}, []float64{-16, -43, 98})
	if err := b.Potrf(backend.Lower, a); err != nil {
		t.Fatal(err)
	}
	requireEqual(t, "L", download(t, b, a), []float64{2, 9, 9, 6, 1, 9, -8, 5, 3})
	a = upload(t, b, []float64{4, 12, -16}, []float64{9, 37, -43}, []float64{9, 9, 98})
	if err := b.Potrf(backend.Upper, a); err != nil {
		t.Fatal(err)
	}
	requireEqual(t, "U", download(t, b, a), []float64{2, 6, -8, 9, 1, 5, 9, 9, 3})

	a = upload(t, b, []float64{4, 0}, []float64{4, 4})
	err := b.Potrf(backend.Lower, a)
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) || pivot.Index != 1 || pivot.Value != 0 || !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("singular matrix: got %v", err)
	}
}

// TestConformance runs the suite with fewer cases, because ref has no block sizes, and without the tests of threads.
func TestConformance(t *testing.T) {
	leave := func(test string) bool { return strings.HasSuffix(test, "Threads") }
	backendtest.Suite{Open: open, LargeN: 200, Fewer: true, RequirePacked: true, Leave: leave}.Run(t)
}

func BenchmarkRef(b *testing.B) { backendtest.Suite{Open: open, LargeN: 128}.Bench(b) }

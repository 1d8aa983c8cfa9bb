package handles

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// TestGram compares k(X, Z), k(X, X) and their products with kernels.Eval, for dense and sparse points.
func TestGram(t *testing.T) {
	const text = "0.5*gaussian(sigma=2) + 0.1*linear()"
	k, err := kernels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, device := range []string{"", "ref"} {
		d := open(t, device)
		for _, n := range []int{1, 33, 70} {
			x, _ := samples(t, n, 5)
			z, v := samples(t, 41, 5)
			wider := backend.NewHost[float64](z.Rows, 20)
			for i := range wider.Data {
				wider.Data[i] = math.Sin(float64(i))
			}
			square := backend.NewHost[float64](n, 2)
			for i := range square.Data {
				square.Data[i] = math.Cos(float64(i))
			}
			for _, test := range []struct {
				name    string
				z, v    backend.Host[float64]
				columns int
			}{
				{"k(X, Z)", z, backend.Host[float64]{}, z.Rows},
				{"k(X, X)", backend.Host[float64]{}, backend.Host[float64]{}, n},
				{"k(X, Z)V", z, v, v.Cols},
				{"k(X, X)V", backend.Host[float64]{}, square, square.Cols},
				{"k(X, Z)V with many columns", z, wider, wider.Cols},
			} {
				z := test.z
				if z.Rows == 0 {
					z = x
				}
				want, size := gramOf(k, x, z), gramOf(k, x, z)
				if test.v.Rows > 0 {
					want, size = product(want, test.v, false), product(size, test.v, true)
				}
				for _, sparse := range []bool{false, true} {
					input := func(h backend.Host[float64]) Matrix {
						if sparse && h.Rows > 0 {
							return Matrix{CSR: csrOf(h)}
						}
						return float64s(h)
					}
					out := make([]float64, n*test.columns)
					if err := Gram(ctx, d, text, input(x), input(test.z), float64s(test.v), out); err != nil {
						t.Fatal(err)
					}
					// Norms are at most 40, ‖x−z‖² has d + 4 roundings, and a sum has m terms.
					for i, got := range out {
						bound := 0x1p-53 * (40*(5+4) + float64(z.Rows)) * math.Max(1, size.Data[i])
						if math.Abs(got-want.Data[i]) > bound {
							t.Errorf("%q, n = %d, %s, sparse = %v, element %d: %v, want %v within %.1e", device, n, test.name, sparse, i, got, want.Data[i], bound)
							break
						}
					}
				}
			}
		}
	}
}

// csrOf returns h as a sparse matrix with all elements stored, including zeros.
func csrOf(h backend.Host[float64]) backend.CSR[float64] {
	c := backend.CSR[float64]{Rows: h.Rows, Cols: h.Cols, Indptr: []int{0}}
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			c.Indices, c.Data = append(c.Indices, int32(j)), append(c.Data, v)
		}
		c.Indptr = append(c.Indptr, len(c.Data))
	}
	return c
}

// product returns A·V, or |A|·|V| if size is true.
func product(a, v backend.Host[float64], size bool) backend.Host[float64] {
	out := backend.NewHost[float64](a.Rows, v.Cols)
	for i := range a.Rows {
		for j := range v.Cols {
			for p, value := range a.Row(i) {
				term := value * v.Row(p)[j]
				if size {
					term = math.Abs(term)
				}
				out.Row(i)[j] += term
			}
		}
	}
	return out
}

// TestGramRefuses checks that Gram returns an error that names the wrong argument.
func TestGramRefuses(t *testing.T) {
	d := open(t, "ref")
	x, _ := samples(t, 4, 3)
	y, _ := samples(t, 4, 2)
	negative, _ := samples(t, 4, 3)
	negative.Row(2)[1] = -1
	out := make([]float64, 16)
	for _, test := range []struct {
		kernel  string
		x, z, v Matrix
		out     []float64
		want    string
	}{
		{"gaussian(sigma=0)", float64s(x), Matrix{}, Matrix{}, out, "sigma"},
		{"precomputed()", float64s(x), Matrix{}, Matrix{}, out, "precomputed"},
		{"linear()", float64s(x), float64s(y), Matrix{}, out, "x has 3 columns and z has 2"},
		{"linear()", float64s(x), Matrix{CSR: csrOf(x)}, Matrix{}, out, "both dense or both sparse"},
		{"linear()", float64s(x), Matrix{}, float64s(backend.NewHost[float64](3, 1)), out, "v has 3 rows, but z has 4"},
		{"linear()", float64s(x), Matrix{}, Matrix{}, out[:15], "4×4"},
		{"chi2()", float64s(x), float64s(negative), Matrix{}, out, "row 3"},
	} {
		if test.kernel == "chi2()" { // chi2 requires features ≥ 0
			for i := range x.Data {
				x.Data[i], negative.Data[i] = math.Abs(x.Data[i]), math.Abs(negative.Data[i])
			}
			negative.Row(2)[1] = -1
		}
		err := Gram(context.Background(), d, test.kernel, test.x, test.z, test.v, test.out)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", test.kernel, err, test.want)
		}
	}
}

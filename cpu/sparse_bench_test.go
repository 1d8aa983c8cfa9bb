package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
)

// text returns n rows that resemble tf-idf features: the word of rank r occurs in the fraction
// min(0.8, c/r) of the rows, where c is such that a row has about perRow of the d words.
func text[T backend.Float](n, d, perRow int) backend.CSR[T] {
	rng := rand.New(rand.NewPCG(1, 0))
	frequency := func(c float64, r int) float64 { return min(0.8, c/float64(r+1)) }
	low, high := 0.0, float64(d)
	for range 60 { // find c by bisection
		c, sum := (low+high)/2, 0.0
		for r := range d {
			sum += frequency(c, r)
		}
		if sum < float64(perRow) {
			low = c
		} else {
			high = c
		}
	}
	x := backend.CSR[T]{Rows: n, Cols: d, Indptr: []int{0}}
	columnOf := rng.Perm(d)
	for range n {
		var columns []int32
		for r := 0; r < d; {
			// Skip to the next candidate as if all later words were as frequent as word r. Then
			// accept the candidate with a probability that makes its frequency correct.
			p := frequency(high, r)
			skip := 0
			if p < 1 {
				skip = int(math.Log(1-rng.Float64()) / math.Log(1-p))
			}
			r += skip
			if r < d && rng.Float64()*p < frequency(high, r) {
				columns = append(columns, int32(columnOf[r]))
			}
			r++
		}
		slices.Sort(columns)
		for range columns {
			x.Data = append(x.Data, T(0.02+0.1*rng.Float64()))
		}
		x.Indices = append(x.Indices, columns...)
		x.Indptr = append(x.Indptr, len(x.Data))
	}
	return x
}

// BenchmarkSparse times the lower triangle of k(X, X), one row of k(X, X), K·v, and products of X with a few
// columns, for rows like tf-idf features of texts, and for comparison the Gram matrix of the dense rows.
func BenchmarkSparse(b *testing.B) {
	for _, c := range []struct{ n, d, perRow int }{{1000, 10000, 200}, {4000, 40578, 550}} {
		if c.n > 1000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("n=%d/d=%d/nonzeros=%d/precision=float64", c.n, c.d, c.n*c.perRow), func(b *testing.B) {
			benchmarkSparse(b, backendtest.Device(b, "").F64(), text[float64](c.n, c.d, c.perRow))
		})
		b.Run(fmt.Sprintf("n=%d/d=%d/nonzeros=%d/precision=float32", c.n, c.d, c.n*c.perRow), func(b *testing.B) {
			benchmarkSparse(b, backendtest.Device(b, "").F32(), text[float32](c.n, c.d, c.perRow))
		})
	}
}

func benchmarkSparse[T backend.Float](b *testing.B, q backend.Backend[T], x backend.CSR[T]) {
	s := q.(backend.SparseBackend[T])
	alloc := func(rows, cols int) backend.Matrix[T] {
		m, err := q.New(rows, cols)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(m.Free)
		return m
	}
	sx, err := s.NewSparse(x)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(sx.Free)
	pairs := 0.0 // Σ c_j², the multiply-adds of a whole k(X, X)
	counts := make([]float64, x.Cols)
	for _, c := range x.Indices {
		counts[c]++
	}
	for _, c := range counts {
		pairs += c * c
	}
	gram := alloc(x.Rows, x.Rows)
	run := func(name string, madds float64, f func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(madds*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmadd/s")
		})
	}
	run("op=place", float64(x.NNZ()), func() error {
		m, err := s.NewSparse(x)
		if err == nil {
			m.Free()
		}
		return err
	})
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 1}, kernels.Laplacian{Sigma: 10}, kernels.CosineSimilarity{}, kernels.ChiSquared{Gamma: 1}} {
		run(fmt.Sprintf("op=gram/kernel=%v", k), pairs/2, func() error { q.Gram(gram, k, sx, sx); return q.Sync() })
	}
	k := kernels.Gaussian{Sigma: 1}
	row := alloc(1, x.Rows)
	i := 0
	run("op=row", pairs/float64(x.Rows), func() error {
		i = (i + 1) % x.Rows
		q.Gram(row, k, sx.View(i, 0, 1, x.Cols), sx)
		return q.Sync()
	})
	v := alloc(x.Rows, 1)
	out := alloc(x.Rows, 1)
	run("op=grammul/columns=1", pairs/2, func() error { q.GramMul(out, k, sx, sx, v); return q.Sync() })
	for _, columns := range []int{1, 8} {
		w, xw := alloc(x.Cols, columns), alloc(x.Rows, columns)
		madds := float64(x.NNZ() * columns)
		run(fmt.Sprintf("op=gemm/columns=%d", columns), madds, func() error { q.Gemm(backend.NoTrans, backend.NoTrans, 1, sx, w, 0, xw); return q.Sync() })
		run(fmt.Sprintf("op=gemm-transposed/columns=%d", columns), madds, func() error { q.Gemm(backend.Transpose, backend.NoTrans, 1, sx, xw, 0, w); return q.Sync() })
	}
	dense := alloc(x.Rows, x.Cols)
	h := backend.NewHost[T](x.Rows, x.Cols)
	x.DenseTo(h)
	if err := q.Upload(dense, h); err != nil {
		b.Fatal(err)
	}
	run("op=dense-gram/kernel=linear()", float64(x.Rows)*float64(x.Rows)*float64(x.Cols)/2, func() error {
		q.Gram(gram, kernels.Linear{}, dense, dense)
		return q.Sync()
	})
}

package gonum_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// operation is an operation of package mat on n×n matrices.
type operation struct {
	name string
	run  func(o *operands) error
}

// operands holds general matrices a and b, and the positive definite matrix spd with its factor.
type operands struct {
	a, b, dst, columns, solution *mat.Dense
	spd, inverse                 *mat.SymDense
	chol                         mat.Cholesky
}

var operations = []operation{
	{"Dense.Mul", func(o *operands) error { o.dst.Mul(o.a, o.b); return nil }},
	{"Cholesky.Factorize", func(o *operands) error {
		var c mat.Cholesky
		if !c.Factorize(o.spd) {
			return fmt.Errorf("not positive definite")
		}
		return nil
	}},
	{"Cholesky.SolveTo", func(o *operands) error { return o.chol.SolveTo(o.solution, o.columns) }},
	{"Cholesky.InverseTo", func(o *operands) error { return o.chol.InverseTo(o.inverse) }},
	{"Dense.Inverse", func(o *operands) error { return o.dst.Inverse(o.a) }},
	{"QR.Factorize", func(o *operands) error { var f mat.QR; f.Factorize(o.a); return nil }},
	{"LU.Factorize", func(o *operands) error { var f mat.LU; f.Factorize(o.a); return nil }},
}

// newOperands makes matrices with random elements off the diagonal, n on it, and condition numbers below about 100.
func newOperands(n int) (*operands, error) {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	random := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		for i := range rows {
			for j := range cols {
				m.Set(i, j, 2*rng.Float64()-1)
			}
		}
		return m
	}
	o := &operands{
		a: random(n, n), b: random(n, n), dst: mat.NewDense(n, n, nil), columns: random(n, 10), solution: mat.NewDense(n, 10, nil),
		spd: mat.NewSymDense(n, nil), inverse: mat.NewSymDense(n, nil),
	}
	for i := range n {
		o.a.Set(i, i, float64(n))
		for j := i; j < n; j++ {
			o.spd.SetSym(i, j, o.b.At(i, j))
		}
		o.spd.SetSym(i, i, float64(n))
	}
	if !o.chol.Factorize(o.spd) {
		return nil, fmt.Errorf("not positive definite")
	}
	return o, nil
}

// BenchmarkMat measures single operations of package mat with and without Mercer's BLAS and LAPACK.
// These commands alternate between the two libraries every few milliseconds:
//
//	for i in $(seq 15); do go test -run '^$' -bench Mat -benchtime 20ms ./gonum; done > mat.txt
//	mercer bench import --by library mat.txt > mat.json
func BenchmarkMat(b *testing.B) {
	for _, n := range []int{100, 300, 1000} {
		o, err := newOperands(n)
		if err != nil {
			b.Fatal(err)
		}
		for _, op := range operations {
			for _, library := range libraries {
				b.Run(fmt.Sprintf("operation=%s/n=%d/library=%s", op.name, n, library), func(b *testing.B) {
					useLibrary(b, library)
					for b.Loop() {
						if err := op.run(o); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

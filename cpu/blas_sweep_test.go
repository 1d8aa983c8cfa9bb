package cpu

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

var (
	bothTrans = []blas.Transpose{blas.NoTrans, blas.Trans}
	bothUplo  = []blas.Uplo{blas.Lower, blas.Upper}
	bothSide  = []blas.Side{blas.Left, blas.Right}
	bothDiag  = []blas.Diag{blas.NonUnit, blas.Unit}
)

// factors are pairs of α and β that combine 0, 1 and other values.
var factors = [][2]float64{{1, 0}, {1, 1}, {-2, 0.5}, {0, 0}, {0, 1}, {0, -2}, {2, 0}}

func TestLevel3Exact(t *testing.T) {
	forEachLevel3(t, sweepLevel3[float64], sweepLevel3[float32])
}

func sweepLevel3[T backend.Float](t *testing.T, l level3[T]) {
	t.Run("gemm", l.sweepGemm)
	t.Run("symm", l.sweepSymm)
	t.Run("syrk", l.sweepSyrk)
	t.Run("triangular", l.sweepTriangular)
}

// shapes returns triples m, n, k: first combinations of m and n around multiples of MR and NR, and then k around KC.
// With -short, it returns every fifth triple, or every fifteenth if required.FewCases.
func (l level3[T]) shapes() [][3]int {
	var list [][3]int
	for _, m := range l.sizes(l.mr, 40) {
		for _, n := range l.sizes(l.nr, 40) {
			for _, k := range []int{17, []int{1, 2, 5, 8, 9}[len(list)/2%5]} {
				list = append(list, [3]int{m, n, k})
			}
		}
	}
	for _, k := range []int{l.kc - 1, l.kc, l.kc + 1, 2*l.kc + 3} {
		list = append(list, [3]int{l.mr + 1, l.nr + 1, k}, [3]int{5*l.mr + 2, 3*l.nr + 5, k})
	}
	list = append(list, [3]int{1, 1, 3000}, [3]int{300, 1, 40}, [3]int{1, 300, 40},
		[3]int{150, 130, 70}, [3]int{3*l.mr + 1, l.kc + 8, 30})
	if !testing.Short() {
		return list
	}
	var sample [][3]int
	step := 5
	if required.FewCases() {
		step = 15
	}
	for x := 0; x < len(list); x += step {
		sample = append(sample, list[x])
	}
	return sample
}

// nanIfUnread fills C with NaN if β = 0, because C must not be read then.
func nanIfUnread[T backend.Float](c padded[T], beta T) padded[T] {
	if beta == 0 {
		c.fill(func(i, j int) T { return T(math.NaN()) })
	}
	return c
}

func (l level3[T]) sweepGemm(t *testing.T) {
	r := newSeed(t, 1)
	for x, shape := range l.shapes() {
		m, n, k := shape[0], shape[1], shape[2]
		alpha, beta := T(factors[x%len(factors)][0]), T(factors[x%len(factors)][1])
		for _, tA := range bothTrans {
			for _, tB := range bothTrans {
				a, b := integersOp[T](r, tA, m, k, x%4), integersOp[T](r, tB, k, n, x%3)
				if alpha == 0 {
					a, b = nanIfUnread(a, 0), nanIfUnread(b, 0)
				}
				c := nanIfUnread(integers[T](r, m, n, x%5), beta)
				got := c.clone()
				l.gemm(tA, tB, m, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, got.data, got.ld)
				name := fmt.Sprintf("gemm(%c, %c, %d×%d×%d, α = %v, β = %v)", tA, tB, m, n, k, alpha, beta)
				expect(t, name, got, c, blas.All, multiplied(k, alpha, a.op(tA), b.op(tB), beta, c.at))
			}
		}
	}
}

func (l level3[T]) sweepSymm(t *testing.T) {
	r := newSeed(t, 2)
	for x, shape := range l.shapes() {
		m, n := shape[0], min(shape[1]+shape[2]-1, 300)
		alpha, beta := T(factors[x%len(factors)][0]), T(factors[x%len(factors)][1])
		for _, s := range bothSide {
			for _, ul := range bothUplo {
				k := n
				if s == blas.Left {
					k = m
				}
				a, b := symmetricOf[T](r, ul, k, x%4), integers[T](r, m, n, x%3)
				if alpha == 0 {
					a, b = nanIfUnread(a, 0), nanIfUnread(b, 0)
				}
				c := nanIfUnread(integers[T](r, m, n, x%5), beta)
				got := c.clone()
				l.symm(s, ul, m, n, alpha, a.data, a.ld, b.data, b.ld, beta, got.data, got.ld)
				name := fmt.Sprintf("symm(%c, %c, %d×%d, α = %v, β = %v)", s, ul, m, n, alpha, beta)
				left, right := a.mirrored(ul), b.at
				if s == blas.Right {
					left, right = b.at, a.mirrored(ul)
				}
				expect(t, name, got, c, blas.All, multiplied(k, alpha, left, right, beta, c.at))
			}
		}
	}
}

func (l level3[T]) sweepSyrk(t *testing.T) {
	r := newSeed(t, 3)
	for x, shape := range l.shapes() {
		n, k := max(shape[0], shape[1]), shape[2]
		alpha, beta := T(factors[x%len(factors)][0]), T(factors[x%len(factors)][1])
		for _, ul := range bothUplo {
			for _, tr := range bothTrans {
				a, b := integersOp[T](r, tr, n, k, x%4), integersOp[T](r, tr, n, k, x%3)
				if alpha == 0 {
					a, b = nanIfUnread(a, 0), nanIfUnread(b, 0)
				}
				c := nanIfUnread(integers[T](r, n, n, x%5), beta)
				opA, opB := a.op(tr), b.op(tr)
				transA, transB := func(i, j int) T { return opA(j, i) }, func(i, j int) T { return opB(j, i) }
				name := fmt.Sprintf("(%c, %c, %d×%d, α = %v, β = %v)", ul, tr, n, k, alpha, beta)

				got := c.clone()
				l.syrk(ul, tr, n, k, alpha, a.data, a.ld, beta, got.data, got.ld)
				expect(t, "syrk"+name, got, c, ul, multiplied(k, alpha, opA, transA, beta, c.at))

				got = c.clone()
				l.syr2k(ul, tr, n, k, alpha, a.data, a.ld, b.data, b.ld, beta, got.data, got.ld)
				first := multiplied(k, alpha, opA, transB, beta, c.at)
				expect(t, "syr2k"+name, got, c, ul, multiplied(k, alpha, opB, transA, 1, first))
			}
		}
	}
}

func (l level3[T]) sweepTriangular(t *testing.T) {
	r := newSeed(t, 4)
	for x, shape := range l.shapes() {
		m, n := shape[0], min(shape[1]+shape[2]-1, l.kc+40)
		alpha := T(factors[x%len(factors)][0])
		for flags := range 16 {
			s, ul, tr, d := bothSide[flags&1], bothUplo[flags>>1&1], bothTrans[flags>>2&1], bothDiag[flags>>3&1]
			if m*n > 4000 && flags != x%16 && flags != (7*x+5)%16 {
				continue // large sizes are tested with two of the sixteen combinations
			}
			k := n
			if s == blas.Left {
				k = m
			}
			a := triangularOf[T](r, ul, d, k, x%4)
			b := integers[T](r, m, n, x%5)
			name := fmt.Sprintf("(%c, %c, %c, %c, %d×%d, α = %v)", s, ul, tr, d, m, n, alpha)

			product := b.clone()
			l.trmm(s, ul, tr, d, m, n, alpha, a.data, a.ld, product.data, product.ld)
			expect(t, "trmm"+name, product, b, blas.All, triangleTimes(s, a.triangle(ul, tr, d), k, alpha, b.at))
			if alpha == 0 {
				continue
			}

			// Because α is a power of two, Trsm must recover B exactly from the result of Trmm.
			solution := product.clone()
			l.trsm(s, ul, tr, d, m, n, 1/alpha, a.data, a.ld, solution.data, solution.ld)
			expect(t, "trsm"+name, solution, product, blas.All, b.at)
		}
	}
	for _, alpha := range []T{0} {
		a, b := triangularOf[T](r, blas.Lower, blas.NonUnit, 20, 1), integers[T](r, 20, 30, 2)
		b = nanIfUnread(b, 0)
		got := b.clone()
		l.trsm(blas.Left, blas.Lower, blas.NoTrans, blas.NonUnit, 20, 30, alpha, a.data, a.ld, got.data, got.ld)
		expect(t, "trsm with α = 0", got, b, blas.All, func(i, j int) T { return 0 })
	}
}

// triangleTimes returns α op(A) B or α B op(A), without the products with zeros that are not stored.
func triangleTimes[T backend.Float](s blas.Side, a func(i, j int) (T, bool), k int, alpha T, b func(i, j int) T) func(i, j int) T {
	return func(i, j int) T {
		var sum T
		for p := range k {
			if s == blas.Left {
				if v, ok := a(i, p); ok && alpha != 0 {
					sum += v * b(p, j)
				}
			} else if v, ok := a(p, j); ok && alpha != 0 {
				sum += b(i, p) * v
			}
		}
		return alpha * sum
	}
}

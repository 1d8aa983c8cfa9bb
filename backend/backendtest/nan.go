package backendtest

import (
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// These tests check that a NaN or infinity in an input reaches exactly the outputs that depend on it.

// requireWithinOrNaN is requireWithin, but where want is NaN, a NaN with any bits is accepted.
func (r *rig[T]) requireWithinOrNaN(label string, got, want, bound host) {
	r.Helper()
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			if math.IsNaN(w) && !math.IsNaN(got.Row(i)[j]) {
				r.Fatalf("%s: element (%d, %d) is %v, want NaN", label, i, j, got.Row(i)[j])
			}
			if math.IsNaN(w) {
				got.Row(i)[j] = w
			}
		}
	}
	r.requireWithin(label, got, want, bound)
}

var nanSizes = []int{1, 2, 7, 16, 17, 33, 65, 129}

// poison sets a random element of h to v and returns its row and column.
func (r *rig[T]) poison(h host, v float64) (row, col int) {
	row, col = r.rng.IntN(h.Rows), r.rng.IntN(h.Cols)
	h.Row(row)[col] = v
	return row, col
}

// testNaNGemm compares Gemm with sums in IEEE arithmetic, for operands with one NaN or infinity.
func testNaNGemm[T backend.Float](r *rig[T]) {
	for range r.reduced(200) {
		g := gemmCase{
			pick(r, bothTrans), pick(r, bothTrans), pick(r, nanSizes), pick(r, nanSizes), pick(r, nanSizes),
			pick(r, []float64{1, 0, -2}), pick(r, []float64{0, 1, 2}),
		}
		largest := pick(r, []int{0, 3}) // 0 makes a and b zero
		a, b, c := r.integers(g.m, g.k, largest), r.integers(g.k, g.n, largest), r.integers(g.m, g.n, 3)
		if g.beta == 0 {
			c = filled(g.m, g.n, sentinel)
		}
		v := pick(r, []float64{math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1)})
		operand := "A"
		switch r.rng.IntN(3) {
		case 0:
			r.poison(a, v)
		case 1:
			r.poison(b, v)
			operand = "B"
		case 2:
			if g.beta != 0 {
				r.poison(c, v)
				operand = "C"
			}
		}
		label := fmt.Sprintf("%v, %v in %s, other elements ≤ %d", g, v, operand, largest)
		got := r.mustCall(label, gemmCall[T](g), op(g.tA, a), op(g.tB, b), c)
		r.requireWithinOrNaN(label, got, combine(g.alpha, mul(a, b), g.beta, c), filled(g.m, g.n, 0))
	}
}

func testNaNSyrkSymm[T backend.Float](r *rig[T]) {
	for range r.reduced(60) {
		s := syrkCase{pick(r, bothUplos), pick(r, bothTrans), pick(r, nanSizes), pick(r, nanSizes), pick(r, []float64{1, 0}), pick(r, []float64{0, 1})}
		a, c := r.integers(s.n, s.k, pick(r, []int{0, 3})), r.integers(s.n, s.n, 3)
		r.poison(a, math.NaN())
		label := s.String() + ", NaN in A"
		got := r.mustCall(label, syrkCall[T](s), op(s.t, a), triangle(s.ul, c))
		want := triangle(s.ul, combine(s.alpha, mul(a, transpose(a)), s.beta, c))
		r.requireWithinOrNaN(label, got, want, filled(s.n, s.n, 0))
	}
	for range r.reduced(60) {
		s := symmCase{pick(r, bothUplos), pick(r, nanSizes), pick(r, nanSizes), pick(r, []float64{1, 0}), pick(r, []float64{0, 1})}
		largest := pick(r, []int{0, 3})
		a, b, c := r.integers(s.m, s.m, largest), r.integers(s.m, s.n, largest), r.integers(s.m, s.n, 3)
		label := s.String() + ", NaN in A"
		if r.rng.IntN(2) == 0 {
			r.poison(a, math.NaN())
		} else {
			r.poison(b, math.NaN())
			label = s.String() + ", NaN in B"
		}
		got := r.mustCall(label, symmCall[T](s), triangle(s.ul, a), b, c)
		r.requireWithinOrNaN(label, got, combine(s.alpha, mul(mirror(s.ul, a), b), s.beta, c), filled(s.m, s.n, 0))
	}
}

// testNaNTrsm checks that a NaN in a right-hand side makes all elements of the solution NaN that the substitution
// computes later, and changes no other solution. A zero pivot must make its row of the solutions infinite or NaN.
func testNaNTrsm[T backend.Float](r *rig[T]) {
	everyTrsm(func(c trsmCase) {
		for range r.reduced(12) {
			c.order, c.rhs, c.alpha = pick(r, nanSizes), pick(r, nanSizes), pick(r, []float64{1, 0})
			low := r.exactTriangle(c.order, 12, false)
			m, n := c.dims()
			x := r.integers(m, n, 3)
			b := c.multiply(c.operand(low), x)
			if c.alpha == 0 {
				x = filled(m, n, 0)
			}
			i, j := r.poison(b, math.NaN())
			pivot, rhs := i, j
			if c.s == backend.Right {
				pivot, rhs = j, i
			}
			label := fmt.Sprintf("%v, NaN in B at (%d, %d)", c, i, j)
			got := r.mustCall(label, trsmCall[T](c), triangle(c.ul, c.operand(low)), b)
			// Substitution begins with the first pivot for a lower op(A) on the left or an upper
			// op(A) on the right. Otherwise it begins with the last pivot.
			forward := (c.ul == backend.Lower) == (c.t == backend.NoTrans) == (c.s == backend.Left)
			for i := range m {
				for j := range n {
					p, h := i, j
					if c.s == backend.Right {
						p, h = j, i
					}
					g := got.Row(i)[j]
					affected := p == pivot || (p > pivot) == forward
					if h == rhs && affected && !math.IsNaN(g) {
						r.Fatalf("%s: element (%d, %d) is %v, want NaN", label, i, j, g)
					}
					if h != rhs && g != x.Row(i)[j] {
						r.Fatalf("%s: element (%d, %d) is %v, want exactly %v", label, i, j, g, x.Row(i)[j])
					}
				}
			}

			low.Row(pivot)[pivot] = 0
			label = fmt.Sprintf("%v, pivot %d is zero", c, pivot)
			got = r.mustCall(label, trsmCall[T](c), triangle(c.ul, c.operand(low)), filled(m, n, 1))
			for h := range c.rhs {
				g := got.Row(min(pivot, m-1))
				if c.s == backend.Right {
					g = got.Row(h)[pivot : pivot+1]
				} else {
					g = g[h : h+1]
				}
				if !math.IsNaN(g[0]) && !math.IsInf(g[0], 0) {
					r.Fatalf("%s: the result is %v, want NaN or Inf", label, g[0])
				}
			}
		}
	})
}

// testNaNGram checks that a NaN feature makes the row or column of its point NaN, except k(x, x), which is
// unspecified. Neither a NaN nor an infinite feature may affect other points.
func testNaNGram[T backend.Float](r *rig[T]) {
	for di, d := range []int{1, 3, 17} {
		for ki, k := range everyKernel(d) {
			if ignoresFeatures(k) || few() && (di+ki)%4 != 0 {
				continue
			}
			n, m := pick(r, nanSizes), pick(r, nanSizes)
			x, z := r.normals(n, d), r.normals(m, d)
			expected := r.callOracle("Gram", gramCall[T](k), x, z, filled(n, m, sentinel))
			bound, symmetric := kernelBounds[T](k, x, z), kernelBounds[T](k, x, x)
			i, _ := r.poison(x, math.NaN())
			j, _ := r.poison(z, pick(r, []float64{math.NaN(), math.Inf(1)}))
			label := fmt.Sprintf("Gram %v n=%d m=%d d=%d, NaN in row %d of X, NaN or Inf in row %d of Z", k, n, m, d, i, j)
			got := r.mustCall(label, gramCall[T](k), x, z, filled(n, m, sentinel))
			for h := range n {
				if h != i {
					expected.Row(h)[j], bound.Row(h)[j] = got.Row(h)[j], 0 // do not check the column of the NaN or Inf in Z
				}
			}
			for h := range m {
				if h == j {
					h = 0
				}
				expected.Row(i)[h] = math.NaN()
			}
			expected.Row(i)[j] = got.Row(i)[j]
			r.requireWithinOrNaN(label, got, expected, bound)

			label = fmt.Sprintf("Gram %v n=%d d=%d, NaN in row %d, z == x", k, n, d, i)
			got = r.mustCall(label, symmetricCall[T](k, false), x, filled(n, n, sentinel))
			want := r.callOracle(label, symmetricCall[T](k, false), x, filled(n, n, sentinel))
			want.Row(i)[i] = got.Row(i)[i]
			r.requireWithinOrNaN(label, got, want, symmetric)
		}
	}
}

// ignoresFeatures reports whether k is constant or has terms that use only some of the features.
func ignoresFeatures(k kernels.Kernel) bool {
	stats := kernels.Compile(k).Stats
	return len(stats) == 0 || strings.Contains(k.String(), "columns(")
}

// testNaNGramMul checks that a NaN in V makes its column of the result NaN, even where k is 0, that a NaN in X
// makes its row NaN, and that a NaN in Z makes the entire result NaN.
func testNaNGramMul[T backend.Float](r *rig[T]) {
	numVanishing := len(distanceKernels(3, 1)) // kernels with a smaller index are 0 for points far apart
	for ki, k := range everyKernel(3) {
		if ignoresFeatures(k) {
			continue
		}
		n, m, t := pick(r, nanSizes), pick(r, nanSizes), 1+r.rng.IntN(5)
		for _, operand := range []string{"X", "Z", "V"} {
			x, z, v := r.normals(n, 3), r.normals(m, 3), r.normals(m, t)
			if ki < numVanishing {
				x = scale(128, x)
			}
			var row, col int
			switch operand {
			case "X":
				row, col = r.poison(x, math.NaN())
			case "Z":
				row, col = r.poison(z, math.NaN())
			case "V":
				row, col = r.poison(v, math.NaN())
			}
			label := fmt.Sprintf("GramMul %v n=%d m=%d t=%d, NaN in %s at (%d, %d)", k, n, m, t, operand, row, col)
			got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
				b.GramMul(op[3], k, op[0], op[1], op[2])
				return nil
			}, x, z, v, filled(n, t, sentinel))
			for i := range n {
				for c, g := range got.Row(i) {
					wantNaN := operand == "Z" || operand == "X" && i == row || operand == "V" && c == col
					if math.IsNaN(g) != wantNaN {
						r.Fatalf("%s: element (%d, %d) is %v, must be NaN: %t", label, i, c, g, wantNaN)
					}
				}
			}
		}
	}
}

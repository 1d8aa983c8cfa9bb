package ukr

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLevel2 compares Gemv, GemvT, Ger, Trsv and Syr2k exactly with their definitions on small integers, for m and n
// around the vector lengths. Rows are padded, sentinels surround all operands, and the output is first NaN if β = 0.
func TestLevel2(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testLevel2(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testLevel2(t, tier.F32) })
	})
}

// TestBelow compares Below with its definition for elements that are all less than the bound, and
// with one element, at each index in turn, that equals the bound, is larger, or is NaN.
func TestBelow(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testBelow(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testBelow(t, tier.F32) })
	})
}

func testBelow[T Float](t *testing.T, k Kernels[T]) {
	for vectors := range 4 {
		n := vectors * k.NR
		x := make([]T, n+k.NR)
		for i := range x {
			x[i] = T(-i)
		}
		x[n] = 9 // Below must not read this element
		if got := k.Below(n, 1, &x[0]); got != n {
			t.Errorf("%d elements below: %d", n, got)
		}
		for i := range n {
			for _, high := range []T{1, 2, T(math.Inf(1)), T(math.NaN())} {
				x[i] = high
				if got, want := k.Below(n, 1, &x[0]), i/k.NR*k.NR; got != want {
					t.Errorf("element %d of %d is %v: %d, want %d", i, n, high, got, want)
				}
			}
			x[i] = T(-i)
		}
	}
}

func testLevel2[T Float](t *testing.T, k Kernels[T]) {
	const seed = 21
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for m := 1; m <= 13; m++ {
		for n := 1; n <= 2*k.NR+3; n++ {
			for _, beta := range []T{0, 1, -3} {
				checkGemv(t, "gemv", k.Gemv, rng, m, n, false, beta)
				checkGemv(t, "gemv of more rows", k.Gemv, rng, n, m, false, beta)
				checkGemv(t, "gemvT", k.GemvT, rng, m, n, true, beta)
				checkGemv(t, "gemvT of more rows", k.GemvT, rng, n, m, true, beta)
			}
			checkGer(t, k.Ger, rng, m, n)
			checkTrsv(t, k.Trsv, rng, m)
			checkSyr2k(t, k.Syr2k, rng, m, n)
			checkTrsv(t, k.Trsv, rng, n)
			if t.Failed() {
				return
			}
		}
	}
}

func checkGemv[T Float](t *testing.T, name string, gemv func(m, n int, alpha T, a *T, lda int, x *T, beta T, y *T), rng *rand.Rand, m, n int, trans bool, beta T) {
	t.Helper()
	element := anyInteger[T](rng)
	rows, cols := m, n
	if trans {
		rows, cols = n, m
	}
	a, x := newGuarded(rng, m, n, false, element), newGuarded(rng, 1, cols, false, element)
	y := newGuarded(rng, 1, rows, false, func(i, j int) T {
		if beta == 0 {
			return T(math.NaN())
		}
		return element(i, j)
	})
	initial, alpha := y.clone(), []T{1, -1, 2}[rng.IntN(3)]
	gemv(m, n, alpha, a.at(0, 0), a.rs, x.at(0, 0), beta, y.at(0, 0))
	y.requireEqual(t, name, initial, Whole, func(_, i int) T {
		var sum T
		for j := range cols {
			row, col := i, j
			if trans {
				row, col = j, i
			}
			sum += *a.at(row, col) * *x.at(0, j)
		}
		sum *= alpha
		if beta != 0 {
			sum += beta * *initial.at(0, i)
		}
		return sum
	})
}

func checkGer[T Float](t *testing.T, ger func(m, n int, alpha T, x, y, a *T, lda int), rng *rand.Rand, m, n int) {
	t.Helper()
	element := anyInteger[T](rng)
	a, x, y := newGuarded(rng, m, n, false, element), newGuarded(rng, 1, m, false, element), newGuarded(rng, 1, n, false, element)
	initial, alpha := a.clone(), []T{1, -1, 2}[rng.IntN(3)]
	ger(m, n, alpha, x.at(0, 0), y.at(0, 0), a.at(0, 0), a.rs)
	a.requireEqual(t, "ger", initial, Whole, func(i, j int) T { return *initial.at(i, j) + alpha**x.at(0, i)**y.at(0, j) })
}

// checkTrsv solves with a triangle, as stored or transposed, forwards or backwards, for a
// right-hand side whose solution is known. Some pivots have no normal inverse.
func checkTrsv[T Float](t *testing.T, trsv func(n int, unit bool, a *T, ars, acs int, x *T, incX int), rng *rand.Rand, n int) {
	t.Helper()
	unit, transposed, reverse := rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
	extreme := -1
	if rng.IntN(2) == 0 {
		extreme = rng.IntN(n)
	}
	tiny, huge := T(math.Ldexp(1, -1060)), T(math.Ldexp(1, 1023))
	if tiny == 0 { // true in float32
		tiny, huge = 0x1p-140, 0x1p127
	}
	row := func(i, j int) (int, int) {
		if transposed {
			i, j = j, i
		}
		if reverse {
			i, j = n-1-i, n-1-j
		}
		return i, j
	}
	element := anyInteger[T](rng)
	a := newGuarded(rng, n, n, false, element)
	x, want := newGuarded(rng, 1, n, false, element), make([]T, n)
	unknown := func(i int) *T {
		if reverse {
			i = n - 1 - i
		}
		return x.at(0, i)
	}
	for i := range n {
		want[i] = *unknown(i)
	}
	for i := n - 1; i >= 0; i-- {
		pivot := a.at(row(i, i))
		*pivot = []T{1, -1, 2, -4}[rng.IntN(4)]
		if i == extreme && !unit {
			*pivot = []T{tiny, -huge}[rng.IntN(2)]
			want[i] = []T{0, 1}[rng.IntN(2)]
		}
	}
	for i := range n {
		sum := want[i]
		if !unit {
			sum *= *a.at(row(i, i))
		}
		// A row with an extreme pivot has no other nonzero elements; otherwise its sum would not be exact.
		for p := range i {
			if i == extreme && !unit {
				*a.at(row(i, p)) = 0
			}
			sum += *a.at(row(i, p)) * want[p]
		}
		*unknown(i) = sum
	}
	ars, acs, inc := a.rs, 1, 1
	if transposed {
		ars, acs = acs, ars
	}
	if reverse {
		ars, acs, inc = -ars, -acs, -1
	}
	matrix, initial := a.clone(), x.clone()
	trsv(n, unit, a.at(row(0, 0)), ars, acs, unknown(0), inc)
	x.requireEqual(t, "trsv", initial, Whole, func(_, j int) T {
		if reverse {
			j = n - 1 - j
		}
		return want[j]
	})
	a.requireEqual(t, "trsv's triangle", matrix, Whole, func(i, j int) T { return *matrix.at(i, j) })
}

func checkSyr2k[T Float](t *testing.T, syr2k func(lower bool, n, k int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int), rng *rand.Rand, n, k int) {
	t.Helper()
	element := anyInteger[T](rng)
	lower, alpha, beta := rng.IntN(2) == 0, []T{1, -1, 2}[rng.IntN(3)], []T{0, 1, -3}[rng.IntN(3)]
	a, b := newGuarded(rng, n, k, false, element), newGuarded(rng, n, k, false, element)
	c := newGuarded(rng, n, n, false, func(i, j int) T {
		if beta == 0 {
			return T(math.NaN())
		}
		return element(i, j)
	})
	part := Upper
	if lower {
		part = Lower
	}
	initial := c.clone()
	syr2k(lower, n, k, alpha, a.at(0, 0), a.rs, b.at(0, 0), b.rs, beta, c.at(0, 0), c.rs)
	c.requireEqual(t, "syr2k", initial, part, func(i, j int) T {
		var sum T
		for p := range k {
			sum += *a.at(i, p)**b.at(j, p) + *b.at(i, p)**a.at(j, p)
		}
		sum *= alpha
		if beta != 0 {
			sum += beta * *initial.at(i, j)
		}
		return sum
	})
}

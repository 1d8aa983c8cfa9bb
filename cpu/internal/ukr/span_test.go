package ukr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/internal/required"
)

// apply runs a span function on a copy of x and returns the result.
func apply[T Float](f func(*Span[T]), nr int, x, y []T, a, b T) ([]T, int) {
	n := (len(x) + nr - 1) / nr * nr
	padX, padY := make([]T, n+1), make([]T, n+1)
	copy(padX, x)
	copy(padY, y)
	const sentinel = 4321
	padX[n] = sentinel
	s := &Span[T]{X: first(padX), Y: first(padY), N: n, A: a, B: b}
	f(s)
	if padX[n] != sentinel {
		panic("ukr: a span function wrote past the end")
	}
	return padX[:len(x)], s.Flag
}

// TestSpans requires the elementwise functions to equal the portable functions on small integers.
func TestSpans(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testSpans(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testSpans(t, tier.F32) })
	})
}

func testSpans[T Float](t *testing.T, k Kernels[T]) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	g := genericKernels[T]()
	nan, inf := T(math.NaN()), T(math.Inf(1))
	for n := range 3*k.NR + 2 {
		x, y := integers[T](rng, n), integers[T](rng, n)
		if n > 5 {
			x[1], x[2], x[3], y[4] = nan, inf, -inf, nan
		}
		for _, c := range []struct {
			name      string
			got, want func(*Span[T])
		}{{"affine", k.Affine, g.Affine}, {"add", k.Add, g.Add}, {"mul", k.Mul, g.Mul}, {"sqrt", k.Sqrt, g.Sqrt}, {"distance", k.Distance, g.Distance}} {
			got, flag := apply(c.got, k.NR, x, y, 2, -3)
			want, wantFlag := apply(c.want, k.NR, x, y, 2, -3)
			for i := range want {
				if got[i] != want[i] && !(got[i] != got[i] && want[i] != want[i]) {
					t.Fatalf("%s: n=%d: element %d of %v, %v is %v, want %v", c.name, n, i, x[i], y[i], got[i], want[i])
				}
			}
			if (flag != 0) != (wantFlag != 0) {
				t.Fatalf("%s: n=%d: flag %d, want %d", c.name, n, flag, wantFlag)
			}
		}
	}
}

// TestVectors compares Dot, Axpy and DotAxpy exactly with their definitions, for lengths around unrolled loops.
func TestVectors(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testVectors(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testVectors(t, tier.F32) })
		if tier.Short {
			tier.F64.Dot, tier.F64.Axpy = ShortDotF64, ShortAxpyF64
			tier.F32.Dot, tier.F32.Axpy = ShortDotF32, ShortAxpyF32
			t.Run("short/float64", func(t *testing.T) { testVectors(t, tier.F64) })
			t.Run("short/float32", func(t *testing.T) { testVectors(t, tier.F32) })
		}
	})
}

func testVectors[T Float](t *testing.T, k Kernels[T]) {
	const seed, sentinel = 13, 777
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 10*k.NR + 3 {
		// Elements before and after the vectors must not change.
		x, y, z := integers[T](rng, n+2), integers[T](rng, n+2), integers[T](rng, n+2)
		for _, end := range []int{0, n + 1} {
			x[end], y[end], z[end] = sentinel, T(math.NaN()), T(math.NaN())
		}
		var xy, zy T
		wantY, wantZ := slices.Clone(x), slices.Clone(x)
		for i := 1; i <= n; i++ {
			xy += x[i] * y[i]
			zy += z[i] * y[i]
			wantY[i] += 3 * y[i]
			wantZ[i] += 3 * z[i]
		}
		if got := k.Dot(n, &x[1], &y[1]); got != xy {
			t.Fatalf("dot: n=%d: %v, want %v", n, got, xy)
		}
		got := slices.Clone(x)
		k.Axpy(n, 3, &y[1], &got[1])
		if !slices.Equal(got, wantY) {
			t.Fatalf("axpy: n=%d: %v, want %v", n, got, wantY)
		}
		got = slices.Clone(x)
		s := &Span[T]{X: &got[1], Y: &y[1], Z: &z[1], N: n, A: 3}
		if k.DotAxpy(s); s.B != zy || !slices.Equal(got, wantZ) {
			t.Fatalf("dotAxpy: n=%d: %v and %v, want %v and %v", n, s.B, got, zy, wantZ)
		}
	}
}

// TestRows compares the functions on rows exactly with their definitions.
func TestRows(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testRows(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testRows(t, tier.F32) })
	})
}

func testRows[T Float](t *testing.T, k Kernels[T]) {
	const seed = 17
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 10*k.NR + 3 {
		ldz := n + rng.IntN(4)
		x, y, z := integers[T](rng, n+1), integers[T](rng, n+1), integers[T](rng, MaxRows*ldz+1)
		a := [MaxRows]T{1, -2, 3, 4, -1, 2, 5, -3, 2, 1, -4, 3}
		for _, c := range []struct {
			name      string
			f         func(*Rows[T])
			rows      int
			dot, axpy bool
		}{{"dot4", k.Dot4, 4, true, false}, {"axpy4", k.Axpy4, 4, false, true}, {"dotAxpy8", k.DotAxpy8, 8, true, true}, {"dotAxpy12", k.DotAxpy12, 12, true, true}} {
			var dots [MaxRows]T
			sum := slices.Clone(x)
			for r := range c.rows {
				for i := range n {
					dots[r] += z[r*ldz+i] * y[i]
					sum[i] += a[r] * z[r*ldz+i]
				}
			}
			got := slices.Clone(x)
			arg := &Rows[T]{Z: first(z), X: first(got), Y: first(y), N: n, Ldz: ldz, A: a}
			c.f(arg)
			if c.dot && arg.B != dots {
				t.Fatalf("%s: n=%d: %v, want %v", c.name, n, arg.B, dots)
			}
			want := x
			if c.axpy {
				want = sum
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: n=%d: %v, want %v", c.name, n, got, want)
			}
		}
	}
}

// TestDistanceFlag checks Flag for spans in which one element is at the limit, just below the limit, or NaN.
func TestDistanceFlag(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		k := tier.F64
		for n := k.NR; n <= 3*k.NR; n += k.NR {
			for index := range n {
				x, y := make([]float64, n), make([]float64, n)
				for i := range y {
					y[i] = 3 // with A = 1 the limit is ¼·(1 + 3) = 1; for x = 0 the result is 4
				}
				for _, c := range []struct {
					dot  float64
					flag bool
				}{{0, false}, {1.5, false}, {1.5000001, true}, {2, true}, {math.NaN(), true}} {
					x[index] = c.dot
					if _, flag := apply(k.Distance, k.NR, x, y, 1, 0.25); (flag != 0) != c.flag {
						t.Fatalf("n=%d: xᵀz = %v at %d: flag %d", n, c.dot, index, flag)
					}
				}
			}
		}
	})
}

// TestDistanceExp requires DistanceExp to equal Distance followed by Exp, bit by bit.
func TestDistanceExp(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testDistanceExp(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testDistanceExp(t, tier.F32) })
	})
}

func testDistanceExp[T Float](t *testing.T, k Kernels[T]) {
	const seed, minRatio, factor = 9, 0.25, -0.5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := k.NR; n <= 4*k.NR; n += k.NR {
		x, y := integers[T](rng, n), integers[T](rng, n)
		for i := range y {
			y[i] = 20 + y[i]
		}
		if n > k.NR {
			x[rng.IntN(n)] = T(math.NaN())
		}
		d := &Span[T]{X: first(slices.Clone(x)), Y: first(y), N: n, A: 10, B: minRatio}
		k.Distance(d)
		sq := slices.Clone(sliceAt(d.X, 0, n))
		e := &Span[T]{X: d.X, N: n, A: factor}
		k.Exp(e)
		// Z is aligned to a cache line.
		buffer := make([]T, n+2*64)
		offset := 0
		for uintptr(unsafe.Pointer(&buffer[offset]))%64 != 0 {
			offset++
		}
		initial := slices.Clone(x)
		to := &Span[T]{X: first(x), Y: first(y), Z: &buffer[offset], N: n, A: 10, B: minRatio, C: factor}
		k.DistanceExpTo(to)
		for i, v := range initial {
			if x[i] != v && v == v {
				t.Fatalf("n=%d: DistanceExpTo changed element %d of X", n, i)
			}
		}
		for i, v := range buffer {
			if (i < offset || i >= offset+n) && v != 0 {
				t.Fatalf("n=%d: DistanceExpTo wrote element %d outside Z", n, i-offset)
			}
		}
		got := &Span[T]{X: first(x), Y: first(y), N: n, A: 10, B: minRatio, C: factor}
		k.DistanceExp(got)
		if to.Flag != got.Flag || !slices.Equal(buffer[offset:offset+n], x[:n]) {
			t.Fatalf("n=%d: DistanceExpTo and DistanceExp give different results", n)
		}
		if (got.Flag != 0) != (d.Flag != 0) {
			t.Fatalf("n=%d: flag %d, Distance has %d", n, got.Flag, d.Flag)
		}
		for i, want := range sliceAt(e.X, 0, n) {
			if !(sq[i] >= minRatio*(10+y[i])) {
				want = -1
			}
			if x[i] != want {
				t.Fatalf("n=%d: element %d is %v, want %v", n, i, x[i], want)
			}
		}
	}
}

// TestExp requires Exp to be within 1 ulp of package big over the whole range, and at special values.
func TestExp(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testExp(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testExp(t, tier.F32) })
	})
}

func testExp[T Float](t *testing.T, k Kernels[T]) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	low, high := -746.0, 710.0
	smallest := 0x1p-1074
	if unsafe.Sizeof(T(0)) == 4 {
		low, high, smallest = -104, 89, 0x1p-149
	}
	var x []T
	draws := 4000
	if required.FewCases() {
		draws = 1000
	}
	for range draws {
		x = append(x, T(low+(high-low)*rng.Float64()), T(rng.NormFloat64()), T(-rng.ExpFloat64()*30), T(math.Ldexp(rng.NormFloat64(), -rng.IntN(60))))
	}
	// Arguments around the multiples of ½ ln 2, where the reduction changes, and around the ends of the range.
	for n := range 200 {
		c := float64(n-100) * math.Ln2 / 2
		x = append(x, T(c), T(c*(1+1e-7)), T(c*(1-1e-7)))
	}
	for _, end := range []float64{709.782712893384, 709.78, 710.5, -708.4, -745.13, -745.2, -746.5, 88.72283, 88.73, -87.3, -103.97, -103.98, 1e4, -1e4} {
		x = append(x, T(end))
	}
	got, _ := apply(k.Exp, k.NR, x, x, 1, 0)
	largest, largestAt := 0.0, T(0)
	for i, v := range x {
		want := bigExp(float64(v))
		rounded, _ := want.Float64()
		if unsafe.Sizeof(T(0)) == 4 {
			f, _ := want.Float32()
			rounded = float64(f)
		}
		if math.IsInf(rounded, 1) || math.IsInf(float64(got[i]), 1) {
			if rounded != float64(got[i]) {
				// Near the end of the range, the largest finite number and Inf are both accepted.
				if limit, _ := want.Float64(); !(limit > float64(maximum[T]())*(1-0x1p-23)) {
					t.Errorf("exp(%v) is %v, want %v", v, got[i], rounded)
				}
			}
			continue
		}
		ulp := max(smallest, math.Ldexp(1, exponent(rounded)-digits[T]()+1))
		diff := new(big.Float).Sub(want, big.NewFloat(float64(got[i])))
		// The difference may be too small for float64, but its quotient by ulp is not.
		e, _ := diff.Quo(diff.Abs(diff), big.NewFloat(ulp)).Float64()
		if e > largest {
			largest, largestAt = e, v
			if e > 1 {
				t.Errorf("exp(%v) is %v, want %v: %.3f ulp", v, got[i], rounded, e)
			}
		}
	}
	t.Logf("largest error %.3f ulp, at %v, among %d arguments", largest, largestAt, len(x))

	special := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1)), 0, T(math.Copysign(0, -1))}
	got, _ = apply(k.Exp, k.NR, special, special, 1, 0)
	if got[0] == got[0] || !math.IsInf(float64(got[1]), 1) || got[2] != 0 || got[3] != 1 || got[4] != 1 {
		t.Errorf("exp of NaN, Inf, −Inf, 0, −0 is %v", got)
	}
	// The argument of exp is A·x + B.
	got, _ = apply(k.Exp, k.NR, []T{3, 1}, []T{0, 0}, 2, -2)
	if want := T(math.Exp(4)); math.Abs(float64(got[0]-want)) > float64(want)*math.Ldexp(2, -digits[T]()) || got[1] != 1 {
		t.Errorf("exp(2x−2) at 3 and 1 is %v", got)
	}
}

// digits returns the number of bits of a significand.
func digits[T Float]() int {
	if unsafe.Sizeof(T(0)) == 4 {
		return 24
	}
	return 53
}

func maximum[T Float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.MaxFloat32)
	}
	return T(any(math.MaxFloat64).(float64))
}

// exponent returns the integer e such that 2^e ≤ x < 2^(e+1).
func exponent(x float64) int { _, e := math.Frexp(x); return e - 1 }

// bigExp returns exp(x) to about 150 bits: the sum of the series at x/2^k, squared k times.
func bigExp(x float64) *big.Float {
	const bits, squarings = 200, 14
	r := new(big.Float).SetPrec(bits).SetFloat64(x)
	r.SetMantExp(r, -squarings)
	sum, term := big.NewFloat(1).SetPrec(bits), big.NewFloat(1).SetPrec(bits)
	for n := 1; n <= 40; n++ {
		term.Mul(term, r)
		term.Quo(term, big.NewFloat(float64(n)))
		sum.Add(sum, term)
	}
	for range squarings {
		sum.Mul(sum, sum)
	}
	return sum
}

// TestDecay compares MaternExp with its formula in float64.
func TestDecay(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testDecay(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testDecay(t, tier.F32) })
	})
}

func testDecay[T Float](t *testing.T, k Kernels[T]) {
	const seed = 37
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	inf, nan := T(math.Inf(1)), T(math.NaN())
	x := []T{0, -1e-9, inf, nan, 1e30, maximum[T]()}
	for range 1000 {
		x = append(x, T(math.Exp(20*rng.Float64()-14)))
	}
	n := (len(x) + k.NR - 1) / k.NR * k.NR
	for _, c := range [][3]T{{1, 0, 0}, {1.7320508, 1, 0}, {2.236068, 1, 1.0 / 3}, {maximum[T](), 1, 1.0 / 3}} {
		got := make([]T, n)
		copy(got, x)
		k.MaternExp(&Span[T]{X: first(got), N: n, A: c[0], B: c[1], C: c[2]})
		for i, v := range x {
			s := math.Min(float64(c[0])*math.Sqrt(math.Max(float64(v), 0)), 800)
			want := (1 + float64(c[1])*s + float64(c[2])*s*s) * math.Exp(-s)
			// exp(−s) multiplies the relative error of s by s. The last term bounds gradual underflow.
			bound := want*(8+2*s)*math.Ldexp(1, -digits[T]()) + 0x1p-126*math.Ldexp(1, -digits[T]())
			if math.IsNaN(want) != math.IsNaN(float64(got[i])) || math.Abs(float64(got[i])-want) > bound {
				t.Fatalf("%v at %v is %v, want %v", c, v, got[i], want)
			}
		}
	}
}

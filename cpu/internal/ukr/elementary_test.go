package ukr

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A sample is a function of Kernels, with arguments and the correct results.
type sample[T Float] struct {
	name    string
	f       func(Kernels[T]) func(*Span[T])
	a, b, c T
	limit   float64 // error bound in ulp, as documented in Kernels
	x       []T
	want    []*big.Float
}

func newSample[T Float](name string, f func(Kernels[T]) func(*Span[T]), limit float64, a, b, c T) *sample[T] {
	if digits[T]() == 24 {
		limit = 0.51 // results in float32 are computed in float64 and rounded
	}
	return &sample[T]{name: name, f: f, limit: limit, a: a, b: b, c: c}
}

// add adds the arguments x, and the results that the function want returns for x.
func (s *sample[T]) add(want func(x float64) *big.Float, x ...T) {
	for _, v := range x {
		s.x = append(s.x, v)
		s.want = append(s.want, want(float64(v)))
	}
}

// TestElementary checks the error bounds of Log, Pow, Tanh, Sin and Cos against results of package big, over the
// whole range and at difficult arguments. It also compares the tiers with each other, bit by bit in float64.
func TestElementary(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	t.Run("float64", func(t *testing.T) { testElementary[float64](t, seed) })
	t.Run("float32", func(t *testing.T) { testElementary[float32](t, seed) })
}

func testElementary[T Float](t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var samples []*sample[T]
	samples = append(samples, logSample[T](rng))
	samples = append(samples, powSamples[T](rng)...)
	samples = append(samples, tanhSample[T](rng))
	samples = append(samples, trigSamples[T](rng)...)
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		k := kernelsOf[T](tier)
		largestAt := map[string]string{}
		largest := map[string]float64{}
		for _, s := range samples {
			got := s.run(s.f(k), k.NR)
			for i, x := range s.x {
				e := ulps(got[i], s.want[i])
				if e > s.limit {
					want, _ := s.want[i].Float64()
					t.Errorf("%s, A=%v B=%v C=%v: value at %v is %v, want %v: %.3f ulp", s.name, s.a, s.b, s.c, x, got[i], want, e)
				}
				if e > largest[s.name] {
					largest[s.name] = e
					largestAt[s.name] = fmt.Sprintf("A=%v B=%v C=%v x=%v", s.a, s.b, s.c, x)
				}
			}
		}
		for name, e := range largest {
			t.Logf("%s: largest error %.4f ulp, at %s", name, e, largestAt[name])
		}
	})
}

// kernelsOf returns the tier's kernels for T.
func kernelsOf[T Float](tier *Tier) Kernels[T] {
	if digits[T]() == 24 {
		return any(tier.F32).(Kernels[T])
	}
	return any(tier.F64).(Kernels[T])
}

func (s *sample[T]) run(f func(*Span[T]), nr int) []T {
	x := make([]T, (len(s.x)+nr-1)/nr*nr)
	copy(x, s.x)
	f(&Span[T]{X: first(x), N: len(x), A: s.a, B: s.b, C: s.c})
	return x[:len(s.x)]
}

// randomFloat returns a number of any magnitude, with random bits.
func randomFloat[T Float](rng *rand.Rand) T {
	for {
		var v T
		if digits[T]() == 24 {
			v = T(math.Float32frombits(rng.Uint32()))
		} else {
			v = T(math.Float64frombits(rng.Uint64()))
		}
		if v == v && !math.IsInf(float64(v), 0) {
			return v
		}
	}
}

// positive returns a positive number of any magnitude.
func positive[T Float](rng *rand.Rand) T {
	return max(T(math.Abs(float64(randomFloat[T](rng)))), smallestOf[T]())
}

// nearby returns c, its neighboring floating-point numbers, and random numbers near c.
func nearby[T Float](rng *rand.Rand, c float64) []T {
	list := []T{T(c), next(T(c), 1), next(T(c), -1)}
	for range 4 {
		v := c * math.Exp(math.Ldexp(rng.NormFloat64(), -rng.IntN(50)))
		list = append(list, T(max(min(v, float64(maximum[T]())), -float64(maximum[T]()))))
	}
	return list
}

// next returns the floating-point number next to v, in the given direction.
func next[T Float](v T, direction int) T {
	to := math.Inf(direction)
	if digits[T]() == 24 {
		return T(math.Nextafter32(float32(v), float32(to)))
	}
	return T(math.Nextafter(float64(v), to))
}

func smallestOf[T Float]() T { return next[T](0, 1) }

func logSample[T Float](rng *rand.Rand) *sample[T] {
	s := newSample("log", func(k Kernels[T]) func(*Span[T]) { return k.Log }, 0.51, 0, 0, T(0))
	want := func(x float64) *big.Float { return bigLog(newBig(x)) }
	for range 500 {
		s.add(want, positive[T](rng), T(math.Exp(rng.NormFloat64())), T(0.5+1.5*rng.Float64()))
	}
	for _, c := range []float64{1, math.Sqrt2, math.Sqrt2 / 2, 2, 0.5, math.E, 1024, float64(maximum[T]()) / 2, 0x1p-126, 0x1p-1022} {
		if T(c) == 0 {
			continue
		}
		for range 20 {
			for _, x := range nearby[T](rng, c) {
				s.add(want, x)
			}
		}
	}
	for v := smallestOf[T](); float64(v) < 1e-30; v *= 3 {
		s.add(want, v)
	}
	s.add(want, maximum[T](), smallestOf[T]())
	return s
}

func powSamples[T Float](rng *rand.Rand) []*sample[T] {
	low, high := -746.0, 710.0
	if digits[T]() == 24 {
		low, high = -104, 89
	}
	pow := func(k Kernels[T]) func(*Span[T]) { return k.Pow }
	var list []*sample[T]
	for _, a := range []float64{1, -1, 2, 0.5, -0.5, 1.0 / 3, 3, -2.25, 7.7, -40, 1e3, -1e5, 1e8, -3e12, 1e-3, -1e-10, 1e-300, 1e17} {
		s := newSample("pow", pow, 0.9, T(a), 1, 0)
		a := float64(s.a)
		if a == 0 {
			continue
		}
		want := func(x float64) *big.Float { return bigPow(newBig(x), a) }
		for range 60 {
			s.add(want, positive[T](rng))
			if x := T(math.Exp((low + (high-low)*rng.Float64()) / a)); x > 0 && x <= maximum[T]() {
				s.add(want, x)
			}
			s.add(want, T(0.5+1.5*rng.Float64()), T(1+rng.NormFloat64()*0x1p-20))
		}
		for _, y := range []float64{709.78, 709.79, 88.72, 88.73, -708.4, -745.13, -87.3, -103.97} {
			if x := T(math.Exp(y / a)); x > 0 && x <= maximum[T]() {
				s.add(want, x, max(next(x, -1), smallestOf[T]()), min(next(x, 1), maximum[T]()))
			}
		}
		s.add(want, nearby[T](rng, 1)...)
		s.add(want, maximum[T](), smallestOf[T](), T(math.Sqrt2), 3*smallestOf[T]())
		list = append(list, s)
	}
	// Such powers occur in a rational quadratic kernel, (1 + x/(2aσ²))^−a.
	for _, a := range []float64{0.5, 1, 30, 1e4, 1e9, 1e14} {
		for _, c := range []float64{1, 0.3} {
			s := newSample("pow of a sum", pow, 0.9, T(-a), T(0.37/a), T(c))
			want := func(x float64) *big.Float {
				base := new(big.Float).Mul(newBig(x), newBig(float64(s.b)))
				return bigPow(base.Add(base, newBig(float64(s.c))), float64(s.a))
			}
			for range 100 {
				s.add(want, T(math.Exp(10*rng.NormFloat64())), T(rng.ExpFloat64()))
			}
			s.add(want, 0, smallestOf[T]())
			list = append(list, s)
		}
	}
	return list
}

func tanhSample[T Float](rng *rand.Rand) *sample[T] {
	s := newSample("tanh", func(k Kernels[T]) func(*Span[T]) { return k.Tanh }, 1, 1, 0, T(0))
	for range 300 {
		s.add(bigTanh, T(rng.NormFloat64()), T(0.3*rng.NormFloat64()), T(25*rng.Float64()), T(math.Ldexp(rng.NormFloat64(), -rng.IntN(60))))
	}
	for range 100 {
		s.add(bigTanh, randomFloat[T](rng))
	}
	for n := range 100 {
		s.add(bigTanh, nearby[T](rng, float64(n)*math.Ln2/4)...)
	}
	for _, c := range []float64{22, 19.06, 9.01, 0.55, 0.17} {
		s.add(bigTanh, nearby[T](rng, c)...)
	}
	s.add(bigTanh, maximum[T](), -maximum[T](), smallestOf[T](), -smallestOf[T]())
	return s
}

func trigSamples[T Float](rng *rand.Rand) []*sample[T] {
	var list []*sample[T]
	for phase, s := range []*sample[T]{
		newSample("sin", func(k Kernels[T]) func(*Span[T]) { return k.Sin }, 0.8, 1, 0, T(0)),
		newSample("cos", func(k Kernels[T]) func(*Span[T]) { return k.Cos }, 0.8, 1, 0, T(0)),
	} {
		want := func(x float64) *big.Float { return bigSin(x, int64(phase)) }
		for range 300 {
			s.add(want, T(rng.NormFloat64()), T(10*rng.NormFloat64()), T(1e5*rng.NormFloat64()), T(reduceLimit*(2*rng.Float64()-1)))
		}
		for range 200 {
			s.add(want, randomFloat[T](rng))
			s.add(want, T(math.Ldexp(rng.NormFloat64(), 30+rng.IntN(90))))
		}
		// Arguments near multiples of ¼π.
		for range 400 {
			n := math.Round(math.Ldexp(rng.Float64(), rng.IntN(32)))
			multiple, _ := new(big.Float).Mul(bigPi(), newBig(n/4)).Float64()
			s.add(want, T(multiple), next(T(multiple), 1), next(T(multiple), -1))
		}
		// Of all float64, 6381956970095103·2⁷⁹⁷ is nearest to a multiple of ½π; of all float32, 16367173·2⁷² is
		// nearest (Muller et al. 2018, section 10.2). nearMultiples finds such numbers below 2³¹.
		if digits[T]() == 53 {
			s.add(want, T(math.Ldexp(6381956970095103, 797)))
		} else {
			s.add(want, T(math.Ldexp(16367173, 72)))
		}
		s.add(want, nearMultiples[T](31)...)
		for _, c := range []float64{reduceLimit, math.Pi / 4, 0x1p-27} {
			s.add(want, nearby[T](rng, c)...)
			s.add(want, nearby[T](rng, -c)...)
		}
		s.add(want, maximum[T](), -maximum[T](), smallestOf[T](), -smallestOf[T]())
		list = append(list, s)
	}
	return list
}

// nearMultiples returns numbers m·2ᵉ < 2^maxExp in T that are very near to a multiple n·½π, one for
// each exponent e. m/n is a convergent of the continued fraction of ½π/2ᵉ.
func nearMultiples[T Float](maxExp int) []T {
	var list []T
	halfPi := new(big.Float).SetMantExp(bigPi(), -1)
	one := big.NewInt(1)
	for e := 1 - digits[T](); e+digits[T]() <= maxExp; e++ {
		x := new(big.Float).SetMantExp(halfPi, -e)
		p0, q0, p1, q1 := big.NewInt(0), one, one, big.NewInt(0)
		var best *big.Int
		for p1.BitLen() <= digits[T]() {
			quotient, _ := x.Int(nil)
			p0, p1 = p1, new(big.Int).Add(new(big.Int).Mul(quotient, p1), p0)
			q0, q1 = q1, new(big.Int).Add(new(big.Int).Mul(quotient, q1), q0)
			if p1.BitLen() <= digits[T]() {
				best = p1
			}
			x.Sub(x, new(big.Float).SetPrec(x.Prec()).SetInt(quotient))
			x.Quo(new(big.Float).SetPrec(x.Prec()).SetInt64(1), x)
		}
		if best != nil && best.Sign() > 0 {
			m, _ := new(big.Float).SetInt(best).Float64()
			list = append(list, T(math.Ldexp(m, e)))
		}
	}
	return list
}

// TestElementarySpecials checks zeros, infinities, NaN, numbers outside the domain, and the use of A, B and C.
func TestElementarySpecials(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testElementarySpecials(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testElementarySpecials(t, tier.F32) })
	})
}

func testElementarySpecials[T Float](t *testing.T, k Kernels[T]) {
	nan, inf, zero := T(math.NaN()), T(math.Inf(1)), T(math.Copysign(0, -1))
	huge, tiny := maximum[T](), smallestOf[T]()
	for _, c := range []struct {
		name    string
		f       func(*Span[T])
		a, b, c T
		x, want []T
	}{
		{"log", k.Log, 0, 0, 0, []T{0, zero, inf, -inf, nan, -1, -tiny, 1}, []T{-inf, -inf, inf, nan, nan, nan, nan, 0}},
		{"pow 2", k.Pow, 2, 1, 0, []T{0, zero, inf, -inf, nan, -2, 1, 3, huge, tiny}, []T{0, 0, inf, nan, nan, nan, 1, 9, inf, 0}},
		{"pow −2", k.Pow, -2, 1, 0, []T{0, zero, inf, -inf, nan, -2, 1, huge, tiny}, []T{inf, inf, 0, nan, nan, nan, 1, 0, inf}},
		{"pow 0", k.Pow, 0, 1, 0, []T{0, zero, inf, -inf, nan, -2, 1, huge, tiny}, []T{1, 1, 1, nan, nan, nan, 1, 1, 1}},
		{"pow −0", k.Pow, zero, 1, 0, []T{0, inf, 5, nan}, []T{1, 1, 1, nan}},
		{"pow 1", k.Pow, 1, 1, 0, []T{0, inf, 5, huge, tiny, 1}, []T{0, inf, 5, huge, tiny, 1}},
		{"pow of tiny", k.Pow, tiny, 1, 0, []T{0, inf, 5, huge, tiny}, []T{0, inf, 1, 1, 1}},
		{"pow of −tiny", k.Pow, -tiny, 1, 0, []T{0, inf, 5, huge, tiny}, []T{inf, 0, 1, 1, 1}},
		{"pow of huge", k.Pow, huge, 1, 0, []T{0, inf, 1, next(T(1), 1), next(T(1), -1), 2}, []T{0, inf, 1, inf, 0, inf}},
		{"pow of Inf", k.Pow, inf, 1, 0, []T{0, inf, 1, next(T(1), 1), next(T(1), -1)}, []T{0, inf, 1, inf, 0}},
		{"pow of −Inf", k.Pow, -inf, 1, 0, []T{0, inf, 1, next(T(1), 1), next(T(1), -1)}, []T{inf, 0, 1, 0, inf}},
		{"pow of NaN", k.Pow, nan, 1, 0, []T{0, inf, 1, 2, nan}, []T{nan, nan, nan, nan, nan}},
		{"pow of 2x+1", k.Pow, -1, 2, 1, []T{0, 0.5, 1.5, inf, -0.5, -1}, []T{1, 0.5, 0.25, 0, inf, nan}},
		{"tanh", k.Tanh, 1, zero, 0, []T{0, zero, inf, -inf, nan, huge, -huge, tiny}, []T{0, zero, 1, -1, nan, 1, -1, tiny}},
		{"tanh 2x+1", k.Tanh, 2, 1, 0, []T{-0.5, 50, -50}, []T{0, 1, -1}},
		{"sin", k.Sin, 1, 0, 0, []T{0, zero, inf, -inf, nan, tiny, -tiny}, []T{0, zero, nan, nan, nan, tiny, -tiny}},
		{"sin 0x", k.Sin, 0, 0, 0, []T{3, -3, inf, nan}, []T{0, zero, nan, nan}},
		{"cos", k.Cos, 1, 0, 0, []T{0, zero, inf, -inf, nan, tiny, -tiny}, []T{1, 1, nan, nan, nan, 1, 1}},
		{"cos 2x", k.Cos, 2, 0, 0, []T{0, T(math.Ldexp(1, -30))}, []T{1, 1}},
	} {
		x := make([]T, (len(c.x)+k.NR-1)/k.NR*k.NR)
		copy(x, c.x)
		c.f(&Span[T]{X: first(x), N: len(x), A: c.a, B: c.b, C: c.c})
		for i, want := range c.want {
			if got := x[i]; got != want && (got == got || want == want) || math.Signbit(float64(got)) != math.Signbit(float64(want)) && want == want {
				t.Errorf("%s of %v is %v, want %v", c.name, c.x[i], got, want)
			}
		}
	}
}

// TestElementaryTiers requires the float64 results of the tiers to equal the portable results bit by bit; float32
// results may differ by one ulp. Sin and Cos are also tested with a large argument at each position of a span.
func TestElementaryTiers(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testElementaryTiers(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testElementaryTiers(t, tier.F32) })
	})
}

func testElementaryTiers[T Float](t *testing.T, k Kernels[T]) {
	const seed = 22
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	g := genericKernels[T]()
	exact := digits[T]() == 53
	for _, c := range []struct {
		name      string
		got, want func(*Span[T])
		draw      func() T
	}{
		{"log", k.Log, g.Log, func() T { return randomFloat[T](rng) }},
		{"pow", k.Pow, g.Pow, func() T { return T(math.Exp(20 * rng.NormFloat64())) }},
		{"tanh", k.Tanh, g.Tanh, func() T { return T(3 * rng.NormFloat64()) }},
		{"sin", k.Sin, g.Sin, func() T { return T(100 * rng.NormFloat64()) }},
		{"cos", k.Cos, g.Cos, func() T { return T(100 * rng.NormFloat64()) }},
	} {
		compare := func(x []T, a, b, shift T) {
			t.Helper()
			got, want := append([]T{77}, append(x, 77)...), append([]T{}, x...)
			span := &Span[T]{X: &got[1], N: len(x), A: a, B: b, C: shift}
			c.got(span)
			if span.X != &got[1] || span.N != len(x) || span.Flag != 0 {
				t.Fatalf("%s changes its span", c.name)
			}
			c.want(&Span[T]{X: &want[0], N: len(x), A: a, B: b, C: shift})
			if got[0] != 77 || got[len(x)+1] != 77 {
				t.Fatalf("%s writes past its %d elements", c.name, len(x))
			}
			for i, w := range want {
				v := got[i+1]
				if v == w || v != v && w != w || !exact && (next(v, 1) == w || next(v, -1) == w) {
					continue
				}
				t.Fatalf("%s: A=%v B=%v C=%v: element %d of %d, of %v, is %v, want %v", c.name, a, b, shift, i, len(x), x[i], v, w)
			}
		}
		for range 20 {
			x := make([]T, 40*k.NR)
			for i := range x {
				x[i] = c.draw()
			}
			compare(x, T(rng.NormFloat64()), T(rng.ExpFloat64()), T(rng.ExpFloat64()))
		}
		for n := k.NR; n <= 3*k.NR; n += k.NR {
			for i := range n {
				for _, beyond := range []T{reduceLimit, next(T(reduceLimit), 1), -1e30, maximum[T](), T(math.NaN()), T(math.Inf(1))} {
					x := make([]T, n)
					for j := range x {
						x[j] = c.draw()
					}
					x[i], x[rng.IntN(n)] = beyond, beyond
					compare(x, 1, 1, 0)
				}
			}
		}
	}
}

// BenchmarkElementary reports the time per element for spans of 1024 elements.
func BenchmarkElementary(b *testing.B) {
	for _, tier := range Tiers() {
		if tier.Missing() != "" {
			continue
		}
		benchmarkElementary(b, tier.Name+"/float64", tier.F64)
		benchmarkElementary(b, tier.Name+"/float32", tier.F32)
	}
}

func benchmarkElementary[T Float](b *testing.B, name string, k Kernels[T]) {
	const n = 1024
	source, x := make([]T, n), make([]T, n)
	for i := range source {
		source[i] = T(float64(i+1) / 100)
	}
	for _, c := range []struct {
		name string
		f    func(*Span[T])
		a    T
	}{{"copy", func(*Span[T]) {}, 0}, {"sqrt", k.Sqrt, 0}, {"exp", k.Exp, -1}, {"log", k.Log, 0}, {"pow", k.Pow, -1.5}, {"tanh", k.Tanh, 1}, {"sin", k.Sin, 1}, {"cos", k.Cos, 1}} {
		b.Run(name+"/"+c.name, func(b *testing.B) {
			for range b.N {
				copy(x, source)
				c.f(&Span[T]{X: &x[0], N: n, A: c.a, B: 1})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
}

package elementary

import (
	"math"
	"math/rand/v2"
	"testing"
)

// ulps returns the distance of x from a reference, in ulps.
func ulps(x, reference float64) float64 {
	if x == reference || x != x && reference != reference {
		return 0
	}
	return math.Abs(x-reference) / (math.Nextafter(math.Abs(reference), math.Inf(1)) - math.Abs(reference))
}

// TestAgainstMath compares the functions with package math, whose errors are less than 2 ulps. The error of
// math.Pow grows with the power, so that only powers between 1/8 and 8 are compared.
func TestAgainstMath(t *testing.T) {
	const seed = 30
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 100000 {
		x := rng.NormFloat64() * math.Exp(2*rng.NormFloat64())
		base, a := math.Exp(rng.NormFloat64()), 16*rng.Float64()-8
		for _, c := range []struct {
			name             string
			got, want, bound float64
		}{
			{"exp", Exp(x), math.Exp(x), 3},
			{"log", Log(math.Abs(x)), math.Log(math.Abs(x)), 2},
			{"tanh", Tanh(x), math.Tanh(x), 4},
			{"pow", Pow(base, a), math.Pow(base, a), 32},
		} {
			if d := ulps(c.got, c.want); !(d <= c.bound) {
				t.Fatalf("%s of %x (power %x of %x): %x, math has %x, %g ulps away", c.name, x, a, base, c.got, c.want, d)
			}
		}
	}
}

// TestSpecialValues compares exact results with the results of package math.
func TestSpecialValues(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e300, -1e300, 710, -746, 5e-324, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, x := range special {
		exact := x == 0 || math.IsInf(x, 0) || math.Abs(x) > 709
		if got, want := Exp(x), math.Exp(x); ulps(got, want) > 3 || exact && got != want {
			t.Errorf("exp(%g) is %g, want %g", x, got, want)
		}
		want := math.Log(x)
		if x == 5e-324 {
			want = -1074 * math.Ln2 // package math returns −709.09 on amd64
		}
		if got := Log(x); ulps(got, want) > 2 || x == 1 && got != 0 {
			t.Errorf("log(%g) is %g, want %g", x, got, want)
		}
		if got, want := Tanh(x), math.Tanh(x); ulps(got, want) > 4 || math.Signbit(got) != math.Signbit(want) && x == x {
			t.Errorf("tanh(%g) is %g, want %g", x, got, want)
		}
	}
	for x := -12.0; x <= 12; x++ {
		for a := 0.0; a <= 12; a++ {
			exact := 1.0
			for range int(a) {
				exact *= x
			}
			if got := Pow(x, a); got != exact {
				t.Errorf("%g to the power %g is %x, want %x", x, a, got, exact)
			}
		}
	}
	for _, c := range [][3]float64{
		{0, 2, 0}, {0, -1, math.Inf(1)}, {math.Inf(1), 0.5, math.Inf(1)}, {math.Inf(1), -2, 0}, {4, 0.5, 2}, {2, -1, 0.5},
		{-2, 0.5, math.NaN()}, {0, 0, 1}, {math.NaN(), 0, 1}, {math.NaN(), 2, math.NaN()}, {2, math.NaN(), math.NaN()}, {2, 2000, math.Inf(1)}, {2, -1074, 5e-324},
	} {
		if got := Pow(c[0], c[1]); ulps(got, c[2]) != 0 {
			t.Errorf("%g to the power %g is %x, want %x", c[0], c[1], got, c[2])
		}
	}
}

// TestNormalIsNormFloat64 compares Normal with package rand, whose tail differs by rounding.
func TestNormalIsNormFloat64(t *testing.T) {
	const seed = 30
	t.Logf("seed %d", seed)
	r, reference := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 0))
	tails := 0
	for i := range 1000000 {
		x, want := Normal(r), reference.NormFloat64()
		if math.Abs(want) > tailBegins {
			tails++
			if ulps(x, want) <= 4 {
				continue
			}
		}
		if x != want {
			t.Fatalf("number %d is %x, want %x", i, x, want)
		}
	}
	if tails < 300 {
		t.Errorf("only %d of 1000000 numbers are in the tail", tails)
	}
}

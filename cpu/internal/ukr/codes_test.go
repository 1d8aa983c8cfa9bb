package ukr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestCodes compares the products with codes with their definition, exactly, and the
// codes of numbers with the nearest integers.
func TestCodes(t *testing.T) {
	usable(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testCodes(t, &tier.F64) })
		t.Run("float32", func(t *testing.T) { testCodes(t, &tier.F32) })
	})
}

func testCodes[T Float](t *testing.T, k *Kernels[T]) {
	const seed = 43
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for cols, f := range map[int]func(*Codes[T]){1: k.Codes1, 2: k.Codes2} {
		for n := range 4 {
			// Few codes are large, so that the sums are exact in float32.
			ld := n*CodeSpan + CodeSpan + rng.IntN(5)
			z := make([]uint16, (n+1)*CodeRows*CodeSpan)
			for i := range z {
				if z[i] = uint16(rng.IntN(1000)); rng.IntN(64) == 0 {
					z[i] = 65535 - z[i]
				}
			}
			x, y, a := integers[T](rng, 2*ld), integers[T](rng, 2*ld), integers[T](rng, 2*ld)
			b := integers[T](rng, 2*CodeRows*k.CodeLanes)
			wantX, sums := slices.Clone(x), make([]T, cols*CodeRows)
			for c := range cols {
				for r := range CodeRows {
					for _, v := range b[(c*CodeRows+r)*k.CodeLanes:][:k.CodeLanes] {
						sums[c*CodeRows+r] += v
					}
					for i := range n * CodeSpan {
						code := T(z[(i/CodeSpan*CodeRows+r)*CodeSpan+i%CodeSpan])
						sums[c*CodeRows+r] += code * y[c*ld+i]
						wantX[c*ld+i] += code * a[c*ld+r]
					}
				}
			}
			f(&Codes[T]{Z: &z[0], X: &x[0], Y: &y[0], A: &a[0], B: &b[0], N: n, Ld: ld})
			if !slices.Equal(x, wantX) {
				t.Fatalf("%d columns, n=%d: x is %v, want %v", cols, n, x, wantX)
			}
			for i, want := range sums {
				got := T(0)
				for _, v := range b[i*k.CodeLanes:][:k.CodeLanes] {
					got += v
				}
				if got != want {
					t.Fatalf("%d columns, n=%d: sum of row %d is %v, want %v", cols, n, i, got, want)
				}
			}
		}
	}

	for _, v := range []float64{0, 1, 0.5, 1.5, 2.5, 65534.5, 65535, 65535.5, -0.5, math.Copysign(0, -1), 1e-30,
		-0.51, 65535.51, -1e30, 1e30, math.Inf(1), math.Inf(-1), math.NaN()} {
		for place := range CodeSpan {
			const n = 2 * CodeSpan
			x, z := make([]T, n), make([]uint16, 2*CodeRows*CodeSpan)
			for i := range x {
				x[i] = T(rng.IntN(65536))
			}
			at := place + CodeSpan*(place%2)
			x[at] = T(v)
			want := slices.Clone(x)
			s := Span[T]{X: &x[0], Z: (*T)(unsafe.Pointer(&z[0])), N: n, A: 1}
			k.Encode(&s)
			outside := !(v >= -0.5 && v <= 65535.5)
			if v == -0.51 || v == 65535.51 {
				outside = float64(T(v)) < -0.5 || float64(T(v)) > 65535.5
			}
			if (s.Flag != 0) != outside {
				t.Fatalf("%v at %d: flag %d", v, at, s.Flag)
			}
			for i, w := range want {
				code := math.RoundToEven(min(max(float64(w), 0), 65535))
				got := z[i/CodeSpan*CodeRows*CodeSpan+i%CodeSpan]
				if (i != at || !outside) && float64(got) != code {
					t.Fatalf("%v is coded as %d, want %v", w, got, code)
				}
			}
			if slices.ContainsFunc(z[CodeSpan:CodeRows*CodeSpan], func(c uint16) bool { return c != 0 }) {
				t.Fatal("another row was written")
			}
		}
	}
	// A·x + B.
	x, z := []T{0: -1, CodeSpan - 1: 1}, make([]uint16, CodeSpan)
	k.Encode(&Span[T]{X: &x[0], Z: (*T)(unsafe.Pointer(&z[0])), N: CodeSpan, A: 65535.0 / 2, B: 65535.0 / 2})
	if got := fmt.Sprint(z[0], z[1], z[CodeSpan-1]); got != "0 32768 65535" {
		t.Fatalf("-1, 0 and 1 are coded as %s", got)
	}
}

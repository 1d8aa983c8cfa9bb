package ukr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestCodes compares products of codes with their definition, and checks that codes are the nearest integers.
func TestCodes(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
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
			// Only a few of the codes are large, so that the sums are exact in float32.
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
		for position := range CodeSpan {
			const n = 2 * CodeSpan
			x, z := make([]T, n), make([]uint16, 2*CodeRows*CodeSpan)
			for i := range x {
				x[i] = T(rng.IntN(65536))
			}
			index := position + CodeSpan*(position%2)
			x[index] = T(v)
			want := slices.Clone(x)
			s := Span[T]{X: &x[0], Z: (*T)(unsafe.Pointer(&z[0])), N: n, A: 1}
			k.Encode(&s)
			outOfRange := !(v >= -0.5 && v <= 65535.5)
			if v == -0.51 || v == 65535.51 {
				outOfRange = float64(T(v)) < -0.5 || float64(T(v)) > 65535.5
			}
			if (s.Flag != 0) != outOfRange {
				t.Fatalf("%v at %d: flag %d", v, index, s.Flag)
			}
			for i, w := range want {
				code := math.RoundToEven(min(max(float64(w), 0), 65535))
				got := z[i/CodeSpan*CodeRows*CodeSpan+i%CodeSpan]
				if (i != index || !outOfRange) && float64(got) != code {
					t.Fatalf("%v is coded as %d, want %v", w, got, code)
				}
			}
			if slices.ContainsFunc(z[CodeSpan:CodeRows*CodeSpan], func(c uint16) bool { return c != 0 }) {
				t.Fatal("another row was written")
			}
		}
	}
	// Encode computes A·x + B.
	x, z := []T{0: -1, CodeSpan - 1: 1}, make([]uint16, CodeSpan)
	k.Encode(&Span[T]{X: &x[0], Z: (*T)(unsafe.Pointer(&z[0])), N: CodeSpan, A: 65535.0 / 2, B: 65535.0 / 2})
	if got := fmt.Sprint(z[0], z[1], z[CodeSpan-1]); got != "0 32768 65535" {
		t.Fatalf("-1, 0 and 1 are coded as %s", got)
	}
}

// TestGemm16 compares sums of products of 16-bit integers, near 2³¹, with their definition. The factors are powers
// of two, so that only the conversion to float32 and the addition to C round.
func TestGemm16(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testGemm16s(t, &tier.F64) })
		t.Run("float32", func(t *testing.T) { testGemm16s(t, &tier.F32) })
	})
}

func testGemm16s[T Float](t *testing.T, k *Kernels[T]) {
	if k.Gemm16 == nil {
		return // this tier has no Gemm16, because its Gemm in float32 is as fast
	}
	const seed = 47
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, depth := range []int{0, 1, 2, 3, 4, 5, 8, 31, 128} {
		for _, m := range []int{1, k.MR - 1, k.MR, k.MR + 1, 3*k.MR - 2} {
			for _, n := range []int{1, k.NR/2 + 1, k.NR - 1, k.NR} {
				for _, beta := range []T{0, 1, -2} {
					testGemm16(t, k, rng, depth, m, n, beta)
				}
			}
		}
	}
}

func testGemm16[T Float](t *testing.T, k *Kernels[T], rng *rand.Rand, depth, m, n int, beta T) {
	t.Helper()
	count := (m + k.MR - 1) / k.MR
	limit := 32767
	if depth > 1 {
		limit = int(math.Sqrt(float64(math.MaxInt32 / (2 * depth))))
	}
	pairs := func(width int) (*T, []int16) {
		words := make([]T, max(1, width*depth))
		list := unsafe.Slice((*int16)(unsafe.Pointer(&words[0])), 2*len(words))
		for i := range list {
			if list[i] = int16(rng.IntN(2*limit+1) - limit); rng.IntN(4) == 0 {
				list[i] = int16(limit)
			}
		}
		return &words[0], list
	}
	aw, a := pairs(count * k.MR)
	bw, b := pairs(k.NR)
	powers := func(n int) []T {
		p := make([]T, n)
		for i := range p {
			p[i] = T(math.Ldexp(1, rng.IntN(9)-4))
		}
		return p
	}
	r, s := powers(count*k.MR), powers(k.NR)
	ldc := n + 3
	c := integers[T](rng, m*ldc)
	want := slices.Clone(c)
	const alpha = -0.5
	for i := range m {
		for j := range n {
			sum := 0
			for p := range depth {
				for h := range 2 {
					sum += int(a[2*((i/k.MR*depth+p)*k.MR+i%k.MR)+h]) * int(b[2*(p*k.NR+j)+h])
				}
			}
			if sum != int(int32(sum)) {
				t.Fatalf("the test's sum %d is too large", sum)
			}
			v := float64(T(sum)) * alpha * float64(r[i]*s[j])
			if beta != 0 {
				v += float64(beta * c[i*ldc+j])
			}
			want[i*ldc+j] = T(v)
		}
	}
	k.Gemm16(&Scaled[T]{Tile: Tile[T]{
		A: aw, B: bw, C: &c[0], K: depth, M: m, N: n, Ldc: ldc, Lda: k.MR * depth, Alpha: alpha, Beta: beta,
	}, R: &r[0], S: &s[0]})
	for i := range c {
		if c[i] != want[i] {
			t.Fatalf("depth %d, %d×%d, β = %g: element %d is %g, want %g", depth, m, n, beta, i, c[i], want[i])
		}
	}
}

// TestRound16 checks that numbers are rounded to the nearest integers, ties to even, and that each
// element of x is replaced by the value of its integer.
func TestRound16(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		if tier.F32.Round16 == nil {
			return
		}
		const n, seed = 3 * CodeSpan, 53
		rng := rand.New(rand.NewPCG(seed, 0))
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.IntN(4*32767)-2*32767) / 4
		}
		copy(x, []float32{0.5, -0.5, 1.5, -1.5, 2.5, 32767, -32767, 0, float32(math.Copysign(0, -1)), 1e-30})
		initial, z := slices.Clone(x), make([]int16, n+1)
		z[n] = 99
		tier.F32.Round16(&Span[float32]{X: &x[0], Z: (*float32)(unsafe.Pointer(&z[0])), N: n, A: 0.5, B: 2})
		for i, v := range initial {
			want := math.RoundToEven(0.5 * float64(v))
			if float64(z[i]) != want || float64(x[i]) != 2*want {
				t.Errorf("%g is %d, %g; want %g, %g", v, z[i], x[i], want, 2*want)
			}
		}
		if z[n] != 99 {
			t.Error("more than n integers were written")
		}
	})
}

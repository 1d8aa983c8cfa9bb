package ukr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// TestLanesAreTheTier compares the virtual machine in portable Go with the tiers that implement it in assembly.
// Every function of Kernels must return the same bits for random and special numbers, and for all sizes near the
// lengths of vectors and unrolled loops. NaNs count as equal, because processors differ in their sign and payload.
func TestLanesAreTheTier(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		if tier.Name == "avx512" || tier.Name == "generic" {
			t.Skip("not the virtual machine")
		}
		t.Run("float64", func(t *testing.T) { testLanes(t, tier.F64, laneKernels[float64]()) })
		t.Run("float32", func(t *testing.T) { testLanes(t, tier.F32, laneKernels[float32]()) })
	})
}

// A lanesTest calls the functions of two Kernels with copies of the same arrays.
type lanesTest[T Float] struct {
	*testing.T
	rng     *rand.Rand
	special bool // whether there are NaN, Inf, zeros and subnormal numbers
}

func testLanes[T Float](t *testing.T, tier, lanes Kernels[T]) {
	const seed = 30
	t.Logf("seed %d", seed)
	if tier.MR != lanes.MR || tier.NR != lanes.NR || tier.CodeLanes != lanes.CodeLanes {
		t.Fatalf("tiles of %d×%d with %d lanes of codes, want %d×%d with %d", tier.MR, tier.NR, tier.CodeLanes, lanes.MR, lanes.NR, lanes.CodeLanes)
	}
	for _, special := range []bool{false, true} {
		l := &lanesTest[T]{t, rand.New(rand.NewPCG(seed, 0)), special}
		l.tiles(tier, lanes)
		l.direct(tier, lanes)
		l.spans(tier, lanes)
		l.vectors(tier, lanes)
		l.codes(tier, lanes)
	}
}

// numbers returns n numbers whose magnitudes differ, so that a sum in another order is rounded differently.
func (l *lanesTest[T]) numbers(n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(l.rng.NormFloat64() * math.Exp(3*l.rng.NormFloat64()))
		if l.special && l.rng.IntN(12) == 0 {
			smallest := T(math.SmallestNonzeroFloat64)
			if !isFloat64[T]() {
				smallest = math.SmallestNonzeroFloat32
			}
			x[i] = []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1)), 0, -T(0), smallest * T(l.rng.IntN(1000)), T(math.Copysign(0, -1)), T(l.rng.NormFloat64() * 1e30)}[l.rng.IntN(8)]
		}
	}
	return x
}

// requireEqual calls f for both Kernels with copies of the arrays, and compares the results.
func (l *lanesTest[T]) requireEqual(name string, tier, lanes Kernels[T], arrays [][]T, f func(k Kernels[T], a [][]T) int) {
	l.Helper()
	copies := func() [][]T {
		c := make([][]T, len(arrays))
		for i, a := range arrays {
			c[i] = sliceAt(aligned64[T](len(a)+1), 0, len(a)+1)[:len(a)]
			copy(c[i], a)
		}
		return c
	}
	got, want := copies(), copies()
	if g, w := f(tier, got), f(lanes, want); (g != 0) != (w != 0) {
		l.Fatalf("%s: flag %d, want %d", name, g, w)
	}
	for a := range want {
		for i, w := range want[a] {
			g := got[a][i]
			if math.Float64bits(float64(g)) != math.Float64bits(float64(w)) && (g == g || w == w) {
				l.Fatalf("%s: element %d of array %d is %x, the virtual machine's is %x", name, i, a, g, w)
			}
		}
	}
}

// aligned64 returns memory for n elements that is aligned to 64 bytes.
func aligned64[T Float](n int) *T {
	b := make([]T, n+64)
	for uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
		b = b[1:]
	}
	return &b[0]
}

// ptr returns the address of the first element of a.
func ptr[T any](a []T) *T { return unsafe.SliceData(a) }

func (l *lanesTest[T]) factor() T { return []T{1, -1, 0.3, -1.7}[l.rng.IntN(4)] }
func (l *lanesTest[T]) beta() T   { return []T{0, 1, -0.7}[l.rng.IntN(3)] }

func (l *lanesTest[T]) tiles(tier, lanes Kernels[T]) {
	mr, nr := lanes.MR, lanes.NR
	for _, c := range []struct {
		name   string
		kernel func(k Kernels[T]) func(*Tile[T])
	}{
		{"gemm", func(k Kernels[T]) func(*Tile[T]) { return k.Gemm }},
		{"sqDist", func(k Kernels[T]) func(*Tile[T]) { return k.SqDist }},
		{"l1", func(k Kernels[T]) func(*Tile[T]) { return k.L1 }},
		{"chi2", func(k Kernels[T]) func(*Tile[T]) { return k.Chi2 }},
	} {
		for m := 1; m <= 2*mr; m++ {
			n, k := 1+l.rng.IntN(nr), l.rng.IntN(23)
			a, b := l.numbers((m+mr-1)/mr*mr*k), l.numbers(nr*k)
			if c.name == "chi2" {
				absolute(a)
				absolute(b)
			}
			alpha, beta := l.factor(), l.beta()
			l.requireEqual(c.name, tier, lanes, [][]T{a, b, l.numbers(m * n)}, func(kernels Kernels[T], s [][]T) int {
				c.kernel(kernels)(&Tile[T]{A: ptr(s[0]), B: ptr(s[1]), C: ptr(s[2]), K: k, M: m, N: n, Ldc: n, Lda: mr * k, Alpha: alpha, Beta: beta})
				return 0
			})
		}
	}
	for k := range 12 {
		l.requireEqual("trsm", tier, lanes, [][]T{l.numbers((k + mr) * mr), l.numbers((k + mr) * nr)}, func(kernels Kernels[T], s [][]T) int {
			kernels.Trsm(&Tile[T]{A: ptr(s[0]), B: ptr(s[1]), K: k})
			return 0
		})
		offsets := make([]int32, k)
		for p := range offsets {
			offsets[p] = int32(nr * l.rng.IntN(5))
		}
		m, n := 1+l.rng.IntN(SparseRows), l.rng.IntN(4)
		l.requireEqual("sparse", tier, lanes, [][]T{l.numbers(k * SparseRows), l.numbers(5 * nr * 4), l.numbers(m * n * nr)}, func(kernels Kernels[T], s [][]T) int {
			kernels.Sparse(&Sparse[T]{A: ptr(s[0]), B: ptr(s[1]), C: ptr(s[2]), K: k, M: m, N: n, Ldc: n * nr, Ldb: 5 * nr, At: ptr(offsets)})
			return 0
		})
		l.requireEqual("unpack", tier, lanes, [][]T{l.numbers(8 * k * nr), make([]T, 8*k*nr)}, func(kernels Kernels[T], s [][]T) int {
			kernels.UnpackB(&Tile[T]{A: ptr(s[0]), C: ptr(s[1]), K: 8 * k, Ldc: 8 * k})
			return 0
		})
		for side, width := range []int{mr, nr} {
			l.requireEqual("pack", tier, lanes, [][]T{l.numbers(8 * k * width), make([]T, 8*k*width)}, func(kernels Kernels[T], s [][]T) int {
				pack := []Packer[T]{kernels.PackA, kernels.PackB}[side]
				pack.Transpose(&Tile[T]{A: ptr(s[0]), C: ptr(s[1]), K: 8 * k, Lda: 8 * k})
				pack.Copy(&Tile[T]{A: ptr(s[1]), C: ptr(s[0]), K: 4 * k, M: 2, Lda: 2 * width, Ldc: 4 * k * width})
				return 0
			})
		}
	}
}

func absolute[T Float](x []T) {
	for i, v := range x {
		x[i] = T(math.Abs(float64(v)))
	}
}

func (l *lanesTest[T]) direct(tier, lanes Kernels[T]) {
	for m := 1; m <= 2*lanes.NR+3; m++ {
		n, k := 1+l.rng.IntN(3*lanes.NR), l.rng.IntN(20)
		alpha, beta := l.factor(), l.beta()
		flag := l.rng.IntN(2)
		aData := l.numbers(max(m, n) * max(m, k))
		for _, part := range []Part{Whole, Lower, Upper} {
			cols := n
			if part != Whole {
				cols = m
			}
			l.requireEqual("gemmDirect", tier, lanes, [][]T{aData, l.numbers(k * cols), l.numbers(m * cols)}, func(kernels Kernels[T], s [][]T) int {
				d := &Direct[T]{A: ptr(s[0]), B: ptr(s[1]), C: ptr(s[2]), M: m, N: cols, K: k, Ars: k, Acs: 1, Ldb: cols, Ldc: cols, Part: part, Alpha: alpha, Beta: beta}
				if part == Whole {
					kernels.GemmDirect(d)
				} else {
					kernels.SyrkDirect(d)
				}
				return 0
			})
		}
		// The diagonal is so large that the solutions do not overflow.
		triangle := l.numbers(m * m)
		for i := range m {
			triangle[i*m+i] = T(5 + 3*l.rng.Float64())
			if l.special && l.rng.IntN(9) == 0 {
				triangle[i*m+i] = l.numbers(1)[0]
			}
		}
		for name, kernel := range map[string]func(k Kernels[T]) func(*Direct[T]){
			"trsmDirect": func(k Kernels[T]) func(*Direct[T]) { return k.TrsmDirect },
			"trmmDirect": func(k Kernels[T]) func(*Direct[T]) { return k.TrmmDirect },
		} {
			l.requireEqual(name, tier, lanes, [][]T{triangle, l.numbers(m * n)}, func(kernels Kernels[T], s [][]T) int {
				kernel(kernels)(&Direct[T]{A: ptr(s[0]), C: ptr(s[1]), M: m, N: n, Ars: m, Acs: 1, Ldc: n, Flag: flag, Alpha: alpha})
				return 0
			})
		}
		// The matrix is positive definite unless it has special numbers.
		square := l.numbers(m * m)
		for i := range m {
			for j := range m {
				square[i*m+j] = T(math.Tanh(float64(square[i*m+j])))
			}
			square[i*m+i] = T(2*m) + square[i*m+i]
		}
		if l.special && m%3 == 0 {
			square[m*m-1] = T([]float64{0x1p-130, 0x1p-1030, -1, 0x1p127, math.Inf(1)}[l.rng.IntN(5)])
		}
		lanes.PotrfDirect(&Direct[T]{C: ptr(append([]T(nil), square...)), M: m, Ldc: m})
		l.requireEqual("potrfDirect", tier, lanes, [][]T{square}, func(kernels Kernels[T], s [][]T) int {
			d := &Direct[T]{C: ptr(s[0]), M: m, Ldc: m}
			kernels.PotrfDirect(d)
			if d.Flag != 0 {
				clear(s[0]) // after a failure the contents of C are undefined
			} else {
				for i := range m { // the contents of the lower triangle are undefined
					clear(s[0][i*m : i*m+i])
				}
			}
			return d.Flag
		})
		l.requireEqual("transposeDirect", tier, lanes, [][]T{aData[:m*min(m, k)], make([]T, m*min(m, k))}, func(kernels Kernels[T], s [][]T) int {
			kernels.TransposeDirect(&Direct[T]{A: ptr(s[0]), C: ptr(s[1]), M: m, N: min(m, k), Ars: min(m, k), Acs: 1, Ldc: m})
			return 0
		})
	}
}

func (l *lanesTest[T]) spans(tier, lanes Kernels[T]) {
	type spans = func(k Kernels[T]) func(*Span[T])
	for _, c := range []struct {
		name    string
		kernel  spans
		a, b, c T
		scale   T // scale of x
	}{
		{"affine", func(k Kernels[T]) func(*Span[T]) { return k.Affine }, 1.3, -0.7, 0, 1},
		{"add", func(k Kernels[T]) func(*Span[T]) { return k.Add }, 0, 0, 0, 1},
		{"mul", func(k Kernels[T]) func(*Span[T]) { return k.Mul }, 0, 0, 0, 1},
		{"sqrt", func(k Kernels[T]) func(*Span[T]) { return k.Sqrt }, 0, 0, 0, 1},
		{"exp", func(k Kernels[T]) func(*Span[T]) { return k.Exp }, -0.9, 0.1, 0, 1},
		{"exp far", func(k Kernels[T]) func(*Span[T]) { return k.Exp }, 1, 0, 0, 300},
		{"log", func(k Kernels[T]) func(*Span[T]) { return k.Log }, 0, 0, 0, 1},
		{"pow", func(k Kernels[T]) func(*Span[T]) { return k.Pow }, 2.3, 0.5, 1.25, 1},
		{"pow inverse", func(k Kernels[T]) func(*Span[T]) { return k.Pow }, -1, 0.5, 1.25, 1},
		{"tanh", func(k Kernels[T]) func(*Span[T]) { return k.Tanh }, 0.4, 0.1, 0, 1},
		{"sin", func(k Kernels[T]) func(*Span[T]) { return k.Sin }, 1.7, 0, 0, 1},
		{"cos", func(k Kernels[T]) func(*Span[T]) { return k.Cos }, 1.7, 0, 0, 1},
		{"cos far", func(k Kernels[T]) func(*Span[T]) { return k.Cos }, 1, 0, 0, 1e8},
		{"distance", func(k Kernels[T]) func(*Span[T]) { return k.Distance }, 9, 0.01, 0, 1},
		{"distanceExp", func(k Kernels[T]) func(*Span[T]) { return k.DistanceExp }, 9, 0.01, -0.3, 1},
		{"distanceExpTo", func(k Kernels[T]) func(*Span[T]) { return k.DistanceExpTo }, 9, 0.01, -0.3, 1},
		{"maternExp", func(k Kernels[T]) func(*Span[T]) { return k.MaternExp }, 1.7, 1, 0.33, 1},
	} {
		for steps := range 40 {
			n := steps * lanes.NR
			x, y := l.numbers(n), l.numbers(n)
			for i := range x {
				x[i] *= c.scale
			}
			if strings.HasPrefix(c.name, "distance") {
				absolute(y) // y holds squared norms, which are ≥ 0
			}
			for i, v := range x {
				if v == 0 && c.name == "sqrt" {
					x[i] = 0 // replace −0: its square root is 0 on NEON and −0 on AVX2; a statistic is never −0
				}
			}
			l.requireEqual(c.name, tier, lanes, [][]T{x, y, make([]T, n)}, func(k Kernels[T], s [][]T) int {
				span := &Span[T]{X: ptr(s[0]), Y: ptr(s[1]), N: n, A: c.a, B: c.b, C: c.c, Z: ptr(s[2])}
				if n == 0 {
					span.X, span.Y, span.Z = new(T), new(T), new(T)
				}
				c.kernel(k)(span)
				return span.Flag
			})
		}
	}
}

func (l *lanesTest[T]) vectors(tier, lanes Kernels[T]) {
	for n := 1; n <= 10*lanes.NR+3; n++ {
		x, y, z := l.numbers(n), l.numbers(n), l.numbers(n)
		alpha, beta := l.factor(), l.beta()
		l.requireEqual("dot", tier, lanes, [][]T{x, y, {0}}, func(k Kernels[T], s [][]T) int {
			s[2][0] = k.Dot(n, ptr(s[0]), ptr(s[1]))
			k.Axpy(n, alpha, ptr(s[0]), ptr(s[1]))
			return 0
		})
		l.requireEqual("dotAxpy", tier, lanes, [][]T{x, y, z, {0}}, func(k Kernels[T], s [][]T) int {
			span := &Span[T]{X: ptr(s[0]), Y: ptr(s[1]), Z: ptr(s[2]), N: n, A: alpha}
			k.DotAxpy(span)
			s[3][0] = span.B
			return 0
		})
		for name, kernel := range map[string]func(k Kernels[T]) func(*Rows[T]){
			"dot4":      func(k Kernels[T]) func(*Rows[T]) { return k.Dot4 },
			"axpy4":     func(k Kernels[T]) func(*Rows[T]) { return k.Axpy4 },
			"dotAxpy8":  func(k Kernels[T]) func(*Rows[T]) { return k.DotAxpy8 },
			"dotAxpy12": func(k Kernels[T]) func(*Rows[T]) { return k.DotAxpy12 },
		} {
			l.requireEqual(name, tier, lanes, [][]T{x, y, l.numbers(MaxRows * n), l.numbers(MaxRows), make([]T, MaxRows)}, func(k Kernels[T], s [][]T) int {
				r := &Rows[T]{X: ptr(s[0]), Y: ptr(s[1]), Z: ptr(s[2]), N: n, Ldz: n}
				copy(r.A[:], s[3])
				kernel(k)(r)
				copy(s[4], r.B[:])
				return 0
			})
		}
		m := 1 + l.rng.IntN(11)
		a := l.numbers(m * n)
		l.requireEqual("gemv", tier, lanes, [][]T{a, x, l.numbers(m)}, func(k Kernels[T], s [][]T) int {
			k.Gemv(m, n, alpha, ptr(s[0]), n, ptr(s[1]), beta, ptr(s[2]))
			return 0
		})
		l.requireEqual("gemvT", tier, lanes, [][]T{a, l.numbers(m), y}, func(k Kernels[T], s [][]T) int {
			k.GemvT(m, n, alpha, ptr(s[0]), n, ptr(s[1]), beta, ptr(s[2]))
			return 0
		})
		l.requireEqual("ger", tier, lanes, [][]T{a, l.numbers(m), y}, func(k Kernels[T], s [][]T) int {
			k.Ger(m, n, alpha, ptr(s[1]), ptr(s[2]), ptr(s[0]), n)
			return 0
		})
		l.panels(tier, lanes, n)
		order := min(n, 40)
		triangle := l.numbers(order * order)
		for i := range order {
			triangle[i*order+i] += 3
		}
		for _, unit := range []bool{false, true} {
			l.requireEqual("trsv", tier, lanes, [][]T{triangle, x[:order]}, func(k Kernels[T], s [][]T) int {
				k.Trsv(order, unit, ptr(s[0]), order, 1, ptr(s[1]), 1)
				return 0
			})
			l.requireEqual("syr2k", tier, lanes, [][]T{l.numbers(m * n), a, l.numbers(m * m)}, func(k Kernels[T], s [][]T) int {
				k.Syr2k(unit, m, n, alpha, ptr(s[0]), n, ptr(s[1]), n, beta, ptr(s[2]), m)
				return 0
			})
		}
	}
}

// panels compares the functions on strips. If a tier processes more rows at a time than the virtual machine, one
// call of the tier must equal several calls of the virtual machine.
func (l *lanesTest[T]) panels(tier, lanes Kernels[T], n int) {
	if len(tier.GemvPanels) != 1 || tier.GemvPanels[0].Width != lanes.GemvPanels[0].Width {
		l.Fatalf("the strips of the tier are %v", tier.GemvPanels)
	}
	w, rows := lanes.GemvPanels[0].Width, max(tier.GemvPanels[0].Rows, panelRows)
	for _, pair := range []bool{false, true} {
		l.requireEqual("panel", tier, lanes, [][]T{l.numbers(rows * n), l.numbers(n * w), l.numbers(n * w), l.numbers(rows * w), l.numbers(rows * w)}, func(k Kernels[T], s [][]T) int {
			p := k.GemvPanels[0]
			for r := 0; r < rows; r += p.Rows {
				arg := &GemvPanel[T]{Z: ptr(s[0][r*n:]), V: ptr(s[1]), Sum: ptr(s[2]), X: ptr(s[3][r*w:]), Y: ptr(s[4][r*w:]), N: n, Ldz: n}
				if pair {
					p.ApplyPair(arg)
				} else {
					p.Apply(arg)
				}
			}
			return 0
		})
	}
}

func (l *lanesTest[T]) codes(tier, lanes Kernels[T]) {
	for n := range 5 {
		size := n * CodeSpan
		// One chunk more than the panel needs: the functions may prefetch beyond the panel.
		z := make([]uint16, (n+1)*CodeRows*CodeSpan)
		for i := range z {
			z[i] = uint16(l.rng.Uint32())
		}
		for cols := 1; cols <= 2; cols++ {
			l.requireEqual("codes", tier, lanes, [][]T{l.numbers(cols*size + 1), l.numbers(cols*size + 1), l.numbers(cols*max(size, CodeRows) + CodeRows), l.numbers(cols * CodeRows * lanes.CodeLanes)}, func(k Kernels[T], s [][]T) int {
				c := &Codes[T]{Z: ptr(z), X: ptr(s[0]), Y: ptr(s[1]), A: ptr(s[2]), B: ptr(s[3]), N: n, Ld: max(size, CodeRows)}
				if n == 0 {
					return 0
				}
				if cols == 1 {
					k.Codes1(c)
				} else {
					k.Codes2(c)
				}
				return 0
			})
		}
		if n == 0 {
			continue
		}
		l.requireEqual("encode", tier, lanes, [][]T{l.numbers(size), make([]T, n*CodeRows*CodeSpan)}, func(k Kernels[T], s [][]T) int {
			span := &Span[T]{X: ptr(s[0]), Z: ptr(s[1]), N: size, A: 20, B: 30000}
			k.Encode(span)
			if span.Flag != 0 {
				clear(s[1])
			}
			return span.Flag
		})
	}
}

// TestFMA32 compares the fused multiply-add in float32 with the exact sum, rounded once.
func TestFMA32(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	// Random bits cover all exponents; numbers with short significands cause ties.
	number := func() float32 {
		u := rng.Uint32() & []uint32{math.MaxUint32, 0xfff80000, 0xffc00001}[rng.IntN(3)]
		if rng.IntN(2) == 0 {
			u = u&^(0xff<<23) | uint32(120+rng.IntN(16))<<23
		}
		return math.Float32frombits(u)
	}
	inexact := 0
	for range 300000 {
		a, b, c := number(), number(), number()
		got := fma(a, b, c)
		if math.IsNaN(float64(a*b+c)) || math.IsInf(float64(a), 0) || math.IsInf(float64(b), 0) || math.IsInf(float64(c), 0) {
			if want := float32(math.FMA(float64(a), float64(b), float64(c))); got != want && (got == got || want == want) {
				t.Fatalf("%x·%x + %x is %x, want %x", a, b, c, got, want)
			}
			continue
		}
		exact := new(big.Float).SetPrec(600).SetFloat64(float64(a) * float64(b))
		want, _ := exact.Add(exact, big.NewFloat(float64(c))).Float32()
		if got != want {
			t.Fatalf("%x·%x + %x is %x, want %x", a, b, c, got, want)
		}
		if got != float32(float64(a)*float64(b)+float64(c)) {
			inexact++
		}
	}
	if inexact == 0 {
		t.Error("no case in which rounding twice differs from rounding once")
	}
}

package ukr

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// These tests compare the kernels on unpacked matrices exactly with the definition, on small integers: for m and n
// around the tile sizes, every triangle, and padded and negative strides, with sentinels around the rows.

func TestDirect(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testDirect(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testDirect(t, tier.F32) })
	})
}

func testDirect[T Float](t *testing.T, k Kernels[T]) {
	const seed = 13
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for m := 1; m <= 13; m++ {
		for n := 1; n <= 2*k.NR+1; n++ {
			checkGemmDirect(t, k, rng, m, n, Whole)
			checkTriangleDirect(t, k, rng, m, n)
			checkTransposeDirect(t, k, rng, m, n, Whole)
			if t.Failed() {
				return
			}
		}
	}
	for n := 1; n <= 2*k.NR+9; n++ {
		for _, part := range []Part{Lower, Upper} {
			checkGemmDirect(t, k, rng, n, n, part)
			checkGemmDirect(t, k, rng, n, 1+rng.IntN(2*k.NR), part)
			checkTransposeDirect(t, k, rng, n, n, part)
		}
		checkPotrfDirect(t, k, rng, n)
		if t.Failed() {
			return
		}
	}
}

// guarded is a rows × cols matrix inside a slice of sentinels; its rows may be stored in reverse order.
type guarded[T Float] struct {
	data       []T
	offset, rs int
	rows, cols int
}

const sentinel = 12345

func newGuarded[T Float](rng *rand.Rand, rows, cols int, reverse bool, element func(i, j int) T) guarded[T] {
	const margin = 9
	ld := cols + rng.IntN(4)
	g := guarded[T]{data: make([]T, 2*margin+rows*ld), offset: margin, rs: ld, rows: rows, cols: cols}
	for i := range g.data {
		g.data[i] = sentinel
	}
	if reverse {
		g.offset, g.rs = margin+(rows-1)*ld, -ld
	}
	for i := range rows {
		for j := range cols {
			*g.at(i, j) = element(i, j)
		}
	}
	return g
}

func (g guarded[T]) at(i, j int) *T { return &g.data[g.offset+i*g.rs+j] }

// requireEqual fails unless g equals want in the given part, and initial everywhere else.
func (g guarded[T]) requireEqual(t *testing.T, name string, initial guarded[T], part Part, want func(i, j int) T) {
	t.Helper()
	expected := slices.Clone(initial.data)
	for i := range g.rows {
		from, to := part.columns(i, g.cols)
		for j := from; j < to; j++ {
			expected[g.offset+i*g.rs+j] = want(i, j)
		}
	}
	for x, v := range expected {
		if g.data[x] != v && (v == v || g.data[x] == g.data[x]) {
			t.Errorf("%s, %d × %d: element %d is %v, want %v", name, g.rows, g.cols, x-g.offset, g.data[x], v)
			return
		}
	}
}

func (g guarded[T]) clone() guarded[T] {
	g.data = slices.Clone(g.data)
	return g
}

func anyInteger[T Float](rng *rand.Rand) func(i, j int) T {
	return func(i, j int) T { return T(rng.IntN(17) - 8) }
}

func checkGemmDirect[T Float](t *testing.T, k Kernels[T], rng *rand.Rand, m, n int, part Part) {
	depth := rng.IntN(10)
	if depth == 9 {
		depth = 33
	}
	alpha, beta := []T{1, -1, 2}[rng.IntN(3)], []T{0, 1, -3}[rng.IntN(3)]
	transposed := rng.IntN(2) == 0
	rows, cols := m, depth
	if transposed {
		rows, cols = depth, m
	}
	a := newGuarded(rng, rows, cols, false, anyInteger[T](rng))
	entry := func(i, p int) T {
		if transposed {
			i, p = p, i
		}
		return *a.at(i, p)
	}
	b := newGuarded(rng, depth, n, rng.IntN(2) == 0, anyInteger[T](rng))
	initial := newGuarded(rng, m, n, rng.IntN(2) == 0, anyInteger[T](rng))
	if beta == 0 {
		for i := range m {
			for j := range n {
				*initial.at(i, j) = T(math.NaN())
			}
		}
	}
	got := initial.clone()
	d := &Direct[T]{C: got.at(0, 0), M: m, N: n, K: depth, Ars: a.rs, Acs: 1, Ldb: b.rs, Ldc: got.rs, Alpha: alpha, Beta: beta, Part: part}
	if depth > 0 {
		d.A, d.B = a.at(0, 0), b.at(0, 0)
	} else {
		d.A, d.B = &a.data[0], &b.data[0]
	}
	if transposed {
		d.Ars, d.Acs = 1, a.rs
	}
	if part == Whole {
		k.GemmDirect(d)
	} else {
		k.SyrkDirect(d)
	}
	got.requireEqual(t, "gemm", initial, part, func(i, j int) T {
		var sum T
		for p := range depth {
			sum += entry(i, p) * *b.at(p, j)
		}
		sum *= alpha
		if beta != 0 {
			sum += beta * *initial.at(i, j)
		}
		return sum
	})
}

// checkTriangleDirect multiplies by a triangle and solves with it. The triangle's diagonal consists
// of powers of two, so that both operations are exact; the other triangle is NaN.
func checkTriangleDirect[T Float](t *testing.T, k Kernels[T], rng *rand.Rand, m, n int) {
	unit, transposed, reverse := rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
	values := newGuarded(rng, m, m, false, func(i, j int) T {
		switch {
		case i == j && unit || i < j:
			return T(math.NaN())
		case i == j:
			return []T{2, -1, 0.5}[rng.IntN(3)]
		}
		return T(rng.IntN(3) - 1)
	})
	a := newGuarded(rng, m, m, reverse, func(i, j int) T {
		if transposed {
			i, j = j, i
		}
		return *values.at(i, j)
	})
	d := &Direct[T]{A: a.at(0, 0), M: m, N: n, Ars: a.rs, Acs: 1, Alpha: 2}
	if transposed {
		d.Ars, d.Acs = 1, a.rs
	}
	if unit {
		d.Flag = 1
	}
	initial := newGuarded(rng, m, n, rng.IntN(2) == 0, anyInteger[T](rng))
	product := initial.clone()
	d.C, d.Ldc = product.at(0, 0), product.rs
	k.TrmmDirect(d)
	product.requireEqual(t, "trmm", initial, Whole, func(i, j int) T {
		sum := *initial.at(i, j)
		if !unit {
			sum *= *values.at(i, i)
		}
		for p := range i {
			sum += *values.at(i, p) * *initial.at(p, j)
		}
		return 2 * sum
	})
	solution := product.clone()
	d.C, d.Alpha = solution.at(0, 0), 0.5
	k.TrsmDirect(d)
	solution.requireEqual(t, "trsm", product, Whole, func(i, j int) T { return *initial.at(i, j) })
}

func checkTransposeDirect[T Float](t *testing.T, k Kernels[T], rng *rand.Rand, m, n int, part Part) {
	a := newGuarded(rng, m, n, rng.IntN(2) == 0, anyInteger[T](rng))
	initial := newGuarded(rng, n, m, rng.IntN(2) == 0, anyInteger[T](rng))
	got := initial.clone()
	k.TransposeDirect(&Direct[T]{A: a.at(0, 0), C: got.at(0, 0), M: m, N: n, Ars: a.rs, Ldc: got.rs, Part: part})
	if part == Upper { // a kernel may overwrite up to three elements left of the diagonal
		for i := range n {
			for j := max(i-3, 0); j < i; j++ {
				*got.at(i, j) = *initial.at(i, j)
			}
		}
	}
	got.requireEqual(t, "transpose", initial, part, func(i, j int) T { return *a.at(j, i) })
}

// checkPotrfDirect factors two matrices: UᵀU for a U with integers above a diagonal of powers of
// two, for which every step is exact, and a matrix with an invalid pivot.
func checkPotrfDirect[T Float](t *testing.T, k Kernels[T], rng *rand.Rand, n int) {
	u := newGuarded(rng, n, n, false, func(i, j int) T {
		switch {
		case i == j:
			return []T{1, 2, 0.5}[rng.IntN(3)]
		case i > j:
			return T(math.NaN())
		}
		return T(rng.IntN(3) - 1)
	})
	a := u.clone()
	for i := range n {
		for j := i; j < n; j++ {
			var sum T
			for p := range i + 1 {
				sum += *u.at(p, i) * *u.at(p, j)
			}
			*a.at(i, j) = sum
		}
	}
	got := a.clone()
	d := &Direct[T]{C: got.at(0, 0), M: n, Ldc: got.rs, Flag: -1}
	k.PotrfDirect(d)
	if d.Flag != 0 {
		t.Errorf("potrf, %d: pivot %d of %v is refused", n, d.Flag-1, *got.at(d.Flag-1, d.Flag-1))
		return
	}
	got.requireEqual(t, "potrf", a, Upper, func(i, j int) T { return *u.at(i, j) })

	row := rng.IntN(n)
	square := *u.at(row, row) * *u.at(row, row)
	for _, value := range []T{-3, 0, T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1))} {
		got := a.clone()
		*got.at(row, row) += value - square
		d := &Direct[T]{C: got.at(0, 0), M: n, Ldc: got.rs}
		k.PotrfDirect(d)
		if d.Flag != row+1 || *got.at(row, row) != value && value == value {
			t.Errorf("potrf, %d: %v as pivot %d: Flag is %d, and the diagonal is %v", n, value, row, d.Flag, *got.at(row, row))
		}
	}
}

// TestPotrfDirectRange factors matrices with pivots whose inverses are not normal numbers.
func TestPotrfDirectRange(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		potrfRange(t, tier.F64, []float64{0x1p-1074, 0x1p-1060, 0x1p-1022, 0x1p-500, 0x1p1022, 0x1p1020})
		potrfRange(t, tier.F32, []float32{0x1p-149, 0x1p-139, 0x1p-126, 0x1p-60, 0x1p126, 0x1p124})
	})
}

func potrfRange[T Float](t *testing.T, k Kernels[T], scales []T) {
	t.Helper()
	for _, scale := range scales {
		// c is UᵀU for U = √scale·(1 1; 0 1). Its elements are exact.
		c := []T{scale, scale, 0, 2 * scale}
		k.PotrfDirect(&Direct[T]{C: &c[0], M: 2, Ldc: 2})
		root := T(math.Sqrt(float64(scale)))
		for i, want := range []T{root, root, 0, root} {
			// The square root and the product have at most two roundings each.
			if math.Abs(float64(c[i]-want)) > 4*math.Abs(float64(want))*epsilon[T]() {
				t.Errorf("scale %v: element %d is %v, want %v", scale, i, c[i], want)
			}
		}
	}
}

// epsilon returns the unit roundoff of T.
func epsilon[T Float]() float64 {
	if unsafe.Sizeof(*new(T)) == 8 {
		return 0x1p-53
	}
	return 0x1p-24
}

// TestTrsmDirectTiny divides by numbers whose inverse is out of range.
func TestTrsmDirectTiny(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		a, x := []float64{0x1p-1074}, []float64{0x1p-1070, 0, math.NaN()}
		tier.F64.TrsmDirect(&Direct[float64]{A: &a[0], C: &x[0], M: 1, N: 3, Ars: 1, Acs: 1, Ldc: 3, Alpha: 1})
		if x[0] != 16 || x[1] != 0 || x[2] == x[2] {
			t.Errorf("divided by 0x1p-1074: %v", x)
		}
		b, y := []float32{0x1p-149}, []float32{0x1p-145, 0, float32(math.NaN())}
		tier.F32.TrsmDirect(&Direct[float32]{A: &b[0], C: &y[0], M: 1, N: 3, Ars: 1, Acs: 1, Ldc: 3, Alpha: 1})
		if y[0] != 16 || y[1] != 0 || y[2] == y[2] {
			t.Errorf("divided by 0x1p-149: %v", y)
		}
	})
}

// TestDirectLayout tests the offsets that tools/asmgen uses.
func TestDirectLayout(t *testing.T) {
	var d Direct[float64]
	var f Direct[float32]
	for i, got := range []uintptr{
		unsafe.Offsetof(d.A), unsafe.Offsetof(d.B), unsafe.Offsetof(d.C), unsafe.Offsetof(d.M), unsafe.Offsetof(d.N),
		unsafe.Offsetof(d.K), unsafe.Offsetof(d.Ars), unsafe.Offsetof(d.Acs), unsafe.Offsetof(d.Ldb), unsafe.Offsetof(d.Ldc),
		unsafe.Offsetof(d.Part), unsafe.Offsetof(d.Flag), unsafe.Offsetof(d.Alpha), unsafe.Offsetof(d.Beta),
	} {
		if want := uintptr(8 * i); unsafe.Sizeof(uintptr(0)) == 8 && got != want {
			t.Errorf("field %d is at offset %d, the assembly reads %d", i, got, want)
		}
	}
	if unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Offsetof(f.Beta) != 100 {
		t.Errorf("float32: Beta is at offset %d, the assembly reads 100", unsafe.Offsetof(f.Beta))
	}
}

package ukr

import (
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/internal/elementary"
)

// This file has the reproducible kernels in portable Go. They simulate a virtual machine that has vectors of 32
// bytes and fused multiply-adds, so that their results have the same bits on every processor. The tiers avx2 and
// neon form every sum in the same order, with the same roundings.
//
// The explicit conversions of products to T force rounding: without them a compiler may fuse a product with the
// addition that follows.

// laneBytes is the length of a vector of the virtual machine.
const laneBytes = 32

// laneRows is MR of the virtual machine. panelRows is the number of rows that its functions on strips process together.
const (
	laneRows  = 6
	panelRows = 4
)

// lanesOf returns the number of elements of a vector.
func lanesOf[T Float]() int { return laneBytes / int(unsafe.Sizeof(*new(T))) }

func isFloat64[T Float]() bool { return unsafe.Sizeof(*new(T)) == 8 }

// A vector contains the lanes of a vector register: eight numbers in float32. In float64 only the
// first four elements are used.
type vector[T Float] [laneBytes / 4]T

// laneKernels returns the virtual machine in portable Go.
func laneKernels[T Float]() Kernels[T] {
	nr := 2 * lanesOf[T]()
	k := genericKernels[T]()
	k.MR, k.NR = laneRows, nr
	k.PackA, k.PackB, k.UnpackB = genericPacker[T](laneRows), genericPacker[T](nr), unpackLanes[T]
	k.Gemm, k.SqDist = tileLanes(gemmStep[T]), tileLanes(sqDistStep[T])
	k.L1, k.Chi2 = tileLanes(l1Step[T]), tileLanes(chi2Step[T])
	k.Sparse, k.Trsm = sparseLanes[T], trsmLanes[T]
	k.GemmDirect, k.SyrkDirect = gemmDirectLanes[T], gemmDirectLanes[T]
	k.TrsmDirect, k.TrmmDirect, k.PotrfDirect = trsmDirectLanes[T], trmmDirectLanes[T], potrfDirectLanes[T]
	k.Affine, k.Sqrt, k.Exp, k.MaternExp = affineLanes[T], sqrtLanes[T], expLanes[T], maternExpLanes[T]
	k.Distance, k.DistanceExp, k.DistanceExpTo = distanceLanes[T], distanceExpLanes[T], distanceExpToLanes[T]
	k.Dot, k.Axpy, k.DotAxpy = dotLanes[T], axpyLanes[T], dotAxpyLanes[T]
	k.Dot4 = func(r *Rows[T]) { r.lanes(4, true, false) }
	k.Axpy4 = func(r *Rows[T]) { r.lanes(4, false, true) }
	k.DotAxpy8 = func(r *Rows[T]) { r.lanes(8, true, true) }
	k.DotAxpy12 = func(r *Rows[T]) { r.lanes(12, true, true) }
	if !isFloat64[T]() {
		k.Log, k.Pow, k.Tanh = logShort[T], powShort[T], tanhShort[T]
		k.Sin = func(s *Span[T]) { trigonometricShort(s, 0) }
		k.Cos = func(s *Span[T]) { trigonometricShort(s, 1) }
		k.CodeLanes = lanesOf[T]()
		k.Codes1 = func(s *Codes[T]) { s.lanes(1) }
		k.Codes2 = func(s *Codes[T]) { s.lanes(2) }
		k.Encode = encodeLanes[T]
	}
	k.Gemv, k.GemvT, k.Ger, k.Trsv, k.Syr2k = gemvLanes[T], gemvTLanes[T], gerLanes[T], trsvLanes[T], syr2kLanes[T]
	k.GemvPanels = []GemvPanels[T]{{Width: lanesOf[T](), Rows: panelRows, Apply: gemvPanelLanes[T], ApplyPair: gemvPanelPairLanes[T]}}
	k.Gemm16, k.Round16 = nil, nil
	return k
}

// fma is a·b + c, rounded once.
func fma[T Float](a, b, c T) T {
	if isFloat64[T]() {
		return T(math.FMA(float64(a), float64(b), float64(c)))
	}
	return T(fma32(float64(a), float64(b), float64(c)))
}

// fma32 is a·b + c for float32 numbers, rounded to float32. The product is exact in float64. The sum is rounded to
// odd, so that the second rounding gives the same result as a single rounding (Boldo and Melquiond, Emulation of
// FMA and correctly rounded sums, 2008).
func fma32(a, b, c float64) float32 {
	p := float64(a * b)
	s := p + c
	delta := s - p
	roundoff := (p - (s - delta)) + (c - delta)
	if roundoff != 0 && roundoff == roundoff && !math.IsInf(s, 0) {
		u := math.Float64bits(s)
		if u&1 == 0 {
			if (roundoff > 0) == (s > 0) {
				u++
			} else {
				u--
			}
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

// atMost returns min(x, limit), and atLeast returns max(x, limit). Both return x if x is NaN.
func atMost[T Float](x, limit T) T {
	if limit < x {
		return limit
	}
	return x
}

func atLeast[T Float](x, limit T) T {
	if limit > x {
		return limit
	}
	return x
}

// update computes c ← α·sum + β·c.
func update[T Float](c *T, sum, alpha, beta T) {
	v := T(sum * alpha)
	if beta != 0 {
		v = fma(*c, beta, v)
	}
	*c = v
}

// The following functions are kernels of level 3.

func gemmStep[T Float](a, b, acc T) T { return fma(a, b, acc) }

func sqDistStep[T Float](a, b, acc T) T { return fma(a-b, a-b, acc) }

func l1Step[T Float](a, b, acc T) T { return acc + T(math.Abs(float64(a-b))) }

func chi2Step[T Float](a, b, acc T) T {
	smallest := 0x1p-1022
	if !isFloat64[T]() {
		smallest = 0x1p-126
	}
	diff, sum := a-b, a+b
	if !(sum > T(smallest)) {
		sum = T(smallest)
	}
	return fma(diff/sum, diff, acc)
}

// tileLanes returns the function that sums s(a, b) for a Tile. step returns acc + s(a, b).
func tileLanes[T Float](step func(a, b, acc T) T) func(*Tile[T]) {
	return func(t *Tile[T]) {
		nr := 2 * lanesOf[T]()
		for i := range t.M {
			a := sliceAt(t.A, i/laneRows*t.Lda+i%laneRows, t.K*laneRows)
			c := sliceAt(t.C, i*t.Ldc, t.N)
			for j := range c {
				update(&c[j], chainOf(step, t.K, a, laneRows, sliceAt(t.B, j, t.K*nr), nr), t.Alpha, t.Beta)
			}
		}
	}
}

// chainOf returns sum after sum = step(a[p·strideA], b[p·strideB], sum) for p = 0, …, k−1, from sum = 0.
func chainOf[T Float](step func(a, b, acc T) T, k int, a []T, strideA int, b []T, strideB int) T {
	var sum T
	for p := range k {
		sum = step(a[p*strideA], b[p*strideB], sum)
	}
	return sum
}

func sparseLanes[T Float](s *Sparse[T]) {
	nr := 2 * lanesOf[T]()
	a, offsets := sliceAt(s.A, 0, s.K*SparseRows), unsafe.Slice(s.At, s.K)
	for r := range s.M {
		for n := range s.N {
			c := sliceAt(s.C, r*s.Ldc+n*nr, nr)
			clear(c)
			for p, offset := range offsets {
				fusedMultiple(c, a[p*SparseRows+r], sliceAt(s.B, n*s.Ldb+int(offset), nr))
			}
		}
	}
}

// fusedMultiple computes y ← y + a·x.
func fusedMultiple[T Float](y []T, a T, x []T) {
	for j, v := range x {
		y[j] = fma(a, v, y[j])
	}
}

func trsmLanes[T Float](t *Tile[T]) {
	nr := 2 * lanesOf[T]()
	a := sliceAt(t.A, 0, (t.K+laneRows)*laneRows)
	b := sliceAt(t.B, 0, (t.K+laneRows)*nr)
	for j := range nr {
		for i := range laneRows {
			x := &b[(t.K+i)*nr+j]
			*x = T(*x-chainOf(fma[T], t.K+i, a[i:], laneRows, b[j:], nr)) * a[(t.K+i)*laneRows+i]
		}
	}
}

func unpackLanes[T Float](t *Tile[T]) {
	nr := 2 * lanesOf[T]()
	src := sliceAt(t.A, 0, t.K*nr)
	for i := range nr {
		row := sliceAt(t.C, i*t.Ldc, t.K)
		for p := range row {
			row[p] = src[p*nr+i]
		}
	}
}

func gemmDirectLanes[T Float](d *Direct[T]) {
	for i := range d.M {
		from, to := d.Part.columns(i, d.N)
		for j := from; j < to; j++ {
			var sum T
			for p := range d.K {
				sum = fma(d.a(i, p), sliceAt(d.B, p*d.Ldb+j, 1)[0], sum)
			}
			update(&sliceAt(d.C, i*d.Ldc+j, 1)[0], sum, d.Alpha, d.Beta)
		}
	}
}

func trsmDirectLanes[T Float](d *Direct[T]) {
	for i := range d.M {
		x := sliceAt(d.C, i*d.Ldc, d.N)
		for j := range x {
			x[j] *= d.Alpha
		}
		for p := range i {
			fusedMultiple(x, -d.a(i, p), sliceAt(d.C, p*d.Ldc, d.N))
		}
		if d.Flag != 0 {
			continue
		}
		pivot := d.a(i, i)
		divide := math.Abs(float64(pivot)) < 0x1p-1022
		if !isFloat64[T]() {
			divide = math.Abs(float64(pivot)) < 0x1p-126
		}
		inverse := 1 / pivot
		for j := range x {
			if divide {
				x[j] /= pivot
			} else {
				x[j] *= inverse
			}
		}
	}
}

func trmmDirectLanes[T Float](d *Direct[T]) {
	for i := d.M - 1; i >= 0; i-- {
		x := sliceAt(d.C, i*d.Ldc, d.N)
		for j := range x {
			var sum T
			for p := range i {
				sum = fma(d.a(i, p), sliceAt(d.C, p*d.Ldc+j, 1)[0], sum)
			}
			if d.Flag != 0 {
				sum += x[j]
			} else {
				sum = fma(d.a(i, i), x[j], sum)
			}
			x[j] = sum * d.Alpha
		}
	}
}

// invertible reports whether x and 1/x are normal numbers.
func invertible[T Float](x T) bool {
	if size := math.Abs(float64(x)); isFloat64[T]() {
		return size >= 0x1p-1022 && size < 0x1p1022
	} else {
		return size >= 0x1p-126 && size < 0x1p126
	}
}

// potrfDirectLanes factors four rows at a time. In the NR columns that begin at the diagonal, it
// first subtracts multiples of a row from the rows below and then divides the row by the root of
// its pivot. In the remaining columns it divides first.
func potrfDirectLanes[T Float](d *Direct[T]) {
	d.Flag = 0
	for start := 0; start < d.M; start += 4 {
		rows, first := min(4, d.M-start), min(2*lanesOf[T](), d.M-start)
		row := func(r int) []T { return sliceAt(d.C, (start+r)*d.Ldc+start, d.M-start) }
		for r := range rows {
			for p := range start {
				rowP := sliceAt(d.C, p*d.Ldc+start, d.M-start)
				fusedMultiple(row(r)[r:], -rowP[r], rowP[r:])
			}
		}
		for r := range rows {
			u := row(r)
			pivot := u[r]
			if !(pivot > 0) || math.IsInf(float64(pivot), 1) {
				d.Flag = start + r + 1
				return
			}
			root := T(math.Sqrt(float64(pivot)))
			inverse, pivotInverse := 1/root, 1/pivot
			head := u[r+1 : max(first, r+1)]
			if !invertible(pivot) {
				pivotInverse = 1
				for j := range head {
					head[j] *= inverse
				}
			}
			for i := r + 1; i < rows; i++ {
				fusedMultiple(row(i)[i:first], -T(u[i]*pivotInverse), u[i:first])
			}
			if invertible(pivot) {
				for j := range head {
					head[j] *= inverse
				}
			}
			u[r] = root
			if first < len(u) {
				tail := u[first:]
				for j := range tail {
					tail[j] *= inverse
				}
				for i := r + 1; i < rows; i++ {
					fusedMultiple(row(i)[first:], -u[i], tail)
				}
			}
		}
	}
}

// The following functions are kernels on spans.

func affineLanes[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = fma(v, s.A, s.B)
	}
}

func sqrtLanes[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = T(math.Sqrt(float64(atLeast(v, 0))))
	}
}

// expOf computes the exponential function of Kernels.Exp.
func expOf[T Float](x T) T {
	if isFloat64[T]() {
		return T(elementary.Exp(float64(x)))
	}
	return T(exp32(float32(x)))
}

// exp32 computes exp in float32.
func exp32(x float32) float32 {
	const ln2Hi, ln2Lo = 0x1.63p-1, -0x1.bd0105c610ca8p-13
	x = atLeast(atMost(x, 89), -104)
	if x != x {
		return x
	}
	nearest := func(v float32) float32 { return float32(math.RoundToEven(float64(v))) }
	n := nearest(float32(x * math.Log2E))
	high := fma(-n, float32(ln2Hi), x)
	r := fma(-n, float32(ln2Lo), high)
	tail := fma(-n, float32(ln2Lo), high-r)
	last := len(exp32Coefficients) - 1
	q := exp32Coefficients[last]
	for i := last - 1; i >= 0; i-- {
		q = fma(q, r, exp32Coefficients[i])
	}
	y := 1 + (r + fma(float32(r*r), q, tail))
	half := nearest(float32(n * 0.5))
	for _, e := range []float32{half, n - half} {
		y *= math.Float32frombits(uint32(127+int(e)) << 23)
	}
	return y
}

// exp32Coefficients are the coefficients of q in exp(r) ≈ 1 + r + r²q(r) for float32.
var exp32Coefficients = [...]float32{
	0x1.0000000b920a3p-1, 0x1.5555557430bd8p-3, 0x1.5554e9028dc90p-5,
	0x1.1110ab6cf7261p-7, 0x1.6d4328396f80fp-10, 0x1.a17e0b83cb3dep-13,
}

func expLanes[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = expOf(fma(v, s.A, s.B))
	}
}

func distanceLanes[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	s.Flag = 0
	for i, v := range y {
		sum := s.A + v
		x[i] = fma(-2, x[i], sum)
		if !(x[i] >= T(sum*s.B)) {
			s.Flag = 1
		}
	}
}

func distanceExpLanes[T Float](s *Span[T]) { distanceExpLanesInto(s, s.x()) }

func distanceExpToLanes[T Float](s *Span[T]) { distanceExpLanesInto(s, sliceAt(s.Z, 0, s.N)) }

func distanceExpLanesInto[T Float](s *Span[T], to []T) {
	x, y := s.x(), s.y()
	s.Flag = 0
	for i, v := range y {
		sum := s.A + v
		sq := fma(-2, x[i], sum)
		to[i] = expOf(T(sq * s.C))
		if !(sq >= T(sum*s.B)) {
			to[i], s.Flag = -1, 1
		}
	}
}

func maternExpLanes[T Float](s *Span[T]) {
	limit := T(800) // exp(−t) is 0 for t ≥ limit
	if !isFloat64[T]() {
		limit = 150
	}
	x := s.x()
	for i, v := range x {
		t := atMost(T(T(math.Sqrt(float64(atLeast(v, 0))))*s.A), limit)
		x[i] = T(fma(fma(s.C, t, s.B), t, 1) * expOf(0-t))
	}
}

// The elementary functions of float32 are computed in float64 with shorter polynomials; see tools/asmgen.

var (
	logCoefficientsShort = [...]float64{
		0x1.5555555564e9ap-1, 0x1.999998caf9cc3p-2, 0x1.249323e68ef34p-2, 0x1.c67ad927c1ad8p-3, 0x1.8c8c226bbe73ep-3,
	}
	expCoefficientsShort = [...]float64{
		0x1.0000000b920a3p-1, 0x1.5555557430bd8p-3, 0x1.5554e9028dc90p-5,
		0x1.1110ab6cf7261p-7, 0x1.6d4328396f80fp-10, 0x1.a17e0b83cb3dep-13,
	}
	sinCoefficientsShort = [...]float64{-0x1.555555545c866p-3, 0x1.11110deb7eef4p-7, -0x1.a013a29ae5232p-13, 0x1.6dbc6beea63eep-19}
	cosCoefficientsShort = [...]float64{0x1.55555555024dap-5, -0x1.6c16bf52716b0p-10, 0x1.a015c12bb84c8p-16, -0x1.25233ada55c80p-22}
)

// logarithmShort returns ln(x + low). It returns end if x is Inf, and −end if x is 0. The number
// low is used only if x is near 1.
func logarithmShort(x, low, end float64) float64 {
	switch {
	case x == 0:
		return -end
	case math.IsInf(x, 1):
		return end
	case !(x >= 0):
		return math.NaN()
	}
	k, m := elementary.Significand(x)
	f := m - 1
	if k == 0 {
		f += low
	}
	s := f / (m + 1)
	t := float64(s * s)
	return math.FMA(k, math.Ln2, math.FMA(float64(s*t), elementary.Polynomial(t, logCoefficientsShort[:]), s+s))
}

func logShort[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = T(logarithmShort(float64(v), 0, math.Inf(1)))
	}
}

func powShort[T Float](s *Span[T]) {
	x := s.x()
	a := elementary.Limited(float64(s.A))
	for i, v := range x {
		base, baseLow := elementary.AffineSum(float64(v), float64(s.B), float64(s.C))
		y := float64(logarithmShort(base, baseLow, 0x1p1023) * a)
		if y == y {
			y = max(-110, min(100, y))
			n := math.RoundToEven(y * math.Log2E)
			r, c := expm1Short(y, n)
			y = (r + c + 1) * elementary.Power2(n)
		}
		x[i] = T(y)
	}
}

// expm1Short returns exp(y − n ln 2) − 1 as the sum r + c.
func expm1Short(y, n float64) (r, c float64) {
	r = math.FMA(-n, math.Ln2, y)
	return r, float64(float64(r*r) * elementary.Polynomial(r, expCoefficientsShort[:]))
}

func tanhShort[T Float](s *Span[T]) {
	x := s.x()
	a, b := float64(s.A), float64(s.B)
	for i, v := range x {
		y := math.FMA(float64(v), a, b)
		if y == y {
			size := min(44, 2*math.Abs(y))
			n := math.RoundToEven(size * math.Log2E)
			scale := elementary.Power2(-n)
			r, c := expm1Short(size, n)
			p := r + c
			y = math.Copysign((1-scale+p)/(scale+1+p), y)
		}
		x[i] = T(y)
	}
}

// trigonometricShort computes x ← sin(A·x + phase·½π). It passes groups of NR elements with an
// argument beyond reduceLimit to trigonometric.
func trigonometricShort[T Float](s *Span[T], phase int) {
	x, n, a := s.X, s.N, float64(s.A)
	nr := 2 * lanesOf[T]()
	for start := 0; start < n; start += nr {
		step := sliceAt(x, start, nr)
		largest := 0.0
		for _, v := range step {
			if y := math.Abs(float64(a * float64(v))); y > largest {
				largest = y
			}
		}
		if largest > reduceLimit {
			s.X, s.N = &step[0], nr
			trigonometric(s, phase)
			continue
		}
		for i, v := range step {
			step[i] = T(byQuadrantShort(float64(a*float64(v)), phase))
		}
	}
	s.X, s.N, s.Flag = x, n, 0
}

// byQuadrantShort is byQuadrant for |y| ≤ reduceLimit, with shorter polynomials.
func byQuadrantShort(y float64, phase int) float64 {
	if y != y {
		return y
	}
	const magic = 0x1.8p52
	sign := math.Signbit(y) && phase == 0
	y = math.Abs(y)
	n := math.FMA(y, 2/math.Pi, magic) - magic
	r := math.FMA(-n, halfPi3, math.FMA(-n, halfPi2, math.FMA(-n, halfPi1, y)))
	z := float64(r * r)
	var result float64
	quadrant := int(n) + phase
	if quadrant&1 == 0 {
		result = math.FMA(float64(r*z), elementary.Polynomial(z, sinCoefficientsShort[:]), r)
	} else {
		result = math.FMA(float64(z*z), elementary.Polynomial(z, cosCoefficientsShort[:]), math.FMA(z, -0.5, 1))
	}
	if (quadrant&2 != 0) != sign {
		result = -result
	}
	return result
}

// The following functions are kernels of levels 1 and 2.

// add adds x_l·y_l to lane l of v for each index l of x. It adds 0 to the lanes len(x) … width−1.
func (v *vector[T]) add(width int, x, y []T) {
	for l := range width {
		if l < len(x) {
			v[l] = fma(x[l], y[l], v[l])
		} else {
			v[l] += 0
		}
	}
}

// fold adds the upper half of the first width lanes to their lower half.
func (v *vector[T]) fold(width int) {
	for l := range width / 2 {
		v[l] += v[width/2+l]
	}
}

// total returns the sum of the lanes, computed by folding halves.
func (v vector[T]) total() T {
	for width := lanesOf[T](); width > 1; width /= 2 {
		v.fold(width)
	}
	return v[0]
}

func (v vector[T]) plus(w vector[T]) vector[T] {
	for l := range v {
		v[l] += w[l]
	}
	return v
}

// dotLanes computes xᵀy in three steps: first the elements after the last whole vector, from the end, in parts of
// 1, 2, 4, … elements; then four vectors at a time from the beginning; then the other vectors from the last one on.
func dotLanes[T Float](n int, first, second *T) T {
	lanes := lanesOf[T]()
	x, y := sliceAt(first, 0, n), sliceAt(second, 0, n)
	var sums [4]vector[T]
	for part := 1; part < lanes; part *= 2 {
		if n&part != 0 {
			n -= part
			sums[0].add(part, x[n:][:part], y[n:])
		}
	}
	i := 0
	for ; n-i >= 4*lanes; i += 4 * lanes {
		for v := range sums {
			sums[v].add(lanes, x[i+v*lanes:][:lanes], y[i+v*lanes:])
		}
	}
	sum := sums[0]
	if i > 0 {
		sum = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]))
	}
	for n -= lanes; n >= i; n -= lanes {
		sum.add(lanes, x[n:][:lanes], y[n:])
	}
	return sum.total()
}

func axpyLanes[T Float](n int, a T, x, y *T) { fusedMultiple(sliceAt(y, 0, n), a, sliceAt(x, 0, n)) }

func dotAxpyLanes[T Float](s *Span[T]) {
	lanes := lanesOf[T]()
	x, y, z := s.x(), s.y(), sliceAt(s.Z, 0, s.N)
	var sums [4]vector[T]
	unrolled := s.N / (4 * lanes) * 4
	for v := 0; v*lanes < s.N; v++ {
		to := 0
		if v < unrolled {
			to = v % 4
		}
		row := z[v*lanes : min((v+1)*lanes, s.N)]
		sums[to].add(lanes, row, y[v*lanes:])
	}
	fusedMultiple(x, s.A, z)
	s.B = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3])).total()
}

// lanes processes count rows z_r. If dot is true, it computes the dot products B_r ← Σ_i z_ri y_i.
// If axpy is true, it computes x ← x + Σ_r A_r z_r.
func (r *Rows[T]) lanes(count int, dot, axpy bool) {
	lanes := lanesOf[T]()
	if dot {
		y := sliceAt(r.Y, 0, r.N)
		for i := range count {
			var sum vector[T]
			for v := 0; v < r.N; v += lanes {
				sum.add(lanes, r.row(i)[v:min(v+lanes, r.N)], y[v:])
			}
			r.B[i] = sum.total()
		}
	}
	if axpy {
		for i := range count {
			fusedMultiple(sliceAt(r.X, 0, r.N), r.A[i], r.row(i))
		}
	}
}

// A pair consists of two vectors; the function products computes their dot product.
type pair[T Float] struct{ x, y []T }

// products returns the sum of the dot products xᵀy of all pairs, for the first n elements of x and y. It adds in the
// same order as the assembly. In float32, the last step sums four lanes s_0 to s_3: as (s_0 + s_1) + (s_2 + s_3) if
// adjacent is true, and otherwise as (s_0 + s_2) + (s_1 + s_3).
func products[T Float](n int, adjacent bool, pairs ...pair[T]) T {
	var sum vector[T]
	lanes := lanesOf[T]()
	i := 0
	for ; i+lanes <= n; i += lanes {
		for _, p := range pairs {
			sum.add(lanes, p.x[i:][:lanes], p.y[i:])
		}
	}
	width := lanes
	for part := lanes / 2; part > 0; part /= 2 {
		if part*int(unsafe.Sizeof(sum[0])) >= 16 {
			sum.fold(width)
			width = part
		}
		if n&part != 0 {
			for _, p := range pairs {
				sum.add(lanesOfPart(part, width), p.x[i:][:part], p.y[i:])
			}
			i += part
		}
	}
	if adjacent && width == 4 {
		return (sum[0] + sum[1]) + (sum[2] + sum[3])
	}
	for ; width > 1; width /= 2 {
		sum.fold(width)
	}
	return sum[0]
}

// lanesOfPart returns the number of lanes to which the assembly adds a part of the given length, padded with zeros.
func lanesOfPart(part, width int) int {
	if part == 1 {
		return 1
	}
	return width
}

// grouped reports whether the assembly computes row i of m rows together with other rows of its group of four.
func grouped(i, m int) bool { return i/4 < m/4 || m%4 > 1 }

func gemvLanes[T Float](m, n int, alpha T, a *T, lda int, x *T, beta T, y *T) {
	to := sliceAt(y, 0, m)
	for i := range to {
		update(&to[i], products(n, grouped(i, m), pair[T]{sliceAt(a, i*lda, n), sliceAt(x, 0, n)}), alpha, beta)
	}
}

func gemvTLanes[T Float](m, n int, alpha T, a *T, lda int, x *T, beta T, y *T) {
	xs, to := sliceAt(x, 0, m), sliceAt(y, 0, n)
	for j := range to {
		var sums [4]T
		for i, v := range xs {
			sums[i%4] = fma(sliceAt(a, i*lda+j, 1)[0], v, sums[i%4])
		}
		update(&to[j], (sums[0]+sums[1])+(sums[2]+sums[3]), alpha, beta)
	}
}

func gerLanes[T Float](m, n int, alpha T, x, y, a *T, lda int) {
	for i, v := range sliceAt(x, 0, m) {
		fusedMultiple(sliceAt(a, i*lda, n), T(v*alpha), sliceAt(y, 0, n))
	}
}

// trsvLanes solves for four unknowns at a time. For each unknown, it first subtracts the terms of
// the unknowns before this group, in two separate sums: one for even and one for odd indices.
func trsvLanes[T Float](n int, unit bool, a *T, ars, acs int, x *T, incX int) {
	element := func(i, p int) T { return sliceAt(a, i*ars+p*acs, 1)[0] }
	unknown := func(i int) *T { return &sliceAt(x, i*incX, 1)[0] }
	for start := 0; start < n; start += 4 {
		end := min(start+4, n)
		divide := false
		for i := start; i < end; i++ {
			sums := [2]T{*unknown(i)}
			for p := range start {
				sums[p%2] = fma(-element(i, p), *unknown(p), sums[p%2])
			}
			*unknown(i) = sums[0] + sums[1]
			divide = divide || !unit && !invertible(element(i, i))
		}
		for i := start; i < end; i++ {
			v := unknown(i)
			switch {
			case divide:
				*v /= element(i, i)
			case !unit:
				*v *= 1 / element(i, i)
			}
			for k := i + 1; k < end; k++ {
				*unknown(k) = fma(-element(k, i), *v, *unknown(k))
			}
		}
	}
}

func syr2kLanes[T Float](lower bool, n, k int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int) {
	part := Upper
	if lower {
		part = Lower
	}
	for i := range n {
		from, to := part.columns(i, n)
		for j := from; j < to; j++ {
			sum := products(k, grouped(j-from, to-from),
				pair[T]{sliceAt(a, j*lda, k), sliceAt(b, i*ldb, k)}, pair[T]{sliceAt(b, j*ldb, k), sliceAt(a, i*lda, k)})
			update(&sliceAt(c, i*ldc+j, 1)[0], sum, alpha, beta)
		}
	}
}

func gemvPanelLanes[T Float](s *GemvPanel[T]) {
	w := lanesOf[T]()
	sum := make([]T, w)
	for r := range panelRows {
		for i := 0; i < s.N; i += PanelTerms {
			clear(sum)
			for k, z := range sliceAt(s.Z, r*s.Ldz+i, min(PanelTerms, s.N-i)) {
				fusedMultiple(sum, z, sliceAt(s.V, (i+k)*w, w))
			}
			for l, v := range sum {
				sliceAt(s.Y, r*w, w)[l] += v
			}
		}
	}
}

func gemvPanelPairLanes[T Float](s *GemvPanel[T]) {
	w := lanesOf[T]()
	for r := range panelRows {
		for i, z := range sliceAt(s.Z, r*s.Ldz, s.N) {
			fusedMultiple(sliceAt(s.Y, r*w, w), z, sliceAt(s.V, i*w, w))
		}
	}
	x, sum := sliceAt(s.X, 0, panelRows*w), sliceAt(s.Sum, 0, s.N*w)
	z := func(r, i int) T { return sliceAt(s.Z, r*s.Ldz+i, 1)[0] }
	for i := range s.N {
		for l, v := range sum[i*w:][:w] {
			even := fma(z(2, i), x[2*w+l], fma(z(0, i), x[l], v))
			odd := fma(z(3, i), x[3*w+l], T(z(1, i)*x[w+l]))
			sum[i*w+l] = even + odd
		}
	}
}

// The following functions are kernels on codes.

// lanes implements Codes1 (cols = 1) and Codes2 (cols = 2) in float32. For one column, it adds to x
// the terms of even rows and the terms of odd rows in two separate sums.
func (s *Codes[T]) lanes(cols int) {
	lanes := lanesOf[T]()
	z := unsafe.Slice(s.Z, s.N*CodeRows*CodeSpan)
	b := sliceAt(s.B, 0, cols*CodeRows*lanes)
	for c := range cols {
		x, y := sliceAt(s.X, c*s.Ld, s.N*CodeSpan), sliceAt(s.Y, c*s.Ld, s.N*CodeSpan)
		a := sliceAt(s.A, c*s.Ld, CodeRows)
		for i := range x {
			even, odd := x[i], T(0)
			for r, ar := range a {
				v := T(z[(i/CodeSpan*CodeRows+r)*CodeSpan+i%CodeSpan])
				sum := &b[(c*CodeRows+r)*lanes+i%lanes]
				*sum = fma(v, y[i], *sum)
				switch {
				case cols == 1 && r == 1:
					odd = T(ar * v)
				case cols == 1 && r%2 == 1:
					odd = fma(ar, v, odd)
				default:
					even = fma(ar, v, even)
				}
			}
			if cols == 1 {
				even += odd
			}
			x[i] = even
		}
	}
}

func encodeLanes[T Float](s *Span[T]) {
	s.Flag = 0
	z := unsafe.Slice((*uint16)(unsafe.Pointer(s.Z)), max(0, s.N-CodeSpan)*CodeRows+CodeSpan)
	for i, v := range s.x() {
		t := fma(v, s.A, s.B)
		code := atMost(atLeast(t, 0), math.MaxUint16)
		if !(math.Abs(float64(t-code)) <= 0.5) {
			s.Flag, code = 1, 0
		}
		z[i/CodeSpan*CodeRows*CodeSpan+i%CodeSpan] = uint16(math.RoundToEven(float64(code)))
	}
}

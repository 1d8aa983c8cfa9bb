package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// The tests of this file run if the backend has Gram matrices with 16 bits per element.

func (r *rig[T]) newFixed(b backend.Backend[T], n int) (backend.FixedBackend[T], backend.Packed[T]) {
	r.Helper()
	q, ok := b.(backend.FixedBackend[T])
	if !ok {
		r.Fatal("the queue that With returns has no matrices of 16 bits")
	}
	a, err := q.NewFixed(n)
	if err != nil {
		r.Fatal(err)
	}
	return q, a
}

// lowerOf returns the lower triangle of a packed matrix.
func (r *rig[T]) lowerOf(b backend.PackedBackend[T], a backend.Packed[T]) host {
	r.Helper()
	low := backend.NewHost[T](a.Order(), a.Order())
	if err := r.save(b, low, a); err != nil {
		r.Fatal(err)
	}
	return widen(low)
}

// boundedKernels returns positive semidefinite kernels whose values have bounds.
func boundedKernels(d int) []kernels.Kernel {
	var list []kernels.Kernel
	for _, k := range everyKernel(d) {
		if _, _, ok := kernels.Bounds(k, d); ok && k.IsPSD() {
			list = append(list, k)
		}
	}
	return list
}

// testFixedGram compares each element with the oracle. Besides rounding errors, an error of half the distance between
// adjacent codes is allowed off the diagonal. For equal rows, kernels of distances must give the diagonal's value.
func testFixedGram[T backend.Float](r *rig[T]) {
	gram := func(k kernels.Kernel, x host) {
		n, d := x.Rows, x.Cols
		label := fmt.Sprintf("16 bits %v n=%d d=%d", k, n, d)
		b, a := r.newFixed(r.b, n)
		defer a.Free()
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 1}, k} { // the second kernel's matrix overwrites the first
			m := Upload(r, b, round[T](x))
			b.GramPacked(a, k, m)
			if err := b.Sync(); err != nil {
				r.Fatalf("%s: %v", label, err)
			}
			m.Free()
		}
		low, high, _ := kernels.Bounds(k, d)
		step := max((high-low)/math.MaxUint16, max(-low, high)*0x1p-20)
		want := r.callOracle(label, r.gramPacked(k), x, filled(n, n, 0))
		got, bound := r.lowerOf(b, a), kernelBounds[T](k, x, x)
		r.requireWithin(label, got, want, fromFunc(n, n, func(i, j int) float64 {
			if i == j {
				return bound.Row(i)[j]
			}
			// The code, at most 65535, is computed by a product and a sum in T.
			return bound.Row(i)[j] + step*(0.5+4*65535*unit[T]()) + unit[T]()*math.Abs(want.Row(i)[j])
		}))
		program := kernels.Compile(k)
		distances := len(program.Stats) == 1 && (program.Stats[0].Kind == kernels.SqDist || program.Stats[0].Kind == kernels.L1)
		for i := range n {
			for j := range i + 1 {
				if diagonal := got.Row(i)[i]; distances && sameRow(x, i, j) && math.Abs(got.Row(i)[j]-diagonal) > 2*unit[T]()*math.Abs(diagonal) {
					r.Fatalf("%s: rows %d and %d are equal: k is %v, on the diagonal %v", label, i, j, got.Row(i)[j], diagonal)
				}
			}
		}
	}
	for _, d := range required.Subset(3, featureCounts) {
		if d == 0 {
			continue
		}
		for _, k := range boundedKernels(d) {
			if !r.included() {
				continue
			}
			// Histogram kernels require features ≥ 0.
			x := abs(r.normals(1+r.rng.IntN(70), d))
			for range x.Rows / 4 {
				copy(x.Row(r.rng.IntN(x.Rows)), x.Row(r.rng.IntN(x.Rows)))
			}
			gram(k, x)
		}
	}
	for _, n := range r.packedOrders() {
		d := 1 + r.rng.IntN(20)
		gram(kernels.Gaussian{Sigma: 2}, r.normals(n, d))
	}
	r.report()
}

// testFixedSymm compares SymmPacked with a product of the downloaded matrix, whose elements are exact.
func testFixedSymm[T backend.Float](r *rig[T]) {
	for _, n := range append(r.packedOrders(), min(600, r.LargeN)) {
		d := 1 + r.rng.IntN(6)
		k := pick(r, []kernels.Kernel{kernels.Gaussian{Sigma: 1.5}, kernels.Laplacian{Sigma: 3}, kernels.Matern{Nu: 1.5, Sigma: 2}, kernels.Cosine{Theta: 2}})
		b, a := r.newFixed(r.b, n)
		x := Upload(r, b, round[T](r.normals(n, d)))
		b.GramPacked(a, k, x)
		b.AddDiagPacked([]T{T(r.rng.NormFloat64())}, a)
		low, _, _ := kernels.Bounds(k, d)
		for _, order := range []int{n, n / 2, max(n-3, 0)} {
			leading := a.Leading(order)
			full := mirror(backend.Lower, r.lowerOf(b, leading))
			// A backend may sum the products with the codes and with the offset low separately.
			size := fromFunc(order, order, func(i, j int) float64 { return math.Abs(full.Row(i)[j]-low) + math.Abs(low) })
			for _, cols := range []int{0, 1, 2, 3, 4, 5, 10, 16, 17, 35}[:3+r.rng.IntN(8)] {
				alpha, beta := float64(T(r.rng.NormFloat64())), pick(r, []float64{0, 1, -0.5})
				v, c := r.normals(order, cols), r.normals(order, cols)
				if beta == 0 {
					c = filled(order, cols, sentinel)
				}
				label := fmt.Sprintf("16 bits %v n=%d of %d cols=%d alpha=%v beta=%v", k, order, n, cols, alpha, beta)
				got := r.mustCall(label, func(q backend.Backend[T], m []backend.Matrix[T]) error {
					q.(backend.FixedBackend[T]).SymmPacked(T(alpha), leading, m[0], T(beta), m[1])
					return q.Sync()
				}, v, c)
				if beta == 0 {
					c = filled(order, cols, 0)
				}
				want := combine(alpha, mul(full, v), beta, c)
				r.requireWithin(label, got, want, scale(product[T](order+8)+gamma[float64](order+8)+unit[T](), combine(abs1(alpha), mul(size, abs(v)), abs1(beta), abs(c))))
			}
			leading.Free()
		}
		x.Free()
		a.Free()
	}
	r.report()
}

// testFixedFaults checks that a value without a code gives an error that names its two points, that operations
// without support for 16 bits panic, and that the queue remains usable.
func testFixedFaults[T backend.Float](r *rig[T]) {
	b, a := r.newFixed(r.b, 40)
	for _, row := range []int{0, 17, 39} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x := r.normals(40, 3)
			x.Row(row)[1] = v
			m := Upload(r, b, round[T](x))
			b.GramPacked(a, kernels.Gaussian{Sigma: 1}, m)
			var e *backend.RangeError
			if err := b.Sync(); !errors.As(err, &e) || e.I != row && e.J != row || !math.IsNaN(e.Value) {
				r.Errorf("%v in point %d: Sync returned %v, want a *RangeError that names the point", v, row, err)
			}
			m.Free()
		}
	}
	valid := Upload(r, b, round[T](r.normals(40, 3)))
	b.GramPacked(a, kernels.Gaussian{Sigma: 1}, valid)
	if err := b.Sync(); err != nil {
		r.Fatalf("GramPacked of valid points after a *RangeError: %v", err)
	}
	// An element of B that is not finite must affect only its column of C, where no element may be finite.
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		in := r.normals(40, 3)
		in.Row(23)[1] = v
		m, out := Upload(r, b, round[T](in)), r.alloc(b, 40, 3)
		b.SymmPacked(1, a, m, 0, out)
		got := Download(r, b, out)
		for i := range got.Rows {
			for j, w := range got.Row(i) {
				if finite := float64(w)-float64(w) == 0; finite != (j != 1) {
					r.Fatalf("B has %v in row 23 and column 1, and element (%d, %d) of C is %v: only column 1 may be not finite", v, i, j, w)
				}
			}
		}
		m.Free()
		out.Free()
	}

	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	canceled := b.With(ctx, nil)
	q, dst := r.newFixed(canceled, 40)
	q.GramPacked(dst, kernels.Gaussian{Sigma: 1}, valid)
	if err := q.Sync(); !errors.Is(err, context.Canceled) {
		r.Errorf("GramPacked with a canceled context: Sync returned %v, want context.Canceled", err)
	}
	q.SymmPacked(1, a, valid, 0, valid.View(0, 0, 40, 3))
	if err := q.Sync(); !errors.Is(err, context.Canceled) {
		r.Errorf("SymmPacked with a canceled context: Sync returned %v, want context.Canceled", err)
	}
	dst.Free()

	h := backend.NewHost[T](40, 40)
	for _, c := range []struct {
		op, text string
		f        func()
	}{
		{"GramPacked: ", "needs bounds of the kernel's values", func() { b.GramPacked(a, kernels.Linear{}, valid) }},
		{"UploadPacked: ", "16 bits", func() { b.UploadPacked(a, 0, h) }},
		{"PotrfPacked: ", "16 bits", func() { b.PotrfPacked(a) }},
		{"TrsmPacked: ", "16 bits", func() { b.TrsmPacked(backend.NoTrans, a, valid) }},
		{"NewPacked: ", "negative order", func() { b.NewFixed(-1) }},
		{"GramPacked: ", "order", func() { b.GramPacked(a.Leading(39), kernels.Gaussian{Sigma: 1}, valid) }},
	} {
		if text := r.requirePanic(c.op, c.f); !strings.Contains(text, c.text) {
			r.Errorf("%spanicked with %q, want a text that contains %q", c.op, text, c.text)
		}
	}
	valid.Free()
	a.Free()
}

// testFixedMemory checks that FixedBytes equals the number of bytes that InUse reports.
func testFixedMemory[T backend.Float](r *rig[T]) {
	b := r.b.(backend.FixedBackend[T])
	for _, n := range []int{0, 1, 2, 31, 32, 33, 1000, 40_000, 1 << 20} {
		n64 := int64(n)
		if got := b.FixedBytes(n); got < n64*(n64-1) || got > n64*(n64+1)+512*(n64+1) {
			r.Errorf("FixedBytes(%d) is %d, want from n(n−1) to n(n+1) + 512(n+1)", n, got)
		}
	}
	for _, n := range []int{1 << 30, math.MaxInt} {
		a, err := b.NewFixed(n)
		if e := new(backend.MemoryError); !errors.As(err, &e) || e.Requested != b.FixedBytes(n) {
			r.Errorf("NewFixed(%d): %v, %v; want a *MemoryError", n, a, err)
		}
	}
	for _, n := range []int{0, 1, 33, 1000} {
		_, a := r.newFixed(b, n)
		if inUse, _ := r.dev.InUse(); inUse != b.FixedBytes(n) || a.Order() != n {
			r.Errorf("InUse is %d bytes for a matrix of order %d, for which FixedBytes returns %d", inUse, a.Order(), b.FixedBytes(n))
		}
		low := r.lowerOf(b, a)
		for i := range n {
			for j := range i + 1 {
				if low.Row(i)[j] != 0 {
					r.Fatalf("NewFixed(%d): element (%d, %d) is %v, want 0", n, i, j, low.Row(i)[j])
				}
			}
		}
		a.Leading(n / 2).Free() // freeing a leading part has no effect
		a.Free()
		a.Free() // freeing twice has no effect
	}
}

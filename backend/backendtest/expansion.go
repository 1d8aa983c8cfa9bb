package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

func (r *rig[T]) expander() backend.Expander[T] {
	r.Helper()
	b := r.b.(backend.Expander[T])
	if _, ok := r.b.With(r.Context(), nil).(backend.Expander[T]); !ok {
		r.Fatal("the backend keeps expansions, but the queue that With returns does not")
	}
	return b
}

// padded returns h rounded to T, with a random stride and sentinels in the padding.
func (r *rig[T]) padded(h host) backend.Host[T] {
	out := backend.Host[T]{Rows: h.Rows, Cols: h.Cols, Stride: h.Cols + r.rng.IntN(4)}
	out.Data = make([]T, out.Rows*out.Stride)
	for i := range out.Data {
		out.Data[i] = T(sentinel)
	}
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			out.Row(i)[j] = T(v)
		}
	}
	return out
}

// testExpansion compares an expansion with the oracle within gramMulBound. Several goroutines apply it at the same
// time, after Z and V have been overwritten.
func testExpansion[T backend.Float](r *rig[T]) {
	b := r.expander()
	compare := func(k kernels.Kernel, m, d, t int, counts ...int) {
		z, v := r.normals(m, d), r.normals(m, t)
		offset := 0.0
		if stats := kernels.Compile(k).Stats; r.rng.IntN(3) == 0 && len(stats) == 1 && stats[0].Kind.TranslationInvariant() {
			offset = 1e6
		}
		shift := func(h host) host {
			return fromFunc(h.Rows, d, func(i, j int) float64 { return float64(T(offset + h.Row(i)[j])) })
		}
		z = shift(z)
		pz, pv := r.padded(z), r.padded(v)
		f, err := b.NewExpansion(k, pz, pv)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Free()
		if fd, ft := f.Dims(); fd != d || ft != t {
			r.Fatalf("%v: Dims() = %d, %d, want %d, %d", k, fd, ft, d, t)
		}
		clear(pz.Data)
		clear(pv.Data)
		var wg sync.WaitGroup
		got := make([]backend.Host[T], len(counts))
		points := make([]host, len(counts))
		errs := make([]error, len(counts))
		for i, n := range counts {
			points[i] = shift(r.normals(n, d))
			got[i] = r.padded(filled(n, t, sentinel))
			x := r.padded(points[i])
			wg.Go(func() { errs[i] = f.Apply(r.Context(), got[i], x) })
		}
		wg.Wait()
		for i, x := range points {
			label := fmt.Sprintf("Expansion %v n=%d m=%d d=%d t=%d, offset %g", k, x.Rows, m, d, t, offset)
			if errs[i] != nil {
				r.Fatalf("%s: %v", label, errs[i])
			}
			out := fromFunc(x.Rows, t, func(a, c int) float64 { return float64(got[i].Row(a)[c]) })
			if x.Rows == 0 || m == 0 {
				r.requireEqual(label, out, filled(x.Rows, t, 0))
				continue
			}
			want := r.callOracle(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
				b.GramMul(op[3], k, op[0], op[1], op[2])
				return nil
			}, x, z, v, filled(x.Rows, t, sentinel))
			r.requireWithin(label, out, want, r.gramMulBound(label, k, x, z, v))
		}
	}
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range everyKernel(d) {
			if r.included() {
				compare(k, 1+r.rng.IntN(60), d, 1+r.rng.IntN(4), 1, 2, r.rng.IntN(20))
			}
		}
	}
	for _, t := range []int{2, 3, 5} {
		compare(kernels.Gaussian{Sigma: 2}, 0, 3, t, 0, 1)
	}
	compare(kernels.Gaussian{Sigma: 6}, 2049, 20, 1, 1, 3, 300)
	if !few() {
		compare(kernels.Gaussian{Sigma: 6}, 4500, 20, 5, 1, 3, 300)
	}
	r.report()
}

// testExpansionFaults tests a canceled context, too little memory, and misuse.
func testExpansionFaults[T backend.Float](r *rig[T]) {
	b := r.expander()
	z, v := r.padded(r.normals(30, 4)), r.padded(r.normals(30, 2))
	f, err := b.NewExpansion(kernels.Gaussian{Sigma: 1}, z, v)
	if err != nil {
		r.Fatal(err)
	}
	if inUse, _ := r.dev.InUse(); inUse <= 0 {
		r.Errorf("InUse is %d bytes while an expansion is allocated, want more than 0", inUse)
	}
	dst := r.padded(filled(3, 2, 0))
	ctx, cancel := context.WithCancelCause(r.Context())
	cause := errors.New("reason")
	cancel(cause)
	if err := f.Apply(ctx, dst, r.padded(r.normals(3, 4))); !errors.Is(err, cause) {
		r.Errorf("Apply with a canceled context returned %v, want the cause", err)
	}
	r.requirePanic("Apply: ", func() { _ = f.Apply(r.Context(), dst, r.padded(r.normals(3, 5))) })
	r.requirePanic("Apply: ", func() { _ = f.Apply(r.Context(), dst, r.padded(r.normals(2, 4))) })
	r.requirePanic("NewExpansion: ", func() { _, _ = b.NewExpansion(kernels.Gaussian{Sigma: 1}, z, r.padded(r.normals(29, 2))) })
	r.requirePanic("NewExpansion: ", func() { _, _ = b.NewExpansion(nil, z, v) })
	r.requirePanic("NewExpansion: ", func() { _, _ = b.NewExpansion(kernels.Gaussian{}, z, v) })
	// A NaN in one point must affect only the value at that point.
	x := r.padded(r.normals(3, 4))
	x.Row(1)[2] = T(math.NaN())
	if err := f.Apply(r.Context(), dst, x); err != nil {
		r.Fatal(err)
	}
	for i := range 3 {
		if got := math.IsNaN(float64(dst.Row(i)[0])); got != (i == 1) {
			r.Errorf("row %d: the result is NaN: %t, want %t", i, got, i == 1)
		}
	}
	f.Free()

	smallDevice := r.queue(r.Open(r.T, backend.Config{Memory: 1000})).(backend.Expander[T])
	if _, err := smallDevice.NewExpansion(kernels.Gaussian{Sigma: 1}, z, v); !errors.Is(err, backend.ErrMemory) {
		r.Errorf("NewExpansion beyond the memory limit returned %v, want ErrMemory", err)
	}
}

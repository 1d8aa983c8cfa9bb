package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// job is an operation with its operands and its number of flops.
type job[T backend.Float] struct {
	name  string
	flops float64
	run   func(b backend.Backend[T]) error // queues the operation; returns an error only if the operation waits
}

// jobs returns an operation of order n for each kind of operation that reports flops. release frees the operands.
func (r *rig[T]) jobs(n int) (list []job[T], release func()) {
	r.Helper()
	upload := func(h host) backend.Matrix[T] { return Upload(r, r.b, round[T](h)) }
	const d, t = 7, 3
	identity := fromFunc(n, n, func(i, j int) float64 {
		if i == j {
			return 1
		}
		return 0
	})
	square, wide, eye := upload(r.integers(n, n, 2)), upload(r.integers(n, n-1, 2)), upload(identity)
	out, result := upload(filled(n, n, 0)), upload(filled(n, t, 0))
	points, points2, v := upload(r.normals(n, d)), upload(r.normals(n, d)), upload(r.normals(n, t))
	k := kernels.Gaussian{Sigma: 2}
	const noTrans, trans, lower = backend.NoTrans, backend.Transpose, backend.Lower
	list = []job[T]{
		{"Gemm", flop.Gemm(n, n, n-1), func(b backend.Backend[T]) error {
			b.Gemm(noTrans, trans, 1, wide, wide, 0, out)
			return nil
		}},
		{"Syrk", flop.Syrk(n, n-1), func(b backend.Backend[T]) error {
			b.Syrk(lower, noTrans, 1, wide, 0, out)
			return nil
		}},
		{"Symm", flop.Symm(n, n-1), func(b backend.Backend[T]) error {
			b.Symm(lower, 1, square, wide, 0, out.View(0, 0, n, n-1))
			return nil
		}},
		{"Trsm left", flop.Trsm(n, n-1), func(b backend.Backend[T]) error {
			b.Trsm(backend.Left, lower, noTrans, 1, eye, wide)
			return nil
		}},
		{"Trsm right", flop.Trsm(n-1, n), func(b backend.Backend[T]) error {
			b.Trsm(backend.Right, backend.Upper, trans, 1, eye.View(0, 0, n-1, n-1), wide)
			return nil
		}},
		{"Potrf", flop.Potrf(n), func(b backend.Backend[T]) error { return b.Potrf(lower, eye) }},
		{"Potrf upper", flop.Potrf(n), func(b backend.Backend[T]) error { return b.Potrf(backend.Upper, eye) }},
		{"Gram", flop.Gram(n, n, d, false), func(b backend.Backend[T]) error {
			b.Gram(out, k, points, points2)
			return nil
		}},
		{"Gram symmetric", flop.Gram(n, n, d, true), func(b backend.Backend[T]) error {
			b.Gram(out, k, points, points)
			return nil
		}},
		{"GramMul", flop.GramMul(n, n, d, t), func(b backend.Backend[T]) error {
			b.GramMul(result, k, points, points2, v)
			return nil
		}},
		{"GramMul symmetric", flop.GramMul(n, n, d, t), func(b backend.Backend[T]) error {
			b.GramMul(result, k, points, points, v)
			return nil
		}},
		{"Symm of a few columns", flop.Symm(n, t), func(b backend.Backend[T]) error {
			b.Symm(lower, 1, square, v, 0, result)
			return nil
		}},
		{"Gemm of a few columns", flop.Gemm(n, t, n), func(b backend.Backend[T]) error {
			b.Gemm(noTrans, noTrans, 1, square, v, 0, result)
			return nil
		}},
		{"Gemm of a few columns, transposed", flop.Gemm(n, t, n), func(b backend.Backend[T]) error {
			b.Gemm(trans, noTrans, 1, square, v, 0, result)
			return nil
		}},
	}
	packed, releasePacked := r.packedJobs(n, eye, points, v, result, k)
	return append(list, packed...), func() {
		releasePacked()
		for _, m := range []backend.Matrix[T]{square, wide, eye, out, result, points, points2, v} {
			m.Free()
		}
	}
}

// packedJobs returns the operations on packed storage, if the backend has packed storage.
func (r *rig[T]) packedJobs(n int, eye, points, v, result backend.Matrix[T], k kernels.Kernel) (list []job[T], release func()) {
	r.Helper()
	b, ok := r.b.(backend.PackedBackend[T])
	if !ok {
		return nil, func() {}
	}
	identity, err := r.load(b, Download(r, r.b, eye))
	if err != nil {
		r.Fatal(err)
	}
	out, err := b.NewPacked(n)
	if err != nil {
		r.Fatal(err)
	}
	_, d := points.Dims()
	_, t := v.Dims()
	withPacked := func(f func(b backend.PackedBackend[T]) error) func(backend.Backend[T]) error {
		return func(b backend.Backend[T]) error { return f(b.(backend.PackedBackend[T])) }
	}
	return []job[T]{
			{"GramPacked", flop.Gram(n, n, d, true), withPacked(func(b backend.PackedBackend[T]) error {
				b.GramPacked(out, k, points)
				return nil
			})},
			{"SymmPacked", flop.Symm(n, t), withPacked(func(b backend.PackedBackend[T]) error {
				b.SymmPacked(1, identity, v, 0, result)
				return nil
			})},
			{"PotrfPacked", flop.Potrf(n), withPacked(func(b backend.PackedBackend[T]) error { return b.PotrfPacked(identity) })},
			{"TrsmPacked", flop.Trsm(n, t), withPacked(func(b backend.PackedBackend[T]) error {
				b.TrsmPacked(backend.Transpose, identity, v)
				return nil
			})},
		}, func() {
			identity.Free()
			out.Free()
		}
}

// testProgress checks that the flops passed to done add up, and that calls of done do not overlap.
func testProgress[T backend.Float](r *rig[T]) {
	for _, n := range []int{1, 2, 5, 64, 131, min(r.LargeN, 500)} {
		list, release := r.jobs(n)
		for _, job := range list {
			var sum float64
			var calls int
			var running atomic.Bool
			b := r.b.With(r.Context(), func(flops float64) {
				if running.Swap(true) {
					r.Errorf("%s: done was called by two goroutines at a time", job.name)
				}
				if flops < 0 || math.IsNaN(flops) {
					r.Errorf("%s: done was called with %v flops", job.name, flops)
				}
				sum += flops
				calls++
				running.Store(false)
			})
			if err := errors.Join(job.run(b), b.Sync()); err != nil {
				r.Fatalf("%s: %v", job.name, err)
			}
			if math.Abs(sum-job.flops) > float64(calls)*0x1p-52*job.flops {
				r.Errorf("%s n=%d: done was called with %.17g flops in %d parts, want %.17g", job.name, n, sum, calls, job.flops)
			}
		}
		release()
	}
}

// testCancel cancels each operation before it starts, and at its first report of progress. The next waiting method
// of the queue must return the cause. The device and other queues must remain usable.
func testCancel[T backend.Float](r *rig[T]) {
	cause := errors.New("the reason of the test")
	n := min(r.LargeN, 700)
	if few() {
		n = min(n, 350)
	}
	list, release := r.jobs(n)
	release()
	m22 := r.alloc(r.b, 2, 2)
	for i, job := range list {
		for _, beforeStart := range []bool{true, false} {
			// Canceled work leaves undefined outputs: each job needs new matrices.
			list, release := r.jobs(n)
			job = list[i]
			label := fmt.Sprintf("%s, canceled before it starts: %v", job.name, beforeStart)
			ctx, cancel := context.WithCancelCause(context.Background())
			if beforeStart {
				cancel(cause)
			}
			b := r.b.With(ctx, func(float64) { cancel(cause) })
			otherQueue := r.b.With(context.Background(), nil)
			failure := job.run(b)
			if failure == nil {
				failure = b.Sync()
			}
			if !errors.Is(failure, cause) {
				r.Fatalf("%s: error is %v, want one that wraps context.Cause", label, failure)
			}
			// Every waiting method with this context must return its cause.
			h, v := backend.NewHost[T](2, 2), make([]T, 2)
			for name, err := range map[string]error{
				"Sync": b.Sync(), "Upload": b.Upload(m22, h), "Download": b.Download(h, m22),
				"Potrf": b.Potrf(backend.Lower, m22), "ColDot": b.ColDot(v, m22, m22),
			} {
				if !errors.Is(err, cause) {
					r.Errorf("%s: after the context was done, %s returned %v", label, name, err)
				}
			}
			if err := errors.Join(otherQueue.Sync(), r.b.Sync()); err != nil {
				r.Errorf("%s: another caller's Sync returned %v", label, err)
			}
			cancel(nil)
			release()
		}
		// Nobody waits for the following work. Other callers must not get its error.
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		r.b.With(ctx, nil).AddDiag([]T{1}, m22)
		if err := r.b.Sync(); err != nil {
			r.Errorf("%s: an error that was not collected reached another caller: %v", job.name, err)
		}
		r.gemmExact(gemmCase{m: 40, n: 50, k: 60, alpha: 1, beta: 1})
	}
	m22.Free()
	if err := r.dev.Sync(); err != nil && !errors.Is(err, cause) {
		r.Errorf("Sync of the device: %v", err)
	}
}

// testDeadline checks that a context past its deadline gives the error DeadlineExceeded.
func testDeadline[T backend.Float](r *rig[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err := r.b.With(ctx, nil).Sync(); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("Sync after the deadline returned %v, want context.DeadlineExceeded", err)
	}
}

// testConcurrent checks that concurrent callers get exact results while the context of one caller is canceled.
func testConcurrent[T backend.Float](r *rig[T]) {
	const callers = 4
	var group sync.WaitGroup
	failures := make([]error, callers)
	for c := range callers {
		n := 50 + 30*c
		a, x := r.integers(n, n, 4), r.integers(n, n, 4)
		want := mul(a, x)
		low := r.exactTriangle(n, 12, true)
		spd := mul(low, transpose(low))
		group.Go(func() {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			if c == 0 {
				cancel(errors.New("always canceled"))
			}
			for range r.reduced(20) {
				var reported float64
				b := r.b.With(ctx, func(flops float64) { reported += flops })
				err := multiplyAndFactor(b, a, x, want, spd, low)
				switch {
				case c == 0 && errors.Is(err, context.Cause(ctx)):
				case c == 0:
					failures[c] = fmt.Errorf("canceled work returned %v", err)
				case err != nil:
					failures[c] = err
				}
				if total := flop.Gemm(n, n, n) + flop.Potrf(n); c != 0 && math.Abs(reported-total) > 1e-9*total {
					failures[c] = fmt.Errorf("done was called with %g flops, want %g", reported, total)
				}
			}
		})
	}
	group.Wait()
	for c, err := range failures {
		if err != nil {
			r.Errorf("caller %d: %v", c, err)
		}
	}
}

// multiplyAndFactor multiplies and factors matrices on b, and returns an error if a result is wrong.
func multiplyAndFactor[T backend.Float](b backend.Backend[T], a, x, want, spd, low host) error {
	n := a.Rows
	var m [3]backend.Matrix[T]
	for i := range m {
		var err error
		if m[i], err = b.New(n, n); err != nil {
			return err
		}
		defer m[i].Free()
	}
	if err := errors.Join(b.Upload(m[0], round[T](a)), b.Upload(m[1], round[T](x))); err != nil {
		return err
	}
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, m[0], m[1], 0, m[2])
	got := backend.NewHost[T](n, n)
	if err := b.Download(got, m[2]); err != nil {
		return err
	}
	for i, w := range want.Data {
		if float64(got.Data[i]) != w {
			return fmt.Errorf("with concurrent callers: element %d of a product is %v, want %v", i, got.Data[i], w)
		}
	}
	if err := b.Upload(m[2], round[T](spd)); err != nil {
		return err
	}
	if err := b.Potrf(backend.Lower, m[2]); err != nil {
		return err
	}
	if err := b.Download(got, m[2]); err != nil {
		return err
	}
	for i := range n {
		for j := range i + 1 {
			if float64(got.Row(i)[j]) != low.Row(i)[j] {
				return fmt.Errorf("with concurrent callers: element (%d, %d) of a factor is %v, want %v", i, j, got.Row(i)[j], low.Row(i)[j])
			}
		}
	}
	return nil
}

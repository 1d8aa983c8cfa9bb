package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// testThreads checks that every method gives results with the same bits with 1, 2, 3 and 8 workers.
func testThreads[T backend.Float](r *rig[T]) {
	sizes := []int{65, min(r.LargeN, 601)}
	if short() {
		sizes[1] = min(r.LargeN, 389)
	}
	for _, n := range sizes {
		const d, t = 20, 5
		a, c := round[T](r.normals(n, n)), round[T](r.normals(n, n))
		tall, wide := round[T](r.normals(n, 3)), round[T](r.normals(3, n))
		x, z, v := round[T](r.normals(n, d)), round[T](r.normals(n+1, d)), round[T](r.normals(n+1, t))
		g := r.normals(n, 2*t)
		spd := round[T](fromFunc(n, n, func(i, j int) float64 { // GGᵀ + I is positive definite
			var s float64
			for p, gip := range g.Row(i) {
				s += gip * g.Row(j)[p]
			}
			if i == j {
				s++
			}
			return s
		}))
		var first map[string]backend.Host[T]
		for _, threads := range []int{1, 2, 3, 8, 2} {
			dev := r.Open(r, backend.Config{Threads: threads})
			b := r.queue(dev)
			results := map[string]backend.Host[T]{}
			record := func(name string, m backend.Matrix[T]) { results[name] = Download(r, b, m) }
			A, C, tall, wide := Upload(r, b, a), Upload(r, b, c), Upload(r, b, tall), Upload(r, b, wide)
			X, Z, V, S := Upload(r, b, x), Upload(r, b, z), Upload(r, b, v), Upload(r, b, spd)
			const noTrans, trans, lower, upper = backend.NoTrans, backend.Transpose, backend.Lower, backend.Upper

			if err := b.Potrf(lower, S); err != nil {
				r.Fatal(err)
			}
			record("Potrf", S)
			b.Trsm(backend.Left, lower, noTrans, 1, S, C)
			b.Trsm(backend.Right, lower, trans, 1, S, C)
			record("Trsm", C)
			b.Gemm(noTrans, trans, 0.5, A, C, 1, C.View(0, 0, n, n))
			b.Gemm(trans, noTrans, 1, A, tall, 0, C.View(0, 0, n, 3))
			b.Gemm(noTrans, noTrans, 1, wide, A, 0, C.View(0, 0, 3, n))
			record("Gemm", C)
			b.Syrk(upper, trans, 1, A, 1, S)
			record("Syrk", S)
			b.Syrk(upper, trans, 0.7, A, 0.3, S)
			b.Syrk(lower, noTrans, 0.7, A, 0.3, S)
			record("Syrk, scaled", S)
			b.Symm(lower, 1, S, A, 0, C)
			record("Symm", C)
			b.Symm(lower, 1, S, A.View(0, 0, n, 2), 0, tall.View(0, 0, n, 2))
			b.Symm(upper, 1, S, A.View(0, 2, n, 1), 1, tall.View(0, 2, n, 1))
			record("Symm of a few columns", tall)
			b.Gram(C, kernels.Gaussian{Sigma: 4}, X, X)
			record("Gram", C)
			b.Gram(C, kernels.Matern{Nu: 1.5, Sigma: 4}, X, Z.View(0, 0, n, d))
			record("Gram of two sets", C)
			b.GramMul(X.View(0, 0, n, t), kernels.Laplacian{Sigma: 9}, Z.View(0, 0, n, d), Z, V)
			record("GramMul", X)
			for _, columns := range []int{1, t} {
				out := r.alloc(b, n+1, columns)
				b.GramMul(out, kernels.Gaussian{Sigma: 4}, Z, Z, V.View(0, 0, n+1, columns))
				record(fmt.Sprintf("GramMul of one set, %d columns", columns), out)
				out.Free()
			}
			dots := backend.NewHost[T](1, n)
			if err := b.ColDot(dots.Data, A, S); err != nil {
				r.Fatal(err)
			}
			results["ColDot"] = dots
			b.ColAxpy(dots.Data, A, S)
			record("ColAxpy", S)

			if h, ok := b.(backend.PackedBackend[T]); ok {
				threadsPacked(r, h, spd, X.View(0, 0, n, d), V.View(0, 0, n, t), func(name string, h backend.Host[T]) { results[name] = h })
			}

			if first == nil {
				first = results
			}
			for name, got := range results {
				requireBits(r, fmt.Sprintf("%s n=%d with %d workers, against 1", name, n, threads), got, first[name])
			}
		}
	}
}

// threadsPacked runs every operation on packed storage and passes each result to record.
func threadsPacked[T backend.Float](r *rig[T], b backend.PackedBackend[T], spd backend.Host[T], x, v backend.Matrix[T], record func(name string, h backend.Host[T])) {
	n, t := v.Dims()
	packed, err := r.load(b, spd)
	if err != nil {
		r.Fatal(err)
	}
	defer packed.Free()
	out := r.alloc(b, n, t)
	defer out.Free()
	low := func() backend.Host[T] {
		h := backend.NewHost[T](n, n)
		if err := r.save(b, h, packed); err != nil {
			r.Fatal(err)
		}
		return h
	}
	b.SymmPacked(1, packed, v, 0, out)
	b.SymmPacked(2, packed, v.View(0, 0, n, 1), 1, out.View(0, 1, n, 1))
	record("SymmPacked", Download(r, b, out))
	if err := b.PotrfPacked(packed); err != nil {
		r.Fatal(err)
	}
	record("PotrfPacked", low())
	b.TrsmPacked(backend.NoTrans, packed, out)
	b.TrsmPacked(backend.Transpose, packed, out.View(0, 0, n, 1))
	record("TrsmPacked", Download(r, b, out))
	b.GramPacked(packed, kernels.Gaussian{Sigma: 4}, x)
	record("GramPacked", low())
}

package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// testThreads checks every method that may use several workers. 1, 2, 3 and 8 workers, and two
// devices with 2 workers, must give results with the same bits.
func testThreads[T backend.Float](r *rig[T]) {
	sizes := []int{65, min(r.LargeN, 601)}
	if short() {
		sizes[1] = min(r.LargeN, 389)
	}
	for _, n := range sizes {
		const d, t = 20, 5
		a, c := round[T](r.normals(n, n)), round[T](r.normals(n, n))
		thin, wide := round[T](r.normals(n, 3)), round[T](r.normals(3, n))
		x, z, v := round[T](r.normals(n, d)), round[T](r.normals(n+1, d)), round[T](r.normals(n+1, t))
		g := r.normals(n, 2*t)
		spd := round[T](each(n, n, func(i, j int) float64 { // GGᵀ + I is positive definite
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
			keep := func(name string, m backend.Matrix[T]) { results[name] = Download(r, b, m) }
			A, C, thin, wide := Upload(r, b, a), Upload(r, b, c), Upload(r, b, thin), Upload(r, b, wide)
			X, Z, V, S := Upload(r, b, x), Upload(r, b, z), Upload(r, b, v), Upload(r, b, spd)
			const no, yes, low, up = backend.NoTrans, backend.Transpose, backend.Lower, backend.Upper

			if err := b.Potrf(low, S); err != nil {
				r.Fatal(err)
			}
			keep("Potrf", S)
			b.Trsm(backend.Left, low, no, 1, S, C)
			b.Trsm(backend.Right, low, yes, 1, S, C)
			keep("Trsm", C)
			b.Gemm(no, yes, 0.5, A, C, 1, C.View(0, 0, n, n))
			b.Gemm(yes, no, 1, A, thin, 0, C.View(0, 0, n, 3))
			b.Gemm(no, no, 1, wide, A, 0, C.View(0, 0, 3, n))
			keep("Gemm", C)
			b.Syrk(up, yes, 1, A, 1, S)
			keep("Syrk", S)
			b.Syrk(up, yes, 0.7, A, 0.3, S)
			b.Syrk(low, no, 0.7, A, 0.3, S)
			keep("Syrk, scaled", S)
			b.Symm(low, 1, S, A, 0, C)
			keep("Symm", C)
			b.Symm(low, 1, S, A.View(0, 0, n, 2), 0, thin.View(0, 0, n, 2))
			b.Symm(up, 1, S, A.View(0, 2, n, 1), 1, thin.View(0, 2, n, 1))
			keep("Symm of a few columns", thin)
			b.Gram(C, kernels.Gaussian{Sigma: 4}, X, X)
			keep("Gram", C)
			b.Gram(C, kernels.Matern{Nu: 1.5, Sigma: 4}, X, Z.View(0, 0, n, d))
			keep("Gram of two sets", C)
			b.GramMul(X.View(0, 0, n, t), kernels.Laplacian{Sigma: 9}, Z.View(0, 0, n, d), Z, V)
			keep("GramMul", X)
			for _, columns := range []int{1, t} {
				one := r.alloc(b, n+1, columns)
				b.GramMul(one, kernels.Gaussian{Sigma: 4}, Z, Z, V.View(0, 0, n+1, columns))
				keep(fmt.Sprintf("GramMul of one set, %d columns", columns), one)
				one.Free()
			}
			dots := backend.NewHost[T](1, n)
			if err := b.ColDot(dots.Data, A, S); err != nil {
				r.Fatal(err)
			}
			results["ColDot"] = dots
			b.ColAxpy(dots.Data, A, S)
			keep("ColAxpy", S)

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

// threadsPacked runs every operation on packed storage and passes each result to keep.
func threadsPacked[T backend.Float](r *rig[T], b backend.PackedBackend[T], spd backend.Host[T], x, v backend.Matrix[T], keep func(name string, h backend.Host[T])) {
	n, t := v.Dims()
	half, err := r.load(b, spd)
	if err != nil {
		r.Fatal(err)
	}
	defer half.Free()
	out := r.alloc(b, n, t)
	defer out.Free()
	low := func() backend.Host[T] {
		h := backend.NewHost[T](n, n)
		if err := r.save(b, h, half); err != nil {
			r.Fatal(err)
		}
		return h
	}
	b.SymmPacked(1, half, v, 0, out)
	b.SymmPacked(2, half, v.View(0, 0, n, 1), 1, out.View(0, 1, n, 1))
	keep("SymmPacked", Download(r, b, out))
	if err := b.PotrfPacked(half); err != nil {
		r.Fatal(err)
	}
	keep("PotrfPacked", low())
	b.TrsmPacked(backend.NoTrans, half, out)
	b.TrsmPacked(backend.Transpose, half, out.View(0, 0, n, 1))
	keep("TrsmPacked", Download(r, b, out))
	b.GramPacked(half, kernels.Gaussian{Sigma: 4}, x)
	keep("GramPacked", low())
}

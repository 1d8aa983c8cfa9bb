//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"fmt"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
)

// routines sets the Routines of out, and the function Threads.
func (l library) routines(out *Library, threads func(n int)) (err error) {
	out.Threads = func(n int) func() {
		threads(n)
		return func() {}
	}
	if out.F64, err = fortran[float64](l, "d"); err == nil {
		out.F32, err = fortran[float32](l, "s")
	}
	return err
}

// fortran returns the Routines of a library with the Fortran interface and 32-bit integers. letter is the type
// letter, d or s. A library without LAPACK has no potrf.
//
// Fortran stores matrices by columns. For the library a row-major A is therefore Aᵀ, and the lower triangle of A
// is the upper triangle of Aᵀ. Each of the Routines calls a routine for the transposed equation:
//
//	C = A B       Cᵀ = Bᵀ Aᵀ           gemm(N, N, …, B, A)
//	C = A B, A=Aᵀ Cᵀ = Bᵀ A            symm(R, U, …, A, B)
//	C = A Aᵀ      Cᵀ = (Aᵀ)ᵀ Aᵀ        syrk(U, T, …)
//	A X = B       Xᵀ Aᵀ = Bᵀ           trsm(R, U, N, N, …)
//	A = L Lᵀ      Aᵀ = A = (Lᵀ)ᵀ Lᵀ    potrf(U, …)
//	y = A x       the same             symv(U, …)
func fortran[T backend.Float](l library, letter string) (r Routines[T], err error) {
	sym := func(name string) uintptr {
		p, e := l.symbol(letter + name + "_")
		if e != nil && err == nil {
			err = e
		}
		return p
	}
	gemm, symm, syrk, trsm, symv := sym("gemm"), sym("symm"), sym("syrk"), sym("trsm"), sym("symv")
	if err != nil {
		return r, err
	}
	// Fortran takes arguments by reference. x is a block for all arguments, which is allocated once.
	x := &arguments[T]{n: 'N', t: 'T', r: 'R', u: 'U', one: 1}
	r.Gemm = func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) {
		x.dims(c.Cols, c.Rows, a.Cols)
		x.strides(b, a, c)
		x.alpha, x.beta = alpha, beta
		call(gemm, [3]backend.Host[T]{a, b, c}, ptr(&x.n), ptr(&x.n), ptr(&x.d[0]), ptr(&x.d[1]), ptr(&x.d[2]), ptr(&x.alpha),
			data(b), ptr(&x.ld[0]), data(a), ptr(&x.ld[1]), ptr(&x.beta), data(c), ptr(&x.ld[2]))
	}
	r.Symm = func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) {
		x.dims(c.Cols, c.Rows, 0)
		x.strides(a, b, c)
		x.alpha, x.beta = alpha, beta
		call(symm, [3]backend.Host[T]{a, b, c}, ptr(&x.r), ptr(&x.u), ptr(&x.d[0]), ptr(&x.d[1]), ptr(&x.alpha),
			data(a), ptr(&x.ld[0]), data(b), ptr(&x.ld[1]), ptr(&x.beta), data(c), ptr(&x.ld[2]))
	}
	r.Syrk = func(alpha T, a backend.Host[T], beta T, c backend.Host[T]) {
		x.dims(a.Rows, a.Cols, 0)
		x.strides(a, c, c)
		x.alpha, x.beta = alpha, beta
		call(syrk, [2]backend.Host[T]{a, c}, ptr(&x.u), ptr(&x.t), ptr(&x.d[0]), ptr(&x.d[1]), ptr(&x.alpha),
			data(a), ptr(&x.ld[0]), ptr(&x.beta), data(c), ptr(&x.ld[1]))
	}
	r.Trsm = func(alpha T, a, b backend.Host[T]) {
		x.dims(b.Cols, b.Rows, 0)
		x.strides(a, b, b)
		x.alpha = alpha
		call(trsm, [2]backend.Host[T]{a, b}, ptr(&x.r), ptr(&x.u), ptr(&x.n), ptr(&x.n), ptr(&x.d[0]), ptr(&x.d[1]), ptr(&x.alpha),
			data(a), ptr(&x.ld[0]), data(b), ptr(&x.ld[1]))
	}
	if potrf, err := l.symbol(letter + "potrf_"); err == nil {
		r.Potrf = func(a backend.Host[T]) error {
			x.dims(a.Rows, 0, 0)
			x.strides(a, a, a)
			call(potrf, a, ptr(&x.u), ptr(&x.d[0]), data(a), ptr(&x.ld[0]), ptr(&x.info))
			if x.info != 0 {
				return fmt.Errorf("bench: %s: potrf returned %d", l.name, x.info)
			}
			return nil
		}
	}
	r.Symv = func(alpha T, a backend.Host[T], v []T, beta T, y []T) {
		x.dims(a.Rows, 0, 0)
		x.strides(a, a, a)
		x.alpha, x.beta = alpha, beta
		call(symv, [3][]T{a.Data, v, y}, ptr(&x.u), ptr(&x.d[0]), ptr(&x.alpha), data(a), ptr(&x.ld[0]),
			ptr(unsafe.SliceData(v)), ptr(&x.one), ptr(&x.beta), ptr(unsafe.SliceData(y)), ptr(&x.one))
	}
	return r, nil
}

// arguments holds the scalar arguments of a call.
type arguments[T backend.Float] struct {
	n, t, r, u  byte
	d, ld       [3]int32
	one, info   int32
	alpha, beta T
}

func (x *arguments[T]) dims(a, b, c int) { x.d = [3]int32{int32(a), int32(b), int32(c)} }

func (x *arguments[T]) strides(a, b, c backend.Host[T]) {
	x.ld = [3]int32{int32(max(a.Stride, 1)), int32(max(b.Stride, 1)), int32(max(c.Stride, 1))}
}

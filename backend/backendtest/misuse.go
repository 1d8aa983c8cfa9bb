package backendtest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// requirePanic requires that f panics with the text of package check for the operation op, which it returns.
func requirePanic(t testing.TB, op string, f func()) string {
	t.Helper()
	text := func() (text string) {
		defer func() {
			if v := recover(); v != nil {
				text = fmt.Sprint(v)
			}
		}()
		f()
		return ""
	}()
	if !strings.HasPrefix(text, "backend: "+op) {
		if text == "" {
			text = "nothing"
		}
		t.Errorf("%s: misuse must panic with %q, panicked with: %s", op, "backend: "+op+"…", text)
	}
	return text
}

func (r *rig[T]) requirePanic(op string, f func()) string {
	r.Helper()
	return requirePanic(r, op, f)
}

// testMisuse checks that calls with one invalid argument panic, and that valid calls still work afterwards.
func testMisuse[T backend.Float](r *rig[T]) {
	b := r.b
	m := map[[2]int]backend.Matrix[T]{}
	mat := func(rows, cols int) backend.Matrix[T] {
		if m[[2]int{rows, cols}] == nil {
			m[[2]int{rows, cols}] = r.alloc(b, rows, cols)
		}
		return m[[2]int{rows, cols}]
	}
	host := func(rows, cols, stride, length int) backend.Host[T] {
		return backend.Host[T]{Rows: rows, Cols: cols, Stride: stride, Data: make([]T, length)}
	}
	const noTrans, trans, lower, left, bad = backend.NoTrans, backend.Transpose, backend.Lower, backend.Left, 9
	linear := kernels.Linear{}
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"New: ", func() { b.New(-1, 2) }},
		{"New: ", func() { b.New(2, -1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(-1, 0, 1, 1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, -1, 1, 1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, 0, -1, 1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, 0, 1, -1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(1, 0, 3, 4) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, 1, 3, 4) }},
		{"Matrix.View: ", func() { mat(3, 4).View(4, 0, 0, 0) }},
		{"Matrix.View: ", func() { mat(3, 4).View(1, 0, math.MaxInt, 1) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, 1, 1, math.MaxInt) }},
		{"Matrix.View: ", func() { mat(3, 4).View(0, 0, 2, 2).View(0, 0, 3, 2) }},
		{"Upload: ", func() { b.Upload(mat(3, 4), host(3, 3, 4, 12)) }},
		{"Upload: ", func() { b.Upload(mat(3, 4), host(3, 4, 3, 12)) }},
		{"Upload: ", func() { b.Upload(mat(3, 4), host(3, 4, 5, 13)) }},
		{"Upload: ", func() { b.Upload(mat(3, 4), host(3, 4, math.MaxInt/2+1, 12)) }},
		{"Upload: ", func() { b.Upload(mat(3, 4), host(-3, 4, 4, 12)) }},
		{"Download: ", func() { b.Download(host(4, 3, 4, 16), mat(3, 4)) }},
		{"Download: ", func() { b.Download(host(3, 4, 4, 11), mat(3, 4)) }},
		{"Gemm: ", func() { b.Gemm(noTrans, noTrans, 1, mat(3, 4), mat(3, 4), 0, mat(3, 4)) }},
		{"Gemm: ", func() { b.Gemm(noTrans, trans, 1, mat(3, 4), mat(3, 4), 0, mat(3, 4)) }},
		{"Gemm: ", func() { b.Gemm(trans, noTrans, 1, mat(3, 4), mat(3, 4), 0, mat(3, 3)) }},
		{"Gemm: ", func() { b.Gemm(bad, noTrans, 1, mat(3, 3), mat(3, 3), 0, mat(3, 3)) }},
		{"Gemm: ", func() { b.Gemm(noTrans, bad, 1, mat(3, 3), mat(3, 3), 0, mat(3, 3)) }},
		{"Syrk: ", func() { b.Syrk(lower, noTrans, 1, mat(3, 4), 0, mat(4, 4)) }},
		{"Syrk: ", func() { b.Syrk(lower, trans, 1, mat(3, 4), 0, mat(3, 3)) }},
		{"Syrk: ", func() { b.Syrk(lower, noTrans, 1, mat(3, 4), 0, mat(3, 4)) }},
		{"Syrk: ", func() { b.Syrk(bad, noTrans, 1, mat(3, 4), 0, mat(3, 3)) }},
		{"Syrk: ", func() { b.Syrk(lower, bad, 1, mat(3, 4), 0, mat(3, 3)) }},
		{"Symm: ", func() { b.Symm(lower, 1, mat(3, 4), mat(4, 3), 0, mat(3, 3)) }},
		{"Symm: ", func() { b.Symm(lower, 1, mat(3, 3), mat(4, 3), 0, mat(4, 3)) }},
		{"Symm: ", func() { b.Symm(lower, 1, mat(3, 3), mat(3, 4), 0, mat(3, 3)) }},
		{"Symm: ", func() { b.Symm(bad, 1, mat(3, 3), mat(3, 4), 0, mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(left, lower, noTrans, 1, mat(3, 4), mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(left, lower, noTrans, 1, mat(4, 4), mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(backend.Right, lower, noTrans, 1, mat(3, 3), mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(bad, lower, noTrans, 1, mat(3, 3), mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(left, bad, noTrans, 1, mat(3, 3), mat(3, 4)) }},
		{"Trsm: ", func() { b.Trsm(left, lower, bad, 1, mat(3, 3), mat(3, 4)) }},
		{"Potrf: ", func() { b.Potrf(lower, mat(3, 4)) }},
		{"Potrf: ", func() { b.Potrf(bad, mat(3, 3)) }},
		{"AddDiag: ", func() { b.AddDiag([]T{1}, mat(3, 4)) }},
		{"AddDiag: ", func() { b.AddDiag([]T{1, 2}, mat(3, 3)) }},
		{"AddDiag: ", func() { b.AddDiag(nil, mat(3, 3)) }},
		{"ColAxpy: ", func() { b.ColAxpy([]T{1, 2, 3}, mat(3, 4), mat(3, 4)) }},
		{"ColAxpy: ", func() { b.ColAxpy([]T{1, 2, 3}, mat(4, 3), mat(3, 3)) }},
		{"ColDot: ", func() { b.ColDot(make([]T, 5), mat(3, 4), mat(3, 4)) }},
		{"ColDot: ", func() { b.ColDot(make([]T, 4), mat(3, 4), mat(4, 4)) }},
		{"Gram: ", func() { b.Gram(mat(3, 4), linear, mat(3, 2), mat(3, 2)) }},
		{"Gram: ", func() { b.Gram(mat(3, 4), linear, mat(3, 2), mat(4, 3)) }},
		{"Gram: ", func() { b.Gram(mat(3, 3), nil, mat(3, 2), mat(3, 2)) }},
		{"Gram: ", func() { b.Gram(mat(3, 3), kernels.Gaussian{}, mat(3, 2), mat(3, 2)) }},
		{"Gram: ", func() { b.Gram(mat(3, 3), kernels.Gaussian{Sigmas: []float64{1, 1, 1}}, mat(3, 2), mat(3, 2)) }},
		{"GramMul: ", func() { b.GramMul(mat(3, 1), linear, mat(3, 2), mat(4, 2), mat(3, 1)) }},
		{"GramMul: ", func() { b.GramMul(mat(4, 1), linear, mat(3, 2), mat(4, 2), mat(4, 1)) }},
		{"GramMul: ", func() { b.GramMul(mat(3, 2), linear, mat(3, 2), mat(4, 2), mat(4, 1)) }},
		{"GramMul: ", func() { b.GramMul(mat(3, 1), kernels.Polynomial{}, mat(3, 2), mat(4, 2), mat(4, 1)) }},
	} {
		r.requirePanic(c.op, c.f)
	}
	if err := b.Sync(); err != nil {
		r.Errorf("Sync after misuse: %v", err)
	}
	for _, v := range m {
		v.Free()
	}
	r.gemmExact(gemmCase{m: 5, n: 6, k: 7, alpha: 1, beta: 1})
}

// testForeign checks that each method panics if an operand is a matrix of another device.
func testForeign[T backend.Float](r *rig[T]) {
	other := r.queue(r.Open(r, backend.Config{}))
	const n = 3
	foreign := []backend.Matrix[T]{r.alloc(other, n, n), r.alloc(r.oracle, n, n)}
	local := r.alloc(r.b, n, n)
	defer local.Free()
	v, h := make([]T, n), backend.NewHost[T](n, n)
	k := kernels.Gaussian{Sigma: 1}
	b := r.b
	for _, c := range []struct {
		op       string
		operands int
		f        func(m []backend.Matrix[T])
	}{
		{"Upload", 1, func(m []backend.Matrix[T]) { b.Upload(m[0], h) }},
		{"Download", 1, func(m []backend.Matrix[T]) { b.Download(h, m[0]) }},
		{"Gemm", 3, func(m []backend.Matrix[T]) { b.Gemm(0, 0, 1, m[0], m[1], 0, m[2]) }},
		{"Syrk", 2, func(m []backend.Matrix[T]) { b.Syrk(0, 0, 1, m[0], 0, m[1]) }},
		{"Symm", 3, func(m []backend.Matrix[T]) { b.Symm(0, 1, m[0], m[1], 0, m[2]) }},
		{"Trsm", 2, func(m []backend.Matrix[T]) { b.Trsm(0, 0, 0, 1, m[0], m[1]) }},
		{"Potrf", 1, func(m []backend.Matrix[T]) { b.Potrf(0, m[0]) }},
		{"AddDiag", 1, func(m []backend.Matrix[T]) { b.AddDiag(v, m[0]) }},
		{"ColAxpy", 2, func(m []backend.Matrix[T]) { b.ColAxpy(v, m[0], m[1]) }},
		{"ColDot", 2, func(m []backend.Matrix[T]) { b.ColDot(v, m[0], m[1]) }},
		{"Gram", 3, func(m []backend.Matrix[T]) { b.Gram(m[0], k, m[1], m[2]) }},
		{"GramMul", 4, func(m []backend.Matrix[T]) { b.GramMul(m[0], k, m[1], m[2], m[3]) }},
	} {
		for _, matrix := range foreign {
			for index := range c.operands {
				m := []backend.Matrix[T]{local, local, local, local}
				m[index] = matrix
				if text := r.requirePanic(c.op+": ", func() { c.f(m) }); !strings.Contains(text, "another device") {
					r.Errorf("%s: operand %d of another device: panicked with %q, want a text that names another device", c.op, index, text)
				}
			}
		}
	}
	foreign[0].Free()
}

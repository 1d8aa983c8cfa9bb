package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/peer"
	"github.com/mercer-go/mercer/internal/flop"
)

type routine struct {
	name     string
	flops    func(n int) float64
	inPlace  bool // whether C is also an input; C is then restored before every run
	triangle bool // whether the routine writes only the lower triangle of C
	vector   bool // whether B and C are columns; the memory bandwidth then limits the rate
}

var routines = []routine{
	{name: "gemm", flops: func(n int) float64 { return flop.Gemm(n, n, n) }},
	{name: "symm", flops: func(n int) float64 { return flop.Symm(n, n) }},
	{name: "syrk", flops: func(n int) float64 { return flop.Syrk(n, n) }, triangle: true},
	{name: "trsm", flops: func(n int) float64 { return flop.Trsm(n, n) }, inPlace: true},
	{name: "potrf", flops: flop.Potrf, inPlace: true, triangle: true},
	{name: "symv", flops: func(n int) float64 { return flop.Symm(n, 1) }, vector: true},
}

// Routines lists the routines that can be measured.
func Routines() []string {
	var names []string
	for _, r := range routines {
		names = append(names, r.name)
	}
	return names
}

// problem holds the operands of a routine, which all implementations share.
//
//	gemm, symm, symv  C ← A B
//	syrk              C ← A Aᵀ
//	trsm              C ← A⁻¹ C
//	potrf             C = L Lᵀ, L overwrites C
type problem[T backend.Float] struct {
	routine
	n     int
	a, b  backend.Host[T]
	c     backend.Host[T] // the result
	input backend.Host[T] // the input C of an in-place routine
	reference[T]
}

func newProblem[T backend.Float](r routine, n int) *problem[T] {
	p := &problem[T]{routine: r, n: n}
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	random := func(rows, cols int, width float64) backend.Host[T] {
		h := backend.NewHost[T](rows, cols)
		for i := range h.Data {
			h.Data[i] = T((2*rng.Float64() - 1) * width)
		}
		return h
	}
	cols := n
	if r.vector {
		cols = 1
	}
	p.c = backend.NewHost[T](n, cols)
	switch r.name {
	case "gemm", "symm", "symv":
		p.a, p.b = random(n, n, 1), random(n, cols, 1)
	case "syrk":
		p.a = random(n, n, 1)
		p.b = p.a
	case "trsm":
		// In each row and column of A − I, the absolute values add up to at most 1/2.
		p.a, p.input = random(n, n, 0.5/float64(n)), random(n, n, 1)
		for i := range n {
			p.a.Row(i)[i] = 1
		}
	case "potrf":
		// The elements of C − I have the variance 1/(16n), so that the norm of C − I is about 1/2 (Wigner).
		p.input = random(n, n, math.Sqrt(3/(16*float64(n))))
		for i := range n {
			p.input.Row(i)[i] = 1
		}
	}
	return p
}

// preparation returns the function that an entry calls before each of its runs. It restores C for an in-place
// routine, and otherwise fills C with NaN before the first run, so that a missing result is detected.
func (p *problem[T]) preparation() func() {
	if p.inPlace {
		return func() { copy(p.c.Data, p.input.Data) }
	}
	return sync.OnceFunc(func() {
		for i := range p.c.Data {
			p.c.Data[i] = T(math.NaN())
		}
	})
}

func (p *problem[T]) check() *Check { return p.reference.check(p.c, p.triangle, p.bound) }

// A reference is the result of the first implementation of a case.
type reference[T backend.Float] struct {
	want  backend.Host[T] // the first result; empty before
	limit float64         // maximum relative difference from want
}

// check returns the relative difference of got from the reference in the Frobenius norm. If triangle is set, only
// lower triangles are compared. For the first result, which becomes the reference with limit bound(), it returns nil.
func (r *reference[T]) check(got backend.Host[T], triangle bool, bound func() float64) *Check {
	var empty backend.Host[T]
	if r.want.Data == nil {
		r.want = got
		r.want.Data = slices.Clone(got.Data)
		r.limit = bound()
		return nil
	}
	return &Check{Difference: distance(got, r.want, triangle) / distance(r.want, empty, triangle), Limit: r.limit}
}

// norm returns the Frobenius norm of a whole matrix.
func norm[T backend.Float](a backend.Host[T]) float64 { return distance(a, backend.Host[T]{}, false) }

// distance returns the Frobenius norm of A − B, or of A if B has no elements.
func distance[T backend.Float](a, b backend.Host[T], triangle bool) float64 {
	var sum float64
	for i := range a.Rows {
		cols := a.Cols
		if triangle {
			cols = min(i+1, cols)
		}
		for j, v := range a.Row(i)[:cols] {
			d := float64(v)
			if b.Data != nil {
				d -= float64(b.Row(i)[j])
			}
			sum += d * d
		}
	}
	return math.Sqrt(sum)
}

// roundoff returns the unit roundoff, half a unit in the last place of 1.
func roundoff[T backend.Float]() float64 {
	if unsafe.Sizeof(T(0)) == 4 {
		return 0x1p-24
	}
	return 0x1p-53
}

// bound returns a bound on the relative difference between the results of two correct implementations, with
// γ = 10·√n·u for the unit roundoff u, or n·u if this is smaller (Higham and Mary 2019, theorem 2.4 with λ = 10):
//   - Products: the Frobenius norm of the error is at most γ‖A‖‖B‖.
//   - Triangular solves: |ΔX| ≤ γ |A⁻¹||A||X| (Higham 2002, theorem 8.5). As the absolute values in each row and
//     column of A − I add up to at most 1/2, the norm of |A⁻¹||A| is at most 1.5/(1 − 0.5) = 3.
//   - Cholesky: the computed factor is exact for C + ΔC with ‖ΔC‖ ≤ γ·n (theorem 10.3). This changes the factor by
//     at most ‖ΔC‖·κ/√2·‖L‖₂/‖C‖₂ (theorem 10.8). The eigenvalues of C lie in 1 ± 0.6, so that κ ≤ 4 and ‖L‖₂ ≤ ‖C‖₂.
func (p *problem[T]) bound() float64 {
	n, size := float64(p.n), distance(p.want, backend.Host[T]{}, p.triangle)
	gamma := min(n, 10*math.Sqrt(n)) * roundoff[T]()
	switch p.name {
	case "trsm":
		return 2 * 3 * gamma
	case "potrf":
		return 2 * gamma * n * 4 / math.Sqrt2 / size
	}
	return 2 * gamma * norm(p.a) * norm(p.b) / size
}

// library returns a function that runs the routine of p in a library, or nil if the library lacks the routine.
func (p *problem[T]) library(r peer.Routines[T]) func() error {
	switch p.name {
	case "gemm":
		return func() error { r.Gemm(1, p.a, p.b, 0, p.c); return nil }
	case "symm":
		return func() error { r.Symm(1, p.a, p.b, 0, p.c); return nil }
	case "syrk":
		return func() error { r.Syrk(1, p.a, 0, p.c); return nil }
	case "trsm":
		return func() error { r.Trsm(1, p.a, p.c); return nil }
	case "symv":
		return func() error { r.Symv(1, p.a, p.b.Data, 0, p.c.Data); return nil }
	}
	if r.Potrf == nil {
		return nil
	}
	return func() error { return r.Potrf(p.c) }
}

// device returns a function that runs the routine of p on the matrices a, b and c of a device.
func (p *problem[T]) device(q backend.Backend[T], a, b, c backend.Matrix[T]) func() error {
	switch p.name {
	case "gemm":
		return func() error { q.Gemm(backend.NoTrans, backend.NoTrans, 1, a, b, 0, c); return q.Sync() }
	case "symm", "symv":
		return func() error { q.Symm(backend.Lower, 1, a, b, 0, c); return q.Sync() }
	case "syrk":
		return func() error { q.Syrk(backend.Lower, backend.NoTrans, 1, a, 0, c); return q.Sync() }
	case "trsm":
		return func() error { q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, c); return q.Sync() }
	}
	return func() error { return q.Potrf(backend.Lower, c) }
}

package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// The two ways to a ridge regression, min ‖y − Xw‖² + λ‖w‖² with X n × m.
const (
	primal = "primal" // (XᵀX + λI) w = Xᵀy: n m² + m³/3 operations
	dual   = "dual"   // (XXᵀ + λI) α = y, w = Xᵀα: m n² + n³/3 operations
)

// The stages of both, in order.
const (
	gramStage   = "gram"   // XᵀX and Xᵀy, or XXᵀ
	factorStage = "factor" // Cholesky
	solveStage  = "solve"  // two triangles, and Xᵀα
)

// ridgeStages are the operations of the stages of a form.
func ridgeStages(form string, n, m int) [3]float64 {
	if form == primal {
		return [3]float64{
			backend.SyrkFlops(m, n) + backend.GemmFlops(m, 1, n),
			backend.PotrfFlops(m),
			2 * backend.TrsmFlops(m, 1),
		}
	}
	return [3]float64{
		backend.GramFlops(n, n, m, true),
		backend.PotrfFlops(n),
		2*backend.TrsmFlops(n, 1) + backend.GemmFlops(m, 1, n),
	}
}

// ridgeFlops is their sum.
func ridgeFlops(form string, n, m int) float64 {
	s := ridgeStages(form, n, m)
	return s[0] + s[1] + s[2]
}

// ridge is a regression that all forms and devices of a case solve.
//
// The elements of X are independent, of mean 0 and variance 1, so that the
// largest singular value of X is about √n + √m; with λ = n + m the condition
// number of both systems is below 1 + (√n + √m)²/λ ≤ 3. The times do not depend
// on λ.
type ridge[T backend.Float] struct {
	n, m   int
	lambda float64
	x, y   backend.Host[T]
	w      backend.Host[T] // the result
	reference[T]
}

// newRidge makes a regression, the same one for the same arguments: y = Xv + ε
// with ‖v‖ about 1 and ε of variance 1/100.
func newRidge[T backend.Float](n, m int) *ridge[T] {
	p := &ridge[T]{n: n, m: m, lambda: float64(n + m), x: backend.NewHost[T](n, m), y: backend.NewHost[T](n, 1), w: backend.NewHost[T](m, 1)}
	rng := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	uniform := func() float64 { return math.Sqrt(3) * (2*rng.Float64() - 1) }
	v := make([]float64, m)
	for j := range v {
		v[j] = uniform() / math.Sqrt(float64(m))
	}
	for i := range n {
		row, y := p.x.Row(i), 0.1*uniform()
		for j := range row {
			row[j] = T(uniform())
			y += float64(row[j]) * v[j]
		}
		p.y.Data[i] = T(y)
	}
	return p
}

// entry is a form of p on a device, with its operands there.
func (p *ridge[T]) entry(q backend.Backend[T], form string) (e Entry, err error) {
	on := placer[T]{q: q}
	e.Close = on.free
	order := p.m
	if form == dual {
		order = p.n
	}
	x, y := on.place(p.x), on.place(p.y)
	a, v, w := on.make(order, order), on.make(order, 1), on.make(p.m, 1)
	if err := on.failed(); err != nil {
		return e, err
	}
	stages := ridgeStages(form, p.n, p.m)
	e.Work = stages[0] + stages[1] + stages[2]
	phases := []Phase{{Name: gramStage, Work: stages[0]}, {Name: factorStage, Work: stages[1]}, {Name: solveStage, Work: stages[2]}}
	e.Phases = func() []Phase { return phases }
	e.Run = func() error {
		start := time.Now()
		phase := func(i int) error {
			err := q.Sync()
			now := time.Now()
			phases[i].Took, start = now.Sub(start), now
			return err
		}
		if form == primal {
			q.Syrk(backend.Lower, backend.Transpose, 1, x, 0, a)
			q.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, 0, w)
		} else {
			q.Gram(a, kernels.Linear{}, x, x)
		}
		if err := phase(0); err != nil {
			return err
		}
		q.AddDiag([]T{T(p.lambda)}, a)
		if err := q.Potrf(backend.Lower, a); err != nil {
			return err
		}
		if err := phase(1); err != nil {
			return err
		}
		if form == primal {
			twoTriangles(q, a, w)
			return phase(2)
		}
		if err := q.Upload(v, p.y); err != nil {
			return err
		}
		twoTriangles(q, a, v)
		q.Gemm(backend.Transpose, backend.NoTrans, 1, x, v, 0, w)
		return phase(2)
	}
	e.Check = func() *Check {
		if err := q.Download(p.w, w); err != nil {
			return &Check{Difference: math.Inf(1)} // fails, and Run did not
		}
		return p.check()
	}
	return e, nil
}

// twoTriangles is b ← (LLᵀ)⁻¹ b.
func twoTriangles[T backend.Float](q backend.Backend[T], l, b backend.Matrix[T]) {
	q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, b)
	q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, b)
}

// check compares w with the reference's, or makes it that.
func (p *ridge[T]) check() *Check { return p.reference.check(p.w, false, p.bound) }

// bound is how far w of two correct implementations, by either form, can
// differ, relative to ‖w‖.
//
// A sum of k rounded products errs by at most 10·u·√k times the largest of its
// partial sums, with a probability that leaves no room for chance (Higham and
// Mary 2019, theorem 2.4, with λ = 10; u is half a unit in the last place). Of
// two different columns of X, of mean 0 and variance 1, the partial sums stay
// below s = 5√k; of a column with itself below its squared norm, at most c. The
// errors of different elements are independent, so that the 2-norm of a matrix
// of them, of order p, is at most 2√p times the largest (Vershynin 2018, theorem
// 4.4.5), and the diagonal adds its largest:
//
//	forming      10·u·√k·(2√p·s + c)           k = n, p = m in the primal
//	Cholesky     10·u·√p·(2√p·s + c + λ)       and as much for either triangle
//
// With E their sum: in the primal w moves by at most (E‖w‖ + ‖Δ(Xᵀy)‖)/λ, as
// ‖(XᵀX + λI)⁻¹‖ ≤ 1/λ; in the dual, where k and p change places, by at most
// E‖α‖/(2√λ) + ‖Δ(Xᵀα)‖, as ‖Xᵀ(XXᵀ + λI)⁻¹‖ ≤ max σ/(σ² + λ) = 1/(2√λ), and
// ‖α‖ ≤ ‖y‖/λ. The product with Xᵀ errs in each of m elements by 10·u·√n·√c
// times ‖y‖ or ‖α‖. Both implementations may err by the larger.
func (p *ridge[T]) bound() float64 {
	u := roundoff[T]()
	columns, rows := make([]float64, p.m), 0.0
	for i := range p.n {
		row := 0.0
		for j, v := range p.x.Row(i) {
			s := float64(v) * float64(v)
			columns[j] += s
			row += s
		}
		rows = max(rows, row)
	}
	column, y, w := slices.Max(columns), norm(p.y), norm(p.want)
	n, m := float64(p.n), float64(p.m)
	matrix := func(k, order, c float64) float64 {
		spread := 2 * math.Sqrt(order) * 5 * math.Sqrt(k)
		return 10 * u * (math.Sqrt(k)*(spread+c) + 3*math.Sqrt(order)*(spread+c+p.lambda))
	}
	product := 10 * u * math.Sqrt(n) * math.Sqrt(m*column) * y
	primal := (matrix(n, m, column)*w + product) / p.lambda
	dual := matrix(m, n, rows)*y/p.lambda/(2*math.Sqrt(p.lambda)) + product/p.lambda
	return 2 * max(primal, dual) / w
}

// ridgeBytes is what the matrices of a case take on a device, both forms at once.
func ridgeBytes(n, m, size int) int64 {
	return int64(size) * (int64(n)*int64(n) + int64(m)*int64(m) + 2*int64(n)*int64(m))
}

// ridgeName is the name of a form on a device, as an implementation.
func ridgeName(d backend.Device, form string) string { return fmt.Sprintf("%s %s", ownName(d), form) }

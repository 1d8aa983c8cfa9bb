package learners

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// laplace is Laplace's log evidence of a relevance vector machine for two
// classes, and what maximises it. What has the same name in evidence means the
// same here.
type laplace struct {
	t           *task
	phi         *basis
	whole       backend.Matrix[float64] // Φ
	squares     backend.Matrix[float64] // its elements squared
	positive    []bool                  // the class of a row
	base, share float64                 // of the progress
	laplaceState
	trace   []float64
	steps   int
	warning string // why the steps ended before tol; "": they did not
}

// laplaceState is what a step changes.
type laplaceState struct {
	alpha  []float64
	active []int
	place  []int
	mu     []float64
	curve  []float64 // diagonal of B at the mode; not changed in place
	slope  []float64 // W(t − y) there; not changed in place
	s, q   []float64
	value  float64
}

func (s laplaceState) clone() laplaceState {
	s.alpha, s.active, s.place, s.mu = slices.Clone(s.alpha), slices.Clone(s.active), slices.Clone(s.place), slices.Clone(s.mu)
	s.s, s.q = slices.Clone(s.s), slices.Clone(s.q)
	return s
}

func newLaplace(t *task, b *basis) (*laplace, error) {
	p := &laplace{t: t, phi: b}
	square := backend.NewHost[float64](b.phi.Rows, b.phi.Cols)
	for i := range square.Rows {
		if i%64 == 0 && t.Ctx.Err() != nil {
			return nil, context.Cause(t.Ctx)
		}
		to := square.Row(i)
		for j, v := range b.phi.Row(i) {
			to[j] = v * v
		}
	}
	var err error
	if p.whole, err = backend.Place(t.B, b.phi); err != nil {
		return nil, err
	}
	if p.squares, err = backend.Place(t.B, square); err != nil {
		p.whole.Free()
		return nil, err
	}
	return p, nil
}

func (p *laplace) free() {
	p.whole.Free()
	p.squares.Free()
}

// begin sets the targets to column c of signs, and the model to φ_0.
func (p *laplace) begin(signs backend.Host[float64], c int) {
	m := p.phi.phi.Cols
	p.laplaceState = laplaceState{alpha: make([]float64, m), place: filledInts(m, -1), s: make([]float64, m), q: make([]float64, m)}
	for j := range p.alpha {
		p.alpha[j] = math.Inf(1)
	}
	p.positive, p.trace, p.steps, p.warning = make([]bool, signs.Rows), nil, 0, ""
	for i := range p.positive {
		p.positive[i] = signs.Row(i)[c] > 0
	}
	p.set(0, 1)
}

// set gives function j another α, +Inf for none.
func (p *laplace) set(j int, alpha float64) {
	at := p.place[j]
	p.alpha[j] = alpha
	switch {
	case at < 0:
		p.place[j] = len(p.active)
		p.active, p.mu = append(p.active, j), append(p.mu, 0)
	case math.IsInf(alpha, 1):
		last := len(p.active) - 1
		p.active[at], p.mu[at] = p.active[last], p.mu[last]
		p.place[p.active[at]] = at
		p.active, p.mu, p.place[j] = p.active[:last], p.mu[:last], -1
	}
}

// objective is the log posterior of μ but for a constant, and the log odds.
func (p *laplace) objective(part backend.Host[float64], mu []float64) (sum float64, f []float64) {
	f = make([]float64, part.Rows)
	for i := range f {
		for at, v := range part.Row(i) {
			f[i] += v * mu[at]
		}
		z := f[i]
		if p.positive[i] {
			z = -z
		}
		// log(1 + e^z)
		sum -= p.phi.weight[i] * (math.Max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))))
	}
	for at, j := range p.active {
		sum -= p.alpha[j] * mu[at] * mu[at] / 2
	}
	return sum, f
}

// newtonSteps are more than Newton's method on a concave function ever took here.
const newtonSteps = 100

// errNoMode: Newton's method did not come to the mode.
var errNoMode = fmt.Errorf("the mode of the posterior was not found in %d Newton steps", newtonSteps)

// columns copies columns of Φ.
func (p *laplace) columns(list []int) backend.Host[float64] {
	part := backend.NewHost[float64](p.phi.phi.Rows, len(list))
	for i := range part.Rows {
		from, to := p.phi.phi.Row(i), part.Row(i)
		for at, j := range list {
			to[at] = from[j]
		}
	}
	return part
}

// scaledRows returns the rows of h multiplied by factors.
func scaledRows(h backend.Host[float64], factors []float64) backend.Host[float64] {
	scaled := backend.NewHost[float64](h.Rows, h.Cols)
	for i, factor := range factors {
		axpy(factor, h.Row(i), scaled.Row(i))
	}
	return scaled
}

// mode finds the mode from μ on, and the evidence there.
func (p *laplace) mode() error {
	n, k := p.phi.phi.Rows, len(p.active)
	part := p.columns(p.active)
	now, f := p.objective(part, p.mu)
	root := backend.NewHost[float64](n, k)
	error1, curve := make([]float64, n), make([]float64, n)
	for range newtonSteps {
		gradient := make([]float64, k)
		for i := range n {
			y, target := chance(f[i]), 0.0
			if p.positive[i] {
				target = 1
			}
			w := p.phi.weight[i]
			error1[i], curve[i] = w*(target-y), w*y*chance(-f[i])
			r := math.Sqrt(curve[i])
			for at, v := range part.Row(i) {
				gradient[at] += v * error1[i]
				root.Row(i)[at] = r * v
			}
		}
		for at, j := range p.active {
			gradient[at] -= p.alpha[j] * p.mu[at]
		}
		step, logH, err := p.newton(root, gradient)
		if err != nil {
			return err
		}
		decrement := 0.0
		for at, g := range gradient {
			decrement += g * step[at]
		}
		if decrement <= 1e-12*(1+math.Abs(now)) {
			p.value = now - logH/2
			for _, j := range p.active {
				p.value += math.Log(p.alpha[j]) / 2
			}
			if p.value-p.value != 0 {
				return errors.New("values of the kernel overflow: scale the features down")
			}
			p.slope, p.curve = error1, curve
			return nil
		}
		length := 1.0
		for ; ; length /= 2 {
			mu := slices.Clone(p.mu)
			for at, s := range step {
				mu[at] += length * s
			}
			next, odds := p.objective(part, mu)
			if next >= now+1e-4*length*decrement || length < 1e-10 {
				p.mu, now, f = mu, next, odds
				break
			}
		}
	}
	return errNoMode
}

// newton returns H⁻¹g and log|H| for H = RᵀR + A.
func (p *laplace) newton(root backend.Host[float64], gradient []float64) (step []float64, logH float64, err error) {
	b, k := p.t.B, len(p.active)
	h, err := b.New(k, k)
	if err != nil {
		return nil, 0, err
	}
	defer h.Free()
	alpha := make([]float64, k)
	for at, j := range p.active {
		alpha[at] = p.alpha[j]
	}
	v, err := upload(b, backend.Host[float64]{Rows: k, Cols: 1, Stride: 1, Data: gradient})
	if err != nil {
		return nil, 0, err
	}
	defer v.Free()
	factor := backend.NewHost[float64](k, k)
	step = make([]float64, k)
	err = placed(b, root, backend.Host[float64]{}, func(r, _ backend.Matrix[float64]) error {
		b.Syrk(backend.Lower, backend.Transpose, 1, r, 0, h)
		b.AddDiag(alpha, h)
		if err := b.Potrf(backend.Lower, h); err != nil {
			return fmt.Errorf("the basis functions in the model are dependent to working precision: use a kernel with a smaller length scale: %w", err)
		}
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, v)
		b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, h, v)
		if err := b.Download(factor, h); err != nil {
			return err
		}
		return b.Download(backend.Host[float64]{Rows: k, Cols: 1, Stride: 1, Data: step}, v)
	})
	for at := range k {
		logH += 2 * math.Log(factor.Row(at)[at])
	}
	return step, logH, err
}

// statistics computes S and Q of all functions at the mode:
//
//	S_j = φᵀBφ − ‖L⁻¹Φ_AᵀBφ‖²,  Q_j = φᵀW(t − y)
//
// with LLᵀ = Φ_AᵀBΦ_A + A for the functions of the model.
func (p *laplace) statistics() error {
	n, m, k := p.phi.phi.Rows, p.phi.phi.Cols, len(p.active)
	b, part, alpha := p.t.B, p.columns(p.active), make([]float64, k)
	scaled := scaledRows(part, p.curve)
	both := backend.NewHost[float64](n, 2)
	for i := range n {
		both.Row(i)[0], both.Row(i)[1] = p.slope[i], p.curve[i]
	}
	for at, j := range p.active {
		alpha[at] = p.alpha[j]
	}
	cross, err := b.New(k, m)
	if err != nil {
		return err
	}
	defer cross.Free()
	h, err := b.New(k, k)
	if err != nil {
		return err
	}
	defer h.Free()
	sums, err := b.New(m, 2)
	if err != nil {
		return err
	}
	defer sums.Free()
	t, q := backend.NewHost[float64](k, m), backend.NewHost[float64](m, 2)
	inside, err := backend.Place(b, part)
	if err != nil {
		return err
	}
	defer inside.Free()
	err = placed(b, scaled, both, func(scaled, both backend.Matrix[float64]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, scaled, p.whole, 0, cross)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, scaled, inside, 0, h)
		b.AddDiag(alpha, h)
		if err := b.Potrf(backend.Lower, h); err != nil {
			return err
		}
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, cross)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.whole, both.View(0, 0, n, 1), 0, sums.View(0, 0, m, 1))
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.squares, both.View(0, 1, n, 1), 0, sums.View(0, 1, m, 1))
		if err := b.Download(t, cross); err != nil {
			return err
		}
		return b.Download(q, sums)
	})
	if err != nil {
		return err
	}
	for j := range m {
		p.q[j], p.s[j] = q.Row(j)[0], q.Row(j)[1]
	}
	for at := range k {
		for j, v := range t.Row(at) {
			p.s[j] -= v * v
		}
	}
	// Of those outside, S that is rounding only is none.
	for j := range m {
		if p.place[j] < 0 && p.s[j] <= dependent*q.Row(j)[1] {
			p.s[j] = 0
		}
	}
	return nil
}

// The steps of a batch, at most, and the functions outside the model that it may add.
const batchSteps, batchFunctions = 256, 128

// maximise changes functions until none promises to gain tol: many at a time while that
// raises the evidence, else one.
func (p *laplace) maximise(tol float64, limit int) error {
	if err := p.mode(); err != nil {
		return err
	}
	if err := p.statistics(); err != nil {
		return err
	}
	p.trace = append(p.trace, p.value)
	start := math.Abs(p.value) + 1
	refused := map[int]bool{} // tried from here in vain
	size := 4                 // of a batch
	for {
		j, alpha, gain := choose(p.s, p.q, p.alpha, p.place, len(p.active), refused)
		if gain <= tol {
			return nil
		}
		if p.steps >= limit {
			p.warning = fmt.Sprintf("after %s the log evidence still promises to grow by %.2g, not %.2g: raise tol or iterations", count.Of(limit, "step"), gain, tol)
			return nil
		}
		if err := p.t.at("solve", p.base+p.share*min(progressOf(gain, start, tol, p.steps), 0.999)); err != nil {
			return err
		}
		before, taken := p.clone(), 1
		var err error
		if size == 1 {
			p.set(j, alpha)
		} else {
			taken, err = p.batch(tol, min(size, limit-p.steps))
		}
		if err == nil {
			err = p.mode()
		}
		if err != nil && !errors.Is(err, backend.ErrNotPosDef) && !errors.Is(err, errNoMode) {
			return err
		}
		p.steps += taken
		if err != nil || !(p.value > before.value) { // the mode has moved: the promise was not kept
			p.laplaceState = before
			if size == 1 {
				refused[j] = true
			}
			size = 1
			continue
		}
		if err := p.statistics(); err != nil {
			return err
		}
		clear(refused)
		size = min(2*size, batchSteps)
		p.trace = append(p.trace, p.value)
	}
}

// batch takes steps of Tipping and Faul with the targets linearised at the mode,
// Φμ + B⁻¹W(t − y) of precision B, among the functions of the model and those outside
// that promise to gain most, and returns their number, at least 1.
func (p *laplace) batch(tol float64, limit int) (int, error) {
	k := len(p.active)
	list := append(slices.Clone(p.active), p.promising(tol)...)
	size := len(list)
	e := &evidence{
		t: p.t, g: backend.NewHost[float64](size, size), c: make([]float64, size), beta: 1,
		alpha: make([]float64, size), place: filledInts(size, -1), s: make([]float64, size), q: make([]float64, size),
	}
	part := p.columns(list)
	b := p.t.B
	g, err := b.New(size, size)
	if err != nil {
		return 0, err
	}
	defer g.Free()
	err = placed(b, scaledRows(part, p.curve), part, func(scaled, part backend.Matrix[float64]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, scaled, part, 0, g)
		return b.Download(e.g, g)
	})
	if err != nil {
		return 0, err
	}
	for i, j := range list {
		e.alpha[i] = p.alpha[j]
		e.c[i] = p.q[j]
		for at, v := range e.g.Row(i)[:k] {
			e.c[i] += v * p.mu[at]
		}
		if i < k {
			e.insert(i, p.alpha[j])
		}
	}
	if err := e.refresh(); err != nil {
		return 0, err
	}
	steps := 0
	for steps < limit {
		i, alpha, gain := e.choose()
		if gain <= tol {
			break
		}
		e.act(i, alpha)
		steps++
	}
	for i, j := range list {
		if e.alpha[i] != p.alpha[j] {
			p.set(j, e.alpha[i])
		}
	}
	for at, j := range p.active {
		p.mu[at] = e.mu[e.place[slices.Index(list, j)]]
	}
	return max(steps, 1), nil
}

// promising are the functions outside the model that alone promise to gain more than
// tol, the best first, batchFunctions at most.
func (p *laplace) promising(tol float64) []int {
	var list []int
	gains := make([]float64, len(p.s))
	for j := range gains {
		if p.place[j] < 0 {
			if _, gains[j] = bestAlpha(p.s[j], p.q[j], p.alpha[j], false, len(p.active)); gains[j] > tol {
				list = append(list, j)
			}
		}
	}
	slices.SortFunc(list, func(i, j int) int { return cmp.Or(cmp.Compare(gains[j], gains[i]), cmp.Compare(i, j)) })
	return list[:min(len(list), batchFunctions)]
}

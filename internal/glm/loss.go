// Package glm fits generalized linear models: logistic regression, linear and in the space of a kernel.
package glm

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// logit is the objective of logistic regression,
//
//	F(W, b) = Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖W‖²
//
// on the device. Its argument θ is the (d+1)×C matrix of W and, in the last row, b. The samples are centered: f(x)
// = Wᵀ(x − x̄) + b. Without an intercept x̄ and b are 0. C is 1 for two classes, K for the softmax of K classes,
// and K−1 if the last class is the reference, whose f is 0.
type logit struct {
	t         *run.Task
	threads   int
	points    numeric.Points
	n, d, c   int
	reference bool
	index     []int // class of each sample; −1 if the class occurs only in samples of weight 0
	weights   []float64
	lambda    float64
	total     float64   // sum of the weights w_i
	mean      []float64 // x̄; nil without an intercept
	square    []float64 // Σ w_i (x_ip − x̄_p)² of each feature p

	x, w, s, g backend.Matrix[float64] // x: X; w: W; s: the scores, then the residuals; g: the gradient
	// residual holds w_i (p_ic − [y_i = c]) at the argument of the last eval.
	residual  backend.Host[float64]
	shared    bool                    // whether residual and s share memory
	gradients []backend.Host[float64] // gradients of parts of the samples, if shared is true
	// rowBuffer holds a block of samples in hessian, and scaledBuffer the same samples times weights. They share
	// memory if c is 1.
	rowBuffer, scaledBuffer backend.Host[float64]
	spread                  float64 // mean of p(1−p) at the last eval
	evals                   int
	right                   bool // whether all samples were classified correctly at the last eval
	fixed                   bool // whether the caller set the number of iterations
}

// logitBytes returns the device memory of a logit for n samples like those in x, in bytes.
func logitBytes(b backend.Backend[float64], x numeric.Points, n, c int) int64 {
	if x.Sparse != nil {
		return x.PlacedBytes(b, n) + 8*(int64(n)*2*int64(c)+2*int64(x.Cols)*int64(c))
	}
	d := x.Cols
	return 8 * (int64(n)*int64(d+c) + int64(2+chunks(n, gradientRows(n)))*int64(d)*int64(c))
}

func newLogit(t *run.Task, x numeric.Points, index []int, weights []float64, c int, reference bool, lambda float64, intercept bool) (*logit, error) {
	l := &logit{
		t: t, threads: max(t.Dev.Info().Threads, 1), points: x, n: x.Rows, d: x.Cols, c: c, reference: reference,
		index: index, weights: weights, lambda: lambda, residual: backend.NewHost[float64](x.Rows, c),
	}
	l.moments(intercept)
	var err error
	if l.x, err = x.Place(t.B); err != nil {
		return nil, err
	}
	if w, ok := t.B.(backend.Wrapper[float64]); ok && x.Sparse == nil {
		l.s, l.shared = w.Wrap(l.residual), true
		for range chunks(l.n, gradientRows(l.n)) {
			l.gradients = append(l.gradients, backend.NewHost[float64](l.d, c))
		}
	} else {
		l.s, err = t.B.New(l.n, c)
	}
	if err == nil {
		l.w, err = t.B.New(l.d, c)
	}
	if err == nil {
		l.g, err = t.B.New(l.d, c)
	}
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

func (l *logit) free() {
	for _, m := range []backend.Matrix[float64]{l.x, l.s, l.w, l.g} {
		if m != nil {
			m.Free()
		}
	}
}

// forEachPart divides the samples first to last − 1 into parts of the given size, and calls f concurrently for
// each part. The division does not depend on the number of workers.
func (l *logit) forEachPart(first, last, size int, f func(part, first, last int)) {
	parts := chunks(last-first, size)
	var group sync.WaitGroup
	var next atomic.Int64
	work := func() {
		for k := int(next.Add(1)) - 1; k < parts; k = int(next.Add(1)) - 1 {
			f(k, first+k*size, min(first+(k+1)*size, last))
		}
	}
	for range min(l.threads, parts) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

func chunks(n, size int) int { return (n + size - 1) / size }

// partRows is the number of samples of a part.
const partRows = 512

// moments sets the mean and the sum of squares of every feature in one pass, from differences to the first sample.
func (l *logit) moments(centered bool) {
	if l.points.Sparse != nil {
		l.sparseMoments(centered)
		return
	}
	var origin []float64
	if l.n > 0 {
		origin = l.points.Dense.Row(0)
	}
	sums := make([][]float64, chunks(l.n, partRows))
	l.forEachPart(0, l.n, partRows, func(k, first, last int) {
		sum := make([]float64, 2*l.d+1)
		one, squares := sum[:l.d], sum[l.d:2*l.d]
		for i := first; i < last; i++ {
			w := l.weight(i)
			sum[2*l.d] += w
			row := l.points.Dense.Row(i)[:len(origin)]
			for p, v := range row {
				v -= origin[p]
				one[p] += w * v
				squares[p] += w * v * v
			}
		}
		sums[k] = sum
	})
	sum := make([]float64, 2*l.d+1)
	for _, part := range sums {
		for p, v := range part {
			sum[p] += v
		}
	}
	l.total, l.square = sum[2*l.d], sum[l.d:2*l.d]
	if centered {
		l.mean = sum[:l.d]
	}
	for p, v := range origin {
		shift := sum[p] / l.total
		if centered {
			l.mean[p] = v + shift
			l.square[p] = max(l.square[p]-l.total*shift*shift, 0)
		} else {
			l.square[p] += l.total * v * (v + 2*shift)
		}
	}
}

// sparseMoments implements moments for sparse samples.
func (l *logit) sparseMoments(centered bool) {
	x := l.points.Sparse
	mean, storedWeight := make([]float64, l.d), make([]float64, l.d)
	for i := range l.n {
		w := l.weight(i)
		l.total += w
		columns, values := x.Row(i)
		for k, c := range columns {
			mean[c] += w * values[k]
			storedWeight[c] += w
		}
	}
	l.square = make([]float64, l.d)
	if centered {
		for p := range mean {
			mean[p] /= l.total
			l.square[p] = max(l.total-storedWeight[p], 0) * mean[p] * mean[p]
		}
		l.mean = mean
	} else {
		clear(mean)
	}
	for i := range l.n {
		w := l.weight(i)
		columns, values := x.Row(i)
		for k, c := range columns {
			v := values[k] - mean[c]
			l.square[c] += w * v * v
		}
	}
}

func (l *logit) weight(i int) float64 {
	if l.weights == nil {
		return 1
	}
	return l.weights[i]
}

// point is an iterate θ of a solver, with F(θ) and its gradient.
type point struct {
	theta, gradient backend.Host[float64]
	value           float64
}

func (l *logit) start() (*point, error) { return l.pointAt(l.zero()) }

func (l *logit) pointAt(theta backend.Host[float64]) (*point, error) {
	p := &point{theta: theta, gradient: l.zero()}
	var err error
	p.value, err = l.eval(theta, p.gradient)
	return p, err
}

func (l *logit) zero() backend.Host[float64] { return backend.NewHost[float64](l.d+1, l.c) }

// eval returns F(θ) and sets gradient to its gradient.
func (l *logit) eval(theta, gradient backend.Host[float64]) (float64, error) {
	b := l.t.B
	l.evals++
	if err := b.Upload(l.w, theta.View(0, 0, l.d, l.c)); err != nil {
		return 0, err
	}
	sum, err := l.pass(l.shift(theta))
	if err != nil {
		return 0, err
	}
	value, sums := sum.loss, sum.sums
	l.spread, l.right = sum.spread/(l.total*float64(l.c)), sum.right
	if err := b.Download(gradient.View(0, 0, l.d, l.c), l.g); err != nil {
		return 0, err
	}
	square := 0.0
	for p := range l.d {
		for c, v := range theta.Row(p) {
			gradient.Row(p)[c] += l.lambda * v
			square += v * v
		}
	}
	l.center(gradient, sums)
	clear(gradient.Row(l.d))
	if l.mean != nil {
		copy(gradient.Row(l.d), sums)
	}
	value += l.lambda / 2 * square
	if value-value != 0 {
		return 0, errors.New("the loss overflows: scale the features down")
	}
	return value, nil
}

// shift returns b − Wᵀx̄, which must be added to the scores Wᵀx.
func (l *logit) shift(theta backend.Host[float64]) []float64 {
	shift := slices.Clone(theta.Row(l.d))
	for p, m := range l.mean {
		for c, v := range theta.Row(p) {
			shift[c] -= m * v
		}
	}
	return shift
}

// center converts the gradient with respect to W from uncentered samples to centered samples. The argument sums
// holds the sums of the residuals.
func (l *logit) center(gradient backend.Host[float64], sums []float64) {
	for p, m := range l.mean {
		for c, sum := range sums {
			gradient.Row(p)[c] -= m * sum
		}
	}
}

// tally holds the contributions of a set of samples to the loss, to the mean of p(1−p) and to the
// gradient of the intercepts, and whether all samples are classified correctly.
type tally struct {
	loss, spread float64
	sums         []float64
	right        bool
}

func (l *logit) sumTallies(parts []tally) tally {
	total := tally{sums: make([]float64, l.c), right: true}
	for _, p := range parts {
		total.loss += p.loss
		total.spread += p.spread
		total.right = total.right && p.right
		for c, v := range p.sums {
			total.sums[c] += v
		}
	}
	return total
}

// pass computes l.residual from the W in l.w, and the product Xᵀ·residual in l.g. If the device uses Go memory,
// each worker processes its samples in blocks that stay in the cache, so that X is read from memory only once.
func (l *logit) pass(shift []float64) (tally, error) {
	b := l.t.B
	if !l.shared {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, l.x, l.w, 0, l.s)
		if err := b.Download(l.residual, l.s); err != nil {
			return tally{}, err
		}
		list := make([]tally, chunks(l.n, partRows))
		l.forEachPart(0, l.n, partRows, func(k, first, last int) { list[k] = l.residualsOf(first, last, shift) })
		if err := b.Upload(l.s, l.residual); err != nil {
			return tally{}, err
		}
		b.Gemm(backend.Transpose, backend.NoTrans, 1, l.x, l.s, 0, l.g)
		return l.sumTallies(list), nil
	}
	size := gradientRows(l.n)
	rows := max(16, blockElements*min(l.c, 8)/max(l.d, 1))
	if unpacked := unpackedOps / max(l.d*l.c, 1); l.c > 4 && unpacked >= 32 {
		rows = min(rows, unpacked)
	}
	list := make([]tally, len(l.gradients))
	failures := make([]error, len(list))
	l.forEachPart(0, l.n, size, func(k, first, last int) {
		q, g := l.t.Dev.F64().With(l.t.Ctx, nil), l.t.B.(backend.Wrapper[float64]).Wrap(l.gradients[k])
		blocks := make([]tally, 0, size/rows+1)
		beta := 0.0
		for from := first; from < last; from += rows {
			n := min(rows, last-from)
			x, s := l.x.View(from, 0, n, l.d), l.s.View(from, 0, n, l.c)
			q.Gemm(backend.NoTrans, backend.NoTrans, 1, x, l.w, 0, s)
			if failures[k] = q.Sync(); failures[k] != nil {
				return
			}
			blocks = append(blocks, l.residualsOf(from, from+n, shift))
			q.Gemm(backend.Transpose, backend.NoTrans, 1, x, s, beta, g)
			beta = 1
		}
		list[k], failures[k] = l.sumTallies(blocks), q.Sync()
	})
	sum := backend.NewHost[float64](l.d, l.c)
	for _, g := range l.gradients {
		for i, v := range g.Data {
			sum.Data[i] += v
		}
	}
	if err := errors.Join(failures...); err != nil {
		return tally{}, err
	}
	return l.sumTallies(list), b.Upload(l.g, sum)
}

// blockElements is the number of elements in a block of X (512 KiB) if W has one column. The block stays in a cache.
const blockElements = 1 << 16

// unpackedOps is the maximum number of multiplications in a product that package cpu computes without packing X.
const unpackedOps = 1 << 18

// gradientRows returns the number of samples in each of at most 64 parts whose gradients are computed separately.
func gradientRows(n int) int { return partRows * max(1, chunks(n, 64*partRows)) }

// residualsOf calls residuals for the samples first to last − 1, whose scores l.residual holds.
func (l *logit) residualsOf(first, last int, shift []float64) tally {
	return l.residuals(l.residual.View(first, 0, last-first, l.c), func(r int) int { return first + r }, shift)
}

// residuals adds shift to the scores f and converts them to residuals. Row r of f is for sample sample(r).
func (l *logit) residuals(f backend.Host[float64], sample func(r int) int, shift []float64) tally {
	p := tally{sums: make([]float64, l.c), right: true}
	lead, largest := make([]float64, f.Rows), make([]float64, f.Rows)
	for r := range f.Rows {
		row, i := f.Row(r), sample(r)
		if l.weight(i) == 0 {
			clear(row)
			continue
		}
		for c, v := range shift[:len(row)] {
			row[c] += v
		}
		lead[r], largest[r] = l.exponents(row, l.index[i])
	}
	if e, ok := l.t.B.(backend.Exponential[float64]); ok {
		e.Exp(f.Data[:f.Rows*f.Cols])
	} else {
		for k, v := range f.Data[:f.Rows*f.Cols] {
			f.Data[k] = elementary.Exp(v)
		}
	}
	for r := range f.Rows {
		row, i := f.Row(r), sample(r)
		w := l.weight(i)
		if w == 0 {
			clear(row)
			continue
		}
		p.loss += w * l.probabilities(row, l.index[i], lead[r], largest[r])
		p.right = p.right && lead[r] > 0
		spread, sums := 0.0, p.sums[:len(row)]
		for c, v := range row {
			q := math.Abs(v)
			spread += q * (1 - q)
			v *= w
			row[c] = v
			sums[c] += v
		}
		p.spread += w * spread
	}
	return p
}

// exponents replaces the scores f of a sample by the arguments of exp in the softmax: it subtracts the largest score,
// and replaces the score of the class of the sample by −∞. It returns the largest score, and in lead the score of the
// class minus the largest other score. For two classes f has one element, which becomes −|lead|, and largest is 0.
func (l *logit) exponents(f []float64, class int) (lead, largest float64) {
	if l.binary() {
		if lead = f[0]; class == 0 {
			lead = -lead
		}
		f[0] = -math.Abs(lead)
		return lead, 0
	}
	classScore, maxOther := 0.0, math.Inf(-1)
	if class < len(f) {
		classScore, f[class] = f[class], maxOther
		if l.reference {
			maxOther = 0
		}
	}
	for _, v := range f {
		if v > maxOther {
			maxOther = v
		}
	}
	largest = max(classScore, maxOther)
	for c := range f {
		f[c] -= largest
	}
	return classScore - maxOther + 0*largest, largest // the difference is NaN if scores overflow
}

// probabilities replaces f, the exponentials of the result of exponents, by p − [y = c] for each class c, without
// cancellation. It returns −ln Pr(y).
func (l *logit) probabilities(f []float64, class int, lead, largest float64) (loss float64) {
	if l.binary() {
		e := f[0]
		p := e / (1 + e) // p = σ(−|lead|)
		if lead < 0 {
			p = 1 / (1 + e)
		}
		if f[0] = p; class == 1 {
			f[0] = -p
		}
		return max(-lead, 0) + math.Log1p(e)
	}
	others, classTerm := 0.0, 1.0 // others: sum of the exponentials of the other classes
	for _, e := range f {
		others += e
	}
	if l.reference && class < len(f) {
		others += elementary.Exp(-largest)
	}
	if !(lead >= 0) {
		classTerm = elementary.Exp(lead)
	}
	sum := others + classTerm
	inverse := 1 / sum
	for c, e := range f {
		f[c] = e * inverse
	}
	if class < len(f) {
		f[class] = -others * inverse
	}
	if lead >= 0 { // classTerm = 1, so that ln(sum) = ln(1 + others)
		return math.Log1p(others)
	}
	return elementary.Log(sum) - lead
}

// binary reports whether there are two classes with one column.
func (l *logit) binary() bool { return l.c == 1 && !l.reference }

// unbounded is the error text for λ = 0 with all samples classified correctly: the loss has no minimum.
const unbounded = "the classes can be separated, so that without a penalty w grows without end: {raise $lambda}"

// separated reports whether λ = 0 and all samples are classified correctly. It then returns an error, too, unless
// the caller has set the number of iterations.
func (l *logit) separated() (bool, error) {
	if l.lambda > 0 || !l.right {
		return false, nil
	}
	if !l.fixed {
		return true, message.Errorf(unbounded)
	}
	return true, nil
}

// coef returns W and the intercepts b of f(x) = Wᵀx + b at θ. For K > 2 classes W and b have K columns.
func (l *logit) coef(theta backend.Host[float64]) (backend.Host[float64], []float64) {
	columns := l.c
	if l.reference {
		columns++
	}
	w, b := backend.NewHost[float64](l.d, columns), make([]float64, columns)
	copy(b, theta.Row(l.d))
	for p := range l.d {
		copy(w.Row(p), theta.Row(p))
		if l.mean != nil {
			for c, v := range theta.Row(p) {
				b[c] -= l.mean[p] * v
			}
		}
	}
	return w, b
}

// dot returns Σ a_pc b_pc for matrices without padding.
func dot(a, b backend.Host[float64]) float64 { return numeric.Dot(a.Data, b.Data) }

// addScaled returns a + t·b for matrices without padding.
func addScaled(a backend.Host[float64], t float64, b backend.Host[float64]) backend.Host[float64] {
	m := backend.NewHost[float64](a.Rows, a.Cols)
	floats.AddScaledTo(m.Data, a.Data, t, b.Data)
	return m
}

const epsilon = 0x1p-52

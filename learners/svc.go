package learners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const svcName = "svc"

func init() {
	register(Description{
		Name:    svcName,
		Tasks:   []Task{Classification},
		Formula: "minimise ½‖f‖² + C Σ w_i max(1 − y_i(f(x_i) + b), 0) for each pair of classes, y_i = ±1",
		Source:  "Cortes and Vapnik (1995); Fan, Chen and Lin (2005); Chang and Lin (2011), LIBSVM",
		Parameters: []Parameter{
			scaleKernel, svmC, svcTol, svmLimit, svmMemory,
			truth("probability", "false", "also fit probabilities, by cross-validation in five parts: six times the work"),
			seedNumber.withHelp("seed of the parts of the cross-validation for probabilities"),
		},
		fitter: func(v Values) Fitter {
			l := SVC{
				Kernel: v.Kernel("kernel"), C: v.Number("C"),
				Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), Cache: cacheOf(v), Seed: v.Seed(),
			}
			if v.Bool("probability") {
				return fitterOf(l.FitProbabilities)
			}
			return fitterOf(l.Fit)
		},
		restore: restoreSVC,
	})
}

// SVC is the C-support vector machine. For two classes, y_i = ±1, the sign of
// f(x) + b tells the class, with the f and b that minimise
//
//	½‖f‖² + C Σ_i w_i max(1 − y_i(f(x_i) + b), 0)
//
// That is (1/n)Σ max(1 − y f, 0) + λ‖f‖² with C = 1/(2nλ). For K > 2 classes
// each pair has a machine of its own (one versus one), and the class with the
// most votes wins; among equals the one with the larger decisions. The answer is
// that of LIBSVM and scikit-learn's SVC with the same C and kernel.
//
// SMO (smo.go) takes O(n·support) values of k for a pair, in rows that the device
// computes in batches; pairs are worked on at the same time, as many as the
// device has threads, up to eight. Memory: the rows of K that the cache holds,
// and a copy of x. For n of many ten thousands with noisy classes the support
// grows with n: then logistic regression on features, or kernel-logistic with
// centers, costs less.
type SVC struct {
	Kernel  kernels.Kernel // nil: the Gaussian with sigma = √(d·Var(X)/2), as scikit-learn's gamma="scale"
	C       float64        // 0 is 1
	Tol     float64        // < 2; 0 is 1e-3
	MaxIter int            // for a pair; 0 is 10 million steps, or 100n if that is more
	Cache   int64          // bytes for rows of K; 0 is 512 MiB
	Seed    uint64         // of FitProbabilities' parts
}

// SVCModel is a fitted SVC. Steps and objectives among its facts are summed over the
// pairs. An objective is the minimum of the formula, by the dual: what LIBSVM prints as
// obj with the other sign.
type SVCModel struct {
	model
	classes Classes
	kernel  kernels.Kernel
	// The support vectors of class 0, then of class 1, and so on.
	points backend.Host[float64]
	counts []float64 // support vectors of each class
	// coef has K−1 columns: for a support vector of class a its coefficients in
	// the machines of a and each other class, in the order of the others.
	coef backend.Host[float64]
	b    []float64 // of the pairs (0, 1), (0, 2), …, (1, 2), …; positive means the second
}

// Fit fits the n×d samples x, whose classes are the different values of the n×1
// matrix y.
func (l SVC) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*SVCModel, error) {
	f, err := l.prepare(ctx, dev, x, y, o)
	if err != nil {
		return nil, fmt.Errorf("learners: svc: %w", err)
	}
	m, err := f.fit()
	return named(svcName, m, err)
}

// svcFit is one Fit of an SVC.
type svcFit struct {
	t       *task
	set     smoSettings
	l       SVC
	kernel  kernels.Kernel
	classes Classes
	x       backend.Host[float64]
	weight  []float64
	rows    [][]int // of each class
	base    float64 // of the work, done before the pairs
	share   float64 // of the work that they are
}

func (l SVC) prepare(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*svcFit, error) {
	hx, hy, err := checkedBoth(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	f := &svcFit{l: l, x: hx, share: 1}
	var index []int
	if f.classes, index, err = classesOf(hy, o.Weights, o.Classes); err != nil {
		return nil, err
	}
	if f.l.C == 0 {
		f.l.C = 1
	}
	if err := positive.check(f.l.C); err != nil {
		return nil, fmt.Errorf("parameter C %w", err)
	}
	if l.Tol != 0 && !marginTol.ok(l.Tol) {
		return nil, fmt.Errorf("tol must be %s, got %v: from 2 on a model without support vectors would do", marginTol.text, l.Tol)
	}
	if f.set, err = svmSettings(l.Tol, l.MaxIter, l.Cache, hx.Rows); err != nil {
		return nil, err
	}
	if f.kernel, err = scaleKernelFor(l.Kernel, hx, o.Weights); err != nil {
		return nil, err
	}
	f.rows = make([][]int, f.classes.Len())
	f.weight = make([]float64, hx.Rows)
	for i, class := range index {
		if f.weight[i] = weightOf(o, i); f.weight[i] > 0 {
			f.rows[class] = append(f.rows[class], i)
		}
	}
	f.set.cache = rowCacheWithin(dev, o, f.set.cache)
	if f.classes.Len() > 2 {
		f.set.cache = max(f.set.cache/svmWorkers, 1) // 0 would be the default
	}
	f.t, err = newTask(ctx, dev, o, svcName, hx.Rows, func(n int) int64 {
		pair := n // the largest pair, on a device that does not use Go memory
		if f.classes.Len() > 2 {
			pair = min(n, f.largestPair())
		}
		return int64(f.workers()) * svmBytes(dev, pair, hx.Cols, f.set.cache)
	})
	return f, err
}

func (f *svcFit) largestPair() int {
	var sizes []int
	for _, rows := range f.rows {
		sizes = append(sizes, len(rows))
	}
	slices.Sort(sizes)
	return sizes[len(sizes)-1] + sizes[len(sizes)-2]
}

// svmWorkers is how many pairs are worked on at a time at most. A pair's part of
// the cache does not depend on how many there are, and so no result does.
const svmWorkers = 8

func (f *svcFit) workers() int {
	k := f.classes.Len()
	threads := 1
	if f.t != nil {
		threads = f.t.Dev.Info().Threads
	}
	return max(1, min(svmWorkers, k*(k-1)/2, threads))
}

// pairOf is the place of the pair (a, b), a < b, among those of k classes.
func pairOf(a, b, k int) int { return a*(2*k-a-1)/2 + b - a - 1 }

// problem returns the machine of two classes' rows.
func (f *svcFit) problem(first, second []int) *smoProblem {
	n := len(first) + len(second)
	p := &smoProblem{
		k: f.kernel, x: backend.NewHost[float64](n, f.x.Cols),
		sign: make([]float64, n), p: make([]float64, n), c: make([]float64, n), alpha: make([]float64, n),
	}
	for r := range n {
		i, sign := 0, 1.0
		if r < len(first) {
			i, sign = first[r], -1
		} else {
			i = second[r-len(first)]
		}
		copy(p.x.Row(r), f.x.Row(i))
		p.sign[r], p.p[r], p.c[r] = sign, -1, f.l.C*f.weight[i]
	}
	return p
}

// fit fits all pairs.
func (f *svcFit) fit() (*SVCModel, error) {
	k := f.classes.Len()
	results := make([]*smoResult, k*(k-1)/2)
	err := f.each(func(pair, a, b int, t *task) error {
		p := f.problem(f.rows[a], f.rows[b])
		res, err := f.machine(t, p)
		results[pair] = res
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.model(results), f.t.at("solve", f.base+f.share)
}

// machine solves a pair's problem. t is nil where other pairs are worked on at
// the same time, and then progress is told by pairs.
func (f *svcFit) machine(t *task, p *smoProblem) (*smoResult, error) {
	first := 0.0
	return solveSMO(f.t.Ctx, f.t.B, p, f.set, func(gap float64) error {
		if t != nil {
			first = max(first, gap)
			return t.at("solve", f.base+f.share*min(gapProgress(gap, first, f.set.tol), 0.999))
		}
		if f.t.Ctx.Err() != nil {
			return context.Cause(f.t.Ctx)
		}
		return nil
	})
}

// each calls work for every pair of classes, a < b, on several goroutines. With
// one pair it is given the task to tell of its progress.
func (f *svcFit) each(work func(pair, a, b int, t *task) error) error {
	k := f.classes.Len()
	if k == 2 {
		return work(0, 0, 1, f.t)
	}
	type pair struct{ at, a, b int }
	var list []pair
	for a := range k {
		for b := a + 1; b < k; b++ {
			list = append(list, pair{pairOf(a, b, k), a, b})
		}
	}
	var (
		mu     sync.Mutex
		next   int
		ended  int
		failed error
		failAt int
		group  sync.WaitGroup
	)
	for range f.workers() {
		group.Go(func() {
			for {
				mu.Lock()
				if next == len(list) || failed != nil {
					mu.Unlock()
					return
				}
				p := list[next]
				next++
				mu.Unlock()
				err := work(p.at, p.a, p.b, nil)
				if err != nil {
					err = fmt.Errorf("classes %q and %q: %w", f.classes.Names[p.a], f.classes.Names[p.b], err)
				}
				mu.Lock()
				ended++
				if err == nil && failed == nil {
					err = f.t.at("solve", f.base+f.share*0.999*float64(ended)/float64(len(list)))
				}
				// Of several failures that of the first pair is reported.
				if err != nil && (failed == nil || p.at < failAt) {
					failed, failAt = err, p.at
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return failed
}

// model gathers the support vectors of all pairs by class.
func (f *svcFit) model(results []*smoResult) *SVCModel {
	k := f.classes.Len()
	m := &SVCModel{model: model{learner: svcName}, classes: f.classes, kernel: f.kernel, counts: make([]float64, k), b: make([]float64, len(results))}
	var rows []int
	var coef []float64
	steps, computed, objective := 0, 0, 0.0
	for c := range k {
		for r, i := range f.rows[c] {
			line, used := make([]float64, k-1), false
			for other := range k {
				var v float64
				switch {
				case other < c: // the rows of c stand after those of other
					v = results[pairOf(other, c, k)].beta[len(f.rows[other])+r]
					line[other] = v
				case other > c:
					v = results[pairOf(c, other, k)].beta[r]
					line[other-1] = v
				}
				used = used || v != 0
			}
			if used {
				rows, coef = append(rows, i), append(coef, line...)
				m.counts[c]++
			}
		}
	}
	for p, res := range results {
		m.b[p] = res.b
		steps += res.steps
		computed += res.rows
		objective += res.objective
	}
	m.points = backend.NewHost[float64](len(rows), f.x.Cols)
	for r, i := range rows {
		copy(m.points.Row(r), f.x.Row(i))
	}
	m.coef = backend.Host[float64]{Rows: len(rows), Cols: k - 1, Stride: k - 1, Data: coef}
	m.facts = []Fact{{"support vectors", len(rows)}, {"machines", len(results)}, {"steps", steps}, {"objective", objective}, {"rows of K", computed}}
	if len(results) == 1 {
		m.facts = append(m.facts, Fact{squaredNorm, results[0].square})
	}
	return m
}

// Kernel returns the kernel, also where it was chosen by Fit.
func (m *SVCModel) Kernel() kernels.Kernel { return m.kernel }

// Support returns a copy of the support vectors, and how many each class has.
func (m *SVCModel) Support() (points *mat.Dense, counts []int) {
	for _, c := range m.counts {
		counts = append(counts, int(c))
	}
	return denseOf(m.points), counts
}

// Pairs returns the n×K(K−1)/2 decision values f(x) + b of the machines of the
// pairs (0, 1), (0, 2), …, (1, 2), …: > 0 is the second class.
func (m *SVCModel) Pairs(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	p := predictor{learner: m.learner}
	features := m.points.Cols
	if features == 0 {
		return p.predict(ctx, dev, x)
	}
	k := m.classes.Len()
	p.features, p.intercept, p.kernel = features, make([]float64, k*(k-1)), m.kernel
	first := 0
	var own []int // the class of each pair of matrices
	for c, count := range m.counts {
		if n := int(count); n > 0 {
			p.fixed = append(p.fixed, m.points.View(first, 0, n, features), m.coef.View(first, 0, n, k-1))
			own = append(own, c)
			first += n
		}
	}
	// A class's support vectors are in K−1 machines, not in all: block c of
	// the columns of out is what they add to those.
	p.apply = func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
		n, _ := out.Dims()
		for i, c := range own {
			b.GramMul(out.View(0, c*(k-1), n, k-1), m.kernel, x, fixed[2*i], fixed[2*i+1])
		}
	}
	sums, err := p.predict(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, _ := sums.Dims()
	d := mat.NewDense(n, len(m.b), nil)
	for i := range n {
		from, to := sums.RawRowView(i), d.RawRowView(i)
		for a := range k {
			for c := a + 1; c < k; c++ {
				at := pairOf(a, c, k)
				to[at] = from[a*(k-1)+c-1] + from[c*(k-1)+a] + m.b[at]
			}
		}
	}
	return d, nil
}

// Decision implements Classifier. For K > 2 classes it is the number of votes
// plus s/3(|s|+1), where s is the sum of the class's decisions over its pairs,
// so that it decides between equal numbers only (as scikit-learn has it).
func (m *SVCModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	pairs, err := m.Pairs(ctx, dev, x)
	if err != nil || m.classes.Len() == 2 {
		return pairs, err
	}
	n, _ := pairs.Dims()
	k := m.classes.Len()
	d := mat.NewDense(n, k, nil)
	sums := make([]float64, k)
	for i := range n {
		votes := d.RawRowView(i)
		clear(sums)
		for a := range k {
			for c := a + 1; c < k; c++ {
				v := pairs.At(i, pairOf(a, c, k))
				sums[a] -= v
				sums[c] += v
				if v > 0 {
					votes[c]++
				} else {
					votes[a]++
				}
			}
		}
		for c, s := range sums {
			size := s
			if s < 0 {
				size = -s
			}
			votes[c] += s / (3 * (size + 1))
		}
	}
	return d, nil
}

// Dims implements Model.
func (m *SVCModel) Dims() (features, outputs int) { return m.points.Cols, min(m.points.Cols, 1) }

// Classes implements Classifier.
func (m *SVCModel) Classes() Classes { return m.classes }

// Predict implements Model.
func (m *SVCModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// State implements Model. Its arrays are "points", m×d, "coef", m×(K−1),
// "counts", 1×K, "intercept", 1×K(K−1)/2, and "labels".
func (m *SVCModel) State() State { return stateOf(m) }

func (m *SVCModel) fields() []field {
	return append(m.machineFields(), fixedParam("probability", false))
}

func (m *SVCModel) machineFields() []field {
	return []field{
		classesField(&m.classes), pointsField("points", &m.kernel, &m.points),
		matrixField("coef", &m.coef, rowsOf(&m.points), func() int { return m.classes.Len() - 1 }),
		rowField("counts", &m.counts, numberOf(&m.classes), nonNegative), derived(m.checkCounts),
		rowField("intercept", &m.b, func() int { return pairOf(m.classes.Len()-2, m.classes.Len()-1, m.classes.Len()) + 1 }, anyNumber),
	}
}

// checkCounts refuses counts that do not add up to the support vectors.
func (m *SVCModel) checkCounts() error {
	left := m.points.Rows
	for _, v := range m.counts {
		if v > float64(left) || v != float64(int(v)) {
			left = -1
			break
		}
		left -= int(v)
	}
	if left != 0 {
		return errors.New("array \"counts\" does not add up to the rows of \"points\"")
	}
	return nil
}

func restoreSVC(s State) (Model, error) {
	probability, err := param[bool](s, "probability")
	if err != nil {
		return nil, err
	}
	if probability {
		return restoreAs[SVCProbabilityModel](s)
	}
	return restoreAs[SVCModel](s)
}

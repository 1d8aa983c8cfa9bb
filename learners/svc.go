package learners

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const svcName = "svc"

func init() {
	register(Description{
		Name:    svcName,
		Grid:    "C=0.1,1,10,100",
		Tasks:   []Task{Classification},
		Sparse:  true,
		Formula: "minimize ½‖f‖² + C Σ w_i max(1 − y_i(f(x_i) + b), 0) for each pair of classes, y_i = ±1",
		Source:  "Cortes and Vapnik (1995); Schölkopf, Smola, Williamson and Bartlett (2000) for nu; Fan, Chen and Lin (2005); Chang and Lin (2011), LIBSVM",
	}, (*SVC).parameters, SVC.Fit)
}

func (l *SVC) parameters() []Parameter {
	return slices.Concat([]Parameter{scaleKernel(&l.Kernel)}, l.penalties(), smoParameters(&l.Tol, marginTol, &l.MaxIter, &l.Cache),
		[]Parameter{
			seedNumber(&l.Seed).withHelp("seed of the order of coordinate descent and of the parts of the cross-validation for probabilities"),
			boolParam("probability", &l.Probabilities, "false", "also fit probabilities, by cross-validation in five parts: six times the work; the label is then the most probable class"),
		})
}

// penalties returns the parameters C, lambda and nu. At most one of these may be given.
func (l *SVC) penalties() []Parameter {
	list := costParameters(&l.C, &l.Lambda)
	list[1] = list[1].onlyWithout("nu")
	nu := number("nu", &l.Nu, "", upToOne, "find C such that at most this share of the samples of two classes violates the margin, and at least this share are support vectors")
	nu.refuse = func() string {
		if l.Nu > 0 && l.C != 0 && l.C != 1 {
			return "works only without C, because nu determines C"
		}
		return ""
	}
	return append(list, nu)
}

// SVC is the C-support vector machine. For two classes, y_i = ±1, the sign of f(x) + b predicts the class, with the f
// and b that minimize
//
//	½‖f‖² + C Σ_i w_i max(1 − y_i(f(x_i) + b), 0)
//
// With C = 1/(2nλ) this is equivalent to minimizing (1/n)Σ max(1 − y f, 0) + λ‖f‖². For K > 2 classes each pair of
// classes has its own machine (one versus one). The class with the most votes is predicted; ties are decided by the
// decision values. The result is that of LIBSVM and scikit-learn's SVC with the same C and kernel.
//
// With Nu, SVC is the ν-support vector machine (Schölkopf, Smola, Williamson and Bartlett 2000). For each pair of
// classes it finds a C such that at most a fraction ν of the samples, by weight, violates the margin, and at least a
// fraction ν are support vectors. The result is that of LIBSVM and of scikit-learn's NuSVC for the same ν. For each
// pair, ν must be at most twice the fraction of the smaller class.
//
// For each pair of classes, SMO (sequential minimal optimization) computes O(ns) kernel values for n samples and s
// support vectors. The memory is the cached rows of the Gram matrix K and a copy of x. With the linear kernel and
// sparse samples, dual coordinate descent may solve the same problem; its duality gap is at most Tol/1000 of the
// objective. If classes overlap, s is proportional to n.
type SVC struct {
	Kernel  kernels.Kernel // nil means the Gaussian with sigma = √(d·Var(X)/2), as scikit-learn's gamma="scale"
	C       float64        // 0 means 1/(2nλ), or 1 if Lambda is 0
	Lambda  float64        // λ of (1/n)Σ w_i max(1 − y_i f(x_i), 0) + λ‖f‖², n = Σw_i over all classes; 0 means that C is used
	Nu      float64        // in (0, 1]: C is found for each pair; 0 means that C or Lambda is used
	Tol     float64        // largest violation of the optimality conditions, below 2; 0 means 1e-3
	MaxIter int            // maximum number of steps per pair; 0 means max(10 million, 100n)
	Cache   int64          // bytes for the rows of K of one machine; 0 means 512 MiB
	Seed    uint64         // seed of the order of coordinate descent, and of the folds of Probabilities

	// Probabilities fits a sigmoid to the decision values of each pair of classes by five-fold cross-validation
	// (Platt 1999, with the algorithm of Lin, Lin and Weng 2007). The probability of a pair's second class does
	// not decrease with the decision value. For K > 2 the probabilities of the pairs are coupled (Wu, Lin and Weng
	// 2004, their second method). A fit takes about six times as long.
	Probabilities bool
}

// SVCModel is a fitted SVC. The numbers of steps and the objectives in its facts are sums over the pairs. An
// objective is the minimum of the formula of SVC; LIBSVM prints its negative as obj. For two classes the facts
// also have ‖f‖² and the margin 1/‖f‖, the distance from f = 0 to f = ±1 in the feature space of the kernel.
//
// A model with Probabilities predicts the class with the largest probability, as svm-predict -b 1 of LIBSVM does,
// so the label may differ from the sign of Decision; ties are decided by the decision values.
type SVCModel struct {
	model
	classified
	smoTrace
	kernel kernels.Kernel
	// points are the support vectors of class 0, then those of class 1, and so on.
	points numeric.Points
	counts []float64 // numbers of support vectors of the classes
	// coef has K−1 columns. A row holds the coefficients of one support vector in the machines of
	// its class and each other class, in the order of the other classes.
	coef backend.Host[float64]
	b    []float64 // intercepts of the pairs (0, 1), (0, 2), …, (1, 2), …
	// For each pair, sigmoid has A in row 0 and B in row 1. The probability of the second class is
	// 1/(1 + exp(A f + B)). sigmoid is empty after a fit without Probabilities.
	sigmoid backend.Host[float64]
}

// Fit fits the n×d samples x, whose classes are the different values of the n×1 matrix y.
func (l SVC) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *SVCModel, err error) {
	defer wrapError(svcName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, svcName, l.parameters(), x, y, o)
	classes, index := f.classes()
	k := f.scaleKernel(l.Kernel)
	if f.err != nil {
		return nil, f.err
	}
	hx := f.points
	if l.C, err = penaltyOf(l.C, l.Lambda, hx.Rows, o); err != nil {
		return nil, err
	}
	p := &svm.Pairs{Kernel: k, X: hx, Weights: make([]float64, hx.Rows), Rows: make([][]int, classes.Len()), Names: classes.Names, C: l.C, Nu: l.Nu}
	if p.Params, err = (svm.Params{Tol: l.Tol, MaxIter: l.MaxIter, Cache: l.Cache, Seed: l.Seed}).WithDefaults(hx.Rows); err != nil {
		return nil, err
	}
	for i, class := range index {
		if p.Weights[i] = weightOf(o, i); p.Weights[i] > 0 {
			p.Rows[class] = append(p.Rows[class], i)
		}
	}
	if err = p.CheckNu(); err != nil {
		return nil, err
	}
	p.Allot(dev, o.Memory)
	t := f.task(hx.Rows, func(n int) int64 { return p.Bytes(dev, n) })
	if f.err != nil {
		return nil, f.err
	}
	fitShare := 1. // fraction of the work for the machines fitted to all samples; the other fits are for Probabilities
	if l.Probabilities {
		fitShare = 1. / (1 + svm.Parts)
	}
	results, err := p.Solve(t, fitShare)
	if err != nil {
		return nil, err
	}
	m = newSVCModel(p, classes, results)
	if l.Probabilities {
		var a, b []float64
		a, b, err = p.Sigmoids(t, fitShare, l.Seed)
		m.sigmoid = backend.Host[float64]{Rows: 2, Cols: len(a), Stride: len(a), Data: append(a, b...)}
	}
	return m, err
}

// Kernel returns the kernel of the fit, whether it was given or chosen by Fit.
func (m *SVCModel) Kernel() kernels.Kernel { return m.kernel }

// newSVCModel collects the support vectors of all pairs by class.
func newSVCModel(p *svm.Pairs, classes Classes, results []*svm.Result) *SVCModel {
	m := &SVCModel{model: model{learner: svcName}, classified: classified{classes}, kernel: p.Kernel, b: make([]float64, len(results))}
	m.support, m.points, m.coef, m.counts = p.Support(results)
	for pair, res := range results {
		m.b[pair] = res.Intercept
		m.steps = append(m.steps, res.Steps)
	}
	m.facts = append([]Fact{{"support vectors", m.points.Rows}, {"machines", len(results)}}, smoFacts(results...)...)
	if len(results) == 1 {
		square := results[0].Square
		m.facts = append(m.facts, normFacts(square)...)
		if p.Nu > 0 {
			m.facts = append(m.facts, Fact{"C", results[0].EquivalentParam})
		}
		if square > 0 {
			m.facts = append(m.facts, Fact{"margin", 1 / math.Sqrt(square)})
		}
	}
	m.facts = warned(m.facts, svm.ConvergenceWarning(results...))
	return m
}

// Support returns a copy of the support vectors, and their number for each class.
func (m *SVCModel) Support() (points *mat.Dense, counts []int) {
	for _, c := range m.counts {
		counts = append(counts, int(c))
	}
	return densePoints(m.points), counts
}

// PairwiseDecision returns the n×K(K−1)/2 decision values f(x) + b of the machines of the pairs (0,
// 1), (0, 2), …, (1, 2), …. A positive value is a vote for the second class of the pair.
func (m *SVCModel) PairwiseDecision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	p := predictor{learner: m.learner}
	features := m.points.Cols
	if features == 0 {
		return p.predict(ctx, dev, x)
	}
	k := m.classes.Len()
	p.features, p.intercept, p.kernel = features, make([]float64, k*(k-1)), m.kernel
	first := 0
	var classOf []int // classOf[i] is the class to which fixed[2i] and fixed[2i+1] belong
	for c, count := range m.counts {
		if n := int(count); n > 0 {
			p.fixed = append(p.fixed, m.points.Slice(first, n), numeric.DensePoints(m.coef.View(first, 0, n, k-1)))
			classOf = append(classOf, c)
			first += n
		}
	}
	// The c-th block of columns of out holds the contribution of the support vectors of class c to their K−1 machines.
	p.apply = func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
		n, _ := out.Dims()
		for i, c := range classOf {
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
		svm.PairValues(d.RawRowView(i), sums.RawRowView(i), m.b, k)
	}
	return checked(m.learner, "decision value of a pair of classes", d, nil)
}

// Decision implements Classifier. For K > 2 classes a value is the number of votes plus a fraction
// that breaks ties: see svm.Votes.
func (m *SVCModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	pairs, err := m.PairwiseDecision(ctx, dev, x)
	if err != nil || m.classes.Len() == 2 {
		return pairs, err
	}
	n, _ := pairs.Dims()
	d := mat.NewDense(n, m.classes.Len(), nil)
	for i := range n {
		svm.Votes(d.RawRowView(i), pairs.RawRowView(i))
	}
	return d, nil
}

// Dims implements Model.
func (m *SVCModel) Dims() (features, outputs int) { return m.points.Cols, min(m.points.Cols, 1) }

// Predict implements Model.
func (m *SVCModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	decision, err := m.Decision(ctx, dev, x)
	if err != nil || m.sigmoid.Cols == 0 {
		return m.classes.decide(decision, err)
	}
	proba, err := m.Proba(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return m.Decide(decision, proba), nil
}

// State implements Model. For m support vectors, d features and K classes its arrays are "points", m×d, "coef",
// m×(K−1), "counts", 1×K, "intercept", 1×K(K−1)/2, "labels", and with Probabilities "sigmoid", 2×K(K−1)/2.
func (m *SVCModel) State() State { return stateOf(m) }

func (m *SVCModel) fields() []field {
	return []field{
		classesField(&m.classes), pointsField("points", &m.kernel, &m.points),
		matrixField("coef", &m.coef, numberOfPoints(&m.points), func() int { return m.classes.Len() - 1 }),
		rowField("counts", &m.counts, numberOf(&m.classes), nonNegative), derived(m.checkCounts),
		rowField("intercept", &m.b, func() int { return svm.At(m.classes.Len()-2, m.classes.Len()-1, m.classes.Len()) + 1 }, anyNumber),
		{
			save: func(s State) {
				if s.Params["probability"] = m.sigmoid.Cols > 0; m.sigmoid.Cols > 0 {
					s.Arrays["sigmoid"] = m.sigmoid
				}
			},
			load: func(s State) error {
				fitted, err := param[bool](s, "probability")
				if fitted {
					m.sigmoid, err = s.array("sigmoid", 2, len(m.b))
				}
				return err
			},
		},
	}
}

func (m *SVCModel) checkCounts() error {
	remaining := m.points.Rows
	for _, v := range m.counts {
		if v > float64(remaining) || v != float64(int(v)) {
			remaining = -1
			break
		}
		remaining -= int(v)
	}
	if remaining != 0 {
		return errors.New("array \"counts\" does not add up to the rows of \"points\"")
	}
	return nil
}

// Proba implements Prober. It returns an error if the fit was without Probabilities: see As.
func (m *SVCModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	if m.points.Rows > 0 && m.sigmoid.Cols == 0 {
		return nil, errors.New("learners: svc: the model has no probabilities: fit it with Probabilities")
	}
	pairs, err := m.PairwiseDecision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, _ := pairs.Dims()
	out := mat.NewDense(n, m.classes.Len(), nil)
	for i := range n {
		svm.Probabilities(out.RawRowView(i), pairs.RawRowView(i), m.sigmoid.Row(0), m.sigmoid.Row(1))
	}
	return out, nil
}

// Decide returns the n×1 labels of n rows, given their decision values and probabilities.
func (m *SVCModel) Decide(decision, proba *mat.Dense) *mat.Dense {
	labels := m.classes.Decide(decision)
	if len(m.classes.Labels) == 0 {
		return labels // the model is not fitted
	}
	n, _ := proba.Dims()
	for i := range n {
		row := proba.RawRowView(i)
		class := m.classes.Index(labels.At(i, 0))
		for c, p := range row {
			if p > row[class] {
				class = c
			}
		}
		labels.Set(i, 0, m.classes.Labels[class])
	}
	return labels
}

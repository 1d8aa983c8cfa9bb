package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// sparseData is the value of Benchmark.Data for tf-idf features of texts.
const sparseData = "sparse"

// sparseFits lists the fits of sparse data:
//
//	svc-linear      support vector classification, C = 1, with an intercept
//	svc-gaussian    like svc-linear, with the Gaussian kernel of σ = 1
//	logistic        logistic regression with λ = 1, without an intercept
//	ridge-linear    kernel ridge regression, (K + I)α = y
//	ridge-gaussian  like ridge-linear, with the Gaussian kernel of σ = 1
//	read            reading a LIBSVM file into a CSR matrix and labels
var sparseFits = []string{"svc-linear", "svc-gaussian", "logistic", "ridge-linear", "ridge-gaussian", "read"}

var sparsePeers = []string{sklearn, "libsvm", "liblinear"}

const (
	linearSVC   = sklearn + " LinearSVC"
	sparseCache = 512 << 20 // bytes of the caches for rows of K in LIBSVM and Mercer
)

func (c *fitBench) runSparse(ctx context.Context) (*Result, error) {
	p, err := c.readTexts()
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, fit := range c.Names {
		tasks = append(tasks, Task{
			Case:   Case{{"fit", fit}, {"precision", "float64"}, {"threads", strconv.Itoa(c.Threads[0])}, {"n", strconv.Itoa(p.x.Rows)}},
			Weight: 1,
			Start:  func(context.Context) ([]Entry, error) { return c.sparseEntries(p, fit) },
		})
	}
	r, err := c.Runner.Run(ctx, FitKind, c.sparseImplementations(), tasks)
	if err != nil {
		return nil, err
	}
	r.Notes = append([]string{
		fmt.Sprintf("data: %s as tf-idf of character 3–4-grams, %d × %d with %d nonzeros", filepath.Base(c.Texts), p.x.Rows, p.x.Cols, p.x.NNZ()),
		"residual: of svc and logistic (F − F*)/F(0), where F* is a lower bound of the minimum, of ridge ‖(K+λI)α−y‖/‖y‖; Mercer computes all of them in float64",
		fmt.Sprintf("svc and logistic: each implementation with the largest of the tolerances 10, 1, 0.1, … that leads to a residual within %.0e; LinearSVC and LIBLINEAR penalize the intercept, and are judged by the objective without that penalty", linearLimit),
	}, c.methods...)
	return r, nil
}

func (c *fitBench) sparseImplementations() []Implementation {
	var list []Implementation
	for _, d := range c.devices {
		list = append(list, ownImplementation(d))
	}
	for _, p := range c.peers {
		e := p.implementation(c.Threads[0])
		if p.Name != sklearn {
			e.Threads = 1
		} else if p.Python != nil {
			e.Detail = "SVC (LIBSVM), LogisticRegression (lbfgs), KernelRidge, load_svmlight_file: " + p.Python.Detail
		}
		if list = append(list, e); p.Name == sklearn {
			e.Name, e.Detail, e.Threads = linearSVC, "LIBLINEAR's dual coordinate descent", 1
			list = append(list, e)
		}
	}
	return list
}

type sparseProblem struct {
	judge
	x      backend.CSR[float64]
	y      []float64 // labels, 1 or −1
	kernel kernels.Kernel
	lower  float64 // a lower bound on the minimum of the objective
}

// readTexts reads the texts and their classes from the columns text and target of a table.
func (c *fitBench) readTexts() (*sparseProblem, error) {
	t, err := dataset.Read(c.Texts, nil)
	if err != nil {
		return nil, err
	}
	e, err := dataset.Learn(t, dataset.Rules{
		Targets: []string{"target"}, Labels: true, TFIDF: []string{"text"}, NGrams: dataset.NGrams{Analyzer: "char", MinN: 3, MaxN: 4},
	})
	if err != nil {
		return nil, err
	}
	if n := len(e.Classes()); n != 2 {
		return nil, fmt.Errorf("bench: fit: %s: the column target has %d classes; the benchmark of sparse data takes two", c.Texts, n)
	}
	p := &sparseProblem{judge: judge{nil, c.judges.F64().With(c.ctx, nil)}}
	if p.x, err = e.SparseFeatures(t); err != nil {
		return nil, err
	}
	y, err := e.Targets(t)
	if err != nil {
		return nil, err
	}
	for i := range p.x.Rows {
		p.y = append(p.y, 2*y.At(i, 0)-1)
	}
	return p, nil
}

func (p *sparseProblem) labels() mat.Matrix { return mat.NewDense(len(p.y), 1, p.y) }

// send sends the three arrays of x, and y, to a process.
func (p *sparseProblem) send(process *pypeer.Process) error {
	starts, columns := converted64(p.x.Indptr), converted64(p.x.Indices)
	return errors.Join(pypeer.Put(process, "starts", len(starts), 0, starts), pypeer.Put(process, "columns", len(columns), 0, columns),
		pypeer.Put(process, "values", len(p.x.Data), 0, p.x.Data), pypeer.Put(process, "y", len(p.y), 0, p.y))
}

func converted64[I int | int32](v []I) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// values returns f(x_i) without the intercept for all samples, and ‖f‖².
func (p *sparseProblem) values(f function) (values []float64, square float64, err error) {
	values = make([]float64, p.x.Rows)
	if w := f.linear; w.Data != nil {
		if w.Rows != p.x.Cols || w.Cols != 1 {
			return nil, 0, fmt.Errorf("bench: fit: the matrix of the coefficients is %d × %d, want %d × 1", w.Rows, w.Cols, p.x.Cols)
		}
		points := numeric.SparsePoints(p.x)
		for i := range values {
			values[i] = points.Dot(i, w, 0)
		}
		return values, floats.Dot(w.Data, w.Data), nil
	}
	if len(f.coef) != p.x.Rows {
		return nil, 0, fmt.Errorf("bench: fit: %d coefficients for %d samples", len(f.coef), p.x.Rows)
	}
	mem := placer[float64]{q: p.q}
	defer mem.free()
	x, err := backend.PlaceSparse(p.q, p.x)
	if err != nil {
		return nil, 0, err
	}
	defer x.Free()
	column := func(v []float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: len(v), Cols: 1, Stride: 1, Data: v}
	}
	beta, out := mem.place(column(f.coef)), mem.place(column(values))
	if mem.err != nil {
		return nil, 0, mem.err
	}
	p.q.GramMul(out, p.kernel, x, x, beta)
	err = p.q.Download(column(values), out)
	return values, floats.Dot(f.coef, values), err
}

// hinge returns (F − F*)/F(0) for F = ½‖f‖² + Σ max(0, 1 − y_i(f(x_i) + b)), the intercept b and a lower bound F* of F.
func (p *sparseProblem) hinge(f function) (float64, error) {
	values, square, err := p.values(f)
	value := square / 2
	for i, v := range values {
		value += max(0, 1-p.y[i]*(v+f.intercept))
	}
	return (value - p.lower) / float64(len(p.y)), err
}

// dual returns the dual objective Σ|β_i| − ½βᵀKβ, a lower bound of the F that hinge defines. It returns an error unless
// 0 ≤ y_iβ_i ≤ 1 for all i and Σβ_i = 0, the conditions for this bound.
func (p *sparseProblem) dual(beta []float64) (float64, error) {
	_, square, err := p.values(function{coef: beta})
	if err != nil {
		return 0, err
	}
	// slack allows for the rounding errors of the elements of β and of their sum.
	const slack = 0x1p-40
	for i, b := range beta {
		if b *= p.y[i]; !(b >= 0 && b <= 1+slack) {
			return 0, fmt.Errorf("bench: fit: svc: the coefficient %v of row %d is not between 0 and 1", b, i+1)
		}
	}
	if sum := floats.Sum(beta); !(math.Abs(sum) <= slack*float64(len(beta))) {
		return 0, fmt.Errorf("bench: fit: svc: the coefficients sum to %v, not to 0", sum)
	}
	return floats.Norm(beta, 1) - square/2, nil
}

// logloss returns (F − F*)/F(0) for F = ½‖w‖² + Σ ln(1 + exp(−y_i wᵀx_i)) and the lower bound F* of the minimum.
func (p *sparseProblem) logloss(f function) (float64, error) {
	value, _, err := p.logistic(f)
	return (value - p.lower) / (float64(len(p.y)) * math.Ln2), err
}

// logistic returns the objective F that logloss defines, and the lower bound F − ½‖∇F‖² of its minimum.
func (p *sparseProblem) logistic(f function) (value, lower float64, err error) {
	values, square, err := p.values(f)
	if err != nil {
		return 0, 0, err
	}
	value = square / 2
	gradient := slices.Clone(f.linear.Data)
	for i, v := range values {
		margin := p.y[i] * v
		value += math.Log1p(math.Exp(-math.Abs(margin))) + max(-margin, 0)
		columns, values := p.x.Row(i)
		for k, c := range columns {
			gradient[c] -= p.y[i] / (1 + math.Exp(margin)) * values[k]
		}
	}
	return value, value - floats.Dot(gradient, gradient)/2, nil
}

// ridge returns ‖(K + I)α − y‖/‖y‖.
func (p *sparseProblem) ridge(f function) (float64, error) {
	values, _, err := p.values(f)
	if err != nil {
		return 0, err
	}
	floats.Add(values, f.coef)
	return floats.Distance(values, p.y, 2) / floats.Norm(p.y, 2), nil
}

// beta returns the coefficients of a support vector machine for two classes, one for each sample.
func (p *sparseProblem) beta(m *learners.SVCModel) ([]float64, error) {
	s := m.State()
	starts, columns, values, coef := s.Arrays["points.starts"].Data, s.Arrays["points.columns"].Data, s.Arrays["points.values"].Data, s.Arrays["coef"].Data
	beta, next := make([]float64, len(p.y)), 0
	for _, class := range []float64{-1, 1} {
		for i, y := range p.y {
			if y != class || next == len(coef) {
				continue
			}
			from, to := int(starts[next]), int(starts[next+1])
			rowColumns, rowValues := p.x.Row(i)
			if slices.EqualFunc(rowColumns, columns[from:to], func(a int32, b float64) bool { return float64(a) == b }) && slices.Equal(rowValues, values[from:to]) {
				beta[i] = coef[next]
				next++
			}
		}
	}
	if next != len(coef) {
		return nil, fmt.Errorf("bench: fit: svc: only %d of the %d support vectors were found among the samples", next, len(coef))
	}
	return beta, nil
}

func (c *fitBench) sparseEntries(p *sparseProblem, fit string) ([]Entry, error) {
	q := *p // the entries of each fit have their own kernel and lower bound
	p = &q
	p.kernel = kernels.Linear{}
	if fit == "svc-gaussian" || fit == "ridge-gaussian" {
		p.kernel = kernels.Gaussian{Sigma: 1}
	}
	k := contest{task: "sparse_" + strings.TrimSuffix(strings.TrimSuffix(fit, "-linear"), "-gaussian"), sendData: p.send, limit: linearLimit, tolerant: true}
	k.parameters = map[string]any{"columns": p.x.Cols, "gamma": 0.5, "linear": p.kernel == kernels.Kernel(kernels.Linear{}), "cache": sparseCache}
	switch fit {
	case "svc-linear", "svc-gaussian":
		return c.sparseSVC(p, k)
	case "logistic":
		run := func(d backend.Device, tol float64) (function, error) {
			m, err := learners.Logistic{Lambda: 1, NoIntercept: true, Tol: tol}.Fit(c.ctx, d, p.x, p.labels(), learners.Options{Memory: c.Memory})
			if err != nil {
				return function{}, err
			}
			return function{linear: hostOf(m.Coef())}, nil
		}
		tight, err := run(c.judges, linearLimit/1e4)
		if err != nil {
			return nil, err
		}
		if _, p.lower, err = p.logistic(tight); err != nil {
			return nil, err
		}
		k.residual = p.logloss
		k.mercer = func(d backend.Device) []competitor {
			var tolerance float64
			mercer := newCompetitor(ownName(d), func() (function, error) { return run(d, tolerance) }, func(f function) (function, error) { return f, nil })
			return []competitor{mercer.atEqualObjective(func(tol float64) { tolerance = tol }, k.residual)}
		}
		k.result = coefficients
		return c.compete(p.judge, k, []string{sklearn, "liblinear"}, nil)
	case "read":
		return c.sparseRead(p, k)
	}
	k.tolerant, k.residual = false, p.ridge
	k.limit = ridgeLimit(p.x.Rows, longest(p.x), "float64", 1)
	k.mercer = func(d backend.Device) []competitor {
		l := learners.KernelRidge{Kernel: p.kernel, Lambda: 1, NoIntercept: true, Tol: fitTol}
		return []competitor{newCompetitor(ownName(d), func() (*learners.KernelRidgeModel, error) {
			return l.Fit(c.ctx, d, p.x, p.labels(), learners.Options{Memory: c.Memory})
		}, func(m *learners.KernelRidgeModel) (function, error) {
			return function{coef: hostOf(m.Alpha()).Data}, nil
		})}
	}
	k.result = func(process *pypeer.Process) (function, error) {
		alpha, err := process.Get("alpha")
		return function{coef: alpha.Data}, err
	}
	return c.compete(p.judge, k, []string{sklearn}, nil)
}

// longest returns the number of nonzeros in the longest row.
func longest(x backend.CSR[float64]) (maxLength int) {
	for i := range x.Rows {
		maxLength = max(maxLength, x.Indptr[i+1]-x.Indptr[i])
	}
	return maxLength
}

func hostOf(m *mat.Dense) backend.Host[float64] {
	raw := m.RawMatrix()
	return backend.Host[float64]{Rows: raw.Rows, Cols: raw.Cols, Stride: raw.Stride, Data: raw.Data}
}

// coefficients reads w and, if the library has an intercept, b.
func coefficients(process *pypeer.Process) (function, error) {
	w, err := process.Get("coef")
	if err != nil {
		return function{}, err
	}
	b, err := process.Get("intercept")
	if err != nil {
		return function{}, err
	}
	return function{linear: w, intercept: b.Data[0]}, nil
}

func (c *fitBench) sparseSVC(p *sparseProblem, k contest) ([]Entry, error) {
	run := func(d backend.Device, tol float64) (*learners.SVCModel, error) {
		// With a tolerance of 2 or more, SMO would stop at f = 0.
		return learners.SVC{Kernel: p.kernel, C: 1, Tol: min(tol, 1.9), Cache: sparseCache}.Fit(c.ctx, d, p.x, p.labels(), learners.Options{Memory: c.Memory})
	}
	tight, err := run(c.judges, 1e-4)
	if err != nil {
		return nil, err
	}
	beta, err := p.beta(tight)
	if err != nil {
		return nil, err
	}
	if p.lower, err = p.dual(beta); err != nil {
		return nil, err
	}
	k.residual = p.hinge
	k.mercer = func(d backend.Device) []competitor {
		var tolerance float64
		mercer := newCompetitor(ownName(d), func() (*learners.SVCModel, error) { return run(d, tolerance) }, func(m *learners.SVCModel) (function, error) {
			beta, err := p.beta(m)
			return function{coef: beta, intercept: m.State().Arrays["intercept"].Data[0]}, err
		})
		return []competitor{mercer.atEqualObjective(func(tol float64) { tolerance = tol }, k.residual)}
	}
	k.result = func(process *pypeer.Process) (function, error) {
		beta, err := process.Get("beta")
		if err != nil {
			return function{}, err
		}
		b, err := process.Get("intercept")
		if err != nil {
			return function{}, err
		}
		return function{coef: beta.Data, intercept: b.Data[0]}, nil
	}
	machines := []string{sklearn, "libsvm"}
	if p.kernel != kernels.Kernel(kernels.Linear{}) {
		return c.compete(p.judge, k, machines, nil)
	}
	primal := k
	primal.task, primal.result, primal.mercer = "sparse_machine", coefficients, nil
	return c.compete(p.judge, k, machines, func(peer Peer) (string, contest, bool) {
		switch peer.Name {
		case sklearn:
			return linearSVC, primal, true
		case "liblinear":
			return peer.Name, primal, true
		}
		return "", contest{}, false
	})
}

// compete returns the entries of Mercer and of the libraries in names. If second returns ok for a library, compete
// adds an entry of the library with the other results of second.
func (c *fitBench) compete(j judge, k contest, names []string, second func(Peer) (name string, k contest, ok bool)) ([]Entry, error) {
	var list []competitor
	for _, d := range c.devices {
		list = append(list, k.mercer(d)...)
	}
	for _, p := range c.peers {
		if slices.Contains(names, p.Name) {
			list = append(list, byPython(p, p.Name, k))
		}
		if second != nil {
			if name, variant, ok := second(p); ok {
				list = append(list, byPython(p, name, variant))
			}
		}
	}
	entries := make([]Entry, len(list))
	for i, w := range list {
		entries[i] = w.entry(j, k.residual, k.limit)
	}
	return entries, nil
}

// sparseRead returns the entries of reading a LIBSVM file. The residual compares the sums of the values.
func (c *fitBench) sparseRead(p *sparseProblem, k contest) ([]Entry, error) {
	path := filepath.Join(c.folder, "table.libsvm")
	if err := p.writeLIBSVM(path); err != nil {
		return nil, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c.methods = append(c.methods, fmt.Sprintf("read: a LIBSVM file of %.1f MB", float64(file.Size())/1e6))
	sum := floats.Sum(p.x.Data)
	k.tolerant, k.sendData, k.parameters = false, nil, map[string]any{"file": path}
	k.residual = func(f function) (float64, error) { return math.Abs(f.coef[0]-sum) / sum, nil }
	// Each value is read exactly, but the order of the nnz additions in the two sums may differ.
	k.limit = float64(len(p.x.Data)) * 0x1p-53
	k.mercer = func(d backend.Device) []competitor {
		return []competitor{newCompetitor(ownName(d), func() (float64, error) {
			t, err := dataset.ReadLIBSVM(path, nil)
			if err != nil {
				return 0, err
			}
			e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"label"}})
			if err != nil {
				return 0, err
			}
			x, err := e.SparseFeatures(t)
			return floats.Sum(x.Data), err
		}, func(sum float64) (function, error) { return function{coef: []float64{sum}}, nil })}
	}
	k.result = func(process *pypeer.Process) (function, error) {
		v, err := process.Get("sum")
		return function{coef: v.Data}, err
	}
	return c.compete(p.judge, k, []string{sklearn}, nil)
}

// writeLIBSVM writes X and y with all digits.
func (p *sparseProblem) writeLIBSVM(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i, y := range p.y {
		fmt.Fprint(w, y)
		columns, values := p.x.Row(i)
		for k, c := range columns {
			fmt.Fprintf(w, " %d:%v", c+1, values[k])
		}
		fmt.Fprintln(w)
	}
	return errors.Join(w.Flush(), f.Close())
}

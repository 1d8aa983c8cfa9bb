package learners

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const rvcName = "rvc"

func init() {
	register(Description{
		Name:    rvcName,
		Tasks:   []Task{Classification},
		Formula: "Pr(y=1|x) = 1/(1 + exp(−Σ_j μ_j φ_j(x))), φ_0 = 1, φ_j = k(x_j, ·), μ_j ~ N(0, 1/α_j); α maximises Laplace's evidence, and most α are ∞",
		Source:  "Tipping (2001), Sparse Bayesian learning and the relevance vector machine; Tipping and Faul (2003)",
		Parameters: []Parameter{
			medianKernel,
			rvmTol("0.1"), rvmLimit, seedNumber,
		},
		fitter: func(v Values) Fitter {
			return fitterOf(RVC{Kernel: v.Kernel("kernel"), Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), Seed: v.Seed()}.Fit)
		},
		restore: restoreAs[RVCModel],
	})
}

// RVC is the relevance vector machine for classification: the log odds of the
// second of two classes are f(x) = Σ_j μ_j φ_j(x) with the basis φ_0 = 1 and
// φ_j = k(x_j, ·) and weights N(0, 1/α_j) a priori. The posterior is taken for a
// Gaussian about its mode μ (Laplace), with the covariance
// Σ = (ΦᵀBΦ + A)⁻¹, B = diag(w_i p_i(1 − p_i)), and α maximises the evidence
//
//	Σ_i w_i log p(y_i | μ) − ½ μᵀAμ + ½ log|A| + ½ log|Σ|
//
// by steps of Tipping and Faul (2003) with targets linearised at the mode and the
// derivative of log|Σ| by the mode: the function that promises to gain most is added,
// changed or deleted. Steps are taken in batches of up to 256 among the model and the 128
// most promising functions outside; one that does not raise the evidence is taken back.
// When batches do not raise it, Newton steps for all α and then single steps do. For
// K > 2 classes there are K such machines, each class against the rest, and the
// probabilities of the classes are made to sum to 1.
//
// Φ is kept on the device: n² numbers twice. A batch costs a few Newton steps,
// O(nm²) for m functions in the model, and one product of O(n²m); the fact "modes" counts
// the modes that were looked for. A fit that ends
// before Tol is reached returns its model with the fact "warning". The support is
// far smaller than that of svc.
type RVC struct {
	Kernel  kernels.Kernel // nil: the Gaussian whose sigma is the median distance between rows
	Tol     float64        // 0 is 0.1: gain of the log evidence
	MaxIter int            // for a machine; 0 is 1000 steps, or 10n if that is more
	Seed    uint64         // of the choice of rows where Kernel is nil
}

// RVCModel is a fitted RVC. Its decision values are the log odds of the second of two
// classes, or of each class against the rest; steps and the log evidence among its facts
// are summed over the machines.
type RVCModel struct {
	kernelClassifier             // the points are the relevance vectors of any machine
	traces           [][]float64 // log evidence of each machine; nil for a restored model
}

// Fit fits the n×d samples x, whose classes are the different values of the n×1
// matrix y.
func (l RVC) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*RVCModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	return named(rvcName, m, err)
}

func (l RVC) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*RVCModel, error) {
	hx, hy, err := checkedBoth(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	m := &RVCModel{}
	m.learner = rvcName
	var index []int
	if m.classes, index, err = classesOf(hy, o.Weights, o.Classes); err != nil {
		return nil, err
	}
	if l.Tol, l.MaxIter, err = rvmSettings(cmp.Or(l.Tol, 0.1), l.MaxIter, hx.Rows); err != nil {
		return nil, err
	}
	if m.kernel, err = kernelFor(ctx, l.Kernel, hx, o.Weights, l.Seed); err != nil {
		return nil, err
	}
	t, err := newTask(ctx, dev, o, rvcName, hx.Rows, func(n int) int64 { return basisBytes(n, hx.Cols) })
	if err != nil {
		return nil, err
	}
	b, err := newBasis(t, m.kernel, hx, o)
	if err != nil {
		return nil, err
	}
	signs := keepPositive(m.classes.targets(index), o.Weights)
	machines := signs.Cols
	p, err := newLaplace(t, b)
	if err != nil {
		return nil, err
	}
	defer p.free()
	m.intercept = make([]float64, machines)
	line := make(map[int][]float64) // weights of a function in all machines
	steps, modes, evidence, warning := 0, 0, 0.0, ""
	for c := range machines {
		p.begin(signs, c)
		p.base, p.share = 0.05+0.95*float64(c)/float64(machines), 0.95/float64(machines)
		if err := p.maximise(l.Tol, l.MaxIter); err != nil {
			return nil, err
		}
		for at, j := range p.active {
			if j == 0 {
				m.intercept[c] = p.mu[at]
				continue
			}
			if line[j] == nil {
				line[j] = make([]float64, machines)
			}
			line[j][c] = p.mu[at]
		}
		if p.warning != "" && warning == "" {
			warning = p.warning
		}
		steps += p.steps
		modes += p.modes
		evidence += p.value
		m.traces = append(m.traces, p.trace)
	}
	var list []int
	for j := range line {
		list = append(list, j)
	}
	slices.Sort(list)
	kept := max(len(list), 1) // a model has at least one point, if only of weight 0
	m.points, m.coef = backend.NewHost[float64](kept, hx.Cols), backend.NewHost[float64](kept, machines)
	copy(m.points.Row(0), b.x.Row(0))
	for r, j := range list {
		copy(m.points.Row(r), b.x.Row(j-1))
		copy(m.coef.Row(r), line[j])
	}
	m.facts = []Fact{{"relevance vectors", len(list)}, {"machines", machines}, {"steps", steps}, {"modes", modes}, {"log evidence", evidence}}
	if warning != "" {
		m.facts = append(m.facts, Fact{"warning", warning})
	}
	return m, t.at("solve", 1)
}

// Relevance returns a copy of the relevance vectors.
func (m *RVCModel) Relevance() *mat.Dense { return denseOf(m.points) }

// Traces returns the log evidence of each machine at first and after each batch of
// steps that raised it; nil for a restored model.
func (m *RVCModel) Traces() [][]float64 {
	var list [][]float64
	for _, t := range m.traces {
		list = append(list, slices.Clone(t))
	}
	return list
}

// Proba implements Prober.
func (m *RVCModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, cols := f.Dims()
	out := mat.NewDense(n, m.classes.Len(), nil)
	for i := range n {
		row := out.RawRowView(i)
		if cols == 1 {
			row[0], row[1] = chance(-f.At(i, 0)), chance(f.At(i, 0))
			continue
		}
		sum := 0.0
		for c, v := range f.RawRowView(i) {
			row[c] = math.Max(chance(v), math.SmallestNonzeroFloat64*(1<<52))
			sum += row[c]
		}
		for c := range row {
			row[c] /= sum
		}
	}
	return out, nil
}

// chance is 1/(1 + e^−v), to full precision on both sides.
func chance(v float64) float64 {
	if v >= 0 {
		return 1 / (1 + math.Exp(-v))
	}
	e := math.Exp(v)
	return e / (1 + e)
}

// State implements Model. Its arrays are "points", m×d, "weights", m×c,
// "intercept", 1×c, and those of the classes.
func (m *RVCModel) State() State { return stateOf(m) }

func (m *RVCModel) fields() []field { return m.classFields("points", "weights") }

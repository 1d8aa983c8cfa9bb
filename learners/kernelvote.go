package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelVoteName = "kernel-vote"

func init() {
	register(Description{
		Name:       kernelVoteName,
		Tasks:      []Task{Regression, Classification},
		Formula:    "the class with the largest Σ w_i k(x, x_i) over its samples, or the mean Σ w_i y_i k(x, x_i) / Σ w_i k(x, x_i)",
		Source:     "Nadaraya (1964); Watson (1964); Parzen (1962)",
		Outputs:    true,
		Sparse:     true,
		classifier: fitterOf((*KernelVote).parameters, KernelVote.FitClasses),
		model: func(s State) (fielded, error) {
			classes, err := isOfClasses(s)
			if classes {
				return &KernelVoteClassModel{}, err
			}
			return &KernelVoteModel{}, err
		},
	}, (*KernelVote).parameters, KernelVote.Fit)
}

func (l *KernelVote) parameters() []Parameter {
	return []Parameter{
		kernel(&l.Kernel, "gaussian; its sigma, between 8 and 1/16 median distances, has the smallest leave-one-out error"),
		seedNumber(&l.Seed).withHelp("seed of the choice of rows for sigma"),
	}
}

// KernelVote lets every sample vote with the weight k(x, x_i). After FitClasses, the prediction is the weighted
// vote sgn(Σ_i w_i y_i k(x, x_i)) for two classes y_i = ±1, and for more classes the class with the largest sum, or
// the first of the classes with the largest sum. After Fit, it is the kernel-weighted mean of the targets,
//
//	f(x) = Σ_i w_i y_i k(x, x_i) / Σ_i w_i k(x, x_i)
//
// Fit determines only the scale of the kernel; the model keeps the samples. A prediction computes O(n) values of k
// for each row. The mean needs a denominator > 0: Predict returns an error that names the row if the row is too
// far from all samples, or if the kernel has negative values there.
type KernelVote struct {
	// Kernel is k. Nil is the Gaussian whose sigma has the smallest leave-one-out squared error of the targets, or
	// of the 0/1 memberships of classes, for at most 1000 rows, chosen by Seed. The candidates are the median
	// distance between rows times 8, 8/√2, 4, …, 1/16.
	Kernel kernels.Kernel
	Seed   uint64 // seed of the choice of rows if Kernel is nil
}

// KernelVoteModel is a fitted KernelVote for regression.
type KernelVoteModel struct{ trainingSet }

// KernelVoteClassModel is a fitted KernelVote for classification: its y has a column for each class.
type KernelVoteClassModel struct{ KernelVoteModel }

// Fit stores the n×d samples x and the n×t targets y.
func (l KernelVote) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *KernelVoteModel, err error) {
	defer remarkConstant(&m, &err, y, o)
	return l.fit(ctx, dev, x, y, o, Regression)
}

// FitClasses stores the n×d samples x, whose classes are the different values of the n×1 matrix y.
func (l KernelVote) FitClasses(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelVoteClassModel, error) {
	m, err := l.fit(ctx, dev, x, y, o, Classification)
	if err != nil {
		return nil, err
	}
	return &KernelVoteClassModel{*m}, nil
}

func (l KernelVote) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options, task Task) (m *KernelVoteModel, err error) {
	defer wrapError(kernelVoteName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, kernelVoteName, l.parameters(), x, y, o)
	f.ctx = ctx // omit the memory of packed points from the plan: this fit packs no points
	m = &KernelVoteModel{f.trainingSet(task)}
	m.kernel = f.kernel(l.Kernel, l.Seed)
	if l.Kernel == nil && f.err == nil {
		median := 2 * m.kernel.(kernels.Gaussian).Sigma // kernelFor sets sigma to half of the median
		sigma, err := neighbors.Bandwidth(ctx, median, m.points, m.y, m.weight, l.Seed)
		f.fail(err)
		m.kernel = f.kernel(kernels.Gaussian{Sigma: sigma}, l.Seed)
	}
	f.planCopies(m.y.Cols)
	return m, f.err
}

// sums returns Σ w_i y_i k(x, x_i), and Σ w_i k(x, x_i) in the last column if total is true.
func (m *KernelVoteModel) sums(ctx context.Context, dev backend.Device, x mat.Matrix, total bool) (*mat.Dense, error) {
	t := m.y.Cols
	if total {
		t++
	}
	v := backend.NewHost[float64](m.points.Rows, t)
	for i, w := range m.weight {
		row := v.Row(i)
		row[t-1] = w
		for j, y := range m.y.Row(i) {
			row[j] = w * y
		}
	}
	return expansion(m.learner, m.kernel, m.points, v, make([]float64, t)).predict(ctx, dev, x)
}

// Predict implements Model.
func (m *KernelVoteModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	sums, err := m.sums(ctx, dev, x, true)
	if err != nil {
		return nil, err
	}
	n, t := sums.Dims()
	f := mat.NewDense(n, t-1, nil)
	for i := range n {
		row := sums.RawRowView(i)
		if !(row[t-1] > 0) || math.IsInf(row[t-1], 1) {
			return nil, fmt.Errorf("learners: %s: predict: x: row %d: the kernel values sum to %v, so that there is no weighted mean: use a kernel with a larger length scale", kernelVoteName, i+1, row[t-1])
		}
		for j := range t - 1 {
			f.Set(i, j, row[j]/row[t-1])
		}
	}
	return checked(m.learner, "prediction", f, nil)
}

// State implements Model. Its arrays are "points", n×d, "weights", 1×n, and "targets", n×t.
func (m *KernelVoteModel) State() State { return stateOf(m) }

func (m *KernelVoteModel) fields() []field { return m.setFields(Regression) }

// Classes implements Classifier.
func (m *KernelVoteClassModel) Classes() Classes { return m.classes }

// Decision implements Classifier. It returns the sum of the votes for each class, or for two classes the sum for
// the second class minus the sum for the first.
func (m *KernelVoteClassModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.decision(m.sums(ctx, dev, x, false))
}

// Proba implements Prober: the probability of a class is the sum of the class divided by the total of all sums.
// Proba returns an error for a row whose kernel values are all 0, or if a value is negative.
func (m *KernelVoteClassModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	sums, err := m.sums(ctx, dev, x, false)
	if err != nil {
		return nil, err
	}
	if err := neighbors.Shares(dense(sums)); err != nil {
		return nil, predictError(m.learner, err)
	}
	return sums, nil
}

// Predict implements Model.
func (m *KernelVoteClassModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// State implements Model: the State of the regression on n×K memberships, and the classes.
func (m *KernelVoteClassModel) State() State { return stateOf(m) }

func (m *KernelVoteClassModel) fields() []field { return m.setFields(Classification) }

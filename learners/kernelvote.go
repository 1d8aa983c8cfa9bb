package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelVoteName = "kernel-vote"

func init() {
	learner := func(v Values) KernelVote {
		return KernelVote{Kernel: v.Kernel("kernel"), Seed: v.Seed()}
	}
	register(Description{
		Name:       kernelVoteName,
		Tasks:      []Task{Regression, Classification},
		Formula:    "the class with the largest Σ w_i k(x, x_i) over its samples, or the mean Σ w_i y_i k(x, x_i) / Σ w_i k(x, x_i)",
		Source:     "Nadaraya (1964); Watson (1964); Parzen (1962)",
		Outputs:    true,
		Parameters: []Parameter{medianKernel, seedNumber},
		fitter:     func(v Values) Fitter { return fitterOf(learner(v).Fit) },
		classifier: func(v Values) Fitter { return fitterOf(learner(v).FitClasses) },
		restore:    restoreKernelVote,
	})
}

// KernelVote lets every sample vote with the weight k(x, x_i): the weighted vote
// sgn(Σ_i w_i y_i k(x, x_i)) for two classes y_i = ±1, and for more the class with
// the largest sum (FitClasses); or the kernel-weighted mean of the targets,
//
//	f(x) = Σ_i w_i y_i k(x, x_i) / Σ_i w_i k(x, x_i)
//
// (Fit). Of equal sums the first class is taken. Nothing is fitted but the scale
// of the kernel: samples are kept, and a prediction is O(n) values of k for each
// row, never stored. A mean needs k ≥ 0: where the denominator is not > 0, far
// from all samples or with a kernel that may be negative, a prediction is refused
// with its row. Larger classes have more votes; a small length scale makes it the
// nearest neighbour.
type KernelVote struct {
	Kernel kernels.Kernel // nil: the Gaussian whose sigma is the median distance between rows
	Seed   uint64         // of the choice of rows where Kernel is nil
}

// KernelVoteModel is a fitted KernelVote for regression.
type KernelVoteModel struct {
	*remembered
	y backend.Host[float64] // n×t
}

// KernelVoteClassModel is a fitted KernelVote for classification: y has a column
// for each class.
type KernelVoteClassModel struct {
	*KernelVoteModel
	classes Classes
}

// Fit remembers the n×d samples x and the n×t targets y.
func (l KernelVote) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelVoteModel, error) {
	hx, hy, err := checkedBoth(dev, x, y, o)
	if err == nil {
		var m *KernelVoteModel
		if m, err = l.remember(ctx, dev, hx, keepPositive(hy, o.Weights), o); err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("learners: kernel-vote: %w", err)
}

// FitClasses remembers the n×d samples x, whose classes are the different values
// of the n×1 matrix y.
func (l KernelVote) FitClasses(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelVoteClassModel, error) {
	m, err := l.fitClasses(ctx, dev, x, y, o)
	if err != nil {
		return nil, fmt.Errorf("learners: kernel-vote: %w", err)
	}
	return m, nil
}

func (l KernelVote) fitClasses(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelVoteClassModel, error) {
	hx, hy, err := checkedBoth(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	classes, index, err := classesOf(hy, o.Weights, o.Classes)
	if err != nil {
		return nil, err
	}
	m, err := l.remember(ctx, dev, hx, classTargets(classes, index, o), o)
	return &KernelVoteClassModel{m, classes}, err
}

func (l KernelVote) remember(ctx context.Context, dev backend.Device, x, y backend.Host[float64], o Options) (*KernelVoteModel, error) {
	k, err := kernelFor(ctx, l.Kernel, x, o.Weights, l.Seed)
	if err != nil {
		return nil, err
	}
	r, err := remember(ctx, dev, kernelVoteName, k, x, o, func(n int) int64 {
		return 8 * int64(n) * int64(2*x.Cols+2*y.Cols+2)
	})
	if err != nil {
		return nil, err
	}
	return &KernelVoteModel{r, y}, nil
}

// Learner returns "kernel-vote".
func (m *KernelVoteModel) Learner() string { return kernelVoteName }

// Dims implements Model.
func (m *KernelVoteModel) Dims() (features, outputs int) {
	if m == nil || m.dims() == 0 {
		return 0, 0
	}
	return m.dims(), m.y.Cols
}

// Kernel returns the kernel, also where it was chosen by Fit.
func (m *KernelVoteModel) Kernel() kernels.Kernel { return m.kernel }

// sums returns Σ w_i y_i k(x, x_i), and in the last column, if asked for,
// Σ w_i k(x, x_i).
func (m *KernelVoteModel) sums(ctx context.Context, dev backend.Device, x mat.Matrix, total bool) (*mat.Dense, error) {
	features, t := m.Dims()
	if features == 0 {
		return predictor{learner: kernelVoteName}.predict(ctx, dev, x)
	}
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
	return expansion(kernelVoteName, m.kernel, m.points, v, make([]float64, t)).predict(ctx, dev, x)
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
		from := sums.RawRowView(i)
		if !(from[t-1] > 0) || math.IsInf(from[t-1], 1) {
			return nil, fmt.Errorf("learners: %s: predict: x: row %d: the values of the kernel sum to %v, and no mean can be taken: use a kernel that is > 0 there, with a larger length scale", kernelVoteName, i+1, from[t-1])
		}
		for j := range t - 1 {
			f.Set(i, j, from[j]/from[t-1])
		}
	}
	return f, nil
}

// Learner returns "kernel-vote".
func (m *KernelVoteClassModel) Learner() string { return kernelVoteName }

// Dims implements Model.
func (m *KernelVoteClassModel) Dims() (features, outputs int) {
	if m == nil || m.KernelVoteModel == nil || m.dims() == 0 {
		return 0, 0
	}
	return m.dims(), 1
}

// Classes implements Classifier.
func (m *KernelVoteClassModel) Classes() Classes {
	if m == nil {
		return Classes{}
	}
	return m.classes
}

// votes returns the n×K sums of the classes.
func (m *KernelVoteClassModel) votes(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	if m == nil {
		return (*KernelVoteModel)(nil).sums(ctx, dev, x, false)
	}
	return m.sums(ctx, dev, x, false)
}

// Decision implements Classifier: the sums of the classes, or, of two classes,
// that of the second less that of the first.
func (m *KernelVoteClassModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	sums, err := m.votes(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return decisionOf(m.classes, sums), nil
}

// Proba implements Prober: the shares of the sums, as of densities. It refuses a
// row where the kernel is negative, or 0 for all samples.
func (m *KernelVoteClassModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	sums, err := m.votes(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	if sums, err = sharesOf(sums); err != nil {
		return nil, fmt.Errorf("learners: %s: predict: %w", kernelVoteName, err)
	}
	return sums, nil
}

// Predict implements Model.
func (m *KernelVoteClassModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return predictClasses(ctx, dev, m, x)
}

// State implements Model. Its arrays are "points", n×d, "weights", 1×n, and
// "targets", n×t.
func (m *KernelVoteModel) State() State {
	s := State{Learner: kernelVoteName, Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features == 0 {
		return s
	}
	m.save(s)
	s.Params["task"] = string(Regression)
	s.Arrays["targets"] = m.y
	return s
}

// State implements Model: that of the regression on n×K memberships, and the
// classes.
func (m *KernelVoteClassModel) State() State {
	if features, _ := m.Dims(); features == 0 {
		return (*KernelVoteModel)(nil).State()
	}
	s := m.KernelVoteModel.State()
	s.Params["task"] = string(Classification)
	m.classes.save(s)
	return s
}

func restoreKernelVote(s State) (Model, error) {
	task, err := restoreTask(s)
	if err != nil {
		return nil, err
	}
	r, err := restoreRemembered(s)
	if err != nil {
		return nil, err
	}
	m := &KernelVoteModel{remembered: r}
	if m.y, err = s.array("targets", r.points.Rows, -1); err != nil {
		return nil, err
	}
	if task == Regression {
		return m, nil
	}
	classes, err := restoreClasses(s)
	if err != nil {
		return nil, err
	}
	if m.y.Cols != classes.Len() {
		return nil, fmt.Errorf("array \"targets\" has %s for %s", count.Of(m.y.Cols, "column"), count.Of(classes.Len(), "class"))
	}
	return &KernelVoteClassModel{m, classes}, nil
}

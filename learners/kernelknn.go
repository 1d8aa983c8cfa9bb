package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelKNNName = "kernel-knn"

func init() {
	register(Description{
		Name:       kernelKNNName,
		Grid:       "k=1,2,3,5,8,12,20,30",
		Tasks:      []Task{Regression, Classification},
		Formula:    "the mean of y, or the vote, of the k samples with the smallest d²(x, z) = k(x,x) + k(z,z) − 2k(x,z)",
		Source:     "Cover and Hart (1967); Yu, Ji and Zhang (2002), Kernel nearest-neighbor algorithm",
		Outputs:    true,
		Sparse:     true,
		classifier: fitterOf((*KernelKNN).parameters, KernelKNN.FitClasses),
		model: func(s State) (fielded, error) {
			classes, err := isOfClasses(s)
			if classes {
				return &KernelKNNClassModel{}, err
			}
			return &KernelKNNModel{}, err
		},
	}, (*KernelKNN).parameters, KernelKNN.Fit)
}

func (l *KernelKNN) parameters() []Parameter {
	return []Parameter{
		kernel(&l.Kernel, "linear(): the Euclidean distance"),
		intParam("k", &l.K, "5", atLeast(1), "number of neighbors; a sample of weight 2 counts as two"),
	}
}

// KernelKNN finds the K samples that are nearest to x in the feature space of the kernel, where
//
//	d²(x, z) = k(x, x) + k(z, z) − 2k(x, z)
//
// and predicts the mean of their targets (Fit) or the class with the most votes (FitClasses). A sample of weight w
// counts as w samples; the weight of the farthest neighbor is reduced so that the weights of the neighbors sum to K. If
// samples have equal distances, or classes have equal votes, the first one is selected. With the linear kernel, and
// with any kernel that decreases with the Euclidean distance, the result is that of scikit-learn's KNeighbors.
//
// A prediction takes O(n) values of k for each row. Values of d² below about 1e-16 times the kernel values are
// only rounding errors: center features that are far from 0.
type KernelKNN struct {
	Kernel kernels.Kernel // nil means linear()
	K      int            // number of neighbors; 0 means 5
}

// KernelKNNModel is a fitted KernelKNN for regression.
type KernelKNNModel struct {
	trainingSet
	k          int
	selfValues []float64 // k(z, z) of each sample
}

// KernelKNNClassModel is a fitted KernelKNN for classification: its targets are 0 or 1, in a column for each class.
type KernelKNNClassModel struct{ KernelKNNModel }

// Fit stores the n×d samples x and the n×t targets y.
func (l KernelKNN) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *KernelKNNModel, err error) {
	defer remarkConstant(&m, &err, y, o)
	return l.fit(ctx, dev, x, y, o, Regression)
}

// FitClasses stores the n×d samples x, whose classes are the different values of the n×1 matrix y.
func (l KernelKNN) FitClasses(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelKNNClassModel, error) {
	m, err := l.fit(ctx, dev, x, y, o, Classification)
	if err != nil {
		return nil, err
	}
	return &KernelKNNClassModel{*m}, nil
}

func (l KernelKNN) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options, task Task) (m *KernelKNNModel, err error) {
	defer wrapError(kernelKNNName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, kernelKNNName, l.parameters(), x, y, o)
	f.ctx = ctx // omit the memory of packed points from the plan: this fit packs no points
	if l.Kernel == nil {
		l.Kernel = kernels.Linear{}
	}
	m = &KernelKNNModel{k: l.K, trainingSet: f.trainingSet(task)}
	m.kernel = f.kernel(l.Kernel, 0)
	f.planCopies(m.y.Cols)
	if f.err != nil {
		return nil, f.err
	}
	if err := m.norms(); err != nil {
		return nil, err
	}
	for i, v := range m.selfValues {
		if !finite(v) {
			return nil, numeric.PointError(m.kernel, i, m.points.Point(i), v)
		}
	}
	return m, nil
}

// norms sets m.selfValues. It returns an error if m.k exceeds the number of samples.
func (m *KernelKNNModel) norms() error {
	total := 0.0
	for _, w := range m.weight {
		total += w
	}
	if m.k < 1 || float64(m.k) > total {
		return fmt.Errorf("k must be an integer from 1 to %v, the number of samples, got %d", total, m.k)
	}
	m.selfValues = m.points.Diagonal(m.kernel)
	return nil
}

func (m *KernelKNNModel) samples() neighbors.Samples {
	return neighbors.Samples{Kernel: m.kernel, Points: m.points, Weight: m.weight, Own: m.selfValues}
}

// nearest calls f for each row z of x with the nearest samples, whose weights sum to at least m.k, and their keys d² −
// k(z, z), where d is the distance. If needsDiagonal is true, the points passed to f include the values k(z, z).
func (m *KernelKNNModel) nearest(ctx context.Context, dev backend.Device, x mat.Matrix, needsDiagonal bool, f func(i int, x numeric.Points, list []int, keys []float64)) (int, error) {
	p := predictor{learner: m.learner, features: m.points.Cols, kernel: m.kernel, needsDiagonal: needsDiagonal, fixed: []numeric.Points{m.points}}
	points, err := p.checkRows(dev, x)
	if err == nil {
		err = p.inBlocks(ctx, points, func(ctx context.Context, first int, x numeric.Points) error {
			s := m.samples()
			s.First = first
			return s.Nearest(ctx, dev, x, m.k, func(i int, list []int, keys []float64) { f(i, x, list, keys) })
		})
	}
	if err != nil {
		return 0, predictError(m.learner, err)
	}
	return points.Rows, nil
}

// Neighbors returns for each row of x the samples that determine its prediction, nearest first, and their
// squared distances. A sample is given by its index, counted from 0, among the samples of weight > 0.
func (m *KernelKNNModel) Neighbors(ctx context.Context, dev backend.Device, x mat.Matrix) (samples [][]int, squares [][]float64, err error) {
	n, err := m.nearest(ctx, dev, x, true, func(i int, x numeric.Points, list []int, keys []float64) {
		selfValue := x.Diag(m.kernel, i)
		d := make([]float64, len(keys))
		for i, key := range keys {
			d[i] = math.Max(selfValue+key, 0)
		}
		samples, squares = append(samples, append([]int(nil), list...)), append(squares, d)
	})
	for i := range n {
		if err := checkPredicted("squared distance of a neighbor", numeric.Row(squares[i]), i); err != nil {
			return nil, nil, predictError(m.learner, err)
		}
	}
	return samples, squares, err
}

// Predict implements Model: the weighted means of the neighbors' targets.
func (m *KernelKNNModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	t := m.y.Cols
	var data []float64
	n, err := m.nearest(ctx, dev, x, false, func(_ int, _ numeric.Points, list []int, _ []float64) {
		data = append(data, m.samples().Mean(m.y, m.k, list)...)
	})
	if err != nil {
		return nil, err
	}
	return checked(m.learner, "mean of the neighbors' targets", mat.NewDense(n, t, data), nil)
}

// State implements Model. Its arrays are "points", n×d, "weights", 1×n, and "targets", n×t.
func (m *KernelKNNModel) State() State { return stateOf(m) }

func (m *KernelKNNModel) fields() []field { return m.neighborFields(Regression) }

func (m *KernelKNNModel) neighborFields(task Task) []field {
	return append(m.setFields(task), intField("k", &m.k), derived(m.norms))
}

// Classes implements Classifier.
func (m *KernelKNNClassModel) Classes() Classes { return m.classes }

// Proba implements Prober: the fractions of the votes.
func (m *KernelKNNClassModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.KernelKNNModel.Predict(ctx, dev, x)
}

// Decision implements Classifier: the fractions of the votes, or for two classes the fraction of
// the second class minus the fraction of the first.
func (m *KernelKNNClassModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.decision(m.Proba(ctx, dev, x))
}

// Predict implements Model.
func (m *KernelKNNClassModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// State implements Model. Its arrays are those of KernelKNNModel, where "targets" is n×K, and the
// arrays of the classes.
func (m *KernelKNNClassModel) State() State { return stateOf(m) }

func (m *KernelKNNClassModel) fields() []field { return m.neighborFields(Classification) }

package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/online"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelPerceptronName = "kernel-perceptron"

func init() {
	register(Description{
		Name:    kernelPerceptronName,
		Grid:    "epochs=1,3,10,30",
		Tasks:   []Task{Classification},
		Sparse:  true,
		traces:  true,
		Formula: "on a mistake α_i ← α_i + 1, f(x) = Σ α_j y_j k(x_j, x) + b; K classes: α_iy ← α_iy + 1, α_iŷ ← α_iŷ − 1",
		Source:  "Aizerman, Braverman and Rozonoer (1964); Freund and Schapire (1999); budget: Crammer, Kandola and Singer (2003)",
		model: func(s State) (fielded, error) {
			if _, voted := s.Params["voted"]; voted {
				return &VotedModel{}, nil
			}
			return &KernelPerceptronModel{}, nil
		},
	}, (*KernelPerceptron).parameters, KernelPerceptron.Fit)
}

func (l *KernelPerceptron) parameters() []Parameter {
	return append([]Parameter{
		medianKernel(&l.Kernel),
		oneOf("kind", &l.Kind, "last", []PerceptronKind{AveragedPerceptron, VotedPerceptron}, "which of the hypotheses predicts"),
		intercept(&l.NoIntercept, "learn b, by the kernel k + max k(x, x) instead of k"),
		startNumber(&l.Start).onlyWith("kind", "last", "averaged"),
		averageFrom(&l.AverageFrom).onlyWith("kind", "averaged"),
		intParam("budget", &l.Budget, "0", atLeast(0), "maximum number of samples in f; 0: no limit. With a limit the result is an approximation").onlyWith("kind", "last"),
	}, loopParameters(&l.ZeroIsPositive, &l.Epochs, "20", &l.Batch, &l.NoShuffle, &l.Replace, &l.Seed)...)
}

// KernelPerceptron is the perceptron in the space of a kernel: f(x) = Σ_j a_j k(x_j, x) + b. A mistake at x_i adds y_i
// to a_i. For C classes a has C columns: a mistake at x_i adds 1 to a_i in the column of the observed class and
// subtracts 1 in the column of the predicted class. sgn(0) = −1, and among classes with equal values the first is
// predicted. With Batch m the samples of a batch are evaluated with the same f, and a mistake adds y_i/m. A weight
// multiplies the change that its sample causes, as in Perceptron.
//
// Only samples with a_i ≠ 0 become part of the model. Budget is the maximum number of these samples. If a mistake adds
// one more, the fit computes the margin of each sample without its own term, and removes the sample with the largest
// margin (Crammer, Kandola and Singer, 2003).
//
// A mistake takes O(n (d + C)) operations, with rows of K from a cache. The memory is the cache and O(nC) numbers. If
// the samples are not separable in the feature space of the kernel, the fit ends after Epochs epochs; use kernel-ridge
// or svc instead.
type KernelPerceptron struct {
	Kernel      kernels.Kernel // nil means the default of KernelRidge
	Kind        PerceptronKind
	NoIntercept bool   // keep b at Start; by default b is learned, with k + R² in place of k, R² = max k(x_i, x_i)
	Epochs      int    // maximum number of epochs; 0 means 20
	Batch       int    // number of samples in a batch; 0 means 1, and n or more means all samples
	NoShuffle   bool   // keep the order of x in each epoch; by default each epoch has a new random order
	Budget      int    // maximum number of samples in f, for LastPerceptron only; 0 means no limit
	Cache       int64  // bytes for rows of K; 0 means 512 MiB
	Seed        uint64 // seed of the order, and of the choice of rows if Kernel is nil

	Start          float64 // b at the start, as in Perceptron; with NoIntercept b keeps this value
	Replace        bool    // as in Perceptron
	ZeroIsPositive bool    // as in Perceptron
	AverageFrom    int     // as in Perceptron
}

// Fit fits the n×d samples x to the n×1 labels y. The model is a *KernelPerceptronModel, or a
// *VotedModel for VotedPerceptron.
func (l KernelPerceptron) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m Classifier, err error) {
	defer wrapError(kernelPerceptronName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, kernelPerceptronName, l.parameters(), x, y, o)
	if l.Cache < 0 {
		f.fail(fmt.Errorf("cache must be ≥ 0 bytes, got %d", l.Cache))
	}
	perceptron := Perceptron{Kind: l.Kind, Rate: 1, Epochs: l.Epochs, Batch: l.Batch, NoShuffle: l.NoShuffle, Seed: l.Seed, Start: l.Start, Replace: l.Replace, ZeroIsPositive: l.ZeroIsPositive, AverageFrom: l.AverageFrom}
	run, classes := perceptron.loop(f)
	k := f.kernel(l.Kernel, l.Seed)
	if f.err != nil {
		return nil, f.err
	}
	cacheBytes := svm.CacheWithin(dev, o.Memory, l.Cache)
	t := f.task(run.X.Rows, func(n int) int64 {
		return svm.CachePlan(dev, run.X, n, cacheBytes, min(n, online.Block)) + 8*online.Block*online.Block
	})
	if f.err != nil {
		return nil, f.err
	}
	cache, err := svm.NewRowCache(ctx, dev.F64(), k, run.X, svm.CacheSize{Bytes: cacheBytes, Least: 2, Batch: online.Block})
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	square := max(0, slices.Max(cache.Diag)) // R²
	if !l.NoIntercept {
		run.Bias = square
	}
	e, err := run.Kernel(t, k, cache, cache.Diag, l.Budget)
	if err != nil {
		return nil, err
	}
	facts := perceptronFacts(run, e.F, e.Norm, math.Sqrt(square))
	if l.Kind == VotedPerceptron {
		return newVoted(kernelPerceptronName, k, run.X, classes, run, facts), nil
	}
	facts = append(facts, Fact{"support", e.Support})
	nonzero := make([]float64, e.A.Rows) // weights 1 for the samples with a_i ≠ 0, and 0 for all others
	for i := range nonzero {
		if slices.ContainsFunc(e.A.Row(i), func(v float64) bool { return v != 0 }) {
			nonzero[i] = 1
		}
	}
	if !slices.Contains(nonzero, 1) {
		nonzero[0] = 1 // if all changes cancel, the model f = 0 has one center with the coefficient 0
	}
	fitted := &KernelPerceptronModel{index: selectPositive(run.Class, nonzero)}
	fitted.kernelExpansion = kernelExpansion{model{kernelPerceptronName, facts}, k, run.X.Kept(nonzero), dropZeroWeight(e.A, nonzero), e.B}
	fitted.classes = classes
	return fitted, nil
}

// KernelPerceptronModel is a fitted KernelPerceptron, with the last or the averaged f. Its
// centers are the samples with a_i ≠ 0.
type KernelPerceptronModel struct {
	kernelClassifier
	index []int // class of each center; nil for a restored model
}

// Alpha returns a copy of a, with a row for each center and one column, or for more than two
// classes a column for each class. It is nil if the model is not fitted.
func (m *KernelPerceptronModel) Alpha() *mat.Dense {
	return denseOf(m.coef)
}

// Counts returns α for two classes, where a_i = α_i y_i with y_i = 1 for the second class. Without batches and weights,
// α_i is the number of mistakes at center i. Counts returns nil for more classes and for a restored model.
func (m *KernelPerceptronModel) Counts() []float64 {
	if m.coef.Cols != 1 {
		return nil
	}
	var counts []float64
	for i, class := range m.index {
		counts = append(counts, float64(2*class-1)*m.coef.Row(i)[0])
	}
	return counts
}

// State implements Model. Its arrays are "centers", "alpha", "intercept" and "labels".
func (m *KernelPerceptronModel) State() State { return stateOf(m) }

func (m *KernelPerceptronModel) fields() []field { return m.classFields("centers", "alpha") }

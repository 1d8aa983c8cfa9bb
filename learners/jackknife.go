package learners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// Jackknife is a Model that can predict as if any one of its samples had been omitted from the fit.
// Its prediction intervals therefore assume no distribution of the noise.
type Jackknife interface {
	Model
	// Intervals returns the bounds of the jackknife+ intervals at the rows of x, both n×outputs. With the
	// predictions f₋ᵢ(x) and the errors c_i = y_i − f₋ᵢ(x_i) of the fits without sample i, they are
	//
	//	the ⌊(1−level)(n+1)⌋-th smallest of f₋ᵢ(x) − |c_i|
	//	the ⌈level (n+1)⌉-th smallest of f₋ᵢ(x) + |c_i|
	//
	// If a new target and the samples are exchangeable (with all weights 1), the target is between the bounds with
	// probability ≥ 2·level − 1 for any distribution, and about level in practice. The level must be ≥ 1/2 and ≤
	// n/(n+1). The first call takes about as long as a fit: see Preparer.
	//
	// Source: Barber, Candès, Ramdas and Tibshirani (2021), Predictive inference with the jackknife+, Annals of
	// Statistics 49(1).
	Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error)
}

// coverageRank returns the rank ⌈level (n+1)⌉ of the error that bounds the error of a new sample with a
// probability of at least `level`.
func coverageRank(level float64, n int) (int, error) {
	if !(level > 0 && level < 1) {
		return 0, fmt.Errorf("level must be > 0 and < 1, got %v", level)
	}
	exact := level * float64(n+1)
	rank := math.Ceil(exact)
	if rounded := math.Round(exact); math.Abs(exact-rounded) <= 0x1p-51*rounded {
		rank = rounded // in float64, 0.55·100 is 55.00000000000001
	}
	if int(rank) > n {
		return 0, fmt.Errorf("level %v needs at least %s that were not used for the fit, but there are %d", level, count.Of(int(math.Ceil(level/(1-level)*(1-0x1p-50))), "row"), n)
	}
	return int(rank), nil
}

// influence calls visit for each block of the points x, with the arguments first and b of jackknifePlus.
type influence func(ctx context.Context, x numeric.Points, visit func(first int, b backend.Host[float64])) error

// jackknifeOf returns the intervals of a model with predictor p and n samples. For each λ it calls leaveOneOut,
// which returns the argument c of jackknifePlus and the influence of the samples on predictions.
func jackknifeOf(ctx context.Context, dev backend.Device, p predictor, x mat.Matrix, level float64, n int, byLambda map[float64][]int,
	leaveOneOut func(lambda float64) (c backend.Host[float64], influenceOf influence, err error)) (lower, upper *mat.Dense, err error) {
	points, err := p.checkRows(dev, x)
	if err != nil {
		return nil, nil, err
	}
	if level < 0.5 { // below 1/2 the jackknife+ guarantees no coverage
		return nil, nil, fmt.Errorf("level must be ≥ 0.5 and < 1, got %v", level)
	}
	rank, err := coverageRank(level, n)
	if err != nil {
		return nil, nil, err
	}
	f, err := p.predict(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	rows, outputs := f.Dims()
	lower, upper = mat.NewDense(rows, outputs, nil), mat.NewDense(rows, outputs, nil)
	p.linear = false // inBlocks then makes the points of a linear model dense
	for _, lambda := range slices.Sorted(maps.Keys(byLambda)) {
		c, influenceOf, err := leaveOneOut(lambda)
		if err == nil {
			err = p.inBlocks(ctx, points, func(ctx context.Context, start int, x numeric.Points) error {
				return influenceOf(ctx, x, func(first int, b backend.Host[float64]) {
					for _, j := range byLambda[lambda] {
						jackknifePlus(dev.Info().Threads, rank, j, start+first, dense(lower), dense(upper), dense(f), c, b)
					}
				})
			})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, bound := range []*mat.Dense{lower, upper} {
		if err := checkPredicted("bound of the interval", dense(bound), 0); err != nil {
			return nil, nil, err
		}
	}
	return lower, upper, nil
}

// Intervals implements Jackknife. λ must be > 0. The first call factors K + λW⁻¹ for each λ in n³ operations, with
// the kernel matrix K of n samples and the diagonal matrix W of the weights; Prepare does this in advance. The
// model keeps the factors, of 8n² bytes each. Each point takes 2n² operations. If there is one feature and
// solvers.Kalman accepts the kernel, the factor and a point take O(n) operations and bytes instead.
func (m *KernelRidgeModel) Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	defer wrapError(kernelRidgeName+": intervals", nil, &lower, &err)
	type host = backend.Host[float64]
	return jackknifeOf(ctx, dev, m.predictor(), x, level, m.points.Rows, m.byLambda(m.coef.Cols), func(lambda float64) (c host, influenceOf influence, err error) {
		f := m.factors(dev)
		loo, err := f.factorFor(ctx, dev, lambda)
		if err != nil {
			return c, nil, err
		}
		c, err = loo.Errors(m.coef)
		return c, func(ctx context.Context, x numeric.Points, visit func(first int, b host)) error {
			return loo.Influence(run.Beside(ctx, f.total()), dev, x.Matrix(), 0, func(first int, b host) error { visit(first, b); return nil })
		}, err
	})
}

func (m *KernelRidgeModel) factors(dev backend.Device) factors[*solvers.LeaveOneOut] {
	return factors[*solvers.LeaveOneOut]{kernelRidgeName, &m.factor, m.distinctLambdas(m.coef.Cols), factorBytes(m.kernel, m.points), func(ctx context.Context, lambda float64) (*solvers.LeaveOneOut, error) {
		if lambda == 0 {
			return nil, message.Errorf("the leave-one-out fits need lambda > 0: {raise $lambda}")
		}
		return solvers.NewLeaveOneOut(ctx, dev, solvers.Problem{
			Kernel: m.kernel, X: m.points.Dense, Sparse: m.points.Sparse, Y: m.coef, Weights: m.weights, Lambda: lambda, Intercept: m.hasIntercept,
		}, 0)
	}}
}

// Prepare implements Preparer, for Intervals.
func (m *KernelRidgeModel) Prepare(ctx context.Context, dev backend.Device) error {
	return m.factors(dev).prepare(ctx, dev)
}

// DropFactor frees the factors that Intervals keeps, after calls in progress have ended; the next
// call computes them again.
func (m *KernelRidgeModel) DropFactor() { m.factor.Drop() }

// ridgeSamples are the samples of weight > 0 of a ridge model with intervals. In a model without
// intervals, ridgeSamples is empty.
type ridgeSamples struct {
	x, y    backend.Host[float64] // n×d and n×t
	weights []float64             // nil means all 1
}

func (m *RidgeModel) hasSamples() bool { return m.samples.x.Rows > 0 && m.samples.y.Rows > 0 }

// Intervals implements Jackknife, for a model that was fitted with Ridge.Intervals. The first call takes 2nd²
// operations and stores factors of 8d(n + d) bytes for each λ; Prepare does this in advance. Each point takes 2nd
// operations. At λ = 0 the features must be linearly independent, as for the fit; the result has at least a few
// correct digits if the condition number of X is at most about 1e7.
func (m *RidgeModel) Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	defer wrapError(ridgeName+": intervals", nil, &lower, &err)
	if m.coef.Rows > 0 && !m.hasSamples() {
		return nil, nil, errNoSamples
	}
	type host = backend.Host[float64]
	return jackknifeOf(ctx, dev, m.predictor(), x, level, m.samples.x.Rows, m.byLambda(m.coef.Cols), func(lambda float64) (errs host, influenceOf influence, err error) {
		f := m.factors(dev)
		a, err := f.factorFor(ctx, dev, lambda)
		if err != nil {
			return errs, nil, err
		}
		errs, err = a.Errors(m.coef, m.intercept)
		return errs, func(ctx context.Context, x numeric.Points, visit func(first int, b host)) error {
			task := run.NewTask(run.Beside(ctx, f.total()), dev, nil)
			defer task.Mem.FreeAll()
			return a.Influence(task, x.Dense, visit)
		}, err
	})
}

var errNoSamples = errors.New("the model did not keep its samples: fit it with intervals = true")

func (m *RidgeModel) factors(dev backend.Device) factors[*lsq.Jackknife] {
	x := m.samples.x
	return factors[*lsq.Jackknife]{ridgeName, &m.factor, m.distinctLambdas(m.coef.Cols), 8 * int64(x.Cols) * int64(x.Rows+x.Cols), func(ctx context.Context, lambda float64) (*lsq.Jackknife, error) {
		c, err := lsq.New(ctx, numeric.DensePoints(x), m.samples.y, m.samples.weights, m.hasIntercept)
		if err != nil {
			return nil, err
		}
		task := run.NewTask(ctx, dev, nil)
		defer task.Mem.FreeAll()
		return c.Jackknife(task, lambda)
	}}
}

// Prepare implements Preparer, for Intervals.
func (m *RidgeModel) Prepare(ctx context.Context, dev backend.Device) error {
	if m.hasPosterior() && !m.hasSamples() {
		return nil // intervals from a normal distribution need no preparation
	}
	if m.coef.Rows > 0 && !m.hasSamples() {
		return fmt.Errorf("learners: %s: prepare: %w", ridgeName, errNoSamples)
	}
	return m.factors(dev).prepare(ctx, dev)
}

// DropFactor frees the factors that Intervals keeps, after calls in progress have ended; the next
// call computes them again.
func (m *RidgeModel) DropFactor() { m.factor.Drop() }

// jackknifePlus sets column j of lower and upper to the intervals of output j. Omitting sample i from the fit
// changes the prediction at point first + k by −c_ij b_ik, where c_ij is the leave-one-out error of sample i.
func jackknifePlus(threads, rank, j, first int, lower, upper, f, c, b backend.Host[float64]) {
	var g sync.WaitGroup
	n, workers := b.Rows, max(1, min(threads, b.Cols))
	for w := range workers {
		g.Go(func() {
			low, high := make([]float64, n), make([]float64, n)
			for k := w; k < b.Cols; k += workers {
				value := f.Row(first + k)[j]
				for i := range n {
					e := c.Data[i*c.Stride+j]
					prediction := value - e*b.Data[i*b.Stride+k]
					low[i], high[i] = prediction-math.Abs(e), prediction+math.Abs(e)
				}
				slices.Sort(low)
				slices.Sort(high)
				lower.Row(first + k)[j] = low[n-rank]
				upper.Row(first + k)[j] = high[rank-1]
			}
		})
	}
	g.Wait()
}

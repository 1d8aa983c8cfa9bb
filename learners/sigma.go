package learners

import (
	"cmp"
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// MedianDistance returns the median distance between distinct rows of x of weight > 0. If there are more than 500
// such rows, 500 of them are drawn with seed.
func MedianDistance(ctx context.Context, x mat.Matrix, weights []float64, seed uint64) (sigma float64, err error) {
	p, err := pointsOf("x", x)
	if err == nil {
		err = p.CheckFinite("x")
	}
	if err == nil {
		sigma, err = medianDistance(ctx, p, weights, seed)
	}
	if err != nil {
		return 0, fmt.Errorf("learners: %w", err)
	}
	return sigma, nil
}

// DefaultSigma returns the sigma of the Gaussian kernel that learners choose by default: half of MedianDistance.
// For d independent standardized features it is about √(d/2), which corresponds to scikit-learn's default γ = 1/d
// in exp(−γ‖x − z‖²).
func DefaultSigma(ctx context.Context, x mat.Matrix, weights []float64, seed uint64) (sigma float64, err error) {
	sigma, err = MedianDistance(ctx, x, weights, seed)
	return sigma / 2, err
}

// medianDistance is neighbors.MedianDistance, with a clear error if x is not finite.
func medianDistance(ctx context.Context, x numeric.Points, weights []float64, seed uint64) (float64, error) {
	sigma, err := neighbors.MedianDistance(ctx, x, weights, seed)
	if err != nil {
		err = cmp.Or(x.CheckFinite("x"), err)
	}
	return sigma, err
}

// kernelFor returns k, or if k is nil the Gaussian kernel with the sigma of DefaultSigma. It
// returns an error if the kernel does not accept the samples.
func kernelFor(ctx context.Context, k kernels.Kernel, x numeric.Points, weights []float64, seed uint64) (kernels.Kernel, error) {
	if k == nil {
		sigma, err := medianDistance(ctx, x, weights, seed)
		if err != nil {
			return nil, err
		}
		return kernels.Gaussian{Sigma: sigma / 2}, nil
	}
	if err := k.Check(x.Cols); err != nil {
		return nil, err
	}
	return k, x.CheckRule(k, "x")
}

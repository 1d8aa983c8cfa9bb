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

// MedianDistance is the median of the distances between the rows of x that differ and
// have a weight, of at most 500 of them, chosen by seed: the sigma at which searches of
// the Gaussian kernel begin.
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

// DefaultSigma is the sigma of the Gaussian kernel that learners choose where none is
// given: half of MedianDistance. Of d independent standardized features that is about
// √(d/2), where exp(−γ‖x − z‖²) has scikit-learn's default γ = 1/d; unlike that it does
// not depend on the scale of x, and a feature that is constant does not count.
func DefaultSigma(ctx context.Context, x mat.Matrix, weights []float64, seed uint64) (sigma float64, err error) {
	sigma, err = MedianDistance(ctx, x, weights, seed)
	return sigma / 2, err
}

// medianDistance is neighbors.MedianDistance. A fit refuses what is not finite in x; here
// it is looked for only after an error.
func medianDistance(ctx context.Context, x numeric.Points, weights []float64, seed uint64) (float64, error) {
	sigma, err := neighbors.MedianDistance(ctx, x, weights, seed)
	if err != nil {
		err = cmp.Or(x.CheckFinite("x"), err)
	}
	return sigma, err
}

// kernelFor is k, or where it is nil the Gaussian whose sigma is that of DefaultSigma. It
// refuses one that is not made for the samples.
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

package learners

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers/neighbors"
)

// MedianDistance is the sigma of the Gaussian kernel that learners choose where
// none is given: see KernelRidge.Kernel.
func MedianDistance(ctx context.Context, x mat.Matrix, weights []float64, seed uint64) (sigma float64, err error) {
	h, err := gonum.Host("x", x)
	if i, j, ok := notFinite(h); ok {
		err = valueError("x", h, i, j)
	}
	if err == nil {
		sigma, err = medianDistance(ctx, h, weights, seed)
	}
	if err != nil {
		return 0, fmt.Errorf("learners: %w", err)
	}
	return sigma, nil
}

// medianDistance is neighbors.MedianDistance. A fit refuses what is not finite in x; here
// it is looked for only after an error.
func medianDistance(ctx context.Context, x backend.Host[float64], weights []float64, seed uint64) (float64, error) {
	sigma, err := neighbors.MedianDistance(ctx, x, weights, seed)
	if err != nil {
		if i, j, ok := notFinite(x); ok {
			return 0, valueError("x", x, i, j)
		}
	}
	return sigma, err
}

// kernelFor is k, or where it is nil the Gaussian whose sigma is the median distance. It
// refuses one that is not made for the samples.
func kernelFor(ctx context.Context, k kernels.Kernel, x backend.Host[float64], weights []float64, seed uint64) (kernels.Kernel, error) {
	if k == nil {
		sigma, err := medianDistance(ctx, x, weights, seed)
		if err != nil {
			return nil, err
		}
		return kernels.Gaussian{Sigma: sigma}, nil
	}
	return checkedKernel(k, x)
}

// checkedKernel refuses a kernel that is not made for the samples.
func checkedKernel(k kernels.Kernel, x backend.Host[float64]) (kernels.Kernel, error) {
	if err := k.Check(x.Cols); err != nil {
		return nil, err
	}
	return k, backend.CheckPoints(k, "x", x)
}

// scaleKernelFor is k, or where it is nil the Gaussian with neighbors.ScaleSigma. It
// refuses a kernel that is not made for the samples.
func scaleKernelFor(k kernels.Kernel, x backend.Host[float64], weights []float64) (kernels.Kernel, error) {
	if k != nil {
		return checkedKernel(k, x)
	}
	sigma, err := neighbors.ScaleSigma(x, weights)
	return kernels.Gaussian{Sigma: sigma}, err
}

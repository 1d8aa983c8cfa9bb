package handles

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Evidence returns the log marginal likelihood of the n×t matrix y under a Gaussian process with the covariance
// height·k(x, x) + lambda I. If gradient is not nil, it receives the derivatives with respect to the logarithms of
// the height, of the parameters of the kernel and of lambda, in this order.
func Evidence(ctx context.Context, d *Device, kernel string, height, lambda float64, x, y Matrix, gradient []float64) (log float64, err error) {
	err = d.use(ctx, func(dev backend.Device) error {
		k, points, err := system(kernel, x)
		if err != nil {
			return err
		}
		targets, err := y.host("y")
		if err != nil {
			return err
		}
		k = kernels.Scaled{Weight: height, Kernel: k}
		params := kernels.Params(k)
		if gradient != nil && len(gradient) != len(params)+1 {
			return fmt.Errorf("libmercer: evidence: there are %d derivatives, but the given memory holds only %s", len(params)+1, count.Of(len(gradient), "number"))
		}
		e, err := solvers.LogEvidence(ctx, dev, solvers.Problem{Kernel: k, X: points.Dense, Sparse: points.Sparse, Y: targets, Lambda: lambda}, solvers.EvidenceParams{Gradient: gradient != nil})
		if err != nil {
			return err
		}
		log = e.Log
		if gradient != nil {
			copy(gradient, e.Gradient)
			for i, p := range params {
				if !p.Log {
					gradient[i] *= p.Value
				}
			}
		}
		return nil
	})
	return log, err
}

package handles

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Solve solves (K + λI)α = y and writes the n×t matrix α to out. K = k(x, x) for
// the text of a kernel; where that is "", x is K itself, n×n and symmetric. It
// returns the relative residual ‖(K + λI)α − y‖/‖y‖, the largest over the columns.
func Solve(ctx context.Context, d *Device, kernel string, lambda float64, x, y Matrix, out []float64, progress func(solvers.Progress)) (residual float64, err error) {
	err = d.use(ctx, func(dev backend.Device) error {
		k, points, err := system(kernel, x)
		if err != nil {
			return err
		}
		right, err := y.host("y")
		if err != nil {
			return err
		}
		par := solvers.Params{Progress: progress}
		if _, linear := k.(kernels.Linear); linear {
			par.Method = solvers.Dual // the primal one gives no α
		}
		res, err := solvers.Solve(ctx, dev, solvers.Problem{Kernel: k, X: points, Y: right, Lambda: lambda}, par)
		if err != nil {
			return err
		}
		residual = res.Residual
		return store("solve", out, denseOf(res.Alpha))
	})
	return residual, err
}

// system returns the kernel of a text and the points that it takes. The points
// are for the solvers to check.
func system(kernel string, x Matrix) (kernels.Kernel, backend.Host[float64], error) {
	points, err := x.host("x")
	if err != nil {
		return nil, points, err
	}
	if kernel == "" {
		points, err = trainingPoints(points)
		return kernels.Precomputed{}, points, err
	}
	k, err := kernels.Parse(kernel)
	return k, points, err
}

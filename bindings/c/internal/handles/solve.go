package handles

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// SolveProblem is (K + λI)α = y. K = k(x, x) for the kernel with the given text. If the text is
// "", x is K itself, n×n and symmetric.
type SolveProblem struct {
	Kernel   string
	Lambda   float64
	X, Y     Matrix
	Progress func(solvers.Progress)
}

// Solve solves p and writes the n×t matrix α to out. It returns the largest relative residual ‖(K + λI)α − y‖/‖y‖
// of a column.
func Solve(ctx context.Context, d *Device, p SolveProblem, out []float64) (residual float64, err error) {
	err = d.use(ctx, func(dev backend.Device) error {
		k, points, err := system(p.Kernel, p.X)
		if err != nil {
			return err
		}
		right, err := p.Y.host("y")
		if err != nil {
			return err
		}
		par := solvers.Params{Progress: p.Progress}
		if _, linear := k.(kernels.Linear); linear {
			par.Method = solvers.Dual // the primal method does not compute α
		}
		res, err := solvers.Solve(ctx, dev, solvers.Problem{Kernel: k, X: points.Dense, Sparse: points.Sparse, Y: right, Lambda: p.Lambda}, par)
		if err != nil {
			return err
		}
		residual = res.Residual
		return store("solve", out, denseOf(res.Alpha))
	})
	return residual, err
}

// system parses the argument kernel, and converts x to the form that the kernel requires, without checking the points.
func system(kernel string, x Matrix) (k kernels.Kernel, points numeric.Points, err error) {
	k = kernels.Precomputed{}
	if kernel != "" {
		if k, err = kernels.Parse(kernel); err != nil {
			return nil, points, err
		}
	}
	points, _, err = x.points(k)
	return k, points, err
}

package tuning

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/solvers"
)

func pointsOf(p solvers.Problem) numeric.Points {
	if p.Sparse != nil {
		return numeric.SparsePoints(*p.Sparse)
	}
	return numeric.DensePoints(p.X)
}

// pathValues returns the predictions at the rows of x by all solutions of a path of p, with t columns for each
// solution. The predictions of a solution with an error are meaningless.
func pathValues(ctx context.Context, dev backend.Device, p solvers.Problem, solutions []solvers.PathPoint, x numeric.Points) (backend.Host[float64], error) {
	t := p.Y.Cols
	out := backend.NewHost[float64](x.Rows, len(solutions)*t)
	coefs := backend.NewHost[float64](p.Y.Rows, len(solutions)*t)
	linear := false
	for l, solution := range solutions {
		from := solution.Alpha
		if solution.Err == nil && solution.Coef.Data != nil {
			linear, from = true, solution.Coef
		}
		if solution.Err == nil && linear && coefs.Rows != from.Rows {
			coefs = backend.NewHost[float64](from.Rows, len(solutions)*t)
		}
		for i := range from.Rows {
			copy(coefs.Row(i)[l*t:(l+1)*t], from.Row(i))
		}
	}
	if m, ok := markov.Of(p.Kernel); ok && p.Sparse == nil && p.X.Cols == 1 && markov.Faster(p.X.Rows, x.Rows) {
		line, err := markov.NewLine(ctx, m, numeric.First(p.X))
		if err == nil {
			out, err = line.Evaluate(ctx, coefs, numeric.First(x.Dense))
		}
		return addIntercepts(out, solutions), err
	}
	b := dev.F64().With(ctx, nil)
	result, err := b.New(out.Rows, out.Cols)
	if err != nil {
		return out, err
	}
	defer result.Free()
	placed, err := numeric.PlaceAll(b, x, numeric.DensePoints(coefs))
	if err != nil {
		return out, err
	}
	defer numeric.FreeAll(placed)
	if linear {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, placed[0], placed[1], 0, result)
	} else {
		z, err := pointsOf(p).Place(b)
		if err != nil {
			return out, err
		}
		defer z.Free()
		b.GramMul(result, p.Kernel, placed[0], z, placed[1])
	}
	if err := b.Download(out, result); err != nil {
		return out, err
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return addIntercepts(out, solutions), nil
}

func addIntercepts(out backend.Host[float64], solutions []solvers.PathPoint) backend.Host[float64] {
	for l, solution := range solutions {
		for j, v := range solution.Intercept {
			for i := range out.Rows {
				out.Row(i)[l*len(solution.Intercept)+j] += v
			}
		}
	}
	return out
}

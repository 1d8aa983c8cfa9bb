package tuning

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// pathValues returns the predictions of all solutions of a path of p at the rows of x,
// those of one beside those of the one before: x.Rows×(t·len(solved)). Those of a point
// with an error have no meaning.
func pathValues(ctx context.Context, dev backend.Device, p solvers.Problem, solved []solvers.PathPoint, x backend.Host[float64]) (backend.Host[float64], error) {
	t := p.Y.Cols
	out := backend.NewHost[float64](x.Rows, len(solved)*t)
	coefs := backend.NewHost[float64](p.X.Rows, len(solved)*t)
	linear := false
	for l, at := range solved {
		from := at.Alpha
		if at.Err == nil && at.Coef.Data != nil {
			linear, from = true, at.Coef
		}
		if at.Err == nil && linear && coefs.Rows != from.Rows {
			coefs = backend.NewHost[float64](from.Rows, len(solved)*t)
		}
		for i := range from.Rows {
			copy(coefs.Row(i)[l*t:(l+1)*t], from.Row(i))
		}
	}
	b := dev.F64().With(ctx, nil)
	result, err := b.New(out.Rows, out.Cols)
	if err != nil {
		return out, err
	}
	defer result.Free()
	err = run.Placed(b, x, coefs, func(points, weights backend.Matrix[float64]) error {
		if linear {
			b.Gemm(backend.NoTrans, backend.NoTrans, 1, points, weights, 0, result)
			return b.Download(out, result)
		}
		z, err := backend.Place(b, p.X)
		if err != nil {
			return err
		}
		defer z.Free()
		b.GramMul(result, p.Kernel, points, z, weights)
		return b.Download(out, result)
	})
	if err != nil {
		return out, err
	}
	for l, at := range solved {
		for j, v := range at.Intercept {
			for i := range out.Rows {
				out.Row(i)[l*t+j] += v
			}
		}
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, nil
}

package glm

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// pivoted is the factorization K = k(X, X) = FFᵀ, up to rounding errors. F is n×r, where r is the numerical rank
// of K. The rows of F at the pivots S are a lower triangle L. For any β, the function f(x) = k(x, X_S)L⁻ᵀβ has the
// values Fβ at X and the norm ‖β‖.
type pivoted struct {
	f      backend.Host[float64]
	pivots []int // the pivots S: rows of X in the order of elimination
}

// pivotedCholesky factors k(X, X) by Cholesky factorization with complete pivoting, until the remaining diagonal
// consists of rounding errors (Higham 2002, section 10.3). It takes O(nr(r + d)) operations, and n×n elements on
// the device, or n×d for the linear kernel. limit bounds the memory in bytes; 0 means all free memory.
func pivotedCholesky(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Host[float64], limit int64) (pivoted, error) {
	empty := pivoted{}
	columns := func(n int) int {
		if _, ok := k.(kernels.Linear); ok {
			return min(n, x.Cols)
		}
		return n
	}
	bytesOf := func(n int) int64 {
		rows := func(rows int) int64 { return numeric.Bytes(numeric.Elements(rows, x.Cols)) }
		e := numeric.Total(numeric.Bytes(numeric.Elements(n, columns(n))), lowrank.PivotBytes[float64](columns(n), rows))
		if numeric.Wrapper(dev) == nil {
			e = numeric.Total(e, rows(n))
		}
		return e
	}
	if err := solvers.Reserve(ctx, dev, limit, "pivoted cholesky", x.Rows, bytesOf); err != nil {
		return empty, err
	}
	fail := func(err error) (pivoted, error) { return empty, fmt.Errorf("glm: pivoted cholesky: %w", err) }
	b := dev.F64().With(ctx, nil)
	mem := run.NewArena(dev, b)
	defer mem.FreeAll()
	points, err := mem.Place(x)
	if err != nil {
		return fail(err)
	}
	f, err := mem.New(x.Rows, columns(x.Rows))
	if err != nil {
		return fail(err)
	}
	pivots, err := lowrank.GreedyPivots(lowrank.Task[float64]{Ctx: ctx, B: b, Mem: mem, Kernel: k, X: points}, f)
	if err != nil {
		return fail(err)
	}
	out := pivoted{f: backend.NewHost[float64](x.Rows, len(pivots)), pivots: pivots}
	if len(pivots) > 0 {
		if err := b.Download(out.f, f.View(0, 0, x.Rows, len(pivots))); err != nil {
			return fail(err)
		}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	return out, nil
}

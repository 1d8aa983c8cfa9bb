package solvers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Pivoted is K = k(X, X) = FFᵀ up to rounding; F is n×r, where r is the numerical rank of K. The
// function f(x) = k(x, X_S)L⁻ᵀβ has the values Fβ at X and the norm ‖β‖, where S are the pivots
// and L = F_S is lower triangular.
type Pivoted struct {
	F      backend.Host[float64]
	Pivots []int // S, rows of X in the order in which they were chosen
}

// PivotedCholesky factors k(X, X) with the largest pivot first, until the remaining diagonal is
// only rounding error (Higham 2002, section 10.3): O(nr(r + d)) operations. It takes n×n elements
// on the device, or n×d for the linear kernel; limit bounds the bytes, and 0 means all free
// memory. K has to be positive semidefinite.
func PivotedCholesky(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Host[float64], limit int64) (Pivoted, error) {
	none := Pivoted{}
	if dev == nil {
		return none, errors.New("solvers: no device was given")
	}
	if limit < 0 {
		return none, fmt.Errorf("solvers: pivoted cholesky: memory must be ≥ 0 bytes, got %d", limit)
	}
	p := Problem{Kernel: k, X: x, Y: x}
	if err := p.checkShapes(); err != nil {
		return none, err
	}
	if err := p.checkValues(); err != nil {
		return none, err
	}
	columns := func(n int) int {
		if isLinear(k) {
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
	if err := Reserve(ctx, dev, limit, "pivoted cholesky", x.Rows, bytesOf); err != nil {
		return none, err
	}
	fail := func(err error) (Pivoted, error) { return none, fmt.Errorf("solvers: pivoted cholesky: %w", err) }
	b := dev.F64().With(ctx, nil)
	mem := run.NewArena(dev, b)
	defer mem.FreeAll()
	place, err := mem.Place(x)
	if err != nil {
		return fail(err)
	}
	f, err := mem.New(x.Rows, columns(x.Rows))
	if err != nil {
		return fail(err)
	}
	pivots, err := lowrank.GreedyPivots(lowrank.Task[float64]{Ctx: ctx, B: b, Mem: mem, Kernel: k, X: place}, f)
	if err != nil {
		return fail(err)
	}
	out := Pivoted{F: backend.NewHost[float64](x.Rows, len(pivots)), Pivots: pivots}
	if len(pivots) > 0 {
		if err := b.Download(out.F, f.View(0, 0, x.Rows, len(pivots))); err != nil {
			return fail(err)
		}
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	return out, nil
}

// Package planned reports to the caller, through the context, the memory that the parts of a long
// call plan to take. A fit may run several solvers, each with its own plan.
package planned

import (
	"context"
	"math"
)

type (
	reportKey    struct{}
	workspaceKey struct{}
)

// With returns a context with which Report calls report. Several goroutines may call report.
func With(ctx context.Context, report func(bytes int64)) context.Context {
	return context.WithValue(context.WithValue(ctx, reportKey{}, report), workspaceKey{}, int64(0))
}

// Workspace returns a context with which Report adds the memory that a device takes in addition to
// its matrices: the given number of bytes, or the largest number if Workspace is called several
// times.
func Workspace(ctx context.Context, bytes int64) context.Context {
	if before, _ := ctx.Value(workspaceKey{}).(int64); before >= bytes {
		return ctx
	}
	return context.WithValue(ctx, workspaceKey{}, bytes)
}

// Beside returns a context with which Report adds the given number of bytes of arrays that exist
// during the following work.
func Beside(ctx context.Context, bytes int64) context.Context {
	before, _ := ctx.Value(workspaceKey{}).(int64)
	return context.WithValue(ctx, workspaceKey{}, before+bytes)
}

// Report reports the maximum size, in bytes, of the matrices and arrays that exist during the following
// work. It adds the arrays of the callers, which Beside has counted.
func Report(ctx context.Context, bytes int64) {
	if report, ok := ctx.Value(reportKey{}).(func(bytes int64)); ok {
		workspace, _ := ctx.Value(workspaceKey{}).(int64)
		report(bytes + min(workspace, math.MaxInt64-bytes))
	}
}

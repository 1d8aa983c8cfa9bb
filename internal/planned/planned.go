// Package planned reports the memory that the parts of a long call plan to take. The context passes the reports to
// the caller.
package planned

import (
	"context"
	"math"
)

type (
	reportKey    struct{}
	workspaceKey struct{}
	besideKey    struct{}
)

// With returns a context in which Report calls report, possibly from several goroutines.
func With(ctx context.Context, report func(bytes int64)) context.Context {
	ctx = context.WithValue(context.WithValue(ctx, workspaceKey{}, int64(0)), besideKey{}, int64(0))
	return context.WithValue(ctx, reportKey{}, report)
}

// Workspace returns a context in which Report adds the memory, in bytes, that a device takes in
// addition to its matrices. If Workspace is called several times, Report adds the largest number.
func Workspace(ctx context.Context, bytes int64) context.Context {
	if previous, _ := ctx.Value(workspaceKey{}).(int64); previous >= bytes {
		return ctx
	}
	return context.WithValue(ctx, workspaceKey{}, bytes)
}

// Beside returns a context in which Report adds the size, in bytes, of further arrays that exist during the work.
func Beside(ctx context.Context, bytes int64) context.Context {
	previous, _ := ctx.Value(besideKey{}).(int64)
	return context.WithValue(ctx, besideKey{}, previous+bytes)
}

// Report reports the maximum total size of the matrices and arrays of the following work, in bytes.
// It adds the bytes that Workspace and Beside have stored in ctx.
func Report(ctx context.Context, bytes int64) {
	if report, ok := ctx.Value(reportKey{}).(func(bytes int64)); ok {
		for _, key := range []any{workspaceKey{}, besideKey{}} {
			previous, _ := ctx.Value(key).(int64)
			bytes += min(previous, math.MaxInt64-bytes)
		}
		report(bytes)
	}
}

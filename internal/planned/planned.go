// Package planned reports to the caller, through the context, the memory that the parts of a long
// call plan to take. A fit may run several solvers, each with its own plan.
package planned

import "context"

type key struct{}

// With returns a context with which Report calls report. Several goroutines may call report.
func With(ctx context.Context, report func(bytes int64)) context.Context {
	return context.WithValue(ctx, key{}, report)
}

// Report reports the maximum number of bytes of matrices and arrays during the following work,
// including the matrices and arrays of the callers.
func Report(ctx context.Context, bytes int64) {
	if report, ok := ctx.Value(key{}).(func(bytes int64)); ok {
		report(bytes)
	}
}

// Package planned reports the memory that the parts of a long call plan to take to the
// caller, through the context: a fit may run several solvers, each with its own plan.
package planned

import "context"

type key struct{}

// With returns a context whose holders report their plans to report, which may be
// called by several goroutines.
func With(ctx context.Context, report func(bytes int64)) context.Context {
	return context.WithValue(ctx, key{}, report)
}

// Report reports, before the work, the maximum number of bytes of matrices and arrays during
// the work, including those of the callers.
func Report(ctx context.Context, bytes int64) {
	if report, ok := ctx.Value(key{}).(func(bytes int64)); ok {
		report(bytes)
	}
}

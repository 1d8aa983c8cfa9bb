// Package planned carries the memory that parts of a long call plan to take to
// whoever made the call, through its context: a fit may go through several solvers,
// each of which has a plan of its own.
package planned

import "context"

type key struct{}

// With returns a context whose holders report their plans to report, which may be
// called by several goroutines.
func With(ctx context.Context, report func(bytes int64)) context.Context {
	return context.WithValue(ctx, key{}, report)
}

// Report reports, before the work, how many bytes of matrices and arrays there
// will be at most while it is done, those of the callers included.
func Report(ctx context.Context, bytes int64) {
	if report, ok := ctx.Value(key{}).(func(bytes int64)); ok {
		report(bytes)
	}
}

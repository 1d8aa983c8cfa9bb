package run

import (
	"context"
	"math"
	"sort"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/planned"
)

// Available is how many bytes a call may take on dev: those that are free, and no
// more than limit where that is > 0.
func Available(dev backend.Device, limit int64) int64 {
	now, _ := dev.InUse()
	free := max(dev.Info().Memory-now, 0)
	if limit > 0 {
		free = min(free, limit)
	}
	return free
}

// Largest is the largest number of rows, below rows, for which bytesOf is at most
// available; bytesOf never falls as rows are added.
func Largest(rows int, bytesOf func(rows int) int64, available int64) int {
	return sort.Search(rows, func(n int) bool { return bytesOf(n+1) > available })
}

// ReportPlan reports to the caller of a call under ctx that it will take bytes on
// dev beside those in use.
func ReportPlan(ctx context.Context, dev backend.Device, bytes int64) {
	now, _ := dev.InUse()
	if bytes > math.MaxInt64-now {
		bytes = math.MaxInt64 - now
	}
	planned.Report(ctx, now+bytes)
}

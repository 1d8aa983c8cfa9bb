package bench

import (
	"fmt"
	"time"
)

// timeEstimates are how long implementations took for so many operations, by a name, so that a
// run of more of them is not begun that would take too long.
type timeEstimates map[string]timeEstimate

// timeEstimate is the fastest run of so many operations.
type timeEstimate struct {
	flops float64
	took  time.Duration
}

// record keeps the time of a run.
func (p timeEstimates) record(name string, flops float64, took time.Duration) {
	if old, ok := p[name]; ok && old.flops == flops {
		took = min(took, old.took)
	}
	p[name] = timeEstimate{flops, took}
}

// skipReason is why a run of more operations is not begun: "" if it is. A limit of 0 is none.
func (p timeEstimates) skipReason(name string, flops float64, limit time.Duration) string {
	old, ok := p[name]
	if !ok || old.flops <= 0 || limit == 0 {
		return ""
	}
	would := old.took.Seconds() * flops / old.flops
	if would <= limit.Seconds() {
		return ""
	}
	return fmt.Sprintf("would take about %s s, the limit is %s s", figures(would), figures(limit.Seconds()))
}

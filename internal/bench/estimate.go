package bench

import (
	"fmt"
	"time"
)

// timeEstimates maps the name of an implementation to its time for a number of operations.
type timeEstimates map[string]timeEstimate

// timeEstimate is the time of the fastest run with the given number of operations.
type timeEstimate struct {
	flops    float64
	duration time.Duration
}

func (p timeEstimates) record(name string, flops float64, duration time.Duration) {
	if previous, ok := p[name]; ok && previous.flops == flops {
		duration = min(duration, previous.duration)
	}
	p[name] = timeEstimate{flops, duration}
}

// skipReason returns the reason for skipping a run whose estimated time exceeds limit, or "". 0 means no limit.
func (p timeEstimates) skipReason(name string, flops float64, limit time.Duration) string {
	known, ok := p[name]
	if !ok || known.flops <= 0 || limit == 0 {
		return ""
	}
	estimate := known.duration.Seconds() * flops / known.flops
	if estimate <= limit.Seconds() {
		return ""
	}
	return fmt.Sprintf("would take about %s s, the limit is %s s", figures(estimate), figures(limit.Seconds()))
}

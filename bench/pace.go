package bench

import (
	"fmt"
	"time"
)

// paces are how long entrants took for so many operations, by a name, so that a
// run of more of them is not begun that would take too long.
type paces map[string]pace

// pace is the fastest run of so many operations.
type pace struct {
	flops float64
	took  time.Duration
}

// keep files a run.
func (p paces) keep(name string, flops float64, took time.Duration) {
	if old, ok := p[name]; ok && old.flops == flops {
		took = min(took, old.took)
	}
	p[name] = pace{flops, took}
}

// late is why a run of more operations is not begun: "" if it is.
func (p paces) late(name string, flops float64, limit time.Duration) string {
	old, ok := p[name]
	if !ok || old.flops <= 0 {
		return ""
	}
	would := old.took.Seconds() * flops / old.flops
	if would <= limit.Seconds() {
		return ""
	}
	return fmt.Sprintf("would take about %s s, the limit is %s s", Figures(would), Figures(limit.Seconds()))
}

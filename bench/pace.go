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

// lateNotes lists who was left out at some n and not at the first of a table:
// a page's tables show only a gap there.
func (r *Result) lateNotes(key string) (notes []string) {
	for _, t := range r.TablesOf(key, Seconds) {
		for _, c := range t.Rows[min(1, len(t.Rows)):] {
			for _, run := range c.Runs {
				if e := r.Entrant(run.Entrant); run.Reason != "" && e != nil && e.Missing == "" && t.Rows[0].Run(run.Entrant).Timed() {
					notes = append(notes, fmt.Sprintf("%s: %s %s", c.Case.Title(), run.Entrant, run.Reason))
				}
			}
		}
	}
	return notes
}

package bench

import (
	"fmt"
	"math"
	"strings"
)

// Takeover is from which n on a GPU is faster than the processors, in one
// operation and precision.
type Takeover struct {
	Case     Case    // without n
	GPU, CPU string  // the fastest of each at the largest n that both have
	N        int     // the least measured n from which on the GPU is faster; 0: none
	Estimate float64 // between N and the n before it, on a line through the logarithms; N where that is the first
	Largest  int     // the largest n that both have
	Times    float64 // how many times as fast as the processor the GPU is there
}

// Takeovers lists them, for a Result of Devices, in the order of its tables; it is
// empty where no GPU was measured.
func (r *Result) Takeovers() []Takeover {
	var list []Takeover
	for _, t := range r.TablesOf("n", Seconds) {
		c := Takeover{Case: t.Case}
		before, beforeN := 0.0, 0
		for _, cell := range t.Rows {
			cpu, gpu := r.fastestOn(cell, "cpu/"), r.fastestOn(cell, "cuda/")
			if cpu == nil || gpu == nil {
				continue
			}
			n, times := cell.Case.Int("n"), cpu.Time.Median/gpu.Time.Median
			switch {
			case times < 1:
				c.N, c.Estimate = 0, 0
			case c.N == 0:
				c.N, c.Estimate = n, float64(n)
				if beforeN > 0 && before < 1 {
					part := math.Log(before) / (math.Log(before) - math.Log(times))
					c.Estimate = float64(beforeN) * math.Pow(float64(n)/float64(beforeN), part)
				}
			}
			before, beforeN = times, n
			c.Largest, c.Times, c.CPU, c.GPU = n, times, cpu.Entrant, gpu.Entrant
		}
		if c.Largest > 0 {
			list = append(list, c)
		}
	}
	return list
}

// fastestOn is Mercer's fastest run of a cell on devices whose name begins so.
func (r *Result) fastestOn(c *Cell, prefix string) *Run {
	var best *Run
	for i := range c.Runs {
		run := &c.Runs[i]
		e := r.Entrant(run.Entrant)
		if e == nil || e.Kind != OwnKind || !strings.HasPrefix(e.Device, prefix) || !run.Timed() {
			continue
		}
		if best == nil || run.Time.Median < best.Time.Median {
			best = run
		}
	}
	return best
}

// String is a sentence.
func (c Takeover) String() string {
	what := c.Case.Get("operation") + ", " + c.Case.Get("precision")
	if c.N == 0 {
		return fmt.Sprintf("%s: up to n = %d %s is not faster than %s (%s × as fast there)", what, c.Largest, c.GPU, c.CPU, Times(c.Times))
	}
	return fmt.Sprintf("%s: %s is faster than %s from n = %d on, estimated %.0f (%s × as fast at n = %d)", what, c.GPU, c.CPU, c.N, c.Estimate, Times(c.Times), c.Largest)
}

// DevicesText is Text of a Result of Devices: rates, and times of what is more than
// one operation, who is the fastest at the largest n, and from where on a GPU is.
func (r *Result) DevicesText() string {
	var b strings.Builder
	b.WriteString(r.Text("n"))
	rows := [][]string{{"the fastest at the largest n", "n", "", "s", "how many times as fast as the others"}}
	for _, t := range r.TablesOf("n", Seconds) {
		for i := len(t.Rows) - 1; i >= 0; i-- {
			best, others := t.Rows[i].ranking()
			if best == nil {
				continue
			}
			rows = append(rows, []string{"  " + t.Title(), t.Rows[i].Case.Get("n"), best.Entrant, Figures(best.Time.Median), strings.Join(others, ", ")})
			break
		}
	}
	if len(rows) > 1 {
		b.WriteString("\n" + columns("lrlrl", rows))
	}
	return b.String() + r.notesText()
}

// ranking is the fastest run of a cell, and how far the others are behind.
func (c *Cell) ranking() (best *Run, others []string) {
	for i := range c.Runs {
		if run := &c.Runs[i]; run.Timed() && (best == nil || run.Time.Median < best.Time.Median) {
			best = run
		}
	}
	for i := range c.Runs {
		if run := &c.Runs[i]; run != best && run.Timed() {
			others = append(others, run.Entrant+" "+Times(run.Time.Median/best.Time.Median))
		}
	}
	return best, others
}

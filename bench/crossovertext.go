package bench

import (
	"fmt"
	"strings"
)

// CrossoverText is a crossover for a terminal: the answer first, then for each
// device and precision the grid with the winners, where they change, the cost
// model, and the stages of each point.
func (r *Result) CrossoverText() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.CrossoverAnswer())
	for _, line := range r.crossoverLead() {
		fmt.Fprintln(&b, line)
	}
	b.WriteByte('\n')
	for _, line := range r.Lines() {
		fmt.Fprintln(&b, line)
	}
	for _, line := range r.Notes {
		fmt.Fprintln(&b, line)
	}
	var rows [][]string
	for _, e := range r.Entrants {
		rows = append(rows, []string{"  " + e.Name, e.About()})
	}
	b.WriteString("\n" + columns("ll", rows))
	for _, p := range r.Planes() {
		fmt.Fprintf(&b, "\n%s, %s: the faster form, and how many times as fast as the other; ~: their timings overlap\n%s", p.Device, p.Precision, p.grid())
		fmt.Fprintf(&b, "\nsamples from which on the primal is the faster\n%s", p.crossingsText())
		for _, j := range p.Judge() {
			fmt.Fprintf(&b, "  %v\n", j)
		}
		if p.Fitted {
			fmt.Fprintf(&b, "\ncost model: %s\n", p.CostText())
		}
		if laws := r.lawsText(p); laws != "" {
			b.WriteString("\n" + laws)
		}
		fmt.Fprintf(&b, "\nmilliseconds (GFLOP/s) of the stages\n%s", p.stagesText())
	}
	if text := r.agreementText(); text != "" {
		b.WriteString("\n" + text)
	}
	return b.String()
}

// CrossoverAnswer is the answer in a sentence or two.
func (r *Result) CrossoverAnswer() string {
	right, of := 0, 0
	worst, most := Judgement{Worst: 1}, 1.0
	for _, p := range r.Planes() {
		if len(p.Points) == 0 {
			continue
		}
		j := p.Judge()[0]
		right, of = right+j.Right, of+j.Of
		if j.Worst > worst.Worst {
			worst = j
		}
		for i := range p.Points {
			_, times, _ := p.Points[i].Winner()
			most = max(most, times)
		}
	}
	if of == 0 {
		return "Nothing was measured."
	}
	text := fmt.Sprintf("The rule “primal when there are at least as many samples as features, else dual” takes the faster form at %d of %d points", right, of)
	if right < of {
		text += fmt.Sprintf(", and %s × its time at worst (n = %d, m = %d)", Times(worst.Worst), worst.WorstN, worst.WorstM)
	}
	return text + fmt.Sprintf("; the wrong form costs up to %s ×.", Times(most))
}

// crossoverLead says where the crossover was measured, for each device and
// precision.
func (r *Result) crossoverLead() []string {
	var list []string
	for _, p := range r.Planes() {
		if low, high, ok := p.Ratios(); ok {
			list = append(list, fmt.Sprintf("%s, %s: the primal is the faster from n = %s m on (n samples, m features).", p.Device, p.Precision, Span(low, high)))
		}
	}
	return list
}

// Ratios are the least and the greatest n/m of the crossings that were seen.
func (p *Plane) Ratios() (low, high float64, ok bool) {
	for _, c := range p.Crossings() {
		if c.N == 0 {
			continue
		}
		ratio := c.N / float64(c.M)
		if !ok {
			low, high, ok = ratio, ratio, true
		}
		low, high = min(low, ratio), max(high, ratio)
	}
	return low, high, ok
}

// Span is a range in words: 0.80…1.02.
func Span(low, high float64) string {
	a, b := fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)
	if a == b {
		return a
	}
	return a + "…" + b
}

// Winner is the faster form of a point, how many times as fast as the other it
// is, and a mark when the timings of both overlap.
func (p *Point) Winner() (form string, times float64, mark string) {
	form, times = Primal, p.Ratio()
	if times < 1 {
		form, times = Dual, 1/times
	}
	if !p.Clear() {
		mark = "~"
	}
	return form, times, mark
}

func (p *Plane) grid() string {
	rows := [][]string{{"n \\ m"}}
	for _, m := range p.M {
		rows[0] = append(rows[0], fmt.Sprint(m))
	}
	for _, n := range p.N {
		row := []string{fmt.Sprint(n)}
		for _, m := range p.M {
			text := "-"
			if q := p.At(n, m); q != nil {
				form, times, mark := q.Winner()
				text = fmt.Sprintf("%s%s %s", mark, form, Times(times))
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return columns(strings.Repeat("r", len(p.M)+1), rows)
}

// Text is the crossing in words.
func (c Crossing) Text(p *Plane) string {
	switch {
	case c.Beyond < 0:
		return fmt.Sprintf("below %d", p.N[0])
	case c.Beyond > 0:
		return fmt.Sprintf("above %d", p.N[len(p.N)-1])
	}
	return Figures(c.N)
}

// PredictedText is Predicted in words.
func (p *Plane) PredictedText(m int) string {
	if !p.Fitted {
		return "-"
	}
	if n := p.Predicted(m); n > 0 {
		return fmt.Sprint(n)
	}
	return "never"
}

func (p *Plane) crossingsText() string {
	rows := [][]string{{"  m", "measured n", "n = m", "cost model"}}
	for _, c := range p.Crossings() {
		rows = append(rows, []string{fmt.Sprintf("  %d", c.M), c.Text(p), fmt.Sprint(c.M), p.PredictedText(c.M)})
	}
	return columns("rrrr", rows)
}

// CostText is the fitted constants in words.
func (p *Plane) CostText() string {
	c := p.Costs
	return fmt.Sprintf("products %s GFLOP/s; Cholesky at %s of that rate and %.0f operations for each element of the factor; "+
		"%.0f for each element of X, %.0f of XᵀX, %.0f of XXᵀ; one column at %s of the rate",
		Figures(c.Rate/1e9), Percent(c.Potrf), c.Panel, c.Input, c.Covariance, c.Gram, Percent(c.Thin))
}

// Laws are the laws of growth of a plane.
func (r *Result) Laws(p *Plane) []*Growth {
	var list []*Growth
	for i := range r.Growths {
		g := &r.Growths[i]
		if (g.Entrant == p.Primal || g.Entrant == p.Dual) && g.Case.Get("precision") == p.Precision {
			list = append(list, g)
		}
	}
	return list
}

// Theory is the law that the count of operations gives for a fitted one of a
// crossover.
func (r *Result) Theory(g *Growth) string {
	form := r.Entrant(g.Entrant).Method
	switch {
	case g.Quantity == StageSeconds(GramStage).Name && form == Primal:
		return "n·m²"
	case g.Quantity == StageSeconds(GramStage).Name:
		return "n²·m"
	case form == Primal:
		return "m³"
	}
	return "n³"
}

func (r *Result) lawsText(p *Plane) string {
	rows := [][]string{{"growth", "", "seconds", "operations", "spread"}}
	for _, g := range r.Laws(p) {
		rows = append(rows, []string{
			"  " + r.Entrant(g.Entrant).Method, strings.TrimSuffix(g.Quantity, " seconds"), g.String(), r.Theory(g), Percent(g.Spread),
		})
	}
	if len(rows) == 1 {
		return ""
	}
	return columns("lllll", rows)
}

func (p *Plane) stagesText() string {
	rows := [][]string{{"n", "m", "", "flops", "total", GramStage, FactorStage, SolveStage}}
	for i := range p.Points {
		q := &p.Points[i]
		for _, run := range []*Run{q.Primal, q.Dual} {
			row := []string{fmt.Sprint(q.N), fmt.Sprint(q.M), Dual, fmt.Sprintf("%.3g", run.Work), Figures(1e3 * run.Time.Median)}
			if run == q.Primal {
				row[2] = Primal
			}
			for _, name := range []string{GramStage, FactorStage, SolveStage} {
				text := "-"
				if s := run.Stage(name); s != nil {
					text = Figures(1e3 * s.Time.Median)
					if s.Time.Median > 0 {
						text += fmt.Sprintf(" (%s)", Figures(s.Work/s.Time.Median/1e9))
					}
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
	}
	return columns("rrlrrrrr", rows)
}

package bench

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// residentMetric is the growth of the process's resident memory during the first fit, in bytes.
const residentMetric = "resident_bytes"

// exponent fits c·x^a to the values of q in the runs of an implementation, by least squares of the logarithms, where x
// is the given parameter of the cases. It returns a, or 0 if fewer than three sizes have a positive value.
func (r *Result) exponent(name, parameter string, q quantity) float64 {
	var x, y []float64
	for _, c := range r.filter(sweep, parameter).Cells {
		if v, ok := q.Of(c.Run(name)); ok && v.Median > 0 {
			x, y = append(x, math.Log(float64(c.Case.Int(parameter)))), append(y, math.Log(v.Median))
		}
	}
	if len(x) < 3 || floats.Min(x) == floats.Max(x) {
		return 0
	}
	_, a := stat.LinearRegression(x, y, nil, false)
	return a
}

func scaleReport(r *Result, p *Report) {
	p.Title = "How Mercer’s solvers grow"
	if len(r.Cells) == 0 {
		return
	}
	p.Answer = r.growthAnswer()
	mib := func(metric string) quantity {
		return singleValue(metric, "MiB", func(r *Run) (float64, bool) {
			v, ok := r.Metrics[metric]
			return v / (1 << 20), ok
		})
	}
	for _, parameter := range []string{"n", "m"} {
		subset := r.filter(sweep, parameter)
		if len(subset.Cells) == 0 {
			continue
		}
		for i := range subset.Cells {
			subset.Cells[i].Case = subset.Cells[i].Case.Without(sweep)
		}
		p.add(r.exponentTable(subset, parameter))
		p.add(subset.tables(parameter, secondsQuantity, "time", figures)...)
		p.add(subset.tables(parameter, mib(bytesMetric), "largest memory on the device", figures)...)
		p.add(subset.tables(parameter, mib(plannedMetric), "planned memory", figures)...)
		p.add(subset.tables(parameter, mib(residentMetric), "growth of the process", figures)...)
		p.add(subset.tables(parameter, metric(residualMetric, ""), "residual", scientific)...)
		p.add(subset.tables(parameter, metric(rmseMetric, ""), "error on rows held out (RMSE)", figures)...)
	}
}

// growthAnswer returns sentences that compare the growth of the time and the operations, and the memory and the plan.
func (r *Result) growthAnswer() string {
	var parts []string
	maxUsed := 0.0
	for _, e := range r.Implementations {
		if time, flops := r.exponent(e.Name, "n", secondsQuantity), r.exponent(e.Name, "n", operations); time > 0 && flops > 0 {
			parts = append(parts, fmt.Sprintf("%s n^%.1f (operations n^%.1f)", e.Name, time, flops))
		}
		maxUsed = max(maxUsed, r.planUsed(e.Name))
	}
	if len(parts) == 0 {
		return "There were too few sizes to fit the growth of the time."
	}
	text := "Time grows as " + strings.Join(parts, ", ") + "."
	if maxUsed > 0 {
		text += fmt.Sprintf(" The largest share of its planned memory that a solver took is %s.", percent(maxUsed))
	}
	return text
}

// planUsed returns the largest ratio of used memory to planned memory of a solver.
func (r *Result) planUsed(name string) (maxShare float64) {
	for _, c := range r.Cells {
		if run := c.Run(name); run.Timed() && run.Metrics[plannedMetric] > 0 {
			maxShare = max(maxShare, run.Metrics[bytesMetric]/run.Metrics[plannedMetric])
		}
	}
	return maxShare
}

// exponentTable returns a table of the exponents with which the costs of each solver grow, and of its largest costs.
func (r *Result) exponentTable(subset *Result, parameter string) *Table {
	t := &Table{
		Title: "Exponents of " + parameter,
		Head:  []string{"", "time", "operations", "memory", "planned", "memory/plan", "up to", "s", "MiB"},
		Notes: []string{"The exponents are fitted to the logarithms by least squares. The column of operations has the exponent of the operations that the plans count at the same sizes."},
	}
	for _, e := range r.Implementations {
		var largest *Cell
		for i := range subset.Cells {
			if subset.Cells[i].Run(e.Name).Timed() {
				largest = &subset.Cells[i]
			}
		}
		if largest == nil {
			continue
		}
		row := []Field{{Text: e.Name}}
		for _, q := range []quantity{secondsQuantity, operations, metric(bytesMetric, "B"), metric(plannedMetric, "B")} {
			row = append(row, optional(r.exponent(e.Name, parameter, q), func(v float64) string { return fmt.Sprintf("%.2f", v) }))
		}
		used, run := optional(subset.planUsed(e.Name), percent), largest.Run(e.Name)
		if subset.planUsed(e.Name) > 1 {
			used.Class = "bad"
		}
		t.Rows = append(t.Rows, append(row, used, Field{Text: largest.Case.Get(parameter)}, Field{Text: figures(run.Time.Median)}, Field{Text: figures(run.Metrics[bytesMetric] / (1 << 20))}))
	}
	return t
}

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// Report is a Result in the form of tables. Its methods write text and Markdown, and package bench/report writes HTML.
type Report struct {
	Title  string
	Answer string // the main result in one or two sentences
	Facts  []string
	Tables []*Table
}

// reports holds a function for each kind of Result, which adds the answer and the tables to the Report.
var reports = map[string]func(*Result, *Report){
	BLASKind: blasReport, CrossoverKind: crossoverReport, FitKind: fitReport, ScaleKind: scaleReport,
	DevicesKind: devicesReport, MNISTKind: mnistReport, GoKind: goReport, RunsKind: runsReport,
}

// Report makes the Report of r. It returns an error if the kind of r is unknown.
func (r *Result) Report() (*Report, error) {
	build, ok := reports[r.Kind]
	if !ok {
		return nil, fmt.Errorf("bench: report: measurements of kind %q are not known", r.Kind)
	}
	p := &Report{Answer: "Nothing was measured.", Facts: append(r.Lines(), r.Notes...)}
	build(r, p)
	p.Title += " on " + r.Processor()
	list := &Table{Title: "Implementations", Head: []string{"", ""}}
	for _, e := range r.Implementations {
		list.Rows = append(list.Rows, []Field{{Text: e.Name}, {Text: e.About()}})
	}
	p.add(list)
	return p, nil
}

func (p *Report) add(tables ...*Table) {
	for _, t := range tables {
		if t != nil && len(t.Rows) > 0 {
			p.Tables = append(p.Tables, t)
		}
	}
}

func (p *Report) addComparison(r *Result, list []comparison, rates bool) {
	if len(list) > 0 {
		p.Answer = winsText(list)
		p.add(r.comparisonTable(list, rates))
	}
}

// Processor returns the name of the processor, or the operating system if the name is unknown.
func (r *Result) Processor() string {
	if r.Machine.Processor == "" {
		return r.Machine.System
	}
	return r.Machine.Processor
}

func blasReport(r *Result, p *Report) {
	p.Title = "Mercer’s BLAS"
	list := r.compare("n")
	p.addComparison(r, list, true)
	if len(list) > 0 {
		shares := func(a, b comparison) int { return cmp.Compare(a.share, b.share) }
		if low, high := slices.MinFunc(list, shares).share, slices.MaxFunc(list, shares).share; low > 0 {
			p.Answer += fmt.Sprintf(" It reaches %s to %s of the ceiling.", strings.TrimSuffix(percent(low), " %"), percent(high))
		}
	}
	p.add(r.tables("n", rateQuantity, "rate", figures)...)
}

func fitReport(r *Result, p *Report) {
	p.Title = "Whole fits"
	p.addComparison(r, r.compare("n"), false)
	p.add(r.tables("n", secondsQuantity, "time", figures)...)
	p.add(r.tables("n", metric(residualMetric, ""), "residual", scientific)...)
	p.add(r.tables("n", metric(rmseMetric, ""), "error on rows held out (RMSE)", figures)...)
}

// devicesReport adds tables of the times, with a column that names the fastest implementation at each n.
func devicesReport(r *Result, p *Report) {
	p.Title = "Devices"
	anyRun := func(*Run) bool { return true }
	for _, g := range r.groups("n") {
		t := g.table(r, secondsQuantity, "time", figures)
		if t == nil {
			continue
		}
		t.Head = append(t.Head, "fastest")
		for i, c := range g.cells {
			fastest := c.fastest(anyRun)
			if fastest == nil {
				t.Rows[i] = append(t.Rows[i], Field{Text: "–"})
				continue
			}
			t.Rows[i] = append(t.Rows[i], Field{Text: fastest.Implementation})
			if p.Tables == nil || g.shared.Has(Case{{"operation", "fit"}, {"precision", "float64"}}) {
				p.Answer = fmt.Sprintf("%s: %s is the fastest, %s s.", c.Case.Title(), fastest.Implementation, figures(fastest.Time.Median))
			}
		}
		p.add(t)
	}
}

func goReport(r *Result, p *Report) {
	p.Title = "Go benchmarks"
	var comparisons []comparison
	var tables []*Table
	for _, name := range r.values("benchmark") {
		subset := r.filter("benchmark", name)
		key := subset.sizeOf()
		comparisons = append(comparisons, subset.compare(key)...)
		tables = append(tables, subset.sizeTables(key)...)
	}
	p.addComparison(r, comparisons, false)
	p.add(tables...)
}

// runsReport adds tables with a row for each run of a program, and a chart for each size that varies.
func runsReport(r *Result, p *Report) {
	p.Title = "Whole programs"
	columns := []struct {
		title  string
		q      quantity
		format func(float64) string
	}{
		{"s", secondsQuantity, figures}, {"processor, s", metric(processorMetric, ""), figures}, {"peak, MiB", metric(peakMetric, ""), func(v float64) string { return figures(v / (1 << 20)) }},
		{"residual", metric(residualMetric, ""), scientific}, {"error held out", metric(rmseMetric, ""), figures}, {"accuracy", metric("accuracy", ""), figures},
	}
	var tables []*Table
	for _, program := range r.values("program") {
		subset := r.filter("program", program)
		t := &Table{Title: program, Head: []string{""}}
		for _, c := range columns {
			t.Head = append(t.Head, c.title)
		}
		for _, cell := range subset.Cells {
			for _, run := range cell.Runs {
				row := []Field{{Text: strings.TrimPrefix(cell.Case.Without("program").Title()+", "+run.Implementation, ", ")}}
				for i, c := range columns {
					field := Field{Text: "–"}
					if v, ok := c.q.Of(&run); ok {
						if field.Text = c.format(v.Median); i == 0 {
							field.Note = spreadText(&run, v, c.format)
						}
					}
					row = append(row, field)
				}
				t.Rows = append(t.Rows, row)
			}
		}
		p.Answer = fmt.Sprintf("%d runs of %d programs.", len(r.Cells), len(r.values("program")))
		p.add(t)
		tables = append(tables, subset.sizeTables(subset.sizeOf())...)
	}
	p.add(tables...)
}

// sizeTables returns the tables of the times that have a chart over the parameter key.
func (r *Result) sizeTables(key string) []*Table {
	return slices.DeleteFunc(r.tables(key, secondsQuantity, "time", figures), func(t *Table) bool { return t.Chart == nil })
}

func (r *Result) filter(name, value string) *Result {
	subset := *r
	subset.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c Cell) bool { return c.Case.Get(name) != value })
	return &subset
}

// sizeOf returns the integer parameter with the largest number of values, or n if there is none.
func (r *Result) sizeOf() string {
	name, largest := "n", 0
	for _, p := range r.Cells[0].Case {
		values := r.values(p.Name)
		integers := !slices.ContainsFunc(values, func(v string) bool { _, err := strconv.Atoi(v); return err != nil })
		if integers && len(values) > largest {
			name, largest = p.Name, len(values)
		}
	}
	return name
}

// noisy is the percentage of time used by other processes and machines above which timings are unreliable.
const noisy = 5

// Lines returns the date, the machine and the method of the measurement as lines of text.
func (r *Result) Lines() []string {
	m := r.Machine
	cpus := count.Of(m.CPUs, "processor")
	if m.Virtual {
		cpus += " of a virtual machine"
	}
	governor := m.Governor
	if governor == "" {
		governor = "not readable"
	}
	noise := "the load of other processes is not known"
	if n := m.Noise; n != nil {
		noise = fmt.Sprintf("during the measurement, the host took %.1f %% and other processes took %.1f %% of the processors' time", n.Steal, n.Others)
		if n.Steal+n.Others > noisy {
			noise += ": the machine was not quiet, do not rely on the figures"
		}
	}
	s := r.Settings
	method, command := fmt.Sprintf("medians of %d timings of at least %.3g ms", s.Repeats, 1e3*s.SampleSeconds), "mercer bench "+r.Kind
	if s.Repeats == 1 {
		method = fmt.Sprintf("one timing of at least %.3g ms", 1e3*s.SampleSeconds)
	}
	if s.BudgetSeconds > 0 {
		method += fmt.Sprintf(" (fewer timings if they take more than %.3g s in all)", s.BudgetSeconds)
	}
	method += ", interleaved"
	switch r.Kind {
	case GoKind:
		method, command = fmt.Sprintf("medians of %d timings by go test -bench", s.Repeats), "mercer bench import"
	case RunsKind:
		method, command = fmt.Sprintf("medians of up to %d runs of whole programs, imported", s.Repeats), "mercer bench import"
	}
	machine := fmt.Sprintf("%s, %s, governor %s", m.Processor, cpus, governor)
	if len(m.Devices) > 0 {
		machine += "; usable: " + strings.Join(m.Devices, ", ")
	}
	outliers, timings := r.outliers()
	return []string{
		fmt.Sprintf("%s, %s, %.0f s", command, r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Seconds),
		machine,
		fmt.Sprintf("%s, %s, GOMAXPROCS %d, mercer %s", m.Go, m.System, m.MaxProcs, m.Mercer),
		noise,
		fmt.Sprintf("%s; %d of %d timings are outliers", method, outliers, timings),
	}
}

// About returns a text with the versions and threads of an implementation, and the path of a library.
func (e *Implementation) About() string {
	if e.Missing != "" {
		return "missing: " + e.Missing
	}
	var parts []string
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	if e.Threads > 0 {
		parts = append(parts, count.Of(e.Threads, "thread"))
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return strings.Join(parts, ", ")
}

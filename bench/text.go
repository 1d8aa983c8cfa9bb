package bench

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is r for a terminal: machine and entrants, a table for each group of
// cells that differ in key, what follows from them, and how far the results
// agree.
func (r *Result) Text(key string) string {
	var b strings.Builder
	b.WriteString(r.head())
	tables := r.Tables(key)
	for _, t := range tables {
		fmt.Fprintf(&b, "\n%s: %s, median (lowest–highest)%s\n%s", t.Title(), t.Unit(), ofCeiling(t), t.text())
		for _, reason := range t.Left() {
			if e, _, _ := strings.Cut(reason, ": "); r.Entrant(e) == nil || r.Entrant(e).Missing == "" {
				fmt.Fprintf(&b, "  %s\n", reason)
			}
		}
	}
	if text := r.comparisonText(key, tables); text != "" {
		b.WriteString("\n" + text)
	}
	if text := r.agreementText(); text != "" {
		b.WriteString("\n" + text)
	}
	return b.String()
}

// head is machine and entrants.
func (r *Result) head() string {
	var b strings.Builder
	for _, line := range r.Lines() {
		fmt.Fprintln(&b, line)
	}
	b.WriteByte('\n')
	var rows [][]string
	for _, e := range r.Entrants {
		rows = append(rows, []string{"  " + e.Name, e.About()})
	}
	b.WriteString(columns("ll", rows))
	return b.String()
}

func ofCeiling(t *Table) string {
	if t.Ceilings == 0 {
		return ""
	}
	return ", share of the ceiling"
}

// quiet is how much of the processors' time, in per cent, others may take for
// the figures to be of use.
const quiet = 5

// Lines says when, where and how r was measured.
func (r *Result) Lines() []string {
	m := r.Machine
	cpus := fmt.Sprintf("%d processors", m.CPUs)
	if m.CPUs == 1 {
		cpus = "1 processor"
	}
	if m.Virtual {
		cpus += " of a virtual machine"
	}
	governor := m.Governor
	if governor == "" {
		governor = "not readable"
	}
	around := "what else the processors did is not known"
	if n := m.Noise; n != nil {
		around = fmt.Sprintf("meanwhile %.1f %% of the processors' time was stolen by the host and %.1f %% taken by other processes", n.Steal, n.Others)
		if n.Steal+n.Others > quiet {
			around += ": the machine was not quiet, do not rely on the figures"
		}
	}
	s := r.Settings
	how := fmt.Sprintf("medians of %d timings of %.3g ms at least", s.Repeats, 1e3*s.SampleSeconds)
	if s.Repeats == 1 {
		how = fmt.Sprintf("one timing of %.3g ms at least", 1e3*s.SampleSeconds)
	}
	if s.BudgetSeconds > 0 {
		how += fmt.Sprintf(" (fewer once they take %.3g s in all)", s.BudgetSeconds)
	}
	how += ", all in turn"
	if r.Kind == GoKind {
		how = fmt.Sprintf("medians of %d timings by go test -bench", s.Repeats)
	}
	if r.Kind == RunsKind {
		how = fmt.Sprintf("medians of up to %d runs of whole programs, imported", s.Repeats)
		if s.Repeats == 1 {
			how = "single runs of whole programs, imported"
		}
	}
	where := fmt.Sprintf("%s, %s, governor %s", m.Processor, cpus, governor)
	if len(m.Devices) > 0 {
		where += "; usable: " + strings.Join(m.Devices, ", ")
	}
	out, all := r.Outliers()
	return []string{
		fmt.Sprintf("%s, %s, %.0f s", r.Command(), r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Seconds),
		where,
		fmt.Sprintf("%s, %s, GOMAXPROCS %d, mercer %s", m.Go, m.System, m.MaxProcs, m.Mercer),
		around,
		fmt.Sprintf("%s; %d of %d timings are outliers", how, out, all),
	}
}

// Command is what made r.
func (r *Result) Command() string {
	if r.Kind == GoKind || r.Kind == RunsKind {
		return "mercer bench import"
	}
	return "mercer bench " + r.Kind
}

// About is what there is to say of an entrant.
func (e *Entrant) About() string {
	if e.Missing != "" {
		return "missing: " + e.Missing
	}
	var parts []string
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	if e.Threads > 0 {
		parts = append(parts, Case{{"threads", strconv.Itoa(e.Threads)}}.Title())
	}
	if e.Path != "" {
		parts = append(parts, e.Path)
	}
	return strings.Join(parts, ", ")
}

// text lays a table out: a column for each entrant, with median, lowest and
// highest, and share of the ceiling.
func (t *Table) text() string {
	align := "r"
	grid := make([][]string, len(t.Rows)+1)
	grid[0] = []string{t.Key}
	for i, c := range t.Rows {
		grid[i+1] = []string{c.Case.Get(t.Key)}
	}
	for _, e := range t.Entrants {
		var parts [][]string
		for _, c := range t.Rows {
			parts = append(parts, t.cell(e, c.Run(e.Name)))
		}
		align += "l"
		grid[0] = append(grid[0], e.Name)
		for i, line := range strings.Split(strings.TrimSuffix(columns("rlr", parts), "\n"), "\n") {
			grid[i+1] = append(grid[i+1], line)
		}
	}
	return columns(align, grid)
}

func (t *Table) cell(e *Entrant, r *Run) []string {
	v, ok := t.Value(e, r)
	if !ok {
		return []string{"-", "", ""}
	}
	parts := []string{Figures(v.Median), "", ""}
	if e.Kind == CeilingKind {
		return parts
	}
	if parts[1] = "(once)"; len(r.Timings) > 1 {
		parts[1] = fmt.Sprintf("(%s–%s)", Figures(v.Min), Figures(v.Max))
	}
	if r.Share > 0 {
		parts[2] = Percent(r.Share)
	}
	return parts
}

// comparisonText is the table of conclusions.
func (r *Result) comparisonText(key string, tables []*Table) string {
	list := r.Compare(tables)
	if len(list) == 0 {
		return ""
	}
	head, align := []string{"at the largest " + key, key, "mercer", "of ceiling"}, "lrrr"
	for _, a := range list[0].Against {
		head, align = append(head, "× "+a.Entrant), align+"r"
	}
	rows := [][]string{head}
	for _, c := range list {
		row := []string{c.Table.Title(), c.Cell.Case.Get(key), Figures(c.Value()), "-"}
		if c.Own.Share > 0 {
			row[3] = Percent(c.Own.Share)
		}
		for _, a := range c.Against {
			text := "-"
			if a.Times > 0 {
				text = Times(a.Times)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return columns(align, rows)
}

func (r *Result) agreementText() string {
	rows := [][]string{{"largest difference, relative", "", "", "rounding explains", "where"}}
	for _, a := range r.Agreements() {
		rows = append(rows, []string{
			"  " + a.Entrant, a.Precision, fmt.Sprintf("%.1e", a.Largest.Difference), fmt.Sprintf("%.1e", a.Largest.Limit), a.Case.String(),
		})
	}
	if len(rows) == 1 {
		return ""
	}
	return columns("llrrl", rows)
}

// columns lays rows out two spaces apart, aligned by a letter for each column:
// l or r. A rune counts as one place.
func columns(align string, rows [][]string) string {
	widths := make([]int, len(align))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for j, cell := range row {
			if j > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell))
			if align[j] == 'r' {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

package markdown

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// blocks are what pages can ask for.
var blocks = map[string]func(call) (string, error){
	"stamp":            stamp,
	"blas":             blas,
	"beside":           beside,
	"losses":           losses,
	"crossover-answer": func(c call) (string, error) { return c.file.Result.CrossoverAnswer(), nil },
	"crossover-map":    crossoverMap,
	"crossover-curve":  crossoverCurve,
	"crossover-laws":   crossoverLaws,
	"crossover-rates":  crossoverRates,
	"compared":         compared,
	"growths":          growths,
	"gains":            gains,
	"figure":           figure,
	"runs":             runs,
}

// stamp says when and where the measurement was made, and links to it; with
// short=yes no more than file, processor and day.
func stamp(c call) (string, error) {
	if c.args["short"] == "yes" {
		r := c.file.Result
		return fmt.Sprintf("[%s](%s/%s): %s, %d processors, %s", c.file.Name, c.folder, c.file.Name, r.Machine.Processor, r.Machine.MaxProcs, r.Started.UTC().Format("2006-01-02")), nil
	}
	lines := c.file.Result.Lines()
	return fmt.Sprintf("[%s](%s/%s): %s.", c.file.Name, c.folder, c.file.Name, strings.Join(lines, "; ")), nil
}

// whole formats a rate for a table.
func whole(v float64) string {
	if v < 10 {
		return bench.Figures(v)
	}
	return fmt.Sprintf("%.0f", v)
}

// blasNames are the routines' names with the type letter.
func blasName(c bench.Case) string {
	letter := "D"
	if c.Get("precision") == "float32" {
		letter = "S"
	}
	return letter + c.Get("routine")
}

// blas is the table of a BLAS measurement: the rows that match the arguments
// (threads, n, …; only=gemm,potrf chooses routines), a column for Mercer's
// fastest device, for each library and for the ceiling.
func blas(c call) (string, error) {
	r := c.file.Result
	var chosen []*bench.Cell
	for i := range r.Cells {
		cell := &r.Cells[i]
		fits := true
		for _, key := range []string{"threads", "n", "precision"} {
			fits = fits && (c.args[key] == "" || cell.Case.Get(key) == c.args[key])
		}
		if only := c.args["only"]; only != "" {
			fits = fits && strings.Contains(","+only+",", ","+blasName(cell.Case)+",")
		}
		if fits {
			chosen = append(chosen, cell)
		}
	}
	if len(chosen) == 0 {
		return "", errors.New("no cell fits the arguments")
	}
	corner := []string{"GFLOP/s"}
	for _, key := range []string{"threads", "n"} {
		if v := c.args[key]; v != "" {
			corner = append(corner, bench.Case{{Name: key, Value: v}}.Title())
		}
	}
	head := []string{strings.Join(corner, ", "), "Mercer"}
	var peers []string
	for _, e := range r.Entrants {
		if e.Kind == bench.PeerKind && e.Missing == "" {
			peers, head = append(peers, e.Name), append(head, shown(e.Name))
		}
	}
	rows := [][]string{append(head, "ceiling")}
	for _, cell := range chosen {
		name := blasName(cell.Case)
		for _, key := range []string{"threads", "n"} {
			if c.args[key] == "" {
				name += ", " + bench.Case{{Name: key, Value: cell.Case.Get(key)}}.Title()
			}
		}
		// The highest that was seen in the case, whatever device it belongs to.
		ceiling := 0.0
		for _, run := range cell.Runs {
			ceiling = max(ceiling, run.Ceiling)
		}
		row, last := []string{name, "–"}, "–"
		if ceiling > 0 {
			last = whole(ceiling)
		}
		if own := r.Fastest(cell); own != nil {
			row[1] = whole(own.Rate.Median)
			if ceiling > 0 {
				row[1] += " (" + bench.Percent(own.Rate.Median/ceiling) + ")"
			}
		}
		for _, p := range peers {
			text := "–"
			if run := cell.Run(p); run.Timed() {
				text = whole(run.Rate.Median)
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, last))
	}
	return table(rows), nil
}

// shown is a library's name as it writes itself.
func shown(name string) string {
	if s, ok := map[string]string{"openblas": "OpenBLAS", "mkl": "MKL"}[name]; ok {
		return s
	}
	return name
}

// beside is the rate of one routine beside that of another, Mercer's fastest of
// each, in per cent: of=potrf to=gemm with precision, threads and n.
func beside(c call) (string, error) {
	rate := func(routine string) (float64, error) {
		want := bench.Case{{Name: "routine", Value: routine}}
		for _, key := range []string{"precision", "threads", "n"} {
			want = append(want, bench.Param{Name: key, Value: c.args[key]})
		}
		for i := range c.file.Result.Cells {
			cell := &c.file.Result.Cells[i]
			if own := c.file.Result.Fastest(cell); own != nil && cell.Case.Has(want) {
				return own.Rate.Median, nil
			}
		}
		return 0, fmt.Errorf("there is no %v", want)
	}
	a, err := rate(c.args["of"])
	if err != nil {
		return "", err
	}
	b, err := rate(c.args["to"])
	return bench.Percent(a / b), err
}

// compared is a row for each table of a measurement at its largest size: Mercer's
// fastest way, its time and residual, and how many times as fast as each library.
func compared(c call) (string, error) {
	r := c.file.Result
	list := r.Compare(r.TablesOf("n", bench.Seconds))
	if len(list) == 0 {
		return "", errors.New("nothing was compared")
	}
	head := []string{"", "n", "Mercer’s fastest", "s", "residual"}
	for _, a := range list[0].Against {
		head = append(head, "× "+shown(a.Entrant))
	}
	rows := [][]string{head}
	for _, x := range list {
		row := []string{x.Table.Title(), x.Cell.Case.Get("n"), strings.TrimPrefix(x.Own.Entrant, "mercer "), bench.Figures(x.Own.Time.Median), "–"}
		if v, ok := x.Own.Metrics[bench.Residual]; ok {
			row[4] = fmt.Sprintf("%.0e", v)
		}
		for _, a := range x.Against {
			text := "–"
			if a.Times > 0 {
				text = bench.Times(a.Times)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return table(rows), nil
}

// growths are the laws of growth of a measurement.
func growths(c call) (string, error) {
	rows := [][]string{{"", "", "of", "law", "deviation"}}
	for _, g := range c.file.Result.Growths {
		rows = append(rows, []string{g.Entrant, g.Case.Title(), g.Quantity, g.String(), bench.Percent(g.Spread)})
	}
	if len(rows) == 1 {
		return "", errors.New("no law was fitted")
	}
	return table(rows), nil
}

// losses are all cells of the newest measurement of each kind and of the files that are
// named (files=a,b) in which a library is faster than Mercer's fastest way.
func losses(c call) (string, error) {
	rows := [][]string{{"", "who is faster", "Mercer’s time ×", "measured in"}}
	newest := map[string]string{}
	for _, f := range c.all {
		newest[f.Result.Kind] = f.Name
	}
	for _, f := range c.all {
		named := strings.Contains(","+c.args["files"]+",", ","+f.Name+",")
		if newest[f.Result.Kind] != f.Name && !named {
			continue
		}
		for i := range f.Result.Cells {
			cell := &f.Result.Cells[i]
			own := f.Result.Fastest(cell)
			for j := range cell.Runs {
				run := &cell.Runs[j]
				if own == nil || !run.Timed() || f.Result.Entrant(run.Entrant).Kind != bench.PeerKind || run.Time.Median >= own.Time.Median {
					continue
				}
				rows = append(rows, []string{
					cell.Case.Without("benchmark").Title(), shown(run.Entrant), bench.Times(own.Time.Median / run.Time.Median),
					fmt.Sprintf("[%s](%s/%s)", f.Result.Started.UTC().Format("2006-01-02"), c.folder, f.Name),
				})
			}
		}
	}
	if len(rows) == 1 {
		return "Nowhere in these measurements.", nil
	}
	return table(rows), nil
}

// gains are the times of a library over those of Mercer, from Go benchmarks: a row
// for each value of the parameter rows=, and a column for each of columns=; without
// that, both times and the gain, and in the row's title the other parameters.
func gains(c call) (string, error) {
	r := c.file.Result
	peer := ""
	for _, e := range r.Entrants {
		if e.Kind == bench.PeerKind {
			peer = e.Name
		}
	}
	var rows [][]string
	by := c.args["columns"]
	if by == "" {
		rows = append(rows, []string{c.args["rows"], peer + ", ms", "with Mercer, ms", "gain"})
	} else {
		rows = append(rows, []string{c.args["rows"]})
	}
	at, place := map[string]int{}, map[string]int{}
	for i := range r.Cells {
		cell := &r.Cells[i]
		own, other := r.Fastest(cell), cell.Run(peer)
		name := strings.ReplaceAll(cell.Case.Get(c.args["rows"]), "_", " ")
		if own == nil || !other.Timed() || name == "" {
			continue
		}
		gain := bench.Times(other.Time.Median/own.Time.Median) + "×"
		if by == "" {
			var size []string
			for _, p := range cell.Case.Without("benchmark").Without(c.args["rows"]) {
				size = append(size, p.Name+" = "+p.Value)
			}
			rows = append(rows, []string{
				name + ", " + strings.Join(size, ", "), bench.Figures(1e3 * other.Time.Median), bench.Figures(1e3 * own.Time.Median), gain,
			})
			continue
		}
		value := by + " = " + cell.Case.Get(by)
		if place[value] == 0 {
			rows[0] = append(rows[0], value)
			place[value] = len(rows[0]) - 1
		}
		if at[name] == 0 {
			rows = append(rows, []string{"`" + name + "`"})
			at[name] = len(rows) - 1
		}
		row := &rows[at[name]]
		for len(*row) <= place[value] {
			*row = append(*row, "–")
		}
		(*row)[place[value]] = gain
	}
	if len(rows) == 1 {
		return "", errors.New("there is nothing to compare")
	}
	for i := range rows {
		for len(rows[i]) < len(rows[0]) {
			rows[i] = append(rows[i], "–")
		}
	}
	return table(rows), nil
}

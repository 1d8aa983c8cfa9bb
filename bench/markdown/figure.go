package markdown

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// The arguments of figure and runs that do not choose cells.
var figureArgs = []string{"file", "kind", "optional", "of", "entrant", "entrants", "pick", "show"}

// chosen are the cells that have every other argument as a parameter.
func (c call) chosen() ([]*bench.Cell, error) {
	var want bench.Case
	for key, value := range c.args {
		if !slices.Contains(figureArgs, key) {
			want = append(want, bench.Param{Name: key, Value: value})
		}
	}
	var list []*bench.Cell
	for i := range c.file.Result.Cells {
		if cell := &c.file.Result.Cells[i]; cell.Case.Has(want) {
			list = append(list, cell)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no cell fits the arguments")
	}
	return list, nil
}

// figure is one number for a sentence: of=WHAT of the one cell that has the other
// arguments as parameters, of entrant=NAME (a space is written _) or else of Mercer's
// fastest. WHAT is
//
//	seconds              the median, where nothing else is said
//	gram, factor, …      that of a stage
//	gain                 the entrant's time over Mercer's; the only library's where
//	                     none is named
//	residual, rmse, …    a metric; those that end in bytes or seconds as such
//
// pick=min and pick=max take the least and the greatest of several cells.
func figure(c call) (string, error) {
	list, err := c.chosen()
	if err != nil {
		return "", err
	}
	of := c.args["of"]
	if of == "" {
		of = "seconds"
	}
	var values []float64
	for _, cell := range list {
		if v, ok := c.value(cell, of, c.args["entrant"]); ok {
			values = append(values, v)
		}
	}
	switch pick := c.args["pick"]; {
	case len(values) == 0:
		return "", fmt.Errorf("no cell has %s", of)
	case pick == "min":
		return shownAs(of, slices.Min(values)), nil
	case pick == "max":
		return shownAs(of, slices.Max(values)), nil
	case pick != "":
		return "", fmt.Errorf("pick=%s: want min or max", pick)
	case len(values) > 1:
		return "", fmt.Errorf("%d cells fit the arguments: name more of them, or pick=min or pick=max", len(values))
	}
	return shownAs(of, values[0]), nil
}

// value is what figure takes of a cell and an entrant, "" for Mercer's fastest.
func (c call) value(cell *bench.Cell, of, entrant string) (float64, bool) {
	own := c.file.Result.Fastest(cell)
	run := own
	if entrant != "" {
		run = cell.Run(strings.ReplaceAll(entrant, "_", " "))
	} else if of == "gain" {
		run = c.library(cell)
	}
	if !run.Timed() {
		return 0, false
	}
	if of == "gain" {
		if own == nil {
			return 0, false
		}
		return run.Time.Median / own.Time.Median, true
	}
	q := bench.Seconds
	if of != "seconds" {
		if q = bench.StageSeconds(of); run.Stage(of) == nil {
			q = bench.Metric(of, "")
		}
	}
	v, ok := q.Of(run)
	return v.Median, ok
}

// library is the run of the only other library of a cell, nil where there are more.
func (c call) library(cell *bench.Cell) *bench.Run {
	var found *bench.Run
	for i := range cell.Runs {
		run := &cell.Runs[i]
		if e := c.file.Result.Entrant(run.Entrant); e.Kind == bench.PeerKind && run.Timed() {
			if found != nil {
				return nil
			}
			found = run
		}
	}
	return found
}

// shownAs writes a number as what it is.
func shownAs(of string, v float64) string {
	switch {
	case of == "gain":
		return bench.Times(v)
	case strings.HasSuffix(of, "bytes"):
		return bytesText(v)
	case of == bench.Residual:
		return strings.Replace(fmt.Sprintf("%.0e", v), "e-0", "e-", 1)
	case of == bench.RMSE || of == "mae" || of == "r2" || of == "accuracy" || of == "score" || of == "log_loss":
		return bench.Figures(v)
	case of == bench.Iters:
		return fmt.Sprintf("%.0f", v)
	}
	return timeText(v)
}

// two writes a number with two digits, or as a whole one where it has more.
func two(v float64) string {
	switch {
	case v < 0.995:
		return fmt.Sprintf("%.2f", v)
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// timeText writes seconds for a sentence: 12 µs, 1.5 ms, 5.9 s, 68 s, 9 min 45 s.
func timeText(s float64) string {
	switch {
	case s < 0.9995e-3:
		return two(1e6*s) + " µs"
	case s < 0.9995:
		return two(1e3*s) + " ms"
	case s < 119.5:
		return two(s) + " s"
	}
	whole := int(math.Round(s))
	return fmt.Sprintf("%d min %d s", whole/60, whole%60)
}

// bytesText writes bytes for a sentence, in powers of 1000: 310 MB, 6.4 GB.
func bytesText(v float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	for len(units) > 1 && v >= 999.5 {
		v, units = v/1000, units[1:]
	}
	return two(v) + " " + units[0]
}

// runs is a table of runs of whole programs: the parameters of show=a,b of each cell
// that fits, then time, time of all processors, peak memory and residual, as far as
// they are told; with entrants=a,b the time of each of those instead.
func runs(c call) (string, error) {
	list, err := c.chosen()
	if err != nil {
		return "", err
	}
	rows := [][]string{strings.Split(c.args["show"], ",")}
	type column struct{ of, entrant, title string }
	columns := []column{
		{"seconds", c.args["entrant"], "time"}, {bench.Processor, c.args["entrant"], "processor"},
		{bench.Peak, c.args["entrant"], "peak memory"}, {bench.Residual, c.args["entrant"], "residual"},
	}
	if names := c.args["entrants"]; names != "" {
		columns = nil
		for name := range strings.SplitSeq(names, ",") {
			columns = append(columns, column{"seconds", name, name})
		}
	}
	for range list {
		rows = append(rows, nil)
	}
	for i, cell := range list {
		for _, key := range rows[0] {
			rows[i+1] = append(rows[i+1], cmp.Or(cell.Case.Get(key), "–"))
		}
	}
	for _, column := range columns {
		texts, told := make([]string, len(list)), false
		for i, cell := range list {
			texts[i] = "–"
			if v, ok := c.value(cell, column.of, column.entrant); ok {
				texts[i], told = shownAs(column.of, v), true
			}
		}
		if !told {
			continue
		}
		rows[0] = append(rows[0], column.title)
		for i, text := range texts {
			rows[i+1] = append(rows[i+1], text)
		}
	}
	return table(rows), nil
}

package bench

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// GoKind is the kind of the Results that ReadGoBench returns.
const GoKind = "go"

const mercerName = "mercer"

// ReadGoBench makes a Result from the output of go test -bench. After its own name, the name of each benchmark
// must consist of key=value pairs. The value of the key nameKey names the implementation (Mercer is "mercer"). The
// other pairs form the case. If nameKey is empty, all timings are Mercer's. Each line is one timing.
func ReadGoBench(from io.Reader, nameKey string, measured time.Time) (*Result, error) {
	r := &Result{Schema: Schema, Kind: GoKind, Started: measured, Machine: Machine{Go: runtime.Version(), Mercer: revision()}}
	in := benchfmt.NewReader(from, "")
	for in.Scan() {
		var line *benchfmt.Result
		switch x := in.Result().(type) {
		case *benchfmt.Result:
			line = x
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("bench: go: line %d: %s", x.Line, x.Msg)
		default:
			continue
		}
		seconds, ok := line.Value("sec/op")
		if !ok {
			continue
		}
		base, parts := line.Name.Parts()
		c, name := Case{{"benchmark", string(base)}}, ""
		if nameKey == "" {
			name = mercerName
		}
		for _, part := range parts {
			text := string(part)
			key, value, ok := strings.Cut(strings.TrimPrefix(text, "/"), "=")
			switch {
			case strings.HasPrefix(text, "-"): // the suffix after - is GOMAXPROCS
				fmt.Sscanf(text, "-%d", &r.Machine.MaxProcs)
			case !ok:
				return nil, fmt.Errorf("bench: go: %s: %q is not of the form key=value", line.Name, key)
			case key == nameKey:
				name = value
			default:
				c = append(c, Param{key, value})
			}
		}
		if name == "" {
			return nil, fmt.Errorf("bench: go: %s: there is no %s= in the name", line.Name, nameKey)
		}
		r.Machine.Processor, r.Machine.System = line.GetConfig("cpu"), line.GetConfig("goos")+"/"+line.GetConfig("goarch")
		r.Machine.CPUs = r.Machine.MaxProcs
		run := r.runOf(c, Implementation{Name: name})
		run.Calls = line.Iters
		run.Timings = append(run.Timings, seconds)
		r.Seconds += seconds * float64(line.Iters)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("bench: go: %w", err)
	}
	if len(r.Cells) == 0 {
		return nil, errors.New("bench: go: the input has no line with a benchmark's result")
	}
	r.imported()
	return r, nil
}

// imported completes a Result whose timings come from another program.
func (r *Result) imported() {
	for i := range r.Cells {
		c := &r.Cells[i]
		for _, run := range c.Runs {
			r.Settings.Repeats = max(r.Settings.Repeats, len(run.Timings))
		}
		c.summarize()
	}
}

// runOf returns the run of an implementation in a case, and adds it if there is none. Names of Mercer begin with
// mercerName. The pointer is valid until the next call.
func (r *Result) runOf(c Case, impl Implementation) *Run {
	if r.Implementation(impl.Name) == nil {
		if impl.Kind = PeerKind; strings.HasPrefix(impl.Name, mercerName) {
			impl.Kind = OwnKind
		}
		r.Implementations = append(r.Implementations, impl)
	}
	if r.cell(c) == nil {
		r.Cells = append(r.Cells, Cell{Case: c})
	}
	cell := r.cell(c)
	if cell.Run(impl.Name) == nil {
		cell.Runs = append(cell.Runs, Run{Implementation: impl.Name})
	}
	return cell.Run(impl.Name)
}

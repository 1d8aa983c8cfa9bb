package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Schema is the version of the JSON form of a Result. It is raised when a field
// changes its meaning or goes; a new field does not raise it.
const Schema = 1

// Result is what a benchmark found.
type Result struct {
	Schema          int              `json:"schema"`
	Kind            string           `json:"kind"` // the benchmark: "blas"
	Started         time.Time        `json:"started"`
	Seconds         float64          `json:"seconds"` // that it took
	Machine         Machine          `json:"machine"`
	Settings        Settings         `json:"settings"`
	Implementations []Implementation `json:"entrants"` // in the order in which they are shown
	Cells           []Cell           `json:"cells"`
	Notes           []string         `json:"notes,omitempty"` // what a reader must know, one line each
}

// Settings are the Runner's, as they were.
type Settings struct {
	Repeats       int     `json:"repeats"`
	SampleSeconds float64 `json:"sample_seconds"`
	BudgetSeconds float64 `json:"budget_seconds"`
	PauseSeconds  float64 `json:"pause_seconds"`
}

// The kinds of implementations.
const (
	OwnKind     = "mercer"  // a device of Mercer
	PeerKind    = "peer"    // another library
	CeilingKind = "ceiling" // what the machine can do
)

// Implementation is who competes.
type Implementation struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Detail    string `json:"detail,omitempty"`    // versions, and what it says of itself
	Path      string `json:"path,omitempty"`      // of the library that was opened
	Device    string `json:"device,omitempty"`    // of Mercer that it runs on
	Processor string `json:"processor,omitempty"` // that the device is
	Threads   int    `json:"threads,omitempty"`   // that it uses; 0: a parameter of the case, or not known
	Method    string `json:"method,omitempty"`    // by which it solves, where that tells implementations apart
	Missing   string `json:"missing,omitempty"`   // why it does not compete at all
}

// Cell is a case and what each implementation did in it.
type Cell struct {
	Case Case  `json:"case"`
	Runs []Run `json:"runs"`
}

// Run is an implementation in a cell.
type Run struct {
	Implementation string `json:"entrant"`
	Reason         string `json:"reason,omitempty"` // why there is no timing; the rest is empty then

	Work    float64   `json:"flops,omitempty"`   // floating-point operations of one run
	Calls   int       `json:"calls,omitempty"`   // runs that each timing is the mean of
	Timings []float64 `json:"timings,omitempty"` // seconds of one run, in the order taken
	Time    Summary   `json:"seconds,omitzero"`  // of Timings
	Rate    Summary   `json:"gflops,omitzero"`   // of Work, GFLOP/s

	Limiter string  `json:"limiter,omitempty"` // the implementation that bounds this one's rate
	Ceiling float64 `json:"ceiling,omitempty"` // its highest rate in this cell, GFLOP/s
	Share   float64 `json:"share,omitempty"`   // Rate.Median / Ceiling

	Check   *Check             `json:"check,omitempty"`   // nil: nothing to compare with
	Metrics map[string]float64 `json:"metrics,omitempty"` // what else the implementation reports: see residualMetric and its like
}

// find returns the first element that is what is looked for, nil when there is none.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// The names of the metrics that pictures and tables know.
const (
	residualMetric  = "residual"      // relative, of the system that every implementation of the case solves, in float64
	rmseMetric      = "rmse"          // of rows that were held out
	bytesMetric     = "bytes"         // the maximum that was taken
	plannedMetric   = "planned_bytes" // what was said beforehand
	itersMetric     = "iterations"
	toleranceMetric = "tolerance" // that was asked for
)

// Check says how far a result is from the reference's.
type Check struct {
	Difference float64 `json:"difference"` // relative
	Limit      float64 `json:"limit"`      // what rounding can explain
	residual   bool    // not a distance from a reference's result, and kept in the metrics only
}

// checked is the Check of a residual; one that could not be computed is infinite.
func checked(limit float64, residual func() (float64, error)) *Check {
	d, err := residual()
	if err != nil {
		d = math.Inf(1)
	}
	return &Check{Difference: d, Limit: limit, residual: true}
}

// Run returns the run of an implementation, nil when there is none.
func (c *Cell) Run(implementation string) *Run {
	return find(c.Runs, func(r *Run) bool { return r.Implementation == implementation })
}

// summarize fills in what follows from the timings.
func (c *Cell) summarize() {
	for i := range c.Runs {
		r := &c.Runs[i]
		if len(r.Timings) == 0 {
			continue
		}
		r.Time = Summarize(r.Timings)
		if r.Work > 0 {
			r.Rate = rate(r.Work/1e9, r.Time)
		}
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if limit := c.Run(r.Limiter); limit != nil && r.Rate.Median > 0 && limit.Rate.Max > 0 {
			r.Ceiling = limit.Rate.Max
			r.Share = r.Rate.Median / r.Ceiling
		}
	}
}

// Implementation returns the implementation of that name, nil when there is none.
func (r *Result) Implementation(name string) *Implementation {
	return find(r.Implementations, func(e *Implementation) bool { return e.Name == name })
}

// cell returns the cell of a case, nil when there is none.
func (r *Result) cell(c Case) *Cell {
	return find(r.Cells, func(o *Cell) bool { return slices.Equal(o.Case, c) })
}

// Write writes r as JSON.
func (r *Result) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Read reads what Write wrote. Fields that it does not know are left out.
func Read(from io.Reader) (*Result, error) {
	r := new(Result)
	if err := json.NewDecoder(from).Decode(r); err != nil {
		return nil, fmt.Errorf("bench: result: not JSON of mercer bench: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("bench: result: schema %d; this version reads schema %d", r.Schema, Schema)
	}
	for _, c := range r.Cells {
		for _, run := range c.Runs {
			if r.Implementation(run.Implementation) == nil {
				return nil, fmt.Errorf("bench: result: %v: no implementation is called %q", c.Case, run.Implementation)
			}
		}
	}
	return r, nil
}

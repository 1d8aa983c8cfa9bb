package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Schema is the version of the JSON form of a Result. It increases when a field is removed or gets
// another meaning, but not when a field is added.
const Schema = 1

// Result holds the measurements of a benchmark.
type Result struct {
	Schema          int              `json:"schema"`
	Kind            string           `json:"kind"` // the name of the Kind, such as "blas"
	Started         time.Time        `json:"started"`
	Seconds         float64          `json:"seconds"` // duration of the benchmark
	Machine         Machine          `json:"machine"`
	Settings        Settings         `json:"settings"`
	Implementations []Implementation `json:"entrants"` // in the order in which they are shown
	Cells           []Cell           `json:"cells"`
	Notes           []string         `json:"notes,omitempty"` // remarks for readers of a report, one line each
}

// Settings are the settings of the Runner.
type Settings struct {
	Repeats       int     `json:"repeats"`
	SampleSeconds float64 `json:"sample_seconds"`
	BudgetSeconds float64 `json:"budget_seconds"`
	PauseSeconds  float64 `json:"pause_seconds"`
}

// These are the kinds of implementations.
const (
	OwnKind     = "mercer"  // a device of Mercer
	PeerKind    = "peer"    // another library
	CeilingKind = "ceiling" // a limit of the machine
)

// Implementation describes a competitor.
type Implementation struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Detail    string `json:"detail,omitempty"`    // versions, and the configuration of a library
	Path      string `json:"path,omitempty"`      // path of the opened library
	Device    string `json:"device,omitempty"`    // Mercer's device
	Processor string `json:"processor,omitempty"` // the processor that the device computes on
	Threads   int    `json:"threads,omitempty"`   // number of threads; 0 if it is a parameter of the case or unknown
	Method    string `json:"method,omitempty"`    // solution method, if a library or device competes with several methods
	Missing   string `json:"missing,omitempty"`   // reason why the implementation competes in no case
}

// Cell holds the runs of all implementations in a case.
type Cell struct {
	Case Case  `json:"case"`
	Runs []Run `json:"runs"`
}

// Run holds the measurement of one implementation in the case of a Cell.
type Run struct {
	Implementation string `json:"entrant"`
	Reason         string `json:"reason,omitempty"` // reason why there is no timing; the fields below are then empty

	Work    float64   `json:"flops,omitempty"`   // floating-point operations of one run
	Calls   int       `json:"calls,omitempty"`   // each timing is the mean time of this number of runs
	Timings []float64 `json:"timings,omitempty"` // mean times of a run in seconds, in the order of measurement
	Time    Summary   `json:"seconds,omitzero"`  // summary of Timings
	Rate    Summary   `json:"gflops,omitzero"`   // summary of Work/Timings, in GFLOP/s

	Limiter string  `json:"limiter,omitempty"` // name of the ceiling that limits the rate of this implementation
	Ceiling float64 `json:"ceiling,omitempty"` // the highest rate of the limiter in this cell, in GFLOP/s
	Share   float64 `json:"share,omitempty"`   // Rate.Median / Ceiling

	Check   *Check             `json:"check,omitempty"`   // nil if there is no reference
	Metrics map[string]float64 `json:"metrics,omitempty"` // other values of the run: see residualMetric and the names after it
}

// find returns the first element e for which match(e) is true, or nil.
func find[T any](list []T, match func(*T) bool) *T {
	for i := range list {
		if match(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Names of the metrics that tables and charts can show.
const (
	residualMetric  = "residual"        // relative residual in float64; the system is the same for all implementations of a case
	rmseMetric      = "rmse"            // root-mean-square error on held-out rows
	errorMetric     = "error"           // fraction of held-out rows that are classified wrongly
	predictMetric   = "predict_seconds" // time of the predictions of held-out rows
	bytesMetric     = "bytes"           // peak memory of the fit, in bytes
	plannedMetric   = "planned_bytes"   // peak memory that the plan states, in bytes
	itersMetric     = "iterations"
	toleranceMetric = "tolerance" // tolerance with which the implementation ran
)

// Check holds the difference between a result and the reference.
type Check struct {
	Difference float64 `json:"difference"` // relative difference
	Limit      float64 `json:"limit"`      // maximum Difference that rounding errors can cause
	residual   bool    // whether Difference is a residual, which Metrics also has, and not a difference from a reference
}

// checked returns the Check of a residual. If residual fails, the difference is infinite.
func checked(limit float64, residual func() (float64, error)) *Check {
	d, err := residual()
	if err != nil {
		d = math.Inf(1)
	}
	return &Check{Difference: d, Limit: limit, residual: true}
}

// Run returns the run of an implementation, or nil if there is none.
func (c *Cell) Run(implementation string) *Run {
	return find(c.Runs, func(r *Run) bool { return r.Implementation == implementation })
}

// summarize computes Time, Rate, Ceiling and Share of each run from the timings.
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

// Implementation returns the implementation with the given name, or nil if there is none.
func (r *Result) Implementation(name string) *Implementation {
	return find(r.Implementations, func(e *Implementation) bool { return e.Name == name })
}

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

// Read reads the format of Write. It ignores unknown fields.
func Read(from io.Reader) (*Result, error) {
	r := new(Result)
	if err := json.NewDecoder(from).Decode(r); err != nil {
		return nil, fmt.Errorf("bench: result: not a JSON file of mercer bench: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("bench: result: its schema is %d, but this version reads schema %d", r.Schema, Schema)
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

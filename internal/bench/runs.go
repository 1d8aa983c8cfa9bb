package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// RunsKind is the kind of the Results that ReadRuns returns.
const RunsKind = "runs"

// Names of metrics of whole programs, in addition to the names in result.go.
const (
	peakMetric      = "peak_bytes"        // peak memory of the process
	processorMetric = "processor_seconds" // processor time, summed over all threads
)

// runParams lists the keys of a program's JSON object that become parameters of the case.
var runParams = []string{
	"program", "learner", "solver", "by", "search", "kernel", "lambda", "precision", "n", "rows", "d", "features", "functions",
}

// runMetrics maps keys of a program's JSON object, or of its member "test" for held-out rows, to names of metrics.
var runMetrics = []struct{ key, metric string }{
	{"residual", residualMetric}, {"iterations", itersMetric}, {"memory_bytes", bytesMetric}, {"peak_bytes", peakMetric}, {"processor_seconds", processorMetric},
	{"rmse", rmseMetric}, {"mae", "mae"}, {"r2", "r2"}, {"accuracy", "accuracy"}, {"log_loss", "log_loss"}, {"score", "score"},
}

// ReadRuns returns a Result from the output of whole programs: a sequence of JSON objects, as written by `mercer
// fit --json`, tune, evaluate and mercer-beam, for example
//
//	{"program": "fit", "n": 10000, "seconds": 1.5}
//
// "program" and "seconds" are required. "seconds" is a number, or an object with the number "total". "entrant"
// names the implementation. Without "entrant" it is Mercer on "device". Objects with equal cases are repetitions
// of one run: each object is a timing, and the Run has the largest value of each metric. The Machine of the Result
// is the machine that runs ReadRuns.
func ReadRuns(from io.Reader, measured time.Time) (*Result, error) {
	r := &Result{Schema: Schema, Kind: RunsKind, Started: measured, Machine: readMachine()}
	in := json.NewDecoder(from)
	for count := 1; ; count++ {
		var object map[string]any
		if err := in.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("bench: runs: object %d: %w", count, err)
		}
		total, err := runSeconds(object["seconds"])
		if err != nil {
			return nil, fmt.Errorf("bench: runs: object %d: %w", count, err)
		}
		if text, _ := object["program"].(string); text == "" {
			return nil, fmt.Errorf("bench: runs: object %d: the field \"program\", the name of the program that printed the object, is missing", count)
		}
		c, impl := runCase(object), runImplementation(object)
		run := r.runOf(c, impl)
		run.Calls = 1
		run.Timings = append(run.Timings, total)
		r.Seconds += total
		test, _ := object["test"].(map[string]any)
		for _, m := range runMetrics {
			for _, fields := range []map[string]any{object, test} {
				if v, ok := fields[m.key].(float64); ok {
					run.keepMetric(m.metric, v)
				}
			}
		}
	}
	if len(r.Cells) == 0 {
		return nil, errors.New("bench: runs: the input has no object")
	}
	r.imported()
	return r, nil
}

// runSeconds returns the number "seconds", or "total" if "seconds" is an object.
func runSeconds(value any) (float64, error) {
	if object, ok := value.(map[string]any); ok {
		value = object["total"]
	}
	if total, ok := value.(float64); ok && total > 0 {
		return total, nil
	}
	return 0, errors.New(`"seconds" must be a number > 0, or an object with such a number as "total"`)
}

// runCase returns the parameters of a program's JSON object and, as "functions", the number of centers in its facts.
func runCase(object map[string]any) Case {
	var c Case
	for _, name := range runParams {
		switch v := object[name].(type) {
		case string:
			if v != "" {
				c = append(c, Param{name, v})
			}
		case float64:
			c = append(c, Param{name, strconv.FormatFloat(v, 'f', -1, 64)})
		}
	}
	if facts, ok := object["facts"].(map[string]any); ok {
		if v, ok := facts["centers"].(float64); ok {
			c = append(c, Param{"functions", strconv.FormatFloat(v, 'f', -1, 64)})
		}
	}
	return c
}

func runImplementation(object map[string]any) Implementation {
	device, _ := object["device"].(string)
	detail, _ := object["detail"].(string)
	name, _ := object["entrant"].(string)
	return Implementation{Name: cmp.Or(name, strings.TrimSpace(mercerName+" "+device)), Device: device, Detail: detail}
}

// keepMetric sets a metric to v if v exceeds its present value.
func (r *Run) keepMetric(name string, v float64) {
	if r.Metrics == nil {
		r.Metrics = map[string]float64{}
	}
	if previous, ok := r.Metrics[name]; !ok || v > previous {
		r.Metrics[name] = v
	}
}

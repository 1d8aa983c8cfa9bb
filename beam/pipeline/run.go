package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// Ran describes a successful run of Fit.
type Ran struct {
	Report
	Attempts int              // number of attempts
	counters map[string]int64 // sums of the runner's counters by name; empty if the runner does not report them
}

// Run fits p on the runner registered with Beam under the given name, waits, and reads the report
// written next to the model.
//
// If a worker is lost, Flink, Spark and Dataflow retry its bundles; Prism (Beam 2.77) ends the job, and Run
// restarts it, up to attempts runs in total. Neither changes the bits of the model. An error in the data is
// returned as one line, without the text that the runner adds. Prism sometimes omits the reason of an error; Run
// then makes up to ten more attempts to obtain it.
func Run(ctx context.Context, runner string, p Params, attempts int) (*Ran, error) {
	hidden := 10
	for attempt := 1; ; attempt++ {
		pipe, s := beam.NewPipelineWithRoot()
		if err := Fit(s, p); err != nil {
			return nil, err
		}
		res, err := execute(ctx, runner, pipe, p.Workers)
		if err == nil {
			result := &Ran{Attempts: attempt, counters: map[string]int64{}}
			if res != nil {
				m := res.Metrics()
				for _, c := range m.AllMetrics().Counters() {
					result.counters[c.Name()] += c.Result()
				}
			}
			result.Report, err = readReport(ctx, p.Model+".json")
			return result, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err, isUserError := extractUserError(err)
		if isUserError {
			return nil, err
		}
		if hidden > 0 && afterFailure(err) {
			hidden--
			attempt--
			continue
		}
		if attempt >= attempts || !strings.HasPrefix(strings.ToLower(runner), "prism") && !lostWorker(err) {
			return nil, fmt.Errorf("pipeline: %s: %w", runner, err)
		}
	}
}

// lostWorker reports whether a job ended because its worker was lost. Runners say so only in the text of the error.
func lostWorker(err error) bool {
	for _, words := range []string{"SDK worker disconnected", "worker stopped before", "worker disconnected", "panic in stage.Execute"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// afterFailure reports whether err is only the consequence of a failure in the previous step.
func afterFailure(err error) bool {
	return strings.Contains(err.Error(), "want one value for Singleton side input")
}

func readReport(ctx context.Context, path string) (r Report, err error) {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return r, fmt.Errorf("pipeline: %s: %w", path, err)
	}
	defer fs.Close()
	f, err := fs.OpenRead(ctx, path)
	if err != nil {
		return r, fmt.Errorf("pipeline: %s: %w", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return r, fmt.Errorf("pipeline: %s: %w", path, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("pipeline: %s: %w", path, err)
	}
	return r, nil
}

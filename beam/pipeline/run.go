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

// Ran is a run of Fit that has ended well.
type Ran struct {
	Report   Report
	Attempts int              // runs that it took
	Counters map[string]int64 // what the runner counted; empty where it does not tell
}

// Run fits p on a runner that beam knows by that name, waits, and reads the report
// that was written beside the model.
//
// Flink, Spark and Dataflow try the bundles of a lost worker again on another.
// Prism, as of Beam 2.77, has one worker and ends the job instead, with one of several
// errors of its own: then Run begins the job anew, up to attempts times in all. The model
// has the same bits in either case. An error of the data ends the first attempt that
// tells it, in one line, without what the runner says around it. Where Prism tells of
// the step after the one that failed, up to ten more attempts are made for the reason.
func Run(ctx context.Context, runner string, p Params, attempts int) (*Ran, error) {
	hidden := 10
	for attempt := 1; ; attempt++ {
		pipe, s := beam.NewPipelineWithRoot()
		if err := Fit(s, p); err != nil {
			return nil, err
		}
		res, err := beam.Run(ctx, runner, pipe)
		if err == nil {
			ran := &Ran{Attempts: attempt, Counters: map[string]int64{}}
			if res != nil {
				m := res.Metrics()
				for _, c := range m.AllMetrics().Counters() {
					ran.Counters[c.Name()] += c.Result()
				}
			}
			ran.Report, err = readReport(ctx, p.Model+".json")
			return ran, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err, ours := extractUserError(err)
		if ours {
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

// lostWorker reports whether a job ended because its worker did; runners say so in
// words only.
func lostWorker(err error) bool {
	for _, words := range []string{"SDK worker disconnected", "worker stopped before", "worker disconnected", "panic in stage.Execute"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// afterFailure reports whether a step failed for want of what the one before it had to
// hand on, which alone can say why it did not.
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

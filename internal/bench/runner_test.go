package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is an entry whose runs take the given times, one after the other; further runs take the last time.
type script struct {
	name  string
	times []time.Duration
}

func (s script) entry(log *[]string) Entry {
	i := 0
	return Entry{
		Implementation: s.name,
		Work:           1e9,
		Run: func() error {
			time.Sleep(s.times[min(i, len(s.times)-1)])
			i++
			*log = append(*log, s.name)
			return nil
		},
	}
}

func durations(d ...time.Duration) []time.Duration { return d }

const ms = time.Millisecond

func measureOne(t *testing.T, r Runner, scripts ...script) (Cell, []string) {
	t.Helper()
	var log []string
	task := Task{Case: Case{{"n", "1"}}, Start: func(context.Context) ([]Entry, error) {
		var list []Entry
		for _, s := range scripts {
			list = append(list, s.entry(&log))
		}
		return list, nil
	}}
	cells, _ := measureFake(t, r, task)
	return cells[0], log
}

// measureFake measures tasks with a fake clock, which advances only during runs and pauses.
func measureFake(t *testing.T, r Runner, tasks ...Task) (cells []Cell, elapsed time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var err error
		if cells, err = r.Measure(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		elapsed = time.Since(start)
	})
	return cells, elapsed
}

// TestInterleaving checks that every round runs each entry once, starting one entry later than the previous round.
func TestInterleaving(t *testing.T) {
	_, log := measureOne(t, Runner{Repeats: 3}, script{"a", durations(300 * ms)}, script{"b", durations(300 * ms)}, script{"c", durations(300 * ms)})
	// No entry needs a run to warm up, because its first run is long enough.
	want := "a b c abc bca cab"
	if got := strings.Join(log, ""); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTimings checks that the slow first run is not counted, and that the summaries follow from the timings.
func TestTimings(t *testing.T) {
	r := Runner{Repeats: 3, Sample: 10 * ms}
	cell, _ := measureOne(t, r, script{"a", append(durations(20*ms, 20*ms), 4*ms)})
	run := cell.Run("a")
	// Two runs of 20 ms warm the entry up. Both exceed Sample, so that a timing needs only one run.
	if run.Calls != 1 || len(run.Timings) != 3 {
		t.Errorf("%d timings of %d runs", len(run.Timings), run.Calls)
	}
	cell, _ = measureOne(t, r, script{"a", append(durations(20*ms), 4*ms)})
	run = cell.Run("a")
	// The warm-up ends after 20 + 5·4 ms, twice the time of the first run. Three runs of 4 ms fill 10 ms.
	if run.Calls != 3 {
		t.Errorf("a timing is of %d runs, want 3 of 4 ms to fill 10 ms", run.Calls)
	}
	if d := cmp.Diff(Summary{Median: 0.004, Min: 0.004, Max: 0.004}, run.Time); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Summary{Median: 250, Min: 250, Max: 250}, run.Rate); d != "" {
		t.Error(d)
	}
	// Each timing has two runs. The means are 5, 7 and 6 ms.
	cell, _ = measureOne(t, r, script{"a", durations(5*ms, 5*ms, 5*ms, 5*ms, 7*ms, 7*ms, 4*ms, 8*ms)})
	run = cell.Run("a")
	if d := cmp.Diff([]float64{0.005, 0.007, 0.006}, run.Timings); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Summary{Median: 0.006, Min: 0.005, Max: 0.007}, run.Time); d != "" {
		t.Error(d)
	}
}

// TestBudget checks that a slow entry has fewer timings, and at least one.
func TestBudget(t *testing.T) {
	cell, log := measureOne(t, Runner{Repeats: 5, Budget: 400 * ms},
		script{"fast", durations(10 * ms)}, script{"slow", durations(150 * ms)}, script{"slower", durations(500 * ms)})
	var got []int
	for _, r := range cell.Runs {
		got = append(got, len(r.Timings))
	}
	if d := cmp.Diff([]int{5, 2, 1}, got); d != "" {
		t.Error(d)
	}
	if n := strings.Count(strings.Join(log, " "), "slower"); n != 1 {
		t.Errorf("the slowest ran %d times", n)
	}
}

// TestPauseLiesBeforeEachTiming checks that each timing follows a pause and, for short runs, a warm-up run.
func TestPauseLiesBeforeEachTiming(t *testing.T) {
	var log []string
	entered, exited := 0, 0
	e := script{"a", durations(300 * ms)}.entry(&log)
	e.Enter = func() func() { entered++; return func() { exited++ } }
	task := Task{Start: func(context.Context) ([]Entry, error) { return []Entry{e}, nil }}
	r := Runner{Repeats: 4, Pause: 7 * ms}
	_, elapsed := measureFake(t, r, task)
	if paused := elapsed - 5*300*ms; paused != 28*ms || len(log) != 5 { // long runs need no warm-up
		t.Errorf("paused for %v, %d runs", paused, len(log))
	}
	if entered != 5 || exited != 5 {
		t.Errorf("entered %d times, left %d times", entered, exited)
	}
	log = nil
	e = script{"a", durations(10 * ms)}.entry(&log)
	measureFake(t, r, task)
	if len(log) != 2+2*4 {
		t.Errorf("%d runs", len(log))
	}
}

// TestShareOfTheCeiling checks that the ceiling is the highest rate of all timings of the entry that Limiter names.
func TestShareOfTheCeiling(t *testing.T) {
	var log []string
	a := script{"a", durations(8 * ms)}.entry(&log)
	a.Limiter = "limit"
	limit := script{"limit", durations(6*ms, 6*ms, 4*ms, 5*ms, 6*ms)}.entry(&log)
	task := Task{Start: func(context.Context) ([]Entry, error) { return []Entry{a, limit}, nil }}
	cells, _ := measureFake(t, Runner{Repeats: 3}, task)
	if run := cells[0].Run("a"); run.Ceiling != 250 || run.Share != 0.5 {
		t.Errorf("share %v of %v, want half of 250", run.Share, run.Ceiling)
	}
}

func TestFailures(t *testing.T) {
	entryErr := errors.New("broken")
	closeCalls := 0
	measure := func(ctx context.Context, e Entry) error {
		e.Implementation, e.Close = "someone", func() { closeCalls++ }
		if e.Run == nil {
			e.Run = func() error { return nil }
		}
		task := Task{Case: Case{{"n", "7"}}, Start: func(context.Context) ([]Entry, error) { return []Entry{e}, nil }}
		_, err := Runner{}.Measure(ctx, []Task{task})
		return err
	}
	canceledCtx, stop := context.WithCancel(t.Context())
	stop()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		e       Entry
		want    string
		wantErr error
	}{
		{"run", t.Context(), Entry{Run: func() error { return entryErr }}, "bench: n=7: someone: broken", entryErr},
		{"before", t.Context(), Entry{Before: func() error { return entryErr }}, "bench: n=7: someone: broken", entryErr},
		{"stopped", canceledCtx, Entry{}, "", context.Canceled},
		{"wrong", t.Context(), Entry{Check: func() *Check { return &Check{Difference: 0.5, Limit: 0.1} }},
			"bench: n=7: someone: the result is wrong: its relative difference from the reference is 0.5, but rounding error is at most 0.1", nil},
		{"not a number", t.Context(), Entry{Check: func() *Check { return &Check{Difference: math.NaN(), Limit: 0.1} }}, "the result is wrong", nil},
	} {
		closeCalls = 0
		err := measure(test.ctx, test.e)
		if err == nil || !strings.Contains(err.Error(), test.want) || test.wantErr != nil && !errors.Is(err, test.wantErr) {
			t.Errorf("%s: got %v", test.name, err)
		}
		if closeCalls != 1 {
			t.Errorf("%s: closed %d times", test.name, closeCalls)
		}
	}
	if err := measure(t.Context(), Entry{Check: func() *Check { return &Check{Difference: 0.1, Limit: 0.1} }}); err != nil {
		t.Error(err)
	}
}

// TestProgress checks that the fraction grows from 0 to 1 with the weights of the tasks.
func TestProgress(t *testing.T) {
	var log []string
	var tasks []Task
	for i, weight := range []float64{1, 3} {
		tasks = append(tasks, Task{Case: Case{{"n", fmt.Sprint(i)}}, Weight: weight, Start: func(context.Context) ([]Entry, error) {
			return []Entry{script{"a", durations(ms)}.entry(&log), {Implementation: "b", Reason: "is away"}}, nil
		}})
	}
	var reported []Progress
	r := Runner{Repeats: 2, Progress: func(p Progress) { reported = append(reported, p) }}
	cells, _ := measureFake(t, r, tasks...)
	last := -1.
	for _, p := range reported {
		if p.Fraction < last || p.Case.Get("n") == "1" && p.Fraction < 0.25 {
			t.Errorf("%v after %v", p, last)
		}
		last = p.Fraction
	}
	if last != 1 {
		t.Errorf("ends at %v", last)
	}
	if run := cells[0].Run("b"); run.Reason != "is away" || run.Timed() {
		t.Errorf("got %+v", run)
	}
}

package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"
)

// A Task is a case to measure.
type Task struct {
	Case   Case
	Weight float64 // work of the task, in a unit that all tasks share; determines the progress
	// Start creates the entries. Runner calls it immediately before it measures the case, because the
	// entries allocate the memory of the case.
	Start func(context.Context) ([]Entry, error)
}

// An Entry is an implementation in a case.
type Entry struct {
	Implementation string
	Reason         string                    // why the implementation is not measured; the other fields are then ignored
	Limiter        string                    // name of the entry whose rate is the ceiling of this entry
	Work           float64                   // floating-point operations of one run; 0 if only the time matters
	Enter          func() func()             // called before a series of runs, not timed; the returned function is called after the series; may be nil
	Before         func() error              // called before every run, not timed; may be nil
	Run            func() error              // one run, which is timed
	Took           func() time.Duration      // if not nil, returns the time of the last run, which replaces the time that the runner measures
	Check          func() *Check             // called after the first run; compares the result with the reference; nil, or returns nil, for the reference itself
	Optional       bool                      // whether a failure removes only this entry from the case, with the reason
	Metrics        func() map[string]float64 // called after the last run; returns other values of the run; may be nil
	Close          func()                    // called at the end, even after a failure; may be nil
}

// Progress describes the progress of a Runner.
type Progress struct {
	Case     Case
	Fraction float64 // fraction of the total work, 0…1
}

// Runner measures tasks. The zero value measures once, without pauses.
type Runner struct {
	Repeats int           // number of timings of each entry in a case; 0 means 1
	Sample  time.Duration // minimum time of a timing; a timing has several runs if one run is shorter
	// Budget limits the total time that an entry's timings in a case take. A slow entry gets fewer
	// timings, but at least one. 0 means no limit.
	Budget time.Duration
	// Pause is the time before each timing. In this time the threads of the previous entry become idle.
	Pause    time.Duration
	Progress func(Progress) // receives the progress; may be nil
}

// A run shorter than warm is repeated before its timings. The repetitions bring processor, caches
// and threads to full speed after the pause. For example, a fit of 75 ms takes 110 ms directly
// after the pause (Zen 4, two processors, 2026-11-27). The pause has little effect on longer runs.
const warm = 250 * time.Millisecond

// Run measures the tasks. The Result also records the implementations, the machine, the time, the
// settings, and the load by other processes.
func (r Runner) Run(ctx context.Context, kind string, implementations []Implementation, tasks []Task) (*Result, error) {
	result := &Result{
		Schema:          Schema,
		Kind:            kind,
		Started:         time.Now(),
		Machine:         readMachine(),
		Settings:        Settings{max(r.Repeats, 1), r.Sample.Seconds(), r.Budget.Seconds(), r.Pause.Seconds()},
		Implementations: implementations,
	}
	before, known := readUsage()
	cells, err := r.Measure(ctx, tasks)
	if err != nil {
		return nil, err
	}
	result.Cells, result.Seconds = cells, time.Since(result.Started).Seconds()
	if after, ok := readUsage(); known && ok {
		result.Machine.Noise = noise(before, after)
	}
	return result, nil
}

// Measure measures the tasks one after the other. It returns an error if an entry that is not
// Optional fails, if a difference exceeds the limit of its check, or if ctx is done. It checks ctx
// between runs.
func (r Runner) Measure(ctx context.Context, tasks []Task) ([]Cell, error) {
	var all, done float64
	for _, t := range tasks {
		all += t.Weight
	}
	var cells []Cell
	for _, t := range tasks {
		tell := func(part float64) {
			if r.Progress != nil {
				r.Progress(Progress{Case: t.Case, Fraction: (done + part*t.Weight) / max(all, math.SmallestNonzeroFloat64)})
			}
		}
		tell(0)
		cell, err := r.measure(ctx, t, tell)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
		done += t.Weight
	}
	return cells, nil
}

type running struct {
	entry   *Entry
	run     *Run
	first   time.Duration // time of the first run
	repeats int           // planned number of timings
}

// failed handles the error err of an entry. It returns nil if the other entries can continue.
func (who *running) failed(ctx context.Context, c Case, err error) error {
	if who.entry.Optional && ctx.Err() == nil {
		*who.run = Run{Implementation: who.run.Implementation, Reason: err.Error()}
		who.repeats = 0
		return nil
	}
	return fmt.Errorf("bench: %v: %s: %w", c, who.entry.Implementation, err)
}

func (r Runner) measure(ctx context.Context, t Task, tell func(float64)) (Cell, error) {
	runtime.GC() // free the memory of the previous case
	entries, err := t.Start(ctx)
	if err != nil {
		return Cell{}, err
	}
	defer func() {
		for _, e := range entries {
			if e.Close != nil {
				e.Close()
			}
		}
	}()
	cell := Cell{Case: t.Case, Runs: make([]Run, len(entries))}
	var all []*running
	for i := range entries {
		e, run := &entries[i], &cell.Runs[i]
		run.Implementation, run.Reason = e.Implementation, e.Reason
		if e.Enter == nil {
			e.Enter = func() func() { return func() {} }
		}
		if e.Reason == "" {
			run.Work, run.Limiter = e.Work, e.Limiter
			all = append(all, &running{entry: e, run: run})
		}
	}
	rounds := 0
	for i, who := range all {
		if err := r.begin(ctx, who); err != nil {
			if err := who.failed(ctx, t.Case, err); err != nil {
				return Cell{}, err
			}
		}
		rounds = max(rounds, who.repeats)
		tell(0.3 * float64(i+1) / float64(len(all)))
	}
	for round := range rounds {
		for i := range all {
			who := all[(i+round)%len(all)]
			if len(who.run.Timings) >= who.repeats {
				continue
			}
			if err := r.time(ctx, who); err != nil {
				if err := who.failed(ctx, t.Case, err); err != nil {
					return Cell{}, err
				}
			}
		}
		tell(0.3 + 0.7*float64(round+1)/float64(rounds))
	}
	for _, who := range all {
		if who.run.Reason == "" && who.entry.Metrics != nil {
			who.run.Metrics = who.entry.Metrics()
		}
	}
	cell.summarize()
	return cell, nil
}

// begin makes the first run, checks its result, and determines the number of timings and of runs
// per timing. If the first run takes the whole budget, its time is the only timing: warming up has
// little effect on such a long run.
func (r Runner) begin(ctx context.Context, who *running) error {
	defer who.entry.Enter()()
	first, err := r.once(ctx, who)
	if err != nil {
		return err
	}
	if who.entry.Check != nil {
		c := who.entry.Check()
		if c != nil && !(c.Difference <= c.Limit) { // a NaN is also wrong
			return fmt.Errorf("the result is wrong: its relative difference from the reference is %.2g, but rounding error is at most %.2g", c.Difference, c.Limit)
		}
		if c != nil && !c.residual {
			who.run.Check = c
		}
	}
	who.first, who.run.Calls, who.repeats = first, 1, max(r.Repeats, 1)
	if r.Budget > 0 && first >= r.Budget {
		who.run.Timings, who.repeats = []float64{first.Seconds()}, 1
		return nil
	}
	// Repeat the run until processor and threads are warm. The time of the fastest run is the estimate
	// for one run.
	best, spent := first, first
	for spent < max(r.Sample, min(2*first, warm)) {
		d, err := r.once(ctx, who)
		if err != nil {
			return err
		}
		d = max(d, 1)
		best, spent = min(best, d), spent+d
	}
	best = max(best, 1)
	who.run.Calls = int(max((r.Sample+best-1)/best, 1))
	if r.Budget > 0 {
		timing := best * time.Duration(who.run.Calls)
		who.repeats = int(min(max(r.Budget/timing, 1), time.Duration(who.repeats)))
	}
	return nil
}

func (r Runner) time(ctx context.Context, who *running) error {
	if r.Pause > 0 {
		time.Sleep(r.Pause)
	}
	defer who.entry.Enter()()
	if r.Pause > 0 && who.first < warm {
		if _, err := r.once(ctx, who); err != nil {
			return err
		}
	}
	var total time.Duration
	for range who.run.Calls {
		d, err := r.once(ctx, who)
		if err != nil {
			return err
		}
		total += d
	}
	who.run.Timings = append(who.run.Timings, total.Seconds()/float64(who.run.Calls))
	return nil
}

func (r Runner) once(ctx context.Context, who *running) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if who.entry.Before != nil {
		if err := who.entry.Before(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := who.entry.Run()
	took := time.Since(start)
	if err != nil {
		return took, err
	}
	if who.entry.Took != nil {
		took = who.entry.Took()
	}
	return took, nil
}

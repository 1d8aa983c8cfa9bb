package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"
)

// A Task is a case that is to be measured.
type Task struct {
	Case   Case
	Weight float64 // its part of all the work, for progress; any unit
	// Start makes the entries; they hold the case's memory, so it is called
	// when the case's turn has come.
	Start func(context.Context) ([]Entry, error)
}

// An Entry is an implementation in a case.
type Entry struct {
	Implementation string
	Reason         string                    // why it does not take part; the rest is not used then
	Limiter        string                    // the entry of the same case whose rate bounds this one's
	Work           float64                   // floating-point operations of one run; 0: only time counts
	Enter          func() func()             // untimed, around a row of runs; nil: nothing. Returns what takes it back
	Before         func() error              // untimed, before every run; nil: nothing
	Run            func() error              // timed
	Took           func() time.Duration      // after every run: what it took by the implementation's own clock, which counts then; nil: the runner's
	Check          func() *Check             // after the first run: its result against the reference's; nil, or returning nil: it is the reference
	Optional       bool                      // a failure leaves this implementation out of the case, with the reason, and the others go on
	Metrics        func() map[string]float64 // after the last run; nil: none
	Close          func()                    // after everything, measured or failed; nil: nothing
}

// Progress is told while a Runner works.
type Progress struct {
	Case     Case
	Fraction float64 // of all the work, 0…1
}

// Runner measures tasks. The zero value measures once, without pauses.
type Runner struct {
	Repeats int           // timings of each entry in a case; 0 is 1
	Sample  time.Duration // least length of a timing: short runs are repeated to fill it
	// Budget is what the timings of an entry in a case may take in all: a slow
	// one gets fewer of them, but one at least. 0 is no limit.
	Budget time.Duration
	// Pause lies before each timing, for the threads of the entry before to
	// come to rest.
	Pause    time.Duration
	Progress func(Progress) // may be nil
}

// warm is how long a run may take for a further one to be made before its
// timings, to bring processor and threads back from the pause. A longer run
// does not notice.
const warm = 50 * time.Millisecond

// Run measures the tasks and makes the Result of a kind: who, where, when, how,
// and what else the machine did meanwhile.
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

// Measure measures the tasks one after the other. It ends with an error when an
// entry fails, when a check exceeds its limit, or when ctx is done, which is
// looked at between runs.
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

// running is an entry while its case is measured.
type running struct {
	entry   *Entry
	run     *Run
	first   time.Duration // of the first run
	repeats int           // timings that it is to have
}

// failed settles what an entry's failure means: nil when the others go on.
func (who *running) failed(ctx context.Context, c Case, err error) error {
	if who.entry.Optional && ctx.Err() == nil {
		*who.run = Run{Implementation: who.run.Implementation, Reason: err.Error()}
		who.repeats = 0
		return nil
	}
	return fmt.Errorf("bench: %v: %s: %w", c, who.entry.Implementation, err)
}

// measure measures one case.
func (r Runner) measure(ctx context.Context, t Task, tell func(float64)) (Cell, error) {
	runtime.GC() // what the last case held
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

// begin makes the first run, compares its result, and settles how many timings
// of how many runs the entry will have. A first run that takes the budget and
// more is not repeated but counts as the timing: warming up would gain nothing
// against its length.
func (r Runner) begin(ctx context.Context, who *running) error {
	defer who.entry.Enter()()
	first, err := r.once(ctx, who)
	if err != nil {
		return err
	}
	if who.entry.Check != nil {
		c := who.entry.Check()
		if c != nil && !(c.Difference <= c.Limit) { // a NaN is none
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
	// Run on until warm; the fastest run is what a run takes.
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

// time takes one timing.
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

// once makes one run and returns what it took.
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

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
	Check          func() *Check             // compares the result of the first run with the reference; nil, or returns nil, for the reference itself
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
	// Budget limits the total time of an entry's timings in a case. There is at least one timing. 0 means no limit.
	Budget time.Duration
	// Pause is the time before each timing. In this time the threads of the previous entry become idle.
	Pause    time.Duration
	Progress func(Progress) // receives the progress; may be nil
}

// If the first run of an entry is shorter than warm, warm-up runs precede the timings: a fit of 75 ms takes 110 ms
// directly after the pause (Zen 4, two processors, 2026-11-27).
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
	before, beforeOK := readUsage()
	cells, err := r.Measure(ctx, tasks)
	if err != nil {
		return nil, err
	}
	result.Cells, result.Seconds = cells, time.Since(result.Started).Seconds()
	if after, ok := readUsage(); beforeOK && ok {
		result.Machine.Noise = noise(before, after)
	}
	return result, nil
}

// Measure measures the tasks one after the other. It returns an error if an entry that is not Optional fails, if a
// difference exceeds the limit of its check, or if ctx is done.
func (r Runner) Measure(ctx context.Context, tasks []Task) ([]Cell, error) {
	var totalWeight, finished float64
	for _, t := range tasks {
		totalWeight += t.Weight
	}
	var cells []Cell
	for _, t := range tasks {
		report := func(fraction float64) {
			if r.Progress != nil {
				r.Progress(Progress{Case: t.Case, Fraction: (finished + fraction*t.Weight) / max(totalWeight, math.SmallestNonzeroFloat64)})
			}
		}
		report(0)
		cell, err := r.measure(ctx, t, report)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
		finished += t.Weight
	}
	return cells, nil
}

type measurement struct {
	entry   *Entry
	run     *Run
	first   time.Duration // time of the first run
	repeats int           // planned number of timings
}

// handleError handles the error err of an entry. It returns nil if the other entries can continue.
func (m *measurement) handleError(ctx context.Context, c Case, err error) error {
	if m.entry.Optional && ctx.Err() == nil {
		*m.run = Run{Implementation: m.run.Implementation, Reason: err.Error()}
		m.repeats = 0
		return nil
	}
	return fmt.Errorf("bench: %v: %s: %w", c, m.entry.Implementation, err)
}

func (r Runner) measure(ctx context.Context, t Task, report func(float64)) (Cell, error) {
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
	var active []*measurement
	for i := range entries {
		e, run := &entries[i], &cell.Runs[i]
		run.Implementation, run.Reason = e.Implementation, e.Reason
		if e.Enter == nil {
			e.Enter = func() func() { return func() {} }
		}
		if e.Reason == "" {
			run.Work, run.Limiter = e.Work, e.Limiter
			active = append(active, &measurement{entry: e, run: run})
		}
	}
	rounds := 0
	for i, m := range active {
		if err := r.begin(ctx, m); err != nil {
			if err := m.handleError(ctx, t.Case, err); err != nil {
				return Cell{}, err
			}
		}
		rounds = max(rounds, m.repeats)
		report(0.3 * float64(i+1) / float64(len(active)))
	}
	for round := range rounds {
		for i := range active {
			m := active[(i+round)%len(active)]
			if len(m.run.Timings) >= m.repeats {
				continue
			}
			if err := r.addTiming(ctx, m); err != nil {
				if err := m.handleError(ctx, t.Case, err); err != nil {
					return Cell{}, err
				}
			}
		}
		report(0.3 + 0.7*float64(round+1)/float64(rounds))
	}
	for _, m := range active {
		if m.run.Reason == "" && m.entry.Metrics != nil {
			m.run.Metrics = m.entry.Metrics()
		}
	}
	cell.summarize()
	return cell, nil
}

// begin makes the first run, checks its result, and determines the number of timings and of runs per timing. If
// the first run takes the whole budget, its time is the only timing.
func (r Runner) begin(ctx context.Context, m *measurement) error {
	defer m.entry.Enter()()
	first, err := r.runOnce(ctx, m)
	if err != nil {
		return err
	}
	if m.entry.Check != nil {
		c := m.entry.Check()
		if c != nil && !(c.Difference <= c.Limit) { // a NaN is also wrong
			return fmt.Errorf("the result is wrong: its relative difference from the reference is %.2g, but rounding error is at most %.2g", c.Difference, c.Limit)
		}
		if c != nil && !c.residual {
			m.run.Check = c
		}
	}
	m.first, m.run.Calls, m.repeats = first, 1, max(r.Repeats, 1)
	if r.Budget > 0 && first >= r.Budget {
		m.run.Timings, m.repeats = []float64{first.Seconds()}, 1
		return nil
	}
	// The time of the fastest run is the estimate for one run.
	fastest, spent := first, first
	for spent < max(r.Sample, min(2*first, warm)) {
		d, err := r.runOnce(ctx, m)
		if err != nil {
			return err
		}
		d = max(d, 1)
		fastest, spent = min(fastest, d), spent+d
	}
	fastest = max(fastest, 1)
	m.run.Calls = int(max((r.Sample+fastest-1)/fastest, 1))
	if r.Budget > 0 {
		timing := fastest * time.Duration(m.run.Calls)
		m.repeats = int(min(max(r.Budget/timing, 1), time.Duration(m.repeats)))
	}
	return nil
}

func (r Runner) addTiming(ctx context.Context, m *measurement) error {
	if r.Pause > 0 {
		time.Sleep(r.Pause)
	}
	defer m.entry.Enter()()
	if r.Pause > 0 && m.first < warm {
		if _, err := r.runOnce(ctx, m); err != nil {
			return err
		}
	}
	var total time.Duration
	for range m.run.Calls {
		d, err := r.runOnce(ctx, m)
		if err != nil {
			return err
		}
		total += d
	}
	m.run.Timings = append(m.run.Timings, total.Seconds()/float64(m.run.Calls))
	return nil
}

func (r Runner) runOnce(ctx context.Context, m *measurement) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if m.entry.Before != nil {
		if err := m.entry.Before(); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := m.entry.Run()
	duration := time.Since(start)
	if err != nil {
		return duration, err
	}
	if m.entry.Took != nil {
		duration = m.entry.Took()
	}
	return duration, nil
}

package validate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/planned"
	"github.com/mercer-go/mercer/internal/pool"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Runner fits models to divisions of Data, concurrently on all its devices. The results do not
// depend on the number of devices if all devices are of the same kind.
type Runner struct {
	Data    Data
	Devices []backend.Device // at least one
	// Options are the options of every fit, with these exceptions: Weights and Keys are taken from
	// Data, Progress receives the progress of all fits together, and Memory, if not 0, limits the
	// total memory of the parts and fits on all devices.
	learners.Options
}

func (r Runner) check() error {
	switch {
	case r.Data == nil:
		return errors.New("validate: no data were given")
	case len(r.Devices) == 0:
		return errors.New("validate: no device was given")
	}
	return nil
}

// FitError is the error of one fit of a Runner.
type FitError struct {
	Fit int // number of the fit, counted from 0
	Err error
}

func (e *FitError) Error() string { return fmt.Sprint(e.Err) }
func (e *FitError) Unwrap() error { return e.Err }

// Fit is one fit of a Runner: its number, from 0, its division of the data, its device and its options.
type Fit struct {
	Number int
	Part   *Part
	Device backend.Device
	learners.Options
}

// Each calls use once for each k from 0 to len(divisions)−1, with the division of the data whose index is
// divisions[k]. Calls for the same division share its Part. A k whose division has no test samples is skipped. The
// error is the *FitError of the smallest k that failed.
func (r Runner) Each(ctx context.Context, splits Splits, divisions []int, use func(ctx context.Context, f Fit) error) error {
	if err := r.check(); err != nil {
		return err
	}
	parts := map[int]func() (*Part, error){}
	users := map[int]int{}
	for _, i := range divisions {
		users[i]++
		parts[i] = sync.OnceValues(func() (*Part, error) {
			train, test := splits(i)
			if len(test) == 0 {
				return nil, nil
			}
			return r.Data.Split(train, test)
		})
	}
	report := func(int) func(float64) { return func(float64) {} }
	if r.Options.Progress != nil {
		report = run.Parts(len(divisions), func(fraction float64) { r.Options.Progress(solvers.Progress{Stage: "models", Fraction: fraction}) })
	}
	concurrent := int64(min(len(r.Devices), len(divisions)))
	var mu sync.Mutex
	return pool.Each(r.Devices, len(divisions), func(dev backend.Device, k int) error {
		mu.Lock()
		loadPart := parts[divisions[k]]
		mu.Unlock()
		p, err := loadPart()
		progress := report(k)
		if err == nil && p != nil {
			o := r.Options
			o.Weights, o.Keys = p.Train.Weights, p.Train.Keys
			if o.Progress != nil {
				o.Progress = func(q solvers.Progress) { progress(q.Fraction) }
			}
			if o.Memory != 0 {
				o.Memory = max(o.Memory/concurrent-p.bytes(), 1)
			}
			fitCtx := planned.With(ctx, func(bytes int64) { planned.Report(ctx, concurrent*(bytes+p.bytes())) })
			err = use(fitCtx, Fit{Number: k, Part: p, Device: dev, Options: o})
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return &FitError{k, err}
		}
		mu.Lock()
		if users[divisions[k]]--; users[divisions[k]] == 0 {
			delete(parts, divisions[k])
		}
		mu.Unlock()
		progress(1)
		return nil
	})
}

// Scores fits a model to the training samples of each of the divisions 0 … n−1 and scores it on the test samples.
// The score of a division without test samples is nil. The function fitted, which may be nil, is called with each
// model and the time of its fit, by one goroutine at a time. The error is a *FitError.
func (r Runner) Scores(ctx context.Context, fit learners.Fitter, n int, splits Splits, fitted func(m learners.Model, took time.Duration)) ([]*Score, error) {
	scores, divisions := make([]*Score, n), make([]int, n)
	for i := range divisions {
		divisions[i] = i
	}
	fit = timed(fit, fitted)
	err := r.Each(ctx, splits, divisions, func(ctx context.Context, f Fit) error {
		p := f.Part
		m, err := fit(ctx, f.Device, p.Train.X, p.Train.Y, f.Options)
		if err != nil {
			return err
		}
		scores[f.Number], err = scoreModel(ctx, f.Device, m, r.Options.Classes, p.Test.X, p.Test.Y, p.Test.Weights)
		return err
	})
	return scores, err
}

// timed returns a Fitter that calls the function fit, and then the function fitted with the
// model and the time of the fit. Only one goroutine at a time calls fitted, which may be nil.
func timed(fit learners.Fitter, fitted func(m learners.Model, took time.Duration)) learners.Fitter {
	if fitted == nil {
		return fit
	}
	var mu sync.Mutex
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
		start := time.Now()
		m, err := fit(ctx, dev, x, y, o)
		if took := time.Since(start); err == nil {
			mu.Lock()
			defer mu.Unlock()
			fitted(m, took)
		}
		return m, err
	}
}

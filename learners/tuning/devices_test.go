package tuning_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/solvers"
)

// TestDevices checks that a search on several devices uses all of them and gives results with the
// same bits as a search on one device.
func TestDevices(t *testing.T) {
	p := wave(t, 60, 1)
	dev := device(t, "ref")
	extra := []backend.Device{device(t, "ref"), device(t, "ref")}
	for _, par := range required.Subset(2, []tuning.Params{
		{Steps: 5},
		{Strategy: tuning.Golden, Criterion: tuning.KFold, Steps: 7, Folds: 3, Seed: 2},
		{Strategy: tuning.Bayes, Criterion: tuning.KFold, Steps: 4, Seed: 3},
	}) {
		want, err := tuning.Search(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		last := 0.0
		par.Devices, par.Progress = extra, func(q solvers.Progress) {
			if q.Fraction < last || q.Fraction > 1 {
				t.Errorf("progress %v after %v", q.Fraction, last)
			}
			last = q.Fraction
		}
		got, err := tuning.Search(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Trials, got.Trials, cmp.AllowUnexported(tuning.Trial{}), cmpopts.IgnoreFields(tuning.Trial{}, "Seconds"), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s: several devices find something else:\n%s", par.Strategy, diff)
		}
		if last != 1 {
			t.Errorf("progress ended at %v", last)
		}
		for i, dev := range extra {
			if _, peak := dev.InUse(); peak == 0 {
				t.Errorf("device %d did nothing", i+1)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the reason")
	_, err := tuning.Search(ctx, dev, p, tuning.Params{Devices: extra, Progress: func(q solvers.Progress) {
		if q.Fraction > 0.3 {
			cancel(cause)
		}
	}})
	if !errors.Is(err, cause) {
		t.Errorf("canceled: %v", err)
	}
}

package solvers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestMeasuredCosts: the choice between primal and dual follows the constants
// that are given, and the reason says so.
func TestMeasuredCosts(t *testing.T) {
	dev := openRef(t, backend.Config{})
	for _, test := range []struct {
		costs solvers.Costs
		want  solvers.Method
	}{
		{solvers.Costs{}, solvers.Primal},
		{solvers.BuiltinCosts(), solvers.Primal},
		{solvers.Costs{Rate: 1e11, Covariance: 1e5, Potrf: 1, Thin: 0.1}, solvers.Dual},
		{solvers.Costs{Rate: 1e11, Gram: 1e5, Potrf: 1, Thin: 0.1}, solvers.Primal},
	} {
		plan, err := solvers.MakePlan(dev, shape(kernels.Linear{}, 300, 250), solvers.Params{Costs: test.costs})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Method != test.want {
			t.Errorf("%+v: %s because %q, want %s", test.costs, plan.Method, plan.Reason, test.want)
		}
		if got := strings.Contains(plan.Reason, "by the costs measured on this machine"); got != (test.costs != solvers.Costs{}) {
			t.Errorf("%+v: the reason is %q", test.costs, plan.Reason)
		}
	}
	_, err := solvers.MakePlan(dev, shape(kernels.Linear{}, 3, 2), solvers.Params{Costs: solvers.Costs{Rate: 1, Potrf: 1}})
	if want := "solvers: costs: thin must be finite and ≥ 0, a rate > 0, got 0"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCostsFile: what is saved is loaded again, for the same device, processor
// and threads only, and replaces what was there of those.
func TestCostsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.json")
	here := backend.Info{Device: "cpu/fast", Processor: "Abacus", Threads: 2, Memory: 5}
	load := func(info backend.Info) (solvers.MachineCosts, bool) {
		t.Helper()
		m, ok, err := solvers.LoadCosts(path, info)
		if err != nil {
			t.Fatal(err)
		}
		return m, ok
	}
	if _, ok := load(here); ok {
		t.Error("something was loaded from nowhere")
	}
	one := solvers.MachineCosts{
		Device: "cpu/fast", Processor: "Abacus", Threads: 2, Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Costs: solvers.Costs{Rate: 1, Input: 2, Covariance: 3, Gram: 4, Potrf: 5, Panel: 6, Thin: 7},
	}
	two := one
	two.Threads, two.Costs.Rate = 1, 10
	newer := one
	newer.Costs.Rate = 100
	for _, list := range [][]solvers.MachineCosts{{one, two}, {newer}} {
		if err := solvers.SaveCosts(path, list); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []solvers.MachineCosts{newer, two} {
		info := here
		info.Threads = want.Threads
		got, ok := load(info)
		if d := cmp.Diff(want, got); d != "" || !ok {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	for _, info := range []backend.Info{
		{Device: "cpu/slow", Processor: "Abacus", Threads: 2},
		{Device: "cpu/fast", Processor: "Sand", Threads: 2},
		{Device: "cpu/fast", Processor: "Abacus", Threads: 3},
	} {
		if m, ok := load(info); ok {
			t.Errorf("%+v has %+v", info, m)
		}
	}
	bad := one
	bad.Costs.Potrf = 0
	if err := solvers.SaveCosts(path, []solvers.MachineCosts{bad}); err == nil {
		t.Error("costs without a rate were saved")
	}
	for text, want := range map[string]string{
		"{":             "unexpected end of JSON input: delete it and measure again",
		`{"schema": 2}`: "schema 2; this version reads schema 1: delete it and measure again",
		`{"schema":1,"machines":[{"device":"cpu/fast","processor":"Abacus","threads":2}]}`: "rate must be finite",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, err := solvers.LoadCosts(path, here); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

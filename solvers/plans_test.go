package solvers_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

var updatePlans = flag.Bool("update-plans", false, "write testdata/plans.txt anew")

// ratedDevice is a device with given memory and rates.
type ratedDevice struct {
	backend.Device
	rates flop.Rates
}

func (d ratedDevice) Rates() flop.Rates { return d.rates }

// costsOfPlan matches the costs and the numbers of iterations in a plan's reason.
var costsOfPlan = regexp.MustCompile(`^cheapest: .*?operations[^;]*|, about \d+ iterations?`)

// TestPlansAreGolden compares the method, the form of K, the preconditioner and the bytes of 60 plans with
// testdata/plans.txt. Rewrite it with -update-plans only if a change of the planner is intended to change a choice.
func TestPlansAreGolden(t *testing.T) {
	// The first two devices are the cpu backend on processors that multiply vectors of 512 bits in two steps and in
	// one. The third is a GPU with 0.5 TFLOP/s in float64, 30 TFLOP/s in float32 and 0.3 TB/s.
	devices := []struct {
		name  string
		rates flop.Rates
	}{
		{"processor", flop.Rates{Single: 2, Values: 1.5}},
		{"wide processor", flop.Rates{Single: 2, Values: 1.5, Products: 2e11}},
		{"card", flop.Rates{Single: 60, Values: 60, Products: 5e11, Pairs: 2.5e11, Bytes: 3e11, Step: 1e-5, Solve: 5e-8}},
	}
	problems := []struct {
		kernel kernels.Kernel
		n, d   int
	}{
		{kernels.Linear{}, 3000, 20},
		{kernels.Linear{}, 200, 3000},
		{kernels.Gaussian{Sigma: 1}, 500, 5},
		{kernels.Gaussian{Sigma: 2}, 6000, 8},
		{kernels.Gaussian{Sigma: 5}, 6000, 50},
		{kernels.Gaussian{Sigma: 5}, 20000, 50},
		{kernels.Laplacian{Sigma: 2}, 6000, 3},
		{kernels.Polynomial{Degree: 3, C: 1}, 6000, 4},
	}
	if required.FewCases() && !*updatePlans {
		devices = devices[:1]
	}
	var text strings.Builder
	plans := 0
	for _, device := range devices {
		for _, p := range problems {
			r := rand.New(rand.NewPCG(40, 0))
			x := backend.NewHost[float64](p.n, p.d)
			for i := range x.Data {
				x.Data[i] = r.NormFloat64()
			}
			for _, c := range []struct {
				lambda float64
				memory int64
			}{{1e-6, 16 << 30}, {0.1, 16 << 30}, {0.1, 256 << 20}} {
				if p.n == 500 && c.lambda == 1e-6 || p.n == 200 && c.lambda == 0.1 && c.memory > 1<<30 || p.n == 3000 && c.lambda == 1e-6 {
					continue // the plan does not depend on λ
				}
				dev := ratedDevice{backendtest.Device(t, "ref", backend.Config{Memory: c.memory}), device.rates}
				plan, err := solvers.MakePlan(dev, solvers.Problem{Kernel: p.kernel, X: x, Y: backend.NewHost[float64](p.n, 2), Lambda: c.lambda, Intercept: true}, solvers.Params{})
				if err != nil {
					t.Fatal(err)
				}
				plans++
				fmt.Fprintf(&text, "%s %v n=%d d=%d lambda=%g memory=%dMiB: %s, %d bytes: %s\n", device.name, p.kernel, p.n, p.d, c.lambda, c.memory>>20,
					plan.Method, plan.Bytes, strings.TrimPrefix(costsOfPlan.ReplaceAllString(plan.Reason, ""), "; "))
			}
		}
	}
	if plans < 20*len(devices) {
		t.Errorf("%d plans, want %d at least", plans, 20*len(devices))
	}
	const file = "testdata/plans.txt"
	if *updatePlans {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(golden), "\n"), strings.Split(text.String(), "\n")
	if required.FewCases() && !*updatePlans { // got ends with an empty line
		want = append(want[:min(len(want), len(got)-1)], "")
	}
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Errorf("plan %d differs:\n got %s\nwant %s", i+1, line(got, i), line(want, i))
		}
	}
}

func line(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(none)"
}

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestPlanOfLargeCard checks the plans of problems that fit on an H200, with 2 GiB reserved for context and libraries.
func TestPlanOfLargeCard(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	d := dev.(*device)
	limit := d.memory.limit
	d.memory.limit = 143771<<20 - 2<<30 - leftFree
	defer func() { d.memory.limit = limit }()
	const features = 10
	for _, c := range []struct {
		n      int
		par    solvers.Params
		square bool // whether the method stores K and the factor
	}{
		{100_000, solvers.Params{Method: solvers.Dual}, true},
		{135_000, solvers.Params{Method: solvers.Dual}, true},
		{190_000, solvers.Params{Method: solvers.Dual}, false},
		{270_000, solvers.Params{Method: solvers.Mixed, Operator: solvers.Unstored64}, false},
		{270_000, solvers.Params{Method: solvers.CG, Operator: solvers.Stored32, Preconditioner: "none"}, false},
		{380_000, solvers.Params{Method: solvers.CG, Operator: solvers.Fixed16, Preconditioner: "none"}, false},
	} {
		if testing.Short() && c.par.Method != solvers.Dual {
			continue // the plans of these methods depend on the spectrum
		}
		x, y := backend.NewHost[float64](c.n, features), backend.NewHost[float64](c.n, 1)
		for i := range x.Data {
			x.Data[i] = float64(i*7919%1000) / 1000
		}
		plan, err := solvers.MakePlan(dev, solvers.Problem{Kernel: kernels.Gaussian{Sigma: 0.3}, X: x, Y: y, Lambda: 1}, c.par)
		if err != nil {
			t.Fatal(err)
		}
		elements := int64(c.n) * int64(c.n) / 2
		size := int64(8)
		if c.par.Method != solvers.Dual {
			size = 4
		}
		if c.par.Operator == solvers.Fixed16 {
			size = 2
		}
		if c.square {
			elements *= 2
		}
		// Besides the matrix, the plan includes the points and some vectors of length n.
		if plan.Bytes > d.memory.limit || plan.Bytes < elements*size || plan.Bytes > elements*size+int64(c.n)*8*(features+64) {
			t.Errorf("%s of %d rows: %d bytes, the matrix takes %d, %d are there: %s", c.par.Method, c.n, plan.Bytes, elements*size, d.memory.limit, plan.Reason)
		}
		t.Logf("%s of %d rows: %.1f GiB of %.1f: %s", c.par.Method, c.n, float64(plan.Bytes)/(1<<30), float64(d.memory.limit)/(1<<30), plan.Reason)
	}
}

// TestPlanOutOfCore checks that, if a problem is too large even for the host, the error states the number of bytes
// and the size of problem that would fit.
func TestPlanOutOfCore(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	const n = 2_000_000
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 1), Lambda: 1}
	defer precision.Force(precision.Single)()
	_, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.OutOfCore})
	var e *solvers.BudgetError
	if !errors.As(err, &e) {
		t.Fatalf("%d rows: %v", n, err)
	}
	b := dev.F32().(backend.HostPackedBackend[float32])
	_, needed := b.HostPackedBytes(n)
	_, fits := b.HostPackedBytes(e.Largest)
	_, tooMany := b.HostPackedBytes(e.Largest + 1)
	if !e.Host || e.Needed != needed || fits > e.Available || tooMany <= e.Available || e.Rows != n {
		t.Errorf("%+v: %v", *e, err)
	}
	if !strings.Contains(err.Error(), "the host's memory") {
		t.Error(err)
	}
}

// card makes a device look like another card until the test ends.
func card(t *testing.T, dev backend.Device, p properties, gib int64) {
	d := dev.(*device)
	props, limit := d.props, d.memory.limit
	p.handle, p.rate = props.handle, p.clock*float64(p.processors)*64
	d.props, d.memory.limit = p, gib<<30-leftFree
	t.Cleanup(func() { d.props, d.memory.limit = props, limit })
}

var (
	h200 = properties{name: "H200", processors: 132, major: 9, ratio: 2, clock: 1.98e9, bandwidth: 2 * 3201e6 * 6144 / 8}
	l4   = properties{name: "L4", processors: 58, major: 8, minor: 9, ratio: 64, clock: 2.04e9, bandwidth: 2 * 6251e6 * 192 / 8}
)

// TestRatesOfCards checks that the rates computed from the clocks of a card are those in NVIDIA's tables. On an
// H200 these are 67 TFLOP/s in float64 and in float32, and 4.8 TB/s. On an L4 they are 0.47 TFLOP/s, 30 TFLOP/s and
// 0.3 TB/s.
func TestRatesOfCards(t *testing.T) {
	checkRate := func(name string, got, want float64) {
		if math.Abs(got/want-1) > 0.05 { // NVIDIA's tables are rounded and assume the maximum clocks
			t.Errorf("%s: %.3g, want %.3g", name, got, want)
		}
	}
	checkRate("float64 of an H200", h200.doubleRate(), 67e12)
	checkRate("float32 of an H200", h200.singleRate(), 67e12)
	checkRate("FP16 of an H200", h200.reducedRate(), 989e12*67/60.7) // the table assumes a clock of 1.755 GHz
	checkRate("memory of an H200", h200.memoryRate(), 4.8e12)
	checkRate("float64 of an L4", l4.doubleRate(), 0.47e12)
	checkRate("float32 of an L4", l4.singleRate(), 30.3e12)
	checkRate("FP16 of an L4", l4.reducedRate(), 121e12/2) // 4 times the rate of float32; consumer cards reach half of that rate
	checkRate("memory of an L4", l4.memoryRate(), 300e9)
}

// TestChoiceOnCards checks that the automatic choice on large cards is the method with the least time in a model of
// bytes, instructions and launches, and checks the model's ratio of the times of dual and mixed.
func TestChoiceOnCards(t *testing.T) {
	Need(t)
	const features = 50
	for _, c := range []struct {
		card  properties
		gib   int64
		n     int
		want  []solvers.Method
		ratio float64 // ratio of the times of dual and mixed, or 0 if they are not compared
	}{
		{h200, 138, 4096, []solvers.Method{solvers.Dual}, 0},
		{h200, 138, 16384, []solvers.Method{solvers.Dual}, 0},
		{h200, 138, 50000, []solvers.Method{solvers.Mixed, solvers.CG}, 2.2},
		{h200, 138, 100000, []solvers.Method{solvers.Mixed, solvers.CG}, 3.5},
		{l4, 22, 16384, []solvers.Method{solvers.Mixed}, 0},
		{l4, 22, 50000, []solvers.Method{solvers.Mixed}, 0},
	} {
		if testing.Short() && c.n > 20000 {
			continue
		}
		t.Run(fmt.Sprintf("%s %d", c.card.name, c.n), func(t *testing.T) {
			dev := backendtest.Device(t, "cuda/0")
			card(t, dev, c.card, c.gib)
			const seed = 1
			rng := rand.New(rand.NewPCG(seed, 0))
			x, y := backend.NewHost[float64](c.n, features), backend.NewHost[float64](c.n, 1)
			for i := range x.Data {
				x.Data[i] = rng.NormFloat64()
			}
			plan, err := solvers.MakePlan(dev, solvers.Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(features)}, X: x, Y: y, Lambda: 0.1}, solvers.Params{Tol: 1e-10})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("seed %d: %s: %s", seed, plan.Method, plan.Reason)
			if !slices.Contains(c.want, plan.Method) {
				t.Errorf("%s because %s, want one of %v", plan.Method, plan.Reason, c.want)
			}
			cost := map[string]float64{}
			for _, m := range regexp.MustCompile(`(\w+) ([0-9.]+e\+[0-9]+)`).FindAllStringSubmatch(plan.Reason, -1) {
				cost[m[1]], _ = strconv.ParseFloat(m[2], 64)
			}
			if ratio := cost["dual"] / cost["mixed"]; c.ratio > 0 && !(math.Abs(math.Log(ratio/c.ratio)) < math.Log(1.25)) {
				t.Errorf("dual takes %.3g times as long as mixed, want about %g", ratio, c.ratio)
			}
			for name, v := range cost {
				if v < cost[string(plan.Method)] {
					t.Errorf("%s takes less than %s: %s", name, plan.Method, plan.Reason)
				}
			}
		})
	}
}

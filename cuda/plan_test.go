package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestPlanOfLargeCard: what fits an H200 by the plans' arithmetic. It has 143771
// MiB; 2 GiB are what the context and the libraries may take of it.
func TestPlanOfLargeCard(t *testing.T) {
	need(t)
	dev, err := backend.Open("cuda/0", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	d := dev.(*device)
	small := d.memory.limit
	d.memory.limit = 143771<<20 - 2<<30 - leftFree
	defer func() { d.memory.limit = small }()
	const features = 10
	for _, c := range []struct {
		n      int
		par    solvers.Params
		square bool // fits with K beside the factor
	}{
		{100_000, solvers.Params{Method: solvers.Dual}, true},
		{135_000, solvers.Params{Method: solvers.Dual}, true},
		{190_000, solvers.Params{Method: solvers.Dual}, false},
		{270_000, solvers.Params{Method: solvers.Mixed, Operator: solvers.Unstored64}, false},
		{270_000, solvers.Params{Method: solvers.CG, Operator: solvers.Stored32, Preconditioner: "none"}, false},
	} {
		if testing.Short() && c.par.Method != solvers.Dual {
			continue // these look at the spectrum
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
		if c.square {
			elements *= 2
		}
		// Beside the matrix some vectors of length n and the points are there.
		if plan.Bytes > d.memory.limit || plan.Bytes < elements*size || plan.Bytes > elements*size+int64(c.n)*8*(features+64) {
			t.Errorf("%s of %d rows: %d bytes, the matrix takes %d, %d are there: %s", c.par.Method, c.n, plan.Bytes, elements*size, d.memory.limit, plan.Reason)
		}
		t.Logf("%s of %d rows: %.1f GiB of %.1f: %s", c.par.Method, c.n, float64(plan.Bytes)/(1<<30), float64(d.memory.limit)/(1<<30), plan.Reason)
	}
}

// TestPlanOutOfCore: what is too large for the host too is refused with the bytes
// and what would fit.
func TestPlanOutOfCore(t *testing.T) {
	need(t)
	dev, err := backend.Open("cuda/0", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n = 2_000_000
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 1), Lambda: 1}
	_, err = solvers.MakePlan(dev, p, solvers.Params{Method: solvers.OutOfCore, Precision: solvers.PrecisionSingle})
	var e *solvers.BudgetError
	if !errors.As(err, &e) {
		t.Fatalf("%d rows: %v", n, err)
	}
	b := dev.F32().(backend.HostPackedBackend[float32])
	_, needed := b.HostPackedBytes(n)
	_, fits := b.HostPackedBytes(e.Largest)
	_, more := b.HostPackedBytes(e.Largest + 1)
	if !e.Host || e.Needed != needed || fits > e.Available || more <= e.Available || e.Rows != n {
		t.Errorf("%+v: %v", *e, err)
	}
	if !strings.Contains(err.Error(), "the host's memory") {
		t.Error(err)
	}
}

package cuda_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// TestSolvers runs the suite of package solvers on the device.
func TestSolvers(t *testing.T) {
	cuda.Need(t)
	// With this tolerance, iterative solutions satisfy the suite's bounds for direct solutions.
	const tolerance = 4e-14
	gaussian := []kernels.Kernel{kernels.Gaussian{Sigma: 2}}
	suites := []struct {
		solvertest.Suite
		factor precision.Precision
	}{
		{Suite: solvertest.Suite{Method: solvers.Dual, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Dual, Params: solvers.Params{Operator: solvers.Stored64}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Primal, Kernels: []kernels.Kernel{kernels.Linear{}}}},
		{Suite: solvertest.Suite{Method: solvers.Mixed, Params: solvers.Params{Tol: tolerance, Operator: solvers.Unstored64}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Mixed, Params: solvers.Params{Tol: tolerance, Operator: solvers.Unstored64}, Kernels: gaussian}, factor: precision.Reduced},
		{Suite: solvertest.Suite{Method: solvers.OutOfCore, Able: true, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.OutOfCore, Able: true, Params: solvers.Params{Tol: tolerance}, Kernels: gaussian}, factor: precision.Single},
		{Suite: solvertest.Suite{Method: solvers.CG, Params: solvers.Params{Tol: tolerance, Operator: solvers.Stored32, Rank: 6}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.CG, Params: solvers.Params{Tol: tolerance, Operator: solvers.Fixed16, Rank: 6}, Kernels: gaussian}},
	}
	if testing.Short() { // omit the other suites, which take half a minute
		suites = suites[:3]
	}
	for _, suite := range suites {
		t.Run(strings.Join([]string{string(suite.Method), string(suite.Params.Operator), []string{"", "float32", "reduced"}[suite.factor]}, " "), func(t *testing.T) {
			if suite.factor == precision.Reduced || suite.Method == solvers.OutOfCore {
				cuda.SmallCuts(t)
			}
			t.Cleanup(precision.Force(suite.factor))
			suite.Device = "cuda/0"
			solvertest.Run(t, suite.Suite)
		})
	}
}

// countedRows counts the passes over the samples.
type countedRows struct {
	solvers.Rows
	passes int
}

func (c *countedRows) Pass(ctx context.Context, keyed bool, use func(solvers.Block) error) error {
	c.passes++
	return c.Rows.Pass(ctx, keyed, use)
}

// TestSamplesStayOnDevice checks two fits with the matrix H = KᵀK + λS of the normal equations, where K = k(X, C) and
// S = k(C, C) for the centers C. If the samples fit in the memory of the device, they are read once; otherwise each
// product with H reads them. Both solutions must be equal, and no fit may take more memory than planned.
func TestSamplesStayOnDevice(t *testing.T) {
	cuda.Need(t)
	dev := backendtest.Device(t, "cuda/0")
	const n, d, m = 9000, 3, 10 // the samples are processed in three pieces
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = math.Sin(float64(i*(j+2) + j))
		}
		y.Data[i] = x.Row(i)[0] - x.Row(i)[1]*x.Row(i)[2]
	}
	var first []float64
	var bytes int64
	for _, resident := range []bool{true, false} {
		rows := &countedRows{Rows: solvers.InMemory(x, y, nil, nil)}
		p := solvers.NystromProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: rows, Lambda: 1e-3, Centers: x.View(0, 0, m, d)}
		par := solvers.StreamParams{Method: solvers.Falkon, Tol: 1e-9}
		if !resident {
			par.Memory = bytes - 1
		}
		inUseBefore, _ := dev.InUse()
		plan, err := p.Plan(dev, par)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(plan.Reason, "stay on the device") != resident {
			t.Errorf("the plan for %d bytes of memory: %s", par.Memory, plan.Reason)
		}
		r, err := solvers.SolveNystrom(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		if resident {
			first, bytes = r.Beta.Data, plan.Bytes
		}
		if _, peak := dev.InUse(); resident && (peak-inUseBefore > plan.Bytes || float64(peak-inUseBefore) < 0.9*float64(plan.Bytes)) {
			t.Errorf("the fit takes %d bytes, and the plan says %d", peak-inUseBefore, plan.Bytes)
		}
		if (rows.passes <= 2) != resident {
			t.Errorf("%d passes read the samples, with %d bytes of memory", rows.passes, par.Memory)
		}
		for i, v := range r.Beta.Data {
			if v != first[i] {
				t.Errorf("all on the device: %v; element %d is %v, and was %v", resident, i, v, first[i])
			}
		}
	}
}

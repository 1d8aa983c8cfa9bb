package solvers

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
)

// streamSizes are what a plan for a problem in passes depends on.
type streamSizes struct {
	n, d, t, m int
	basis      float64 // operations for one value of Φ, as the backend counts them
}

const (
	// valueCost is the modeled time of one value of a basis beside the counted
	// operations, in operations of a large product: its transcendental function,
	// and the way of Φ through the memory.
	valueCost = 100
)

// falkonPasses is how many products with H Falkon is expected to need with s
// samples in its preconditioner for each center: measured on nycflights13, n =
// 50,000, M = 1000, λ = 1, residual 1e-6, where they were 62, 40, 24 and 18 for s
// = 1, 2, 5 and 10.
func falkonPasses(s float64) float64 { return 3 + 60*math.Pow(max(s, 0.1), -0.55) }

// streamEstimate is what a method would do and take.
type streamEstimate struct {
	method Method
	stages []stage
	cost   float64
	bytes  int64
}

// pass is the counted operations of one product with H, and the modeled time.
func (z streamSizes) pass() (flops, cost float64) {
	values := float64(z.n) * float64(z.m)
	thin := 4 * float64(z.t)
	return values * (z.basis + thin), values * (z.basis + valueCost + min(thin/rateThin, thin+200))
}

// estimate is that of Normal or Falkon, with a preconditioner made of so many
// samples. extra is what the basis and the choice of
// centers take, for a number of functions.
func (z streamSizes) estimate(m Method, sample int, extra int64) streamEstimate {
	flops, cost := z.pass()
	matrix, gram, factor := numeric.Bytes(numeric.Elements(z.m, z.m)), backend.SyrkFlops(z.m, z.n), backend.PotrfFlops(z.m)
	passes, solve := 0.0, 2*backend.SymmFlops(z.m, z.t) // of Normal, where rounding allows
	if m == Falkon {
		matrix, passes = stream.FalkonBytes(z.m), falkonPasses(float64(sample)/float64(z.m))
		gram, solve = 0, passes*flops
		factor += backend.SyrkFlops(z.m, sample) + backend.PotrfFlops(z.m) + backend.TrsmFlops(z.m, sample)
	}
	return streamEstimate{
		method: m,
		stages: []stage{{"gram", flops + gram}, {"factor", factor}, {"solve", solve}},
		cost:   (1+passes)*cost + gram/rateProduct + factor/ratePotrf,
		bytes:  numeric.Total(extra, stream.Bytes(z.n, z.m, z.d, z.t), matrix, stream.IterationBytes(z.m, z.t)),
	}
}

// plan chooses the method. before is the stage of choosing the basis; extra is
// what that takes on the device by itself, and the basis with the rest, for a
// number of functions.
func (z streamSizes) plan(dev backend.Device, par StreamParams, before stage, extra func(m int) (alone, basis int64)) (Plan, error) {
	available := run.Available(dev, par.Memory)
	need := func(method Method, m int) streamEstimate {
		s := z
		s.m = m
		alone, basis := extra(m)
		e := s.estimate(method, par.sample(z.n, m, z.d), basis)
		e.bytes = max(e.bytes, alone)
		return e
	}
	normal, falkon := need(Normal, z.m), need(Falkon, z.m)
	best, reason := normal, "asked for"
	switch {
	case par.Method == Normal && par.Checkpoint.Dir != "":
		return Plan{}, noCheckpoint(Normal, Falkon)
	case par.Method == Auto && par.Checkpoint.Dir != "":
		best, reason = falkon, "the method that writes checkpoints"
	case par.Method == Falkon:
		best = falkon
	case par.Method == Auto:
		if falkon.cost < normal.cost && falkon.bytes <= available {
			best = falkon
		}
		reason = fmt.Sprintf("cheaper: %s %.3g (nm² + m³/3), %s %.3g %s", Normal, normal.cost, Falkon, falkon.cost, operations)
	}
	plan := Plan{Method: best.method, Reason: reason, Bytes: best.bytes, stages: append([]stage{before}, best.stages...), rows: z.n, available: available}
	for _, s := range plan.stages {
		plan.Flops += s.flops
	}
	plan.bytesOf = func(int) int64 { return best.bytes }
	if plan.Bytes <= available {
		return plan, nil
	}
	largest := run.Largest(z.m, func(m int) int64 { return need(best.method, m).bytes }, available)
	advice := "{$memory|use fewer features or outputs}"
	if largest > 0 {
		advice = fmt.Sprintf("{use at most %d of the %s|$memory}", largest, count.Of(z.m, "function"))
	}
	return plan, &BudgetError{Method: best.method, Rows: z.n, Needed: plan.Bytes, Available: available, Advice: advice}
}

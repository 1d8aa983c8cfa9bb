package bench

import (
	"context"
	"slices"
	"strconv"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
)

// CrossoverKind measures ridge regression by the primal and by the dual over a grid of n
// samples and m features, to find where one takes over from the other. At every point of
// the grid the answers of both, on every device, must agree to rounding. The Result has
// the cases {precision, n, m}, the implementations "mercer DEVICE primal" and "… dual" with
// three stages each, the ceilings of devices that have one, and the laws of growth of the
// stages.
const CrossoverKind = "crossover"

func runCrossover(ctx context.Context, c Benchmark) (*Result, error) {
	devices, err := openDevices(c.Devices, backend.Config{Threads: c.Threads[0], Memory: c.Memory})
	defer closeAll(devices)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if err := c.gridFits(d); err != nil {
			return nil, err
		}
	}
	r, err := c.Runner.Run(ctx, CrossoverKind, crossoverImplementations(devices), c.gridTasks(devices))
	if err != nil {
		return nil, err
	}
	r.fitRidge()
	return r, nil
}

// gridFits refuses a grid whose largest case a device's memory does not hold.
func (c *Benchmark) gridFits(d backend.Device) error {
	size := 4
	if slices.Contains(c.Precisions, "float64") {
		size = 8
	}
	n, m := slices.Max(c.Sizes), slices.Max(c.Widths)
	return refuse(CrossoverKind, "n, m ≤", "both forms on "+d.Info().Device, max(n, m), d.Info().Memory,
		func(limit int) int64 { return ridgeBytes(min(n, limit), min(m, limit), size) })
}

func crossoverImplementations(devices []backend.Device) []Implementation {
	var list []Implementation
	for _, d := range devices {
		for _, form := range []string{primal, dual} {
			e := ownImplementation(d)
			e.Name, e.Method, e.Processor = ridgeName(d, form), form, d.Info().Processor
			list = append(list, e)
		}
	}
	for _, d := range devices {
		if ceilingName(d) != "" {
			list = append(list, ceilingImplementation(d))
		}
	}
	return list
}

// gridTasks lists the cases: precision, n, m, the last fastest.
func (c *Benchmark) gridTasks(devices []backend.Device) []Task {
	var list []Task
	for _, precision := range c.Precisions {
		for _, n := range c.Sizes {
			for _, m := range c.Widths {
				list = append(list, Task{
					Case:   Case{{"precision", precision}, {"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}},
					Weight: ridgeFlops(primal, n, m) + ridgeFlops(dual, n, m) + leastWeight,
					Start: func(ctx context.Context) ([]Entry, error) {
						if precision == "float32" {
							return ridgeEntries(ctx, devices, n, m, backend.Device.F32)
						}
						return ridgeEntries(ctx, devices, n, m, backend.Device.F64)
					},
				})
			}
		}
	}
	return list
}

// leastWeight is what the pauses of the smallest case count for, in operations.
const leastWeight = 1e9

// ridgeEntries makes the entries of a case. The first device's primal is the
// reference of all others.
func ridgeEntries[T backend.Float](ctx context.Context, devices []backend.Device, n, m int, queue func(backend.Device) backend.Backend[T]) (list []Entry, err error) {
	defer func() {
		if err != nil {
			for _, e := range list { // ceilings come last, and hold nothing
				e.Close()
			}
		}
	}()
	p := newRidge[T](n, m)
	for _, d := range devices {
		for _, form := range []string{primal, dual} {
			e, err := p.entry(queue(d).With(ctx, nil), form)
			if err != nil {
				return list, err
			}
			e.Implementation, e.Limiter = ridgeName(d, form), ceilingName(d)
			list = append(list, e)
		}
	}
	for _, d := range devices {
		if ceilingName(d) != "" {
			list = append(list, ceilingEntry(d, unsafe.Sizeof(T(0)) == 4, d.Info().Threads))
		}
	}
	return list, nil
}

// fitRidge fits laws of growth to the stages: that of the Gram or covariance
// matrix over n and m, that of the factor over its order.
func (r *Result) fitRidge() {
	for _, e := range r.Implementations {
		if e.Kind != OwnKind {
			continue
		}
		order := "n"
		if e.Method == primal {
			order = "m"
		}
		for _, precision := range r.values("precision") {
			shared := Case{{"precision", precision}}
			for _, law := range []struct {
				q    quantity
				over []string
			}{
				{stageSeconds(gramStage), []string{"n", "m"}},
				{stageSeconds(factorStage), []string{order}},
			} {
				// Below this the overhead of a call shows, not the growth of the work.
				keep := func(c *Cell) bool {
					v, ok := law.q.Of(c.Run(e.Name))
					return ok && v.Median > lawful
				}
				if g := r.fitGrowth(e.Name, shared, law.q, law.over, keep); g != nil {
					r.Growths = append(r.Growths, *g)
				}
			}
		}
	}
}

// lawful is the least length of a stage, in seconds, to take part in a fit.
const lawful = 1e-4

package solvers

import (
	"fmt"
	"math"
	"sort"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/precision"
)

// OutOfCore is Dual for a device whose memory is too small for K: the factor is in
// the memory of the host, from which it goes through the device in panels. Where
// the device is four times as fast in float32 or more, it is Mixed in that way: the
// factor is in float32 and preconditions, and K is evaluated for every product.
const OutOfCore Method = "outofcore"

type outOfCoreChoice struct{ Single bool }

func outOfCoreEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(OutOfCore); err != nil {
		return estimate{}, err
	}
	b64, ok := z.dev.F64().(backend.HostPackedBackend[float64])
	b32, ok32 := z.dev.F32().(backend.HostPackedBackend[float32])
	if !ok || !ok32 {
		return estimate{}, fmt.Errorf("solvers: outofcore: the device %s has no memory but the host's: use %q", z.dev.Info().Device, Dual)
	}
	single := precision.Forced() == precision.Single || z.rates().Single >= 4
	bytesOf := func(n int) (device, host int64) {
		if single {
			return b32.HostPackedBytes(n)
		}
		return b64.HostPackedBytes(n)
	}
	if free := b64.HostFree(); exceedsHost(bytesOf, z.n, free) {
		_, host := bytesOf(z.n)
		return estimate{}, &BudgetError{
			Method: OutOfCore, Rows: z.n, Needed: host, Available: free, Host: true,
			Largest: sort.Search(z.n, func(n int) bool { return exceedsHost(bytesOf, n+1, free) }),
		}
	}
	e := z.dualEstimate(false)
	if single {
		e = z.mixedEstimate(Unstored64, false, par)
	}
	within := e.bytesOf
	e.how, e.note = outOfCoreChoice{single}, "the factor in float64"
	if single {
		e.note = "the factor in float32"
	}
	e.bytesOf = func(n int) int64 {
		device, _ := bytesOf(n)
		stored := numeric.SymmetricBytes(z.dev.F64(), n)
		if single {
			stored = numeric.SymmetricBytes(z.dev.F32(), n)
		}
		return numeric.Total(within(n)-stored, device)
	}
	// The panels go back and forth beside the work, and after it twice for each
	// solve: at a hundredth of the rate of the device's own memory.
	e.cost *= 1.3
	stored := Stored64
	if single {
		stored = Stored32
	}
	e.cost += 100 * z.symmCost(1, stored)
	return e, nil
}

// exceedsHost reports whether the host's part is more than there is.
func exceedsHost(bytesOf func(n int) (device, host int64), n int, free int64) bool {
	_, host := bytesOf(n)
	return host > free || host == math.MaxInt64
}

func (choice outOfCoreChoice) run(w *work) error {
	w.onHost = true
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	if !choice.Single {
		return w.refine(x, w.direct(x, false))
	}
	if w.checkpointer, err = newCheckpointer(w, choice); err != nil {
		return err
	}
	fallbacks := []fallback{{method: OutOfCore, text: "the factor in float32", make: func() (inner, error) { return w.newMixed(Unstored64, false, x) }}}
	// As mixed does, where the factor in float64 fits both memories.
	b, z := w.B.(backend.HostPackedBackend[float64]), w.plan.sizes
	device, host := b.HostPackedBytes(w.s.n)
	if numeric.Total(z.place(w.s.n), z.refinedBytes(w.s.n), device) <= w.plan.available && host <= b.HostFree() {
		fallbacks = append(fallbacks, w.direct(x, false))
	}
	return w.refine(x, fallbacks...)
}

package bench

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/solvers"
)

// DevicesKind compares the devices of this machine with each other over a range of n, on the data of synthetic.go:
//
//	gram    K = k(X, X), X and K on the device
//	mul     K·v without storing K, X and v on the device
//	factor  Cholesky of K + λI, on the device
//	fit     from X and y in Go memory to α in Go memory, including transfers
//	solve   like fit, by the solver that Mercer chooses, to a residual of 1e-10
//
// If Python has torch or cupy, these libraries run all operations except solve, on the GPU if there is one.
const DevicesKind = "devices"

func runDevices(ctx context.Context, b Benchmark) (*Result, error) {
	w, err := b.open(ctx)
	defer w.close()
	if err != nil {
		return nil, err
	}
	var list []Implementation
	for _, d := range w.devices {
		list = append(list, ownImplementation(d))
	}
	for _, p := range w.peers {
		list = append(list, p.implementation(w.Threads[0]))
	}
	r, err := w.Runner.Run(ctx, DevicesKind, list, w.tasks(w.startOperation))
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, noGPU()...)
	r.Notes = append(r.Notes, fmt.Sprintf("data: X ~ N(0, I), d = %d; Gaussian kernel with 2σ² = 2d, λ = %g; fit and solve include the transfers from and to the memory of the process", w.Features, fitLambda))
	return r, nil
}

// noGPU returns the reason why there is no GPU, or nil if there is one.
func noGPU() (notes []string) {
	for _, s := range backend.Report() {
		if !strings.HasPrefix(s.Device, "cuda/") {
			continue
		}
		if s.Err == nil {
			return nil
		}
		notes = append(notes, fmt.Sprintf("no GPU was measured: %s: %s", s.Device, strings.Join(strings.Fields(s.Err.Error()), " ")))
	}
	return notes
}

func (w *setup) startOperation(_ context.Context, operation, precision string, _, n int) ([]Entry, error) {
	s := newSynthetic(n, w.Features, fitLambda)
	if precision == "float32" {
		return operationEntries(w, operation, precision, s, toFloat32(s.x), toFloat32(s.y), backend.Device.F32)
	}
	return operationEntries(w, operation, precision, s, s.x, s.y, backend.Device.F64)
}

// operationFlops returns the number of floating-point operations for the rate, or 0 for solve.
func operationFlops(operation string, n, d int) float64 {
	switch operation {
	case "gram":
		return flop.Gram(n, n, d, true)
	case "mul":
		return flop.GramMul(n, n, d, 1)
	case "factor":
		return flop.Potrf(n)
	case "fit":
		return flop.Gram(n, n, d, true) + flop.Potrf(n) + 2*flop.Trsm(n, 1)
	}
	return 0
}

// operationEntries creates the entries for startOperation in one precision.
func operationEntries[T backend.Float](w *setup, operation, precision string, s *synthetic, x, y backend.Host[T],
	queue func(backend.Device) backend.Backend[T]) ([]Entry, error) {
	n, d := x.Rows, x.Cols
	flops := operationFlops(operation, n, d)
	j := w.judge(s)
	expected := max(flops, flop.Potrf(n)) // for the estimated time of solve, use the operations of potrf: the time of solve grows no faster with n
	key := func(implementation string) string { return implementation + " " + operation + " " + precision }
	skipReason := func(implementation string) string {
		return w.timeEstimates.skipReason(key(implementation), expected, w.Limit)
	}
	var list []Entry
	finish := func(e Entry) {
		e.Work = flops
		if run := e.Run; run != nil {
			e.Run = func() error {
				start := time.Now()
				err := run()
				w.timeEstimates.record(key(e.Implementation), expected, time.Since(start))
				return err
			}
		}
		list = append(list, e)
	}
	for _, dev := range w.devices {
		needs := int64(8) * int64(n) * int64(n)
		switch {
		case operation == "mul" || operation == "solve":
			needs = 0
		case precision == "float32":
			needs /= 2
		}
		if reason := cmp.Or(exceeds(needs, dev), skipReason(ownName(dev))); reason != "" {
			finish(Entry{Implementation: ownName(dev), Reason: reason})
			continue
		}
		if operation == "solve" {
			finish(w.bySolver(dev, s, ownName(dev), solvers.Auto).entry(j, j.residual, ridgeLimit(n, d, precision, s.lambda)))
			continue
		}
		o := &operand[T]{q: queue(dev).With(w.ctx, nil), judge: j, x: x, y: y}
		e, err := o.entry(operation, ridgeLimit(n, d, precision, s.lambda), productLimit[T](n, d))
		if err != nil {
			return list, err
		}
		e.Implementation = ownName(dev)
		finish(e)
	}
	for _, p := range w.peers {
		if operation == "solve" {
			continue
		}
		if reason := skipReason(p.Name); reason != "" {
			finish(Entry{Implementation: p.Name, Reason: reason})
			continue
		}
		finish(peerOperation(p, operation, precision, j, x, y))
	}
	return list, nil
}

// peerOperation returns the entry of an operation of a Python library. Only the result of a fit is checked.
func peerOperation[T backend.Float](p Peer, operation, precision string, j judge, x, y backend.Host[T]) Entry {
	k := contest{task: "only_" + operation, parameters: j.parameters(), sendData: putAll(x, y), result: alphaOf(j.synthetic)}
	if operation == "fit" {
		k.task = "ridge"
		return byPython(p, p.Name, k).entry(j, j.residual, ridgeLimit(x.Rows, x.Cols, precision, j.lambda))
	}
	k.sendData = func(process *pypeer.Process) error {
		if err := putAll(x, y)(process); err != nil {
			return err
		}
		parameters := j.parameters()
		parameters["what"] = operation
		_, err := process.Run("hold", parameters)
		return err
	}
	return byPython(p, p.Name, k).Entry
}

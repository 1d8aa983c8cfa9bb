package solvers_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestStreamFaults makes one call of a device fail. The solver must return the error and free all memory.
func TestStreamFaults(t *testing.T) {
	x, y := sine(2, 90, 2)
	weights := make([]float64, 90)
	for i := range weights {
		weights[i] = float64(1 + i%2)
	}
	data := solvers.InMemory(x, y, weights, nil)
	runs := map[string]func(backend.Device) error{}
	for _, method := range []solvers.Method{solvers.Normal, solvers.Falkon} {
		for _, rule := range solvers.CenterRules() {
			runs[string(method)+" "+string(rule)] = func(dev backend.Device) error {
				_, err := solvers.SolveNystrom(context.Background(), dev, solvers.NystromProblem{
					Kernel: kernels.Gaussian{Sigma: 1}, Data: data, Lambda: 0.1, Intercept: true,
					Choice: solvers.CenterChoice{Rule: rule, Count: 20},
				}, solvers.StreamParams{Method: method})
				return err
			}
		}
	}
	runs["fourier"] = func(dev backend.Device) error {
		_, err := solvers.SolveFourier(context.Background(), dev, solvers.FourierProblem{
			Kernel: kernels.Gaussian{Sigma: 1}, Data: data, Lambda: 0.1, Count: 20,
		}, solvers.StreamParams{})
		return err
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			inner := backendtest.Device(t, "ref")
			failed := 0
			for faultCall := int64(1); ; faultCall += 1 + faultCall/60*4 { // skip more and more calls: testing all would take too long
				dev := &faulty{Device: inner, faultCall: faultCall}
				err := run(dev)
				if now, _ := inner.InUse(); now != 0 {
					t.Fatalf("call %d failed: %d bytes are left", faultCall, now)
				}
				if err == nil {
					if dev.calls.Load() >= faultCall {
						t.Fatalf("call %d of the device failed, but the function returned no error", faultCall)
					}
					break
				}
				if !errors.Is(err, errFaulty) {
					t.Fatalf("call %d failed: %v", faultCall, err)
				}
				failed++
			}
			if failed < 20 {
				t.Errorf("only %d calls can fail", failed)
			}
		})
	}
}

// sine returns n samples of a smooth function plus noise.
func sine(seed uint64, n, d int) (x, y backend.Host[float64]) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		s := 0.0
		for j := range d {
			v := r.NormFloat64()
			x.Row(i)[j] = v
			s += v / float64(j+1)
		}
		y.Row(i)[0] = math.Sin(2*s) + 0.1*r.NormFloat64()
	}
	return x, y
}

// Package solvertest is the suite that every method of package solvers passes. The test of a method is
//
//	func TestDual(t *testing.T) {
//		solvertest.Run(t, solvertest.Suite{Method: solvers.Dual, Kernels: …})
//	}
//
// in a file that imports the backends. The suite runs on every usable device and on a simulated device that, like a
// GPU, cannot use Go memory. With -short, it runs on the best device and on ref.
//
// The oracle solves the same system with numbers of 256 bits (oracle.go). The allowed difference of the two
// solutions follows from the condition number of the system.
package solvertest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Suite configures the suite for a method.
type Suite struct {
	Method  solvers.Method
	Params  solvers.Params   // params of every Solve; Run sets Method
	Kernels []kernels.Kernel // kernels that the method accepts
	Device  string           // the only device to test; "" means all
	// Features is the number of features of the samples; 0 means 4.
	Features int
	Sparse   bool // whether the samples are given as a backend.CSR
	// Able means that the method needs an optional ability of its device. Other devices are not tested.
	Able bool
	Seed uint64 // seed of all random numbers; 0 means 1
	// Tests names the tests to run; nil means all tests.
	Tests []string
}

// Run runs the suite on every device of EachDevice, or only on s.Device. With -short it uses only two of the
// kernels, and with required.FewCases a third of the tests for the second kernel and on ref.
func Run(t *testing.T, s Suite) {
	if s.Seed == 0 {
		s.Seed = 1
	}
	if testing.Short() {
		s.Kernels = s.Kernels[:min(2, len(s.Kernels))]
	}
	runOn := func(t *testing.T, open Open) {
		dev := open(t, backend.Config{})
		for i, k := range s.Kernels {
			t.Run(k.String(), func(t *testing.T) {
				reduced := i > 0 || s.Device == "" && dev.Info().Device == "ref"
				for j, test := range tests {
					if s.Tests != nil && !slices.Contains(s.Tests, test.name) || required.FewCases() && reduced && (i+j)%3 != 0 {
						continue
					}
					t.Run(test.name, func(t *testing.T) {
						c := &cell{T: t, open: open, dev: dev, method: s.Method, par: s.Params, able: s.Able, sparse: s.Sparse, kernel: k, features: cmp.Or(s.Features, 4), seed: s.Seed}
						c.par.Method = s.Method
						test.run(c)
						c.nothingLeft()
					})
				}
			})
		}
	}
	if s.Device != "" {
		t.Run(s.Device, func(t *testing.T) { runOn(t, openAs(s.Device, false)) })
		return
	}
	EachDevice(t, runOn)
}

var tests = []struct {
	name string
	run  func(*cell)
}{
	{"Oracle", testOracle},
	{"OneSample", testOneSample},
	{"Residual", testResidual},
	{"LargeLambda", testLargeLambda},
	{"SmallLambda", testSmallLambda},
	{"PermutedRows", testPermutedRows},
	{"ScaledTargets", testScaledTargets},
	{"ShiftedTargets", testShiftedTargets},
	{"ShiftedFeatures", testShiftedFeatures},
	{"WeightsAreRepetitions", testWeightsAreRepetitions},
	{"ZeroWeights", testZeroWeights},
	{"Outputs", testOutputs},
	{"DuplicateRows", testDuplicateRows},
	{"Conditions", testConditions},
	{"SameBits", testSameBits},
	{"Singular", testSingular},
	{"Memory", testMemory},
	{"Budget", testBudget},
	{"Progress", testProgress},
	{"Canceled", testCanceled},
	{"Faults", testFaults},
}

// Open opens the device under test and closes it when the test ends.
type Open func(t testing.TB, c backend.Config) backend.Device

// EachDevice runs f for every device of backendtest.Devices except the given ones. Without -short, f also runs for the
// device ref without its optional abilities.
func EachDevice(t *testing.T, f func(t *testing.T, open Open), except ...string) {
	t.Helper()
	for _, name := range backendtest.Devices(t) {
		if slices.Contains(except, name) {
			continue
		}
		t.Run(name, func(t *testing.T) { f(t, openAs(name, false)) })
		if name == "ref" && !testing.Short() {
			t.Run("ref without Wrap", func(t *testing.T) { f(t, openAs(name, true)) })
		}
	}
}

// openAs opens the named device, without its optional abilities if withoutAbilities is true.
func openAs(name string, withoutAbilities bool) Open {
	return func(t testing.TB, c backend.Config) backend.Device {
		t.Helper()
		dev, err := backend.Open(name, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		if withoutAbilities {
			return &device{Device: dev}
		}
		return dev
	}
}

// cell is the state of a test of one kernel on one device.
type cell struct {
	*testing.T
	open     Open
	dev      backend.Device
	method   solvers.Method
	par      solvers.Params
	able     bool
	sparse   bool
	features int
	kernel   kernels.Kernel
	seed     uint64
}

// random returns a random number generator with the suite's seed, and logs the seed.
func (c *cell) random() *rand.Rand {
	c.Logf("seed %d", c.seed)
	return rand.New(rand.NewPCG(c.seed, 0))
}

// form returns p with sparse samples if the suite has them.
func (c *cell) form(p solvers.Problem) solvers.Problem {
	if c.sparse && p.X.Cols > 0 {
		x := p.X.CSR()
		p.X, p.Sparse = backend.Host[float64]{}, &x
	}
	return p
}

// solve solves p by the method under test. An error ends the test.
func (c *cell) solve(p solvers.Problem) *solvers.Result {
	c.Helper()
	res, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.par)
	if err != nil {
		c.Fatal(err)
	}
	return res
}

// nothingLeft requires that all memory of the device has been freed.
func (c *cell) nothingLeft() {
	c.Helper()
	if now, _ := c.dev.InUse(); now != 0 {
		c.Errorf("%d bytes are left on the device", now)
	}
}

// forEach runs f with and without an intercept and weights, or with required.FewCases for two of the problems.
func (c *cell) forEach(f func(c *cell, p solvers.Problem)) {
	for _, intercept := range []bool{false, true} {
		for _, weighted := range []bool{false, true} {
			if required.FewCases() && weighted != intercept {
				continue
			}
			c.Run(fmt.Sprintf("intercept=%v,weights=%v", intercept, weighted), func(t *testing.T) {
				sub := *c
				sub.T = t
				p := sub.problem(sub.random(), 24, sub.features, 2)
				p.Intercept = intercept
				if !weighted {
					p.Weights = nil
				}
				f(&sub, p)
			})
		}
	}
}

package solvers

import (
	"context"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// A method is one way to solve a Problem. A new one is a file and a line in
// methods.
type method struct {
	name Method
	// count is the formula of its operations for n samples of d features, for those who
	// read Plan.Reason; empty where it depends on the spectrum of K.
	count string
	// estimate says what the method would do and take for a problem of these
	// sizes, or why it cannot solve it: "needs …: use …".
	estimate func(z *sizes, par Params) (estimate, error)
	// solve fills Result but for what Solve itself fills.
	solve func(w *work) error
	// only says that Auto leaves the method to those who ask for it.
	only bool
	// iterates says that the estimate looks at the spectrum of K.
	iterates bool
	// saves says that the method writes checkpoints.
	saves bool
}

// methods lists the ways to solve a Problem, the default for small ones first.
// It is filled by init because the methods use what uses it.
var methods []method

func init() {
	methods = []method{
		{name: Dual, count: "n²d + n³/3", estimate: dualEstimate, solve: (*work).dual},
		{name: Primal, count: "nd² + d³/3", estimate: primalEstimate, solve: (*work).primal},
		{name: Mixed, estimate: mixedEstimate, solve: (*work).mixed, iterates: true, saves: true},
		{name: OutOfCore, estimate: outOfCoreEstimate, solve: (*work).outOfCore, iterates: true},
		{name: CG, estimate: cgEstimate, solve: (*work).cg, iterates: true, saves: true},
		{name: Askotch, estimate: askotchEstimate, solve: (*work).askotch, only: true, saves: true},
	}
}

// Methods returns the names that Params.Method takes beside Auto.
func Methods() []Method {
	names := make([]Method, len(methods))
	for i, m := range methods {
		names[i] = m.name
	}
	return names
}

func lookUp(name Method) (method, error) {
	var names []string
	for _, m := range methods {
		if m.name == name {
			return m, nil
		}
		names = append(names, fmt.Sprintf("%q", m.name))
	}
	return method{}, fmt.Errorf("solvers: no method is called %q: there are %s", name, strings.Join(names, ", "))
}

// sizes is what an estimate may look at.
type sizes struct {
	n, d, t   int // rows that take part, features, outputs
	columns   int // right-hand sides: t, and one more when b is an unknown
	kernel    kernels.Kernel
	linear    bool
	bordered  bool  // b is an unknown of the dual system
	centered  bool  // X takes part centered
	weighted  bool  // the weights differ from 1
	wrapped   bool  // X takes part where it is, in Go memory
	available int64 // bytes that may be taken
	p         Problem
	dev       backend.Device
	ctx       context.Context // ends the estimates early, which are of no use then
	seen      *spectrum       // of K, once somebody has asked
}

// estimate is what a method would do and take.
type estimate struct {
	stages  []stage
	bytesOf func(n int) int64 // peak on the device for n rows; never falls with n
	cost    float64           // modeled time, in operations at the rate of a large float64 product
	note    string            // what was chosen within the method, for Plan.Reason; may be empty
	choice  any               // the same for its solve
}

// stage is a part of a Solve and its floating-point operations.
type stage struct {
	name  string
	flops float64
}

// place is the bytes of X on the device.
func (z *sizes) place(n int) int64 {
	if z.wrapped {
		return 0
	}
	return bytes(elements(n, z.d))
}

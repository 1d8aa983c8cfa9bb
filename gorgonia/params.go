package gorgonia

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/adjoint"
	"github.com/mercer-go/mercer/kernels"
	G "gorgonia.org/gorgonia"
)

// Params say what the nodes of this package compute with.
type Params struct {
	// Device does the work; backend.Open makes one. It must stay open as long as
	// a machine may run the graph.
	Device backend.Device
	// Kernel is k.
	Kernel kernels.Kernel
	// Theta is a node with the kernel's parameters in the order of
	// kernels.Params, a vector, or a scalar where there is one: ln θ where Log is
	// set there, θ elsewhere, so that every number is allowed. Nil leaves them as
	// Kernel has them. A parameter of Kernel that is set to 0 by its logarithm
	// stays 0.
	Theta *G.Node
	// Context ends the work of a run that is under way; nil is for no end.
	// Gorgonia's machines have none.
	Context context.Context
}

// ThetaOf returns the value that Params.Theta must have for k: its parameters, or
// their logarithms.
func ThetaOf(k kernels.Kernel) []float64 {
	params := kernels.Params(k)
	theta := make([]float64, len(params))
	for i, p := range params {
		theta[i] = p.Value
		if p.Log {
			theta[i] = math.Log(p.Value)
		}
	}
	return theta
}

// KernelAt returns k with the parameters theta, in the form of Params.Theta:
// what a training has ended with.
func KernelAt(k kernels.Kernel, theta []float64) (kernels.Kernel, error) {
	params := kernels.Params(k)
	values := append([]float64(nil), theta...)
	for i, p := range params {
		if i < len(values) && p.Log {
			values[i] = math.Exp(theta[i])
			if p.Value == 0 {
				values[i] = 0
			}
		}
	}
	changed, err := kernels.WithParams(k, values)
	if err != nil {
		return nil, fmt.Errorf("gorgonia: kernel: %w", err)
	}
	return changed, nil
}

func (p Params) context() context.Context {
	if p.Context == nil {
		return context.Background()
	}
	return p.Context
}

// check refuses what no run can work with; x is n×d.
func (p Params) check(x *G.Node) error {
	if p.Device == nil {
		return errors.New("no device was given")
	}
	if p.Kernel == nil {
		return errors.New("the kernel is nil")
	}
	if x == nil || x.Dims() != 2 {
		return errors.New("x must be a matrix, a point in each row")
	}
	if err := p.Kernel.Check(x.Shape()[1]); err != nil {
		return err
	}
	if err := kernels.CheckGrad(p.Kernel, x.Shape()[1]); err != nil {
		return err
	}
	if p.Theta != nil {
		n := len(kernels.Params(p.Kernel))
		if p.Theta.Dims() > 1 || p.Theta.Shape().TotalSize() != n {
			return fmt.Errorf("theta has shape %v, and %v has %d parameters", p.Theta.Shape(), p.Kernel, n)
		}
	}
	return nil
}

// at is the kernel of a run; theta is the last of the inputs where there is one.
func (p Params) at(in []value) (kernels.Kernel, error) {
	if p.Theta == nil {
		return p.Kernel, nil
	}
	return KernelAt(p.Kernel, in[len(in)-1].column())
}

// want selects gradients in addition to the gradients that are always computed.
func (p Params) want() adjoint.Want {
	if p.Theta == nil {
		return 0
	}
	return adjoint.WantTheta
}

// withTheta appends theta to the inputs and to their descriptions.
func (p Params) withTheta(f *function, inputs ...*G.Node) (*G.Node, error) {
	if p.Theta != nil {
		inputs = append(inputs, p.Theta)
	}
	for _, n := range inputs {
		f.in = append(f.in, n.Dims())
		f.wrt = append(f.wrt, true)
	}
	return f.apply(inputs...)
}

// thetaValue is the gradient by theta in its shape.
func thetaValue(g []float64, like value) value {
	v := vector(g)
	v.dims = like.dims
	return v
}

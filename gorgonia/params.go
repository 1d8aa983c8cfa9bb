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

// Params are the common parameters of the nodes of this package.
type Params struct {
	// Device executes the nodes; backend.Open returns a device. It must remain open until no machine runs the graph.
	Device backend.Device
	// Kernel is the kernel function k of the nodes.
	Kernel kernels.Kernel
	// Theta is a node with the kernel's parameters in the order of kernels.Params: a vector, or a scalar if there is
	// only one parameter. A parameter whose field Log is set is given by its logarithm; if it is 0 in Kernel, it
	// remains 0 and its element of Theta has no effect. nil means the parameters of Kernel.
	Theta *G.Node
	// Context cancels a run; nil means no cancellation. Gorgonia's machines do not accept a context.
	Context context.Context
}

// ThetaOf returns the parameters of k in the form of Params.Theta.
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

// KernelAt returns k with the parameters theta, in the form of Params.Theta, such as the value of that node after
// training.
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

// check returns an error if the params are invalid for the n×d node x.
func (p Params) check(x *G.Node) error {
	if p.Device == nil {
		return errors.New("no device was given")
	}
	if p.Kernel == nil {
		return errors.New("the kernel is nil")
	}
	if x == nil || x.Dims() != 2 {
		return errors.New("x must be a matrix with one point per row")
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

// kernelOf returns the kernel of a run, given the values of the inputs. The last value is that of Theta, if it is set.
func (p Params) kernelOf(in []value) (kernels.Kernel, error) {
	if p.Theta == nil {
		return p.Kernel, nil
	}
	return KernelAt(p.Kernel, in[len(in)-1].column())
}

func (p Params) want() adjoint.Want {
	if p.Theta == nil {
		return 0
	}
	return adjoint.WantTheta
}

// withTheta applies f to the inputs and to Theta, if it is set.
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

// thetaValue returns the gradient g with respect to theta in the shape of theta.
func thetaValue(g []float64, theta value) value {
	v := vector(g)
	v.dims = theta.dims
	return v
}

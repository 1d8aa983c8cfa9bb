package gorgonia

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/adjoint"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gram returns the n×m node K = k(X, Z) for the n×d node x and the m×d node z. If z is nil or x, K
// is the symmetric k(X, X). K has gradients with respect to x, z and Params.Theta.
func Gram(p Params, x, z *G.Node) (*G.Node, error) {
	if err := p.check(x); err != nil {
		return nil, fmt.Errorf("gorgonia: gram: %w", err)
	}
	symmetric := z == nil || z == x
	inputs := []*G.Node{x}
	if !symmetric {
		if err := sameFeatures(x, z); err != nil {
			return nil, fmt.Errorf("gorgonia: gram: %w", err)
		}
		inputs = append(inputs, z)
	}
	secondPoints := func(in []value) backend.Host[float64] {
		if symmetric {
			return backend.Host[float64]{}
		}
		return in[1].Host
	}
	f := &function{
		name: fmt.Sprintf("gram of %v on %p, symmetric: %t", p.Kernel, p.Device, symmetric),
		out:  2,
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			n := in[0][0]
			if symmetric {
				return tensor.Shape{n, n}, nil
			}
			return tensor.Shape{n, in[1][0]}, nil
		},
		forward: func(in []value) (value, error) {
			k, err := p.kernelOf(in)
			if err != nil {
				return value{}, err
			}
			z := secondPoints(in)
			m := z.Rows
			if symmetric {
				m = in[0].Rows
			}
			out := newValue(2, in[0].Rows, m)
			return out, adjoint.Gram(p.context(), p.Device, k, in[0].Host, z, out.Host)
		},
		backward: func(in []value, _, grad value, _ int) ([]value, error) {
			k, err := p.kernelOf(in)
			if err != nil {
				return nil, err
			}
			want := p.want() | adjoint.WantX
			if !symmetric {
				want |= adjoint.WantZ
			}
			g, err := adjoint.GramGradient(p.context(), p.Device, adjoint.GramLoss{Kernel: k, X: in[0].Host, Z: secondPoints(in), Weights: adjoint.Weights{Dense: grad.Host}}, want)
			if err != nil {
				return nil, err
			}
			gradients := []value{{g.X, 2}}
			if !symmetric {
				gradients = append(gradients, value{g.Z, 2})
			}
			if p.Theta != nil {
				gradients = append(gradients, thetaValue(g.Theta, in[len(in)-1]))
			}
			return gradients, nil
		},
	}
	return p.withTheta(f, inputs...)
}

func sameFeatures(x, z *G.Node) error {
	if z.Dims() != 2 || z.Shape()[1] != x.Shape()[1] {
		return fmt.Errorf("z has shape %v: it must be a matrix with the %d features of x", z.Shape(), x.Shape()[1])
	}
	return nil
}

package gorgonia

import (
	"fmt"

	"github.com/mercer-go/mercer/internal/adjoint"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Solve returns the node α = (K + λI)⁻¹y. k is a symmetric n×n node, of which only the lower triangle is read. y is
// a vector of n elements or an n×t matrix, and lambda is a scalar node. K + λI must be positive definite. The
// kernel of p is not used.
//
// There are gradients with respect to k, y and lambda. The gradient with respect to k is symmetric: it is correct
// if k remains symmetric.
func Solve(p Params, k, y, lambda *G.Node) (*G.Node, error) {
	if err := checkSolve(p, k, y, lambda); err != nil {
		return nil, fmt.Errorf("gorgonia: solve: %w", err)
	}
	suffix := fmt.Sprintf(" on %p", p.Device)
	factor := &function{
		name:  "cholesky factor" + suffix,
		in:    []int{2, 0},
		out:   2,
		shape: func(in []tensor.Shape) (tensor.Shape, error) { return in[0].Clone(), nil },
		forward: func(in []value) (value, error) {
			l := newValue(2, in[0].Rows, in[0].Cols)
			return l, adjoint.Factor(p.context(), p.Device, in[0].Host, in[1].float(), l.Host)
		},
	}
	l, err := factor.apply(k, lambda)
	if err != nil {
		return nil, err
	}
	solve := func(l, y value) (value, error) {
		out := newValue(y.dims, y.Rows, y.Cols)
		return out, adjoint.Solve(p.context(), p.Device, l.Host, y.Host, out.Host)
	}
	f := &function{
		name:     "solve" + suffix,
		in:       []int{2, y.Dims(), 0, 2},
		out:      y.Dims(),
		shape:    func(in []tensor.Shape) (tensor.Shape, error) { return in[1].Clone(), nil },
		wrt:      []bool{true, true, true, false},
		separate: true,
		forward:  func(in []value) (value, error) { return solve(in[3], in[1]) },
		backward: func(in []value, alpha, grad value, input int) ([]value, error) {
			u, err := solve(in[3], grad)
			if err != nil {
				return nil, err
			}
			gradients := make([]value, 4)
			gradients[1] = u
			if input == 1 {
				return gradients, nil
			}
			byK, byLambda, err := adjoint.SolveGradient(alpha.Host, u.Host)
			gradients[0], gradients[2] = value{byK, 2}, scalar(byLambda)
			return gradients, err
		},
	}
	return f.apply(k, y, lambda, l)
}

func checkSolve(p Params, k, y, lambda *G.Node) error {
	switch {
	case p.Device == nil:
		return fmt.Errorf("no device was given")
	case k == nil || k.Dims() != 2 || k.Shape()[0] != k.Shape()[1]:
		return fmt.Errorf("k must be a square matrix")
	}
	return checkTargets(y, lambda, k.Shape()[0])
}

func checkTargets(y, lambda *G.Node, n int) error {
	switch {
	case y == nil || y.Dims() < 1 || y.Dims() > 2 || y.Shape()[0] != n:
		return fmt.Errorf("y must be a vector of %d elements, or a matrix with as many rows", n)
	case lambda == nil || lambda.Dims() != 0:
		return fmt.Errorf("lambda must be a scalar")
	}
	return nil
}

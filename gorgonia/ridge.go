package gorgonia

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/adjoint"
	"github.com/mercer-go/mercer/kernels"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// KernelRidge returns the node of the predictions f = k(Z, X)α at the points of the m×d node z, where
// (k(X, X) + λI)α = y. x is an n×d node, y is a vector of n elements or an n×t matrix, and lambda is a scalar node.
// The result is a vector of m elements, or m×t. If z is nil or x, the predictions are at the points of x.
//
// There are gradients with respect to x, y, lambda, z and Params.Theta. The gradients also train
// nodes on which x and z depend, such as a network of features or a metric. A run takes n³/3
// operations, and its gradients take O(n²(d + t)). The node stores the factor of the forward pass
// for the gradients, 8n² bytes on the device, until the next run or Release.
func KernelRidge(p Params, x, y, lambda, z *G.Node) (*G.Node, error) {
	if err := p.check(x); err != nil {
		return nil, fmt.Errorf("gorgonia: kernel ridge: %w", err)
	}
	if err := checkTargets(y, lambda, x.Shape()[0]); err != nil {
		return nil, fmt.Errorf("gorgonia: kernel ridge: %w", err)
	}
	atTraining := z == nil || z == x
	inputs := []*G.Node{x, y, lambda}
	if !atTraining {
		if err := sameFeatures(x, z); err != nil {
			return nil, fmt.Errorf("gorgonia: kernel ridge: %w", err)
		}
		inputs = append(inputs, z)
	}
	r := &ridge{params: p, atTraining: atTraining}
	runtime.SetFinalizer(r, (*ridge).release)
	f := &function{
		name: fmt.Sprintf("kernel ridge of %v, number %p", p.Kernel, r),
		out:  y.Dims(),
		shape: func(in []tensor.Shape) (tensor.Shape, error) {
			s := in[1].Clone()
			if !atTraining {
				s[0] = in[3][0]
			}
			return s, nil
		},
		forward:  r.forward,
		backward: r.backward,
		release:  r.release,
	}
	return p.withTheta(f, inputs...)
}

// Release frees the device memory that a node of KernelRidge has kept since its last run. The node may run again.
func Release(n *G.Node) error {
	if f, ok := n.Op().(*function); ok && f.release != nil {
		f.release()
		return nil
	}
	return fmt.Errorf("gorgonia: release: %v is not a node of KernelRidge", n)
}

// ridge is the operation of one node. It uses the stored fit only for the inputs of that fit.
type ridge struct {
	params     Params
	atTraining bool

	mu     sync.Mutex
	fit    *adjoint.Ridge
	kernel kernels.Kernel
	inputs [3]value // x, y and lambda of the stored fit
}

func (r *ridge) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop()
}

func (r *ridge) drop() {
	if r.fit != nil {
		r.fit.Close()
		r.fit = nil
	}
}

// fitted returns the stored fit if its kernel and inputs are those of this run, otherwise a new fit.
func (r *ridge) fitted(in []value) (*adjoint.Ridge, error) {
	k, err := r.params.kernelOf(in)
	if err != nil {
		return nil, err
	}
	if r.fit != nil && kernels.Equal(r.kernel, k) && in[0].equal(r.inputs[0]) && in[1].equal(r.inputs[1]) && in[2].equal(r.inputs[2]) {
		return r.fit, nil
	}
	r.drop()
	// Copy the inputs: a machine may overwrite them before it computes the gradient.
	for i := range r.inputs {
		r.inputs[i] = in[i].clone()
	}
	r.kernel = k
	r.fit, err = adjoint.NewRidge(r.params.context(), r.params.Device, k, r.inputs[0].Host, r.inputs[1].Host, r.inputs[2].float())
	return r.fit, err
}

func (r *ridge) points(in []value) backend.Host[float64] {
	if r.atTraining {
		return backend.Host[float64]{}
	}
	return in[3].Host
}

func (r *ridge) forward(in []value) (value, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fit, err := r.fitted(in)
	if err != nil {
		return value{}, err
	}
	z := r.points(in)
	rows := z.Rows
	if r.atTraining {
		rows = in[0].Rows
	}
	out := newValue(in[1].dims, rows, in[1].Cols)
	return out, fit.Predict(r.params.context(), z, out.Host)
}

func (r *ridge) backward(in []value, _, grad value, _ int) ([]value, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fit, err := r.fitted(in)
	if err != nil {
		return nil, err
	}
	want := r.params.want() | adjoint.WantX
	if !r.atTraining {
		want |= adjoint.WantZ
	}
	g, err := fit.Gradient(r.params.context(), r.points(in), grad.Host, want)
	if err != nil {
		return nil, err
	}
	gradients := []value{{g.X, 2}, {g.Y, in[1].dims}, scalar(g.Lambda)}
	if !r.atTraining {
		gradients = append(gradients, value{g.Z, 2})
	}
	if r.params.Theta != nil {
		gradients = append(gradients, thetaValue(g.Theta, in[len(in)-1]))
	}
	return gradients, nil
}

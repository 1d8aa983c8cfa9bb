package gorgonia

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A function is the operation of a node: it computes the value and the gradients.
type function struct {
	// name identifies a function: Gorgonia merges nodes with the same name and the same children.
	name string
	// in and out are the numbers of dimensions of the inputs and of the result. shape returns the shape of the result.
	in    []int
	out   int
	shape func(in []tensor.Shape) (tensor.Shape, error)
	// forward computes the result in new memory without gaps.
	forward func(in []value) (value, error)
	// wrt reports, for each input, whether backward returns a gradient; nil means no gradients.
	wrt []bool
	// backward returns the gradients with respect to the inputs. If the argument input is ≥ 0, backward computes
	// only the gradient with respect to the input with that index. out is the result, and grad is the gradient with
	// respect to the result.
	backward func(in []value, out, grad value, input int) ([]value, error)
	// separate means that a separate node computes each gradient.
	separate bool
	// release frees state that remains between runs; it may be nil.
	release func()
}

var (
	_ G.SDOp = (*function)(nil)
	_ G.ADOp = (*function)(nil)
)

func (f *function) apply(children ...*G.Node) (*G.Node, error) {
	n, err := G.ApplyOp(f, children...)
	if err != nil {
		return nil, fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	return n, nil
}

// Arity and the following methods, up to String, implement G.Op.
func (f *function) Arity() int { return len(f.in) }

func (f *function) Type() hm.Type {
	a := hm.TypeVariable('a')
	var types []hm.Type
	for _, dims := range append(append([]int(nil), f.in...), f.out) {
		if dims == 0 {
			types = append(types, a)
		} else {
			types = append(types, G.TensorType{Dims: dims, Of: a})
		}
	}
	return hm.NewFnType(types...)
}

func (f *function) InferShape(in ...G.DimSizer) (tensor.Shape, error) {
	shapes, err := G.DimSizersToShapes(in)
	if err != nil {
		return nil, err
	}
	return f.shape(shapes)
}

func (f *function) Do(in ...G.Value) (G.Value, error) {
	values, err := f.values(in)
	if err != nil {
		return nil, err
	}
	out, err := f.forward(values)
	if err != nil {
		return nil, fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	return out.gorgonia(in[0].Dtype())
}

func (f *function) values(in []G.Value) ([]value, error) {
	if len(in) != len(f.in) {
		return nil, fmt.Errorf("gorgonia: %s: %d inputs, want %d", f.name, len(in), len(f.in))
	}
	values := make([]value, len(in))
	for i, v := range in {
		var err error
		if values[i], err = valueOf(v); err != nil {
			return nil, fmt.Errorf("gorgonia: %s: input %d: %w", f.name, i+1, err)
		}
	}
	return values, nil
}

func (f *function) ReturnsPtr() bool      { return true }
func (f *function) CallsExtern() bool     { return false }
func (f *function) OverwritesInput() int  { return -1 }
func (f *function) WriteHash(h hash.Hash) { fmt.Fprintf(h, "mercer %s %v %d", f.name, f.in, f.out) }
func (f *function) String() string        { return f.name }

func (f *function) Hashcode() uint32 {
	h := fnv.New32a()
	f.WriteHash(h)
	return h.Sum32()
}

// DiffWRT implements G.SDOp. The result is not empty: Gorgonia takes an empty result for the end of the graph.
func (f *function) DiffWRT(inputs int) []bool {
	if f.wrt == nil {
		return make([]bool, inputs)
	}
	return f.wrt
}

// SymDiff implements G.SDOp. It makes a node for each gradient if f.separate is set, and otherwise one node for the
// concatenated gradients and a node for each part.
func (f *function) SymDiff(inputs G.Nodes, output, grad *G.Node) (G.Nodes, error) {
	if f.backward == nil {
		return nil, fmt.Errorf("gorgonia: %s: second derivatives are not supported", f.name)
	}
	operands := append(append(G.Nodes{}, inputs...), output, grad)
	gradients := make(G.Nodes, len(inputs))
	if f.separate {
		for i, in := range inputs {
			if f.wrt[i] {
				var err error
				if gradients[i], err = f.gradient(i, in.Shape(), grad.Dims()).apply(operands...); err != nil {
					return nil, err
				}
			}
		}
		return gradients, nil
	}
	total := 0
	for i, in := range inputs {
		if f.wrt[i] {
			total += in.Shape().TotalSize()
		}
	}
	packed, err := f.gradient(-1, tensor.Shape{total}, grad.Dims()).apply(operands...)
	if err != nil {
		return nil, err
	}
	first := 0
	for i, in := range inputs {
		if f.wrt[i] {
			if gradients[i], err = part(first, in.Shape()).apply(packed); err != nil {
				return nil, err
			}
			first += in.Shape().TotalSize()
		}
	}
	return gradients, nil
}

// gradient returns a function that computes the gradient with respect to input i, or the concatenated gradients if
// i < 0, from the inputs of f, the output, and the gradient with respect to the output.
func (f *function) gradient(i int, shape tensor.Shape, gradDims int) *function {
	shape = shape.Clone()
	name := fmt.Sprintf("gradient of %s by input %d", f.name, i+1)
	if i < 0 {
		name = "gradients of " + f.name
	}
	return &function{
		name: name,
		in:   append(append([]int(nil), f.in...), f.out, gradDims),
		out:  len(shape),
		shape: func([]tensor.Shape) (tensor.Shape, error) {
			return shape.Clone(), nil
		},
		forward: func(in []value) (value, error) {
			n := len(f.in)
			g, err := f.backward(in[:n], in[n], in[n+1], i)
			if err != nil {
				return value{}, err
			}
			if i >= 0 {
				return g[i], nil
			}
			packed := newValue(1, shape[0], 1)
			next := packed.Data
			for i, v := range g {
				if f.wrt[i] {
					for r := range v.Rows {
						next = next[copy(next, v.Row(r)):]
					}
				}
			}
			if len(next) > 0 {
				return value{}, errors.New("the gradients have fewer elements than the inputs")
			}
			return packed, nil
		},
	}
}

// part returns a function that copies elements of a vector to a new shape. Gorgonia may reuse the vector's memory.
func part(first int, shape tensor.Shape) *function {
	shape = shape.Clone()
	return &function{
		name:  fmt.Sprintf("elements of shape %v from %d on", shape, first),
		in:    []int{1},
		out:   len(shape),
		shape: func([]tensor.Shape) (tensor.Shape, error) { return shape.Clone(), nil },
		forward: func(in []value) (value, error) {
			rows, cols := 1, 1
			if len(shape) > 0 {
				rows = shape[0]
			}
			if len(shape) > 1 {
				cols = shape[1]
			}
			v := newValue(len(shape), rows, cols)
			for i := range v.Data {
				v.Data[i] = in[0].Row(first + i)[0]
			}
			return v, nil
		},
	}
}

// DoDiff implements G.ADOp for the LispMachine. It adds the gradients to the existing gradients of the inputs.
func (f *function) DoDiff(_ G.ExecutionContext, inputs G.Nodes, output *G.Node) error {
	if f.backward == nil {
		return nil
	}
	in := make([]G.Value, len(inputs))
	for i, n := range inputs {
		in[i] = n.Value()
	}
	values, err := f.values(in)
	if err != nil {
		return err
	}
	out, err := valueOf(output.Value())
	if err != nil {
		return fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	byOut, err := output.Grad()
	if err != nil {
		return fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	grad, err := valueOf(byOut)
	if err != nil {
		return fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	gradients, err := f.backward(values, out, grad, -1)
	if err != nil {
		return fmt.Errorf("gorgonia: %s: %w", f.name, err)
	}
	for i, n := range inputs {
		if !f.wrt[i] {
			continue
		}
		d, err := n.Grad()
		if err != nil {
			continue // a constant has no gradient
		}
		if err := gradients[i].addTo(d); err != nil {
			return fmt.Errorf("gorgonia: %s: input %d: %w", f.name, i+1, err)
		}
	}
	return nil
}

package gorgonia

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"gorgonia.org/tensor"
)

// HostOf returns a tensor of one or two dimensions as a matrix that shares its memory; a vector of
// n elements is n×1. It fails if the elements are not of type T, if they are in the memory of a
// device, or if the elements of a row are not adjacent, as after a transposition. Slices of rows
// and of columns are accepted.
func HostOf[T backend.Float](t *tensor.Dense) (backend.Host[T], error) {
	var h backend.Host[T]
	if t == nil {
		return h, errors.New("gorgonia: host of a tensor: it is nil")
	}
	if !t.IsNativelyAccessible() {
		return h, errors.New("gorgonia: host of a tensor: it is not in the processor's memory")
	}
	data, ok := t.Data().([]T)
	if !ok && t.IsScalar() {
		return h, errors.New("gorgonia: a scalar tensor cannot be converted to a matrix")
	}
	if !ok {
		return h, fmt.Errorf("gorgonia: host of a tensor: its elements are %v, not %T", t.Dtype(), *new(T))
	}
	shape, strides := t.Shape(), t.Strides()
	switch {
	case len(shape) == 1 && len(strides) == 1:
		h = backend.Host[T]{Rows: shape[0], Cols: 1, Stride: strides[0], Data: data}
	case len(shape) == 2 && len(strides) == 2 && strides[1] == 1 && strides[0] >= shape[1]:
		h = backend.Host[T]{Rows: shape[0], Cols: shape[1], Stride: strides[0], Data: data}
	case len(shape) == 2 && len(strides) == 1: // the tensor is one row or one column of a larger tensor
		h = backend.Host[T]{Rows: shape[0], Cols: shape[1], Stride: strides[0], Data: data}
		if shape[0] == 1 && strides[0] == 1 {
			h.Stride = shape[1]
		}
		if shape[0] != 1 && shape[1] != 1 || h.Stride < h.Cols {
			return backend.Host[T]{}, fmt.Errorf("gorgonia: host of a tensor: shape %v with strides %v does not have contiguous rows: use its Materialize or Clone", shape, strides)
		}
	default:
		return h, fmt.Errorf("gorgonia: host of a tensor: shape %v with strides %v is not a row-major matrix: use its Materialize or Clone", shape, strides)
	}
	if len(data) < (h.Rows-1)*h.Stride+h.Cols {
		return backend.Host[T]{}, fmt.Errorf("gorgonia: host of a tensor: shape %v with strides %v does not fit in %d elements", shape, strides, len(data))
	}
	return h, nil
}

// TensorOf returns a matrix as a tensor of two dimensions that shares its memory; it returns one
// column of a wider matrix as a vector. It fails if the matrix is empty, or if it has a gap between
// rows but not after the last row, because slices of a tensor consist of whole rows of memory.
func TensorOf[T backend.Float](h backend.Host[T]) (*tensor.Dense, error) {
	if h.Rows < 1 || h.Cols < 1 {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: it is empty: %d rows, %d columns", h.Rows, h.Cols)
	}
	needs := (h.Rows-1)*h.Stride + h.Cols
	if h.Stride < h.Cols || len(h.Data) < needs {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: a %d×%d matrix with stride %d does not fit in %d elements", h.Rows, h.Cols, h.Stride, len(h.Data))
	}
	if h.Stride == h.Cols || h.Rows == 1 {
		return tensor.New(tensor.WithShape(h.Rows, h.Cols), tensor.WithBacking(h.Data[:needs])), nil
	}
	whole := h.Rows * h.Stride
	if cap(h.Data) < whole {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: a %d×%d matrix with stride %d has too few elements to be a slice of a tensor: it needs %d, and has %d", h.Rows, h.Cols, h.Stride, whole, len(h.Data))
	}
	t := tensor.New(tensor.WithShape(h.Rows, h.Stride), tensor.WithBacking(h.Data[:whole]))
	view, err := t.Slice(nil, tensor.S(0, h.Cols))
	if err != nil {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: %w", err)
	}
	return view.(*tensor.Dense), nil
}

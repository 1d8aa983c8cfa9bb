package gorgonia

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"gorgonia.org/tensor"
)

// HostOf returns a tensor of one or two dimensions as a matrix that shares its memory. A vector of
// n elements becomes n×1. The elements of a row must be adjacent, which is true for slices of rows
// and of columns, but not for transposed tensors. HostOf returns an error if the elements are not
// adjacent, have a type other than T, or are in the memory of a device.
func HostOf[T backend.Float](t *tensor.Dense) (backend.Host[T], error) {
	var h backend.Host[T]
	if t == nil {
		return h, errors.New("gorgonia: host of a tensor: the tensor is nil")
	}
	if !t.IsNativelyAccessible() {
		return h, errors.New("gorgonia: host of a tensor: the tensor is not in the processor's memory")
	}
	data, ok := t.Data().([]T)
	if !ok && t.IsScalar() {
		return h, errors.New("gorgonia: a scalar tensor cannot be converted to a matrix")
	}
	if !ok {
		return h, fmt.Errorf("gorgonia: host of a tensor: the elements are %v, not %T", t.Dtype(), *new(T))
	}
	shape, strides := t.Shape(), t.Strides()
	switch {
	case len(shape) == 1 && len(strides) == 1:
		h = backend.Host[T]{Rows: shape[0], Cols: 1, Stride: strides[0], Data: data}
	case len(shape) == 2 && len(strides) == 2 && strides[1] == 1 && strides[0] >= shape[1]:
		h = backend.Host[T]{Rows: shape[0], Cols: shape[1], Stride: strides[0], Data: data}
	case len(shape) == 2 && len(strides) == 1: // a row or a column of a larger tensor
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

// TensorOf returns a matrix as a tensor of two dimensions that shares its memory. A column of a wider matrix becomes a
// vector. TensorOf returns an error for an empty matrix, or if rows have gaps and cap(h.Data) < h.Rows·h.Stride.
func TensorOf[T backend.Float](h backend.Host[T]) (*tensor.Dense, error) {
	if h.Rows < 1 || h.Cols < 1 {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: the matrix is empty: %d rows, %d columns", h.Rows, h.Cols)
	}
	minLen := (h.Rows-1)*h.Stride + h.Cols
	if h.Stride < h.Cols || len(h.Data) < minLen {
		return nil, fmt.Errorf("gorgonia: tensor of a matrix: a %d×%d matrix with stride %d does not fit in %d elements", h.Rows, h.Cols, h.Stride, len(h.Data))
	}
	if h.Stride == h.Cols || h.Rows == 1 {
		return tensor.New(tensor.WithShape(h.Rows, h.Cols), tensor.WithBacking(h.Data[:minLen])), nil
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

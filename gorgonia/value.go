package gorgonia

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A value is the value of a node as a matrix of float64. A scalar is 1×1, and a vector of n elements is n×1.
type value struct {
	backend.Host[float64]
	dims int
}

func newValue(dims, rows, cols int) value {
	return value{backend.NewHost[float64](rows, cols), dims}
}

func scalar(v float64) value {
	s := newValue(0, 1, 1)
	s.Data[0] = v
	return s
}

// vector returns v as the value of a vector.
func vector(v []float64) value {
	return value{backend.Host[float64]{Rows: len(v), Cols: 1, Stride: 1, Data: v}, 1}
}

func (v value) float() float64 { return v.Data[0] }

// column returns the elements of a vector or a scalar as a slice.
func (v value) column() []float64 {
	list := make([]float64, v.Rows)
	for i := range list {
		list[i] = v.Row(i)[0]
	}
	return list
}

// clone returns a copy without gaps between rows.
func (v value) clone() value {
	c := newValue(v.dims, v.Rows, v.Cols)
	for i := range v.Rows {
		copy(c.Row(i), v.Row(i))
	}
	return c
}

// equal reports whether two values have the same shape and equal elements by ==.
func (v value) equal(o value) bool {
	if v.dims != o.dims || v.Rows != o.Rows || v.Cols != o.Cols {
		return false
	}
	for i := range v.Rows {
		a := o.Row(i)
		for j, x := range v.Row(i) {
			if x != a[j] {
				return false
			}
		}
	}
	return true
}

// valueOf returns a node's value. It shares the memory of a row-major float64 tensor and copies other values.
func valueOf(v G.Value) (value, error) {
	switch v := v.(type) {
	case *G.F64:
		return scalar(float64(*v)), nil
	case *G.F32:
		return scalar(float64(*v)), nil
	case *tensor.Dense:
		return denseValue(v)
	}
	return value{}, fmt.Errorf("a value of type %T is neither a float nor a dense tensor", v)
}

func denseValue(t *tensor.Dense) (value, error) {
	dims := t.Dims()
	if t.IsScalar() {
		switch v := t.Data().(type) {
		case float64:
			return scalar(v), nil
		case float32:
			return scalar(float64(v)), nil
		case []float64:
			return scalar(v[0]), nil
		case []float32:
			return scalar(float64(v[0])), nil
		}
	}
	if h, err := HostOf[float64](t); err == nil {
		return value{h, dims}, nil
	}
	if h, err := HostOf[float32](t); err == nil {
		w := newValue(dims, h.Rows, h.Cols)
		for i := range h.Rows {
			row := w.Row(i)
			for j, v := range h.Row(i) {
				row[j] = float64(v)
			}
		}
		return w, nil
	}
	if dims < 1 || dims > 2 {
		return value{}, fmt.Errorf("a tensor of %d dimensions is not a matrix", dims)
	}
	shape := t.Shape()
	cols := 1
	if dims == 2 {
		cols = shape[1]
	}
	w := newValue(dims, shape[0], cols)
	for i := range w.Rows {
		for j := range w.Cols {
			index := []int{i, j}[:dims]
			e, err := t.At(index...)
			if err != nil {
				return value{}, err
			}
			switch e := e.(type) {
			case float64:
				w.Row(i)[j] = e
			case float32:
				w.Row(i)[j] = float64(e)
			default:
				return value{}, fmt.Errorf("elements are %v, not floats", t.Dtype())
			}
		}
	}
	return w, nil
}

// gorgonia converts v, which must have no gaps, to a value for a node of the type dtype.
func (v value) gorgonia(dtype tensor.Dtype) (G.Value, error) {
	shape := v.shape()
	switch {
	case dtype == tensor.Float64 && v.dims == 0:
		f := G.F64(v.float())
		return &f, nil
	case dtype == tensor.Float64:
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v.Data)), nil
	case dtype == tensor.Float32 && v.dims == 0:
		f := G.F32(v.float())
		return &f, nil
	case dtype == tensor.Float32:
		data := make([]float32, len(v.Data))
		for i, x := range v.Data {
			data[i] = float32(x)
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data)), nil
	}
	return nil, fmt.Errorf("nodes of type %v are not supported: use Float64 or Float32", dtype)
}

func (v value) shape() tensor.Shape {
	return tensor.Shape{v.Rows, v.Cols}[:v.dims]
}

// addTo adds v to dst, the value of a node, in place.
func (v value) addTo(dst G.Value) error {
	switch d := dst.(type) {
	case *G.F64:
		*d += G.F64(v.float())
		return nil
	case *G.F32:
		*d += G.F32(v.float())
		return nil
	case *tensor.Dense:
		if h, err := HostOf[float64](d); err == nil && h.Rows == v.Rows && h.Cols == v.Cols {
			addHost(h, v)
			return nil
		}
		if h, err := HostOf[float32](d); err == nil && h.Rows == v.Rows && h.Cols == v.Cols {
			addHost(h, v)
			return nil
		}
	}
	return fmt.Errorf("a gradient of shape %v cannot be added to %T of shape %v", v.shape(), dst, dst.Shape())
}

func addHost[T backend.Float](h backend.Host[T], v value) {
	for i := range h.Rows {
		row := h.Row(i)
		for j, x := range v.Row(i) {
			row[j] += T(x)
		}
	}
}

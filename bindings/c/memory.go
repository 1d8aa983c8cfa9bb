package main

/*
#include "mercer.h"

typedef const char text;
typedef const mercer_matrix matrix;
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bindings/c/internal/handles"
)

// What stands here makes Go values of the caller's memory. Slices share it: Go's
// collector knows nothing of it, and nothing may keep one after the call.

// textOf returns a copy of a text; "" for NULL.
func textOf(s *C.text) string { return C.GoString((*C.char)(unsafe.Pointer(s))) }

// textsOf returns copies of texts up to NULL; nil for NULL.
func textsOf(list **C.char) []string {
	if list == nil {
		return nil
	}
	texts := []string{}
	for p := list; *p != nil; p = (**C.char)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(p))) {
		texts = append(texts, C.GoString(*p))
	}
	return texts
}

// slice returns n elements at p.
func slice[T any](name string, p unsafe.Pointer, n int64) ([]T, error) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	switch {
	case n < 0 || n > math.MaxInt64/size:
		return nil, fmt.Errorf("libmercer: %s: %d elements cannot be", name, n)
	case n == 0:
		return nil, nil
	case p == nil:
		return nil, fmt.Errorf("libmercer: %s is NULL", name)
	case uintptr(p)%unsafe.Alignof(zero) != 0:
		return nil, fmt.Errorf("libmercer: %s is not aligned to %d bytes", name, unsafe.Alignof(zero))
	}
	return unsafe.Slice((*T)(p), n), nil
}

// matrixOf returns the caller's matrix; NULL is an empty one where it may be.
func matrixOf(name string, m *C.matrix, optional bool) (h handles.Matrix, err error) {
	if m == nil {
		if !optional {
			err = fmt.Errorf("libmercer: %s is NULL", name)
		}
		return h, err
	}
	switch m._type {
	case C.MERCER_FLOAT64:
		h.F64, err = hostOf[float64](name, m)
	case C.MERCER_FLOAT32:
		h.F32, err = hostOf[float32](name, m)
	default:
		err = fmt.Errorf("libmercer: %s: there is no type %d of elements", name, int(m._type))
	}
	return h, err
}

func hostOf[T backend.Float](name string, m *C.matrix) (backend.Host[T], error) {
	rows, cols, stride := int64(m.rows), int64(m.cols), int64(m.stride)
	if rows <= 0 || cols <= 0 {
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s is empty: %d rows, %d columns", name, rows, cols)
	}
	if stride < cols {
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s: stride %d is less than %d columns", name, stride, cols)
	}
	if rows-1 > (math.MaxInt64/8-cols)/stride {
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s: %d rows with stride %d cannot be", name, rows, stride)
	}
	data, err := slice[T](name, m.data, (rows-1)*stride+cols)
	return backend.Host[T]{Rows: int(rows), Cols: int(cols), Stride: int(stride), Data: data}, err
}

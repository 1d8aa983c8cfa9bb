package main

/*
#include "mercer.h"

typedef const char text;
typedef const mercer_matrix matrix;
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/mercer-go/mercer/bindings/c/internal/handles"
)

// What stands here makes Go values of the caller's memory. Matrices share it: Go's
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
		h.F64, err = handles.SharedMatrix[float64](name, m.data, int64(m.rows), int64(m.cols), int64(m.stride))
	case C.MERCER_FLOAT32:
		h.F32, err = handles.SharedMatrix[float32](name, m.data, int64(m.rows), int64(m.cols), int64(m.stride))
	default:
		err = fmt.Errorf("libmercer: %s: there is no type %d of elements", name, int(m._type))
	}
	return h, err
}

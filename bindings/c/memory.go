package main

/*
#include "mercer.h"

typedef const char text;
typedef const double numbers;
typedef const mercer_matrix matrix;
typedef const mercer_csr csr;
*/
import "C"

import (
	"context"
	"fmt"
	"runtime/cgo"
	"unsafe"

	"github.com/mercer-go/mercer/bindings/c/internal/handles"
	"github.com/mercer-go/mercer/solvers"
)

// The matrices of this file share the caller's memory and must not be used after the call has returned.

// textOf returns a copy of a text, or "" for NULL.
func textOf(s *C.text) string { return C.GoString((*C.char)(unsafe.Pointer(s))) }

// textsOf returns copies of the texts of a list that ends with NULL, or nil for a NULL list.
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

// arguments makes Go values from the arguments of a call. After the first error its methods return zero values.
type arguments struct{ err error }

// valueOf calls get, records its error in a, and returns its value. It does not call get if a holds an error.
func valueOf[T any](a *arguments, get func() (T, error)) (t T) {
	if a.err == nil {
		t, a.err = get()
	}
	return t
}

// requireResult records an error if the caller passed NULL as the memory for a result.
func (a *arguments) requireResult(name string, present bool) {
	if a.err == nil && !present {
		a.err = fmt.Errorf("libmercer: %s is NULL: there must be memory for the result", name)
	}
}

func (a *arguments) device(h C.mercer_handle) *handles.Device {
	if h == 0 {
		return valueOf(a, handles.Default)
	}
	return handleOf[*handles.Device](a, h, "device")
}

func (a *arguments) model(h C.mercer_handle) *handles.Model {
	return handleOf[*handles.Model](a, h, "model")
}

func (a *arguments) factor(h C.mercer_handle) *handles.Factor {
	return handleOf[*handles.Factor](a, h, "factor")
}

// handleOf returns the object of a handle, and records an error if the object is not a T.
func handleOf[T any](a *arguments, h C.mercer_handle, kind string) T {
	return valueOf(a, func() (t T, err error) {
		v, err := lookup(h)
		if err != nil {
			return t, err
		}
		t, ok := v.(T)
		if !ok {
			err = fmt.Errorf("libmercer: the handle %d does not refer to a %s", uint64(h), kind)
		}
		return t, err
	})
}

func (a *arguments) numbers(name string, p *C.numbers, n int64) []float64 {
	return valueOf(a, func() ([]float64, error) { return handles.Shared[float64](name, unsafe.Pointer(p), n) })
}

// optional is like numbers, but returns nil for NULL.
func (a *arguments) optional(name string, p *C.numbers, n int64) []float64 {
	if p == nil {
		return nil
	}
	return a.numbers(name, p, n)
}

func (a *arguments) matrix(name string, m *C.matrix) handles.Matrix {
	if m == nil && a.err == nil {
		a.err = fmt.Errorf("libmercer: %s is NULL", name)
	}
	return a.optionalMatrix(name, m)
}

// optionalMatrix is like matrix, but returns an empty matrix for NULL.
func (a *arguments) optionalMatrix(name string, m *C.matrix) handles.Matrix {
	return valueOf(a, func() (h handles.Matrix, err error) {
		if m == nil {
			return h, nil
		}
		switch m._type {
		case C.MERCER_FLOAT64:
			h.F64, err = handles.SharedMatrix[float64](name, m.data, int64(m.rows), int64(m.cols), int64(m.stride))
		case C.MERCER_FLOAT32:
			h.F32, err = handles.SharedMatrix[float32](name, m.data, int64(m.rows), int64(m.cols), int64(m.stride))
		case C.MERCER_CSR:
			c := (*C.csr)(m.data)
			if c == nil {
				return h, fmt.Errorf("libmercer: %s.data is NULL", name)
			}
			h.CSR, err = handles.SharedCSR(name, int64(m.rows), int64(m.cols), unsafe.Pointer(c.indptr), unsafe.Pointer(c.indices), unsafe.Pointer(c.data))
		default:
			err = fmt.Errorf("libmercer: %s: %d is not an element type", name, int(m._type))
		}
		return h, err
	})
}

// work runs f with the context and the progress of a mercer_watch, unless an argument is invalid.
func (a *arguments) work(w *C.mercer_watch, f func(ctx context.Context, report func(solvers.Progress)) error) error {
	if a.err != nil {
		return a.err
	}
	callState := newCallState(w)
	defer callState.close()
	return unlocked(func() error { return f(callState.ctx, callState.report) })
}

// unlocked runs f in a goroutine of its own. In the goroutine of a call from C, which is bound to the caller's thread,
// every wait is slow.
func unlocked(f func() error) (err error) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		err = f()
	}()
	if r := <-done; r != nil {
		panic(r)
	}
	return err
}

// create is like work, for a call that creates an object, whose handle it writes to the caller's memory.
func (a *arguments) create(w *C.mercer_watch, name string, to *C.mercer_handle, f func(ctx context.Context, report func(solvers.Progress)) (any, error)) error {
	a.requireResult(name, to != nil)
	return a.work(w, func(ctx context.Context, report func(solvers.Progress)) error {
		v, err := f(ctx, report)
		if err == nil {
			*to = C.mercer_handle(cgo.NewHandle(v))
		}
		return err
	})
}

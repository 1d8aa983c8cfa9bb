// Command libmercer is the C shared library libmercer.so: `make libmercer`. mercer.h describes it. This package
// only translates between C and package handles.
package main

/*
#include <stdlib.h>
#include "mercer.h"
#include "last_error.h"

// These types contain const, which cgo cannot express. They let the compiler check the exported
// functions against the declarations of the header.
typedef const char text;
typedef const void bytes;
typedef const mercer_matrix matrix;
typedef const mercer_learner learner;
*/
import "C"

import (
	"context"
	"fmt"
	"runtime/cgo"
	"strings"
	"unsafe"

	_ "github.com/mercer-go/mercer/backend/ref" // registers the device "ref"
	"github.com/mercer-go/mercer/bindings/c/internal/handles"
	_ "github.com/mercer-go/mercer/cpu"  // registers the devices "cpu/..."
	_ "github.com/mercer-go/mercer/cuda" // registers the devices "cuda/..."
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/solvers"
)

func main() {} // a C shared library must have the function main; nothing calls it

// guard runs f, stores the text of its error or panic for mercer_last_error, and returns the status.
func guard(f func() error) (status C.int) {
	defer func() {
		if r := recover(); r != nil {
			status = fail(handles.Panic, fmt.Sprintf("libmercer: a defect in the library: %v", r))
		}
	}()
	if err := f(); err != nil {
		return fail(handles.StatusOf(err), threadNames().Text(err))
	}
	return C.int(handles.OK)
}

// threadNames returns the parameter names that the calling thread passed to mercer_set_names, or nil.
func threadNames() handles.Names {
	names := C.mercer_names()
	if names == nil {
		return nil
	}
	return handles.ParseNames(strings.Split(strings.TrimSuffix(C.GoString(names), "\n"), "\n"))
}

func fail(status handles.Status, text string) C.int {
	text = message.Fit(text)
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	C.mercer_set_error(c, C.size_t(len(text)))
	return C.int(status)
}

func lookup(h C.mercer_handle) (v any, err error) {
	defer func() {
		if recover() != nil { // cgo.Handle panics for an unknown number
			err = fmt.Errorf("libmercer: %d is not a handle, or has been freed", uint64(h))
		}
	}()
	return cgo.Handle(h).Value(), nil
}

// describer is implemented by all objects of handles.
type describer interface {
	Describe(handles.Names) (string, error)
	Free() error
}

//export mercer_free
func mercer_free(h C.mercer_handle) C.int {
	return guard(func() error {
		if h == 0 {
			return nil
		}
		var a arguments
		v := handleOf[describer](&a, h, "device, model or factor")
		if a.err != nil {
			return a.err
		}
		if err := v.Free(); err != nil {
			return err
		}
		cgo.Handle(h).Delete()
		return nil
	})
}

//export mercer_describe
func mercer_describe(h C.mercer_handle, json **C.char) C.int {
	return guard(func() error {
		var a arguments
		a.requireResult("json", json != nil)
		describe := handles.About
		if h != 0 {
			describe = func(names handles.Names) (string, error) {
				v := handleOf[describer](&a, h, "device, model or factor")
				if a.err != nil {
					return "", a.err
				}
				return v.Describe(names)
			}
		}
		text := valueOf(&a, func() (string, error) { return describe(threadNames()) })
		if a.err == nil {
			*json = C.CString(text)
		}
		return a.err
	})
}

//export mercer_release
func mercer_release(given unsafe.Pointer) { C.free(given) }

//export mercer_open
func mercer_open(name *C.text, threads C.int, memory C.int64_t, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		return a.create(nil, "device", to, func(context.Context, func(solvers.Progress)) (any, error) {
			return handles.Open(textOf(name), int(threads), int64(memory))
		})
	})
}

//export mercer_save
func mercer_save(model C.mercer_handle, path *C.text) C.int {
	return guard(func() error {
		var a arguments
		m := a.model(model)
		if a.err != nil {
			return a.err
		}
		return m.Save(textOf(path))
	})
}

//export mercer_load
func mercer_load(path *C.text, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		return a.create(nil, "model", to, func(context.Context, func(solvers.Progress)) (any, error) {
			return handles.Load(textOf(path))
		})
	})
}

//export mercer_dump
func mercer_dump(model C.mercer_handle, bytes *unsafe.Pointer, size *C.size_t) C.int {
	return guard(func() error {
		var a arguments
		a.requireResult("bytes or size", bytes != nil && size != nil)
		m := a.model(model)
		if a.err != nil {
			return a.err
		}
		b, err := m.Bytes()
		if err != nil {
			return err
		}
		*bytes, *size = C.CBytes(b), C.size_t(len(b))
		return nil
	})
}

//export mercer_parse
func mercer_parse(data *C.bytes, size C.size_t, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		b := valueOf(&a, func() ([]byte, error) { return handles.Shared[byte]("bytes", unsafe.Pointer(data), int64(size)) })
		return a.create(nil, "model", to, func(context.Context, func(solvers.Progress)) (any, error) {
			return handles.FromBytes(b)
		})
	})
}

package driver

import (
	"errors"
	"fmt"
	"strings"
)

// Result is a CUresult.
type Result int32

// These results need special handling.
const (
	Success        Result = 0
	OutOfMemory    Result = 2
	InvalidImage   Result = 200
	NoBinary       Result = 209 // no binary for this GPU
	IllegalAddress Result = 700
)

// Error reports a failed call of a library.
type Error struct {
	Op   string // name of the function that was called
	Code int    // the result code
	Name string // the name of the code, or "" if the library does not provide it
	Text string // the meaning of the code
}

func (e *Error) Error() string {
	switch {
	case e.Name != "" && e.Text != "":
		return fmt.Sprintf("%s: %s (%d): %s", e.Op, e.Name, e.Code, e.Text)
	case e.Name != "":
		return fmt.Sprintf("%s: %s (%d)", e.Op, e.Name, e.Code)
	}
	return fmt.Sprintf("%s: error %d", e.Op, e.Code)
}

// Is reports whether target is errors.ErrUnsupported and the code means that the library does not
// support the function for this device or these types.
func (e *Error) Is(target error) bool {
	return target == errors.ErrUnsupported && (strings.HasSuffix(e.Name, "NOT_SUPPORTED") || strings.HasSuffix(e.Name, "ARCH_MISMATCH"))
}

// OutOfMemory reports whether the code means that the device had too little memory.
func (e *Error) OutOfMemory() bool {
	code := int(OutOfMemory) // CUSOLVER_STATUS_ALLOC_FAILED has the same value
	if strings.HasPrefix(e.Op, "cublas") {
		code = 3
	}
	return e.Code == code
}

// Failed handles a failed call of cuBLAS or cuSOLVER. It returns whether to repeat the call, or else the error.
type Failed func(e *Error) (retry bool, err error)

// call calls f, and repeats the call as long as handle returns retry = true.
func call(f func() int32, op string, names map[int]string, handle Failed) error {
	for {
		r := f()
		if r == 0 {
			return nil
		}
		e := &Error{Op: op, Code: int(r), Name: names[int(r)]}
		if handle == nil {
			return e
		}
		if retry, err := handle(e); !retry {
			return err
		}
	}
}

// blasNames maps the values of cublasStatus_t to their names.
var blasNames = map[int]string{
	1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
	8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
	14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR",
}

// solverNames maps the values of cusolverStatus_t to their names.
var solverNames = map[int]string{
	1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED", 3: "CUSOLVER_STATUS_INVALID_VALUE",
	4: "CUSOLVER_STATUS_ARCH_MISMATCH", 5: "CUSOLVER_STATUS_MAPPING_ERROR", 6: "CUSOLVER_STATUS_EXECUTION_FAILED",
	7: "CUSOLVER_STATUS_INTERNAL_ERROR", 8: "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED", 9: "CUSOLVER_STATUS_NOT_SUPPORTED",
}

// Sticky reports whether a result means that the process can no longer use the GPU: every later call returns the
// same result, and NVIDIA's manual requires a restart of the process. Other errors, such as a launch that takes too
// many registers (701), concern only one call.
func (r Result) Sticky() bool {
	switch r {
	case 201, // context is invalid: other code has destroyed it
		214,                          // memory error that could not be corrected
		220,                          // the same error on NVLink
		700,                          // illegal address
		702,                          // a launch took too long
		226,                          // contained error
		709,                          // the context was destroyed
		710,                          // failed assertion
		721,                          // leak of tensor memory
		911,                          // the process must be terminated
		714, 715, 716, 717, 718, 719, // fault of stack, instruction, alignment, address space, program counter or launch
		999: // unknown
		return true
	}
	return false
}

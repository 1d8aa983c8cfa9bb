package driver

import (
	"fmt"
)

// Result is a CUresult.
type Result int32

// Results that are told apart.
const (
	Success        Result = 0
	OutOfMemory    Result = 2
	InvalidImage   Result = 200
	NoBinary       Result = 209 // for this GPU
	IllegalAddress Result = 700
)

// Error is a call of a library that failed.
type Error struct {
	Op   string // the function that was called
	Code int    // what it returned
	Name string // the code's name, where the library says; "" otherwise
	Text string // and what it means
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

// blasNames are the names of cublasStatus_t.
var blasNames = map[int]string{
	1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
	8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
	14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR",
}

// solverNames are the names of cusolverStatus_t.
var solverNames = map[int]string{
	1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED", 3: "CUSOLVER_STATUS_INVALID_VALUE",
	4: "CUSOLVER_STATUS_ARCH_MISMATCH", 5: "CUSOLVER_STATUS_MAPPING_ERROR", 6: "CUSOLVER_STATUS_EXECUTION_FAILED",
	7: "CUSOLVER_STATUS_INTERNAL_ERROR", 8: "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED", 9: "CUSOLVER_STATUS_NOT_SUPPORTED",
}

// Sticky reports whether a result means that the context is of no use any more: every
// later call returns it too. 214 and 220 are errors of the memory and of NVLink that
// could not be corrected, 201 a context that somebody else has destroyed.
func (r Result) Sticky() bool {
	return r >= IllegalAddress || r == 201 || r == 214 || r == 220
}

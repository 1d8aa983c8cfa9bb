package handles

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// Shared returns a slice of the n elements at p, without copying or reading them. It returns an error if n is not
// a possible number of elements, or if the elements extend beyond the memory of the process.
func Shared[T any](name string, p unsafe.Pointer, n int64) ([]T, error) {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	switch {
	case n < 0 || n > math.MaxInt64/size:
		return nil, fmt.Errorf("libmercer: %s: %d is not a possible number of elements", name, n)
	case n == 0:
		return nil, nil
	case p == nil:
		return nil, fmt.Errorf("libmercer: %s is NULL", name)
	case uintptr(p)%unsafe.Alignof(zero) != 0:
		return nil, fmt.Errorf("libmercer: %s is not aligned to %d bytes", name, unsafe.Alignof(zero))
	case !mapped(uintptr(p), uintptr(n*size)):
		return nil, fmt.Errorf("libmercer: %s: %d elements of %d bytes reach beyond the memory of the process: check the sizes", name, n, size)
	}
	return unsafe.Slice((*T)(p), n), nil
}

// SharedMatrix returns the matrix with element (i, j) at p + i·stride + j. Like Shared, it copies nothing. If the
// matrix is larger than the memory of the machine, the error matches backend.ErrMemory.
func SharedMatrix[T backend.Float](name string, p unsafe.Pointer, rows, cols, stride int64) (backend.Host[T], error) {
	switch {
	case rows <= 0 || cols <= 0:
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s is empty: %d rows, %d columns", name, rows, cols)
	case stride < cols:
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s: stride %d is less than %d columns", name, stride, cols)
	case rows-1 > (math.MaxInt64/8-cols)/stride:
		return backend.Host[T]{}, fmt.Errorf("libmercer: %s: %d rows with stride %d are not possible", name, rows, stride)
	}
	data, err := Shared[T](name, p, (rows-1)*stride+cols)
	var zero T
	if size := rows * cols * int64(unsafe.Sizeof(zero)); err == nil && size > machine() { // the product does not overflow, because Shared has checked the size
		err = fmt.Errorf("libmercer: %s: %w: %d×%d numbers take %d bytes, the machine has %d: pass fewer rows at a time", name, backend.ErrMemory, rows, cols, size, machine())
	}
	if err != nil {
		return backend.Host[T]{}, err
	}
	return backend.Host[T]{Rows: int(rows), Cols: int(cols), Stride: int(stride), Data: data}, nil
}

// SharedCSR returns the sparse matrix with the given arrays in the caller's memory, and checks its
// row pointers and column indices. The row pointers are copied; the other arrays are shared.
func SharedCSR(name string, rows, cols int64, indptr, indices, data unsafe.Pointer) (m backend.CSR[float64], err error) {
	if rows <= 0 || cols <= 0 || rows > math.MaxInt32 || cols > math.MaxInt32 {
		return m, fmt.Errorf("libmercer: %s: %d rows and %d columns; each must be from 1 to %d", name, rows, cols, math.MaxInt32)
	}
	starts, err := Shared[int64](name+".indptr", indptr, rows+1)
	if err != nil {
		return m, err
	}
	m.Rows, m.Cols, m.Indptr = int(rows), int(cols), make([]int, rows+1)
	for i, p := range starts {
		m.Indptr[i] = int(p)
	}
	if m.Indptr[0] != 0 {
		return m, fmt.Errorf("libmercer: %s: row 1 begins at element %d, not at 0", name, m.Indptr[0])
	}
	if m.Indices, err = Shared[int32](name+".indices", indices, starts[rows]); err == nil {
		m.Data, err = Shared[float64](name+".data", data, starts[rows])
	}
	if err == nil {
		if err = m.Check(); err != nil {
			err = fmt.Errorf("libmercer: %s: %s", name, strings.TrimPrefix(err.Error(), "host: csr: "))
		}
	}
	return m, err
}

// checkMemory returns an error that matches backend.ErrMemory if copies of a rows × cols matrix
// in float64 do not fit in memory. Small matrices are not checked.
func checkMemory(name string, rows, cols, copies int) error {
	const uncheckedBytes = 1 << 26
	size := 8 * float64(rows) * float64(cols) * float64(copies)
	if size <= uncheckedBytes {
		return nil
	}
	if available, ok := backend.HostMemory(); ok && size > 0.8*float64(available) {
		return fmt.Errorf("libmercer: %s: %w: %s of %d×%d numbers in float64 needs %.0f bytes, %d are available", name, backend.ErrMemory, count.Of(copies, "copy"), rows, cols, size, available/10*8)
	}
	return nil
}

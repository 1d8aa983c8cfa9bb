// Package host has matrices in Go memory, and reports how much memory is free. Package backend has its types Matrix
// and Float under the names Host and Float.
package host

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// ErrMemory matches, in errors.Is, every error that reports too little memory.
var ErrMemory = errors.New("out of memory")

// Float is the element type of a matrix.
type Float interface{ float32 | float64 }

// Matrix is a row-major matrix: element (i, j) is Data[i*Stride+j]. Stride ≥ Cols, and Data includes at least the
// last element. A Matrix is a mat.Matrix.
type Matrix[T Float] struct {
	Rows, Cols, Stride int
	Data               []T
}

// New returns a rows × cols matrix of zeros without padding.
func New[T Float](rows, cols int) Matrix[T] {
	return Matrix[T]{Rows: rows, Cols: cols, Stride: cols, Data: make([]T, rows*cols)}
}

// Dims returns Rows and Cols.
func (m Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// At returns element (i, j). It panics if i or j is out of range.
func (m Matrix[T]) At(i, j int) float64 {
	if uint(i) >= uint(m.Rows) || uint(j) >= uint(m.Cols) {
		panic(fmt.Sprintf("host: Matrix.At: (%d, %d) is outside a %d×%d matrix", i, j, m.Rows, m.Cols))
	}
	return float64(m.Data[i*m.Stride+j])
}

// T returns the transpose of m. It shares the memory of m.
func (m Matrix[T]) T() mat.Matrix { return mat.Transpose{Matrix: m} }

// Row returns row i of m. It shares the memory of m.
func (m Matrix[T]) Row(i int) []T {
	if m.Cols == 0 {
		return nil // without columns, m.Data may be too short for i*m.Stride
	}
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// View returns the rows × cols part of m whose first element is (i, j). It shares the memory of m.
func (m Matrix[T]) View(i, j, rows, cols int) Matrix[T] {
	if err := CheckView(i, j, rows, cols, m.Rows, m.Cols); err != nil {
		panic("host: " + err.Error())
	}
	if rows == 0 || cols == 0 {
		return Matrix[T]{Rows: rows, Cols: cols, Stride: max(m.Stride, cols)}
	}
	first := i*m.Stride + j
	return Matrix[T]{Rows: rows, Cols: cols, Stride: m.Stride, Data: m.Data[first : first+(rows-1)*m.Stride+cols]}
}

// CheckView returns an error unless the rows × cols part at (i, j) is inside an r × c matrix.
func CheckView(i, j, rows, cols, r, c int) error {
	if i < 0 || j < 0 || rows < 0 || cols < 0 || rows > r-i || cols > c-j {
		return fmt.Errorf("Matrix.View: %d×%d at (%d, %d) is outside a %d×%d matrix", rows, cols, i, j, r, c)
	}
	return nil
}

package handles

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// Matrix is a matrix in the caller's memory: F32 if F32 has rows, CSR if CSR has rows, and
// otherwise F64. This package never writes the elements.
type Matrix struct {
	F64 backend.Host[float64]
	F32 backend.Host[float32]
	CSR backend.CSR[float64]
}

// Dims returns the numbers of rows and columns.
func (m Matrix) Dims() (rows, cols int) {
	switch {
	case m.F32.Rows > 0:
		return m.F32.Rows, m.F32.Cols
	case m.CSR.Rows > 0:
		return m.CSR.Rows, m.CSR.Cols
	}
	return m.F64.Rows, m.F64.Cols
}

// host returns m as a dense matrix in float64. F64 is returned without a copy.
func (m Matrix) host(name string) (backend.Host[float64], error) {
	if m.CSR.Rows > 0 {
		if err := checkMemory(name, m.CSR.Rows, m.CSR.Cols, 1); err != nil {
			return backend.Host[float64]{}, err
		}
		h := backend.NewHost[float64](m.CSR.Rows, m.CSR.Cols)
		m.CSR.DenseTo(h)
		return h, nil
	}
	if m.F32.Rows == 0 {
		return m.F64, nil
	}
	if err := checkMemory(name, m.F32.Rows, m.F32.Cols, 1); err != nil {
		return backend.Host[float64]{}, err
	}
	h := backend.NewHost[float64](m.F32.Rows, m.F32.Cols)
	for i := range h.Rows {
		row := h.Row(i)
		for j, v := range m.F32.Row(i) {
			row[j] = float64(v)
		}
	}
	return h, nil
}

func denseOf(h backend.Host[float64]) *mat.Dense {
	d := &mat.Dense{}
	if h.Rows > 0 && h.Cols > 0 {
		d.SetRawMatrix(blas64.General{Rows: h.Rows, Cols: h.Cols, Stride: h.Stride, Data: h.Data})
	}
	return d
}

// store writes the rows of src consecutively to dst.
func store(operation string, dst []float64, src *mat.Dense) error {
	rows, cols := src.Dims()
	if len(dst) != rows*cols {
		return fmt.Errorf("libmercer: %s: the result is %d×%d, but the given memory holds only %s", operation, rows, cols, count.Of(len(dst), "number"))
	}
	for i := range rows {
		copy(dst[i*cols:], src.RawRowView(i))
	}
	return nil
}

// checkFinite returns an error that names the first element that is NaN or infinite.
func checkFinite(name string, h backend.Host[float64]) error {
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			if math.IsNaN(v - v) {
				return fmt.Errorf("libmercer: %s: row %d, column %d is %v", name, i+1, j+1, v)
			}
		}
	}
	return nil
}

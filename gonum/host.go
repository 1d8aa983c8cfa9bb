package gonum

import (
	"fmt"
	"reflect"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// Host returns m as a row-major matrix for package solvers and the backends. The result shares the memory of m if m is
// a backend.Host, a *mat.Dense or a part of it, a *mat.VecDense, or another type with the method RawMatrix or
// RawVector. A vector becomes n×1, with its increment as the stride. The result also shares the memory of a transposed
// vector without gaps. Any other m is copied. If m is nil or empty, Host returns an error that contains name.
func Host(name string, m mat.Matrix) (backend.Host[float64], error) {
	empty := backend.Host[float64]{}
	if v := reflect.ValueOf(m); m == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return empty, fmt.Errorf("%s is missing", name)
	}
	rows, cols := m.Dims()
	if rows == 0 || cols == 0 {
		return empty, fmt.Errorf("%s is empty: %s, %s", name, count.Of(rows, "row"), count.Of(cols, "column"))
	}
	if h, ok := shared(m); ok {
		return h, nil
	}
	h := backend.NewHost[float64](rows, cols)
	if c, ok := m.(backend.CSR[float64]); ok && c.Check() == nil {
		c.DenseTo(h)
		return h, nil
	}
	if u, ok := untransposed(m); ok {
		if source, ok := shared(u); ok {
			transpose(h, source)
			return h, nil
		}
	}
	for i := range rows {
		row := h.Row(i)
		switch v := m.(type) {
		case mat.RawRowViewer:
			copy(row, v.RawRowView(i))
			continue
		case backend.Host[float32]:
			for j, e := range v.Row(i) {
				row[j] = float64(e)
			}
			continue
		}
		for j := range row {
			row[j] = m.At(i, j)
		}
	}
	return h, nil
}

func shared(m mat.Matrix) (backend.Host[float64], bool) {
	switch v := m.(type) {
	case backend.Host[float64]:
		return v, true
	case mat.RawMatrixer:
		r := v.RawMatrix()
		return backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}, true
	case mat.RawVectorer:
		r := v.RawVector()
		if rows, cols := m.Dims(); r.Inc > 0 && rows == r.N && cols == 1 {
			return backend.Host[float64]{Rows: r.N, Cols: 1, Stride: r.Inc, Data: r.Data}, true
		}
	}
	if u, ok := untransposed(m); ok {
		// A column without gaps has the memory layout of a row.
		if v, ok := u.(mat.RawVectorer); ok {
			if r := v.RawVector(); r.Inc == 1 {
				return backend.Host[float64]{Rows: 1, Cols: r.N, Stride: r.N, Data: r.Data}, true
			}
		}
	}
	return backend.Host[float64]{}, false
}

// untransposed returns the matrix whose transpose is m, and false if m is not a transpose.
func untransposed(m mat.Matrix) (mat.Matrix, bool) {
	u, ok := m.(mat.Untransposer)
	if !ok {
		return nil, false
	}
	return u.Untranspose(), true
}

// transpose sets dst to srcᵀ in tiles that fit in the cache.
func transpose(dst, src backend.Host[float64]) {
	const tile = 32
	for i := 0; i < src.Rows; i += tile {
		for j := 0; j < src.Cols; j += tile {
			for r := i; r < min(i+tile, src.Rows); r++ {
				for c, v := range src.Row(r)[j:min(j+tile, src.Cols)] {
					dst.Data[(j+c)*dst.Stride+r] = v
				}
			}
		}
	}
}

// Dense returns h, with any stride, as a *mat.Dense that shares the memory of h. It returns an
// error if h is empty or if h.Data is too short.
func Dense(h backend.Host[float64]) (*mat.Dense, error) {
	if h.Rows < 1 || h.Cols < 1 {
		return nil, fmt.Errorf("gonum: Dense: the matrix is empty: %s, %s", count.Of(h.Rows, "row"), count.Of(h.Cols, "column"))
	}
	needs := (h.Rows-1)*h.Stride + h.Cols
	if h.Stride < h.Cols || len(h.Data) < needs {
		return nil, fmt.Errorf("gonum: Dense: %d×%d with stride %d does not fit in %s", h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
	}
	if h.Stride == h.Cols {
		return mat.NewDense(h.Rows, h.Cols, h.Data[:needs]), nil
	}
	var d mat.Dense
	d.SetRawMatrix(blas64.General{Rows: h.Rows, Cols: h.Cols, Stride: h.Stride, Data: h.Data[:needs]})
	return &d, nil
}

package numeric

import "github.com/mercer-go/mercer/backend"

// Transpose returns a copy of hᵀ.
func Transpose(h backend.Host[float64]) backend.Host[float64] {
	t := backend.NewHost[float64](h.Cols, h.Rows)
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			t.Row(j)[i] = v
		}
	}
	return t
}

// Row returns v as a matrix of one row.
func Row(v []float64) backend.Host[float64] {
	return backend.Host[float64]{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
}

// Column returns v as a matrix of one column.
func Column(v []float64) backend.Host[float64] {
	return backend.Host[float64]{Rows: len(v), Cols: 1, Stride: 1, Data: v}
}

// Clone returns a copy of h without padding.
func Clone(h backend.Host[float64]) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		copy(c.Row(i), h.Row(i))
	}
	return c
}

// First returns a copy of the first column of h.
func First(h backend.Host[float64]) []float64 {
	v := make([]float64, h.Rows)
	for i := range v {
		v[i] = h.Row(i)[0]
	}
	return v
}

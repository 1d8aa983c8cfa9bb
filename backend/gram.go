package backend

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/kernels"
)

// GramMatrix returns K_ij = k(x_i, x_j), both triangles, computed on dev.
func GramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x Host[float64]) (Host[float64], error) {
	out, err := gramMatrix(ctx, dev, k, x, nil)
	for i := range out.Rows {
		for j, v := range out.Row(i)[:i] {
			out.Row(j)[i] = v
		}
	}
	return out, err
}

// CrossGramMatrix returns K_ij = k(x_i, z_j), computed on dev.
func CrossGramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x, z Host[float64]) (Host[float64], error) {
	return gramMatrix(ctx, dev, k, x, &z)
}

// gramMatrix is CrossGramMatrix, or the lower triangle of GramMatrix where z is nil.
func gramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x Host[float64], z *Host[float64]) (Host[float64], error) {
	none := Host[float64]{}
	if k == nil {
		return none, fmt.Errorf("backend: gram: the kernel is nil")
	}
	if err := k.Check(x.Cols); err != nil {
		return none, err
	}
	if z != nil && z.Cols != x.Cols {
		return none, fmt.Errorf("backend: gram: x has %d columns, z %d", x.Cols, z.Cols)
	}
	b := dev.F64().With(ctx, nil)
	place := func(name string, points Host[float64]) (Matrix[float64], error) {
		if err := CheckPoints(k, "backend: gram: "+name, points); err != nil {
			return nil, err
		}
		return Place(b, points)
	}
	px, err := place("x", x)
	if err != nil {
		return none, err
	}
	defer px.Free()
	pz := px
	if z != nil {
		if pz, err = place("z", *z); err != nil {
			return none, err
		}
		defer pz.Free()
	}
	m, _ := pz.Dims()
	values, err := b.New(x.Rows, m)
	if err != nil {
		return none, err
	}
	defer values.Free()
	b.Gram(values, k, px, pz)
	out := NewHost[float64](x.Rows, m)
	if err := b.Download(out, values); err != nil {
		return none, err
	}
	return out, nil
}

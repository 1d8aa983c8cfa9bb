package backend

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/kernels"
)

// Points is a Host or a CSR of float64, whose rows are the points.
type Points interface{ Dims() (rows, cols int) }

// GramMatrix returns both triangles of K_ij = k(x_i, x_j), computed on dev.
func GramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x Points) (Host[float64], error) {
	out, err := gramMatrix(ctx, dev, k, x, nil)
	for i := range out.Rows {
		for j, v := range out.Row(i)[:i] {
			out.Row(j)[i] = v
		}
	}
	return out, err
}

// CrossGramMatrix returns K_ij = k(x_i, z_j), computed on dev.
func CrossGramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x, z Points) (Host[float64], error) {
	if z == nil {
		return Host[float64]{}, fmt.Errorf("backend: gram: z is nil")
	}
	return gramMatrix(ctx, dev, k, x, z)
}

// gramMatrix is CrossGramMatrix. If z is nil, it computes the lower triangle for GramMatrix.
func gramMatrix(ctx context.Context, dev Device, k kernels.Kernel, x, z Points) (Host[float64], error) {
	none := Host[float64]{}
	if k == nil {
		return none, fmt.Errorf("backend: gram: the kernel is nil")
	}
	if x == nil {
		return none, fmt.Errorf("backend: gram: x is nil")
	}
	n, d := x.Dims()
	if err := k.Check(d); err != nil {
		return none, err
	}
	b := dev.F64().With(ctx, nil)
	px, err := placePoints(b, k, "backend: gram: x", x)
	if err != nil {
		return none, err
	}
	defer px.Free()
	pz := px
	if z != nil {
		if _, cols := z.Dims(); cols != d {
			return none, fmt.Errorf("backend: gram: x has %d columns, but z has %d", d, cols)
		}
		if pz, err = placePoints(b, k, "backend: gram: z", z); err != nil {
			return none, err
		}
		defer pz.Free()
	}
	m, _ := pz.Dims()
	values, err := b.New(n, m)
	if err != nil {
		return none, err
	}
	defer values.Free()
	b.Gram(values, k, px, pz)
	out := NewHost[float64](n, m)
	if err := b.Download(out, values); err != nil {
		return none, err
	}
	return out, nil
}

// placePoints returns points as a matrix on b's device, or an error if they violate kernels.PointRule.
func placePoints(b Backend[float64], k kernels.Kernel, name string, points Points) (Matrix[float64], error) {
	switch x := points.(type) {
	case Host[float64]:
		if err := CheckPoints(k, name, x); err != nil {
			return nil, err
		}
		return Place(b, x)
	case CSR[float64]:
		if err := x.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := CheckPoints(k, name, x); err != nil {
			return nil, err
		}
		return PlaceSparse(b, x)
	}
	return nil, fmt.Errorf("%s is a %T; it must be a backend.Host[float64] or a backend.CSR[float64]", name, points)
}

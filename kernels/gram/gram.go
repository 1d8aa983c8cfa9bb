// Package gram holds what is done with a whole Gram matrix K: making it,
// Mercer's condition on a sample, the eigenvectors and the feature map that they
// give, distances and the mean in feature space.
//
// Matrices are in Go memory, row-major. What takes O(n³) here is for samples of
// up to a few thousand points; solvers has other ways for fits.
package gram

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// Of returns K_ij = k(x_i, x_j), both triangles, computed on dev.
func Of(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Host[float64]) (backend.Host[float64], error) {
	return evaluate(ctx, dev, k, x, nil)
}

// Cross returns K_ij = k(x_i, z_j), computed on dev.
func Cross(ctx context.Context, dev backend.Device, k kernels.Kernel, x, z backend.Host[float64]) (backend.Host[float64], error) {
	return evaluate(ctx, dev, k, x, &z)
}

// evaluate is Cross, or Of where z is nil.
func evaluate(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Host[float64], z *backend.Host[float64]) (backend.Host[float64], error) {
	none := backend.Host[float64]{}
	if k == nil {
		return none, fmt.Errorf("gram: the kernel is nil")
	}
	if err := k.Check(x.Cols); err != nil {
		return none, err
	}
	if err := backend.CheckPoints(k, "gram: x", x); err != nil {
		return none, err
	}
	if z != nil {
		if z.Cols != x.Cols {
			return none, fmt.Errorf("gram: x has %s, z %d", count.Of(x.Cols, "column"), z.Cols)
		}
		if err := backend.CheckPoints(k, "gram: z", *z); err != nil {
			return none, err
		}
	}
	b := dev.F64().With(ctx, nil)
	px, err := backend.Place(b, x)
	if err != nil {
		return none, fmt.Errorf("gram: %w", err)
	}
	defer px.Free()
	pz := px
	if z != nil {
		if pz, err = backend.Place(b, *z); err != nil {
			return none, fmt.Errorf("gram: %w", err)
		}
		defer pz.Free()
	}
	m, _ := pz.Dims()
	place, err := b.New(x.Rows, m)
	if err != nil {
		return none, fmt.Errorf("gram: %w", err)
	}
	defer place.Free()
	b.Gram(place, k, px, pz)
	out := backend.NewHost[float64](x.Rows, m)
	if err := b.Download(out, place); err != nil {
		return none, fmt.Errorf("gram: %w", err)
	}
	if z == nil {
		for i := range out.Rows {
			for j, v := range out.Row(i)[:i] {
				out.Row(j)[i] = v
			}
		}
	}
	return out, nil
}

// check requires a square matrix, finite and symmetric, and returns it without
// padding.
func check(what string, k backend.Host[float64]) ([]float64, error) {
	n := k.Rows
	if n == 0 || k.Cols != n {
		return nil, fmt.Errorf("gram: %s: a Gram matrix is square and not empty, this is %d×%d", what, k.Rows, k.Cols)
	}
	data := make([]float64, 0, n*n)
	for i := range n {
		data = append(data, k.Row(i)...)
	}
	if err := kernels.CheckGram(n, data); err != nil {
		return nil, fmt.Errorf("gram: %s: %w", what, err)
	}
	return data, nil
}

// SquaredDistances returns d²_ij = K_ii + K_jj − 2K_ij, the squared distances in
// feature space; what rounding makes negative is 0.
func SquaredDistances(k backend.Host[float64]) (backend.Host[float64], error) {
	if _, err := check("distances", k); err != nil {
		return backend.Host[float64]{}, err
	}
	d := backend.NewHost[float64](k.Rows, k.Rows)
	for i := range k.Rows {
		for j := range i {
			v := max(0, k.Row(i)[i]+k.Row(j)[j]-2*k.Row(i)[j])
			d.Row(i)[j], d.Row(j)[i] = v, v
		}
	}
	return d, nil
}

// Centering is the mean of a sample in feature space, as far as kernel values
// show it.
type Centering struct {
	Rows []float64 // mean of each column of K, which is that of the row
	All  float64   // mean of all of K
}

// Center moves the origin of feature space to the mean of the sample, in place:
// K_ij − K̄_i − K̄_j + K̄, the Gram matrix of φ(x) − mean φ (Schölkopf, Smola and
// Müller 1998, Nonlinear component analysis as a kernel eigenvalue problem,
// appendix A). The result centres other points.
func Center(k backend.Host[float64]) (Centering, error) {
	if _, err := check("centre", k); err != nil {
		return Centering{}, err
	}
	n := float64(k.Rows)
	c := Centering{Rows: make([]float64, k.Rows)}
	for i := range k.Rows {
		for _, v := range k.Row(i) {
			c.Rows[i] += v / n
		}
		c.All += c.Rows[i] / n
	}
	for i := range k.Rows {
		row := k.Row(i)
		for j := range row {
			row[j] += c.All - (c.Rows[i] + c.Rows[j])
		}
	}
	return c, nil
}

// Cross centres the values of other points with the sample, one row for each,
// in place.
func (c Centering) Cross(k backend.Host[float64]) error {
	if k.Cols != len(c.Rows) || k.Cols == 0 {
		return fmt.Errorf("gram: centre: %s for a sample of %s", count.Of(k.Cols, "column"), count.Of(len(c.Rows), "point"))
	}
	for i := range k.Rows {
		row, mean := k.Row(i), 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for j := range row {
			row[j] += c.All - (mean + c.Rows[j])
		}
	}
	return nil
}

// unit is half the distance from 1 to the next number.
const unit = 0x1p-53

// tolerance is how far below zero rounding may move an eigenvalue: the entries
// of K and the symmetric QR algorithm are off by a small multiple of nu‖K‖
// (Golub and Van Loan 2013, Matrix Computations, section 8.3.5).
func tolerance(n int, largest float64) float64 { return 16 * float64(n) * unit * math.Abs(largest) }

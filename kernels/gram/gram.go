// Package gram implements operations on a whole Gram matrix K, such as the result of mercer.Gram: a
// test of Mercer's condition, eigenvectors and their feature map, distances and centering in
// feature space, and Gram matrices of user functions.
//
// It accepts any gonum matrix and returns gonum matrices. The O(n³) operations are meant for
// samples of up to a few thousand points; package solvers fits larger samples.
package gram

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// hostOf returns k as a row-major matrix, which shares the memory of k if k is row-major.
func hostOf(operation string, k mat.Matrix) (host.Matrix[float64], error) {
	if h, ok := k.(host.Matrix[float64]); ok {
		return h, nil // accept h even if it has no rows
	}
	h, err := gonum.Host("the matrix", k)
	if err != nil {
		return h, fmt.Errorf("gram: %s: %w", operation, err)
	}
	return h, nil
}

// check returns an error unless m is square, not empty, finite and symmetric. It returns m as k,
// and the elements of k without gaps between rows.
func check(operation string, m mat.Matrix) (k host.Matrix[float64], data []float64, err error) {
	if k, err = hostOf(operation, m); err != nil {
		return k, nil, err
	}
	n := k.Rows
	if n == 0 || k.Cols != n {
		return k, nil, fmt.Errorf("gram: %s: a Gram matrix must be square and not empty, got %d×%d", operation, k.Rows, k.Cols)
	}
	data = packed(k)
	if err := kernels.CheckGram(n, data); err != nil {
		return k, nil, fmt.Errorf("gram: %s: %w", operation, err)
	}
	return k, data, nil
}

// Check returns an error unless k is square, not empty, finite and symmetric up to rounding errors:
// see kernels.CheckGram.
func Check(k mat.Matrix) error {
	_, _, err := check("check", k)
	return err
}

// packed returns the elements of h without gaps between rows. It copies h only if h has gaps.
func packed(h host.Matrix[float64]) []float64 {
	if h.Stride == h.Cols {
		return h.Data[:h.Rows*h.Cols]
	}
	data := make([]float64, 0, h.Rows*h.Cols)
	for i := range h.Rows {
		data = append(data, h.Row(i)...)
	}
	return data
}

// SquaredDistances returns d²_ij = K_ii + K_jj − 2K_ij, the squared distances in
// feature space; negative rounding errors are replaced by 0.
func SquaredDistances(gram mat.Matrix) (host.Matrix[float64], error) {
	k, _, err := check("distances", gram)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	d := host.New[float64](k.Rows, k.Rows)
	for i := range k.Rows {
		for j := range i {
			v := max(0, k.Row(i)[i]+k.Row(j)[j]-2*k.Row(i)[j])
			d.Row(i)[j], d.Row(j)[i] = v, v
		}
	}
	return d, nil
}

// Centering holds the means of a Gram matrix, with which Cross centers other points.
type Centering struct {
	rows []float64 // mean of each row of K, which equals the mean of the column
	mean float64   // mean of all of K
}

// Center replaces a Gram matrix, a *mat.Dense or a host.Matrix, by the Gram matrix of the feature vectors minus their
// mean (Schölkopf, Smola and Müller 1998, Nonlinear component analysis as a kernel eigenvalue problem, appendix A). The
// returned Centering centers the kernel values of other points.
func Center(gram mat.Matrix) (Centering, error) {
	k, err := writable(gram)
	if err == nil {
		_, _, err = check("center", k)
	}
	if err != nil {
		return Centering{}, err
	}
	n := float64(k.Rows)
	c := Centering{rows: make([]float64, k.Rows)}
	for i := range k.Rows {
		for _, v := range k.Row(i) {
			c.rows[i] += v / n
		}
		c.mean += c.rows[i] / n
	}
	for i := range k.Rows {
		row := k.Row(i)
		for j := range row {
			row[j] += c.mean - (c.rows[i] + c.rows[j])
		}
	}
	return c, nil
}

// writable returns a matrix that shares the elements of k, or an error if k cannot be changed.
func writable(k mat.Matrix) (host.Matrix[float64], error) {
	_, dense := k.(mat.RawMatrixer)
	if _, ok := k.(host.Matrix[float64]); !ok && !dense {
		return host.Matrix[float64]{}, fmt.Errorf("gram: center: a %T cannot be changed in place: give mat.DenseCopyOf of it", k)
	}
	return hostOf("center", k)
}

// Cross centers the kernel values of other points with the points of the sample, in place. The values are a *mat.Dense
// or a host.Matrix with one row per other point.
func (c Centering) Cross(cross mat.Matrix) error {
	k, err := writable(cross)
	if err != nil {
		return err
	}
	if k.Cols != len(c.rows) || k.Cols == 0 {
		return fmt.Errorf("gram: center: %s for a sample of %s", count.Of(k.Cols, "column"), count.Of(len(c.rows), "point"))
	}
	for i := range k.Rows {
		row, mean := k.Row(i), 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for j := range row {
			row[j] += c.mean - (mean + c.rows[j])
		}
	}
	return nil
}

// unit is the unit roundoff, half the distance from 1 to the next larger float64.
const unit = 0x1p-53

// tolerance bounds the amount by which rounding can move an eigenvalue of an n×n matrix below zero: a small multiple of
// n·unit times the largest absolute eigenvalue (Golub and Van Loan 2013, Matrix Computations, section 8.3.5).
func tolerance(n int, largest float64) float64 { return 16 * float64(n) * unit * math.Abs(largest) }

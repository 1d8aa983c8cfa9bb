// Package gram holds what is done with a whole Gram matrix K, such as mercer.Gram
// returns: Mercer's condition on a sample, the eigenvectors and the feature map that
// they give, distances and the mean in feature space; and Gram matrices of functions of
// the user's.
//
// Any gonum matrix is taken, and results are gonum matrices. What takes O(n³) here is
// for samples of up to a few thousand points; solvers has other ways for fits.
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

// hostOf returns k as a row-major matrix, which shares its memory where it is one.
func hostOf(what string, k mat.Matrix) (host.Matrix[float64], error) {
	if h, ok := k.(host.Matrix[float64]); ok {
		return h, nil // of no rows too
	}
	h, err := gonum.Host("the matrix", k)
	if err != nil {
		return h, fmt.Errorf("gram: %s: %w", what, err)
	}
	return h, nil
}

// check requires a square matrix, finite and symmetric, and returns it, and its
// elements without padding.
func check(what string, m mat.Matrix) (k host.Matrix[float64], data []float64, err error) {
	if k, err = hostOf(what, m); err != nil {
		return k, nil, err
	}
	n := k.Rows
	if n == 0 || k.Cols != n {
		return k, nil, fmt.Errorf("gram: %s: a Gram matrix is square and not empty, this is %d×%d", what, k.Rows, k.Cols)
	}
	data = packed(k)
	if err := kernels.CheckGram(n, data); err != nil {
		return k, nil, fmt.Errorf("gram: %s: %w", what, err)
	}
	return k, data, nil
}

// Check returns an error unless k is square, not empty, finite and symmetric to
// rounding: see kernels.CheckGram.
func Check(k mat.Matrix) error {
	_, _, err := check("check", k)
	return err
}

// packed returns the elements of h without gaps between its rows: those of h itself
// where it has none.
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
// feature space; what rounding makes negative is 0.
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

// Centering is the mean of a sample in feature space, as far as kernel values
// show it.
type Centering struct {
	Rows []float64 // mean of each column of K, which is that of the row
	All  float64   // mean of all of K
}

// Center moves the origin of feature space to the mean of the sample, in place, of a
// *mat.Dense or a host.Matrix: K_ij − K̄_i − K̄_j + K̄, the Gram matrix of φ(x) − mean φ (Schölkopf, Smola and
// Müller 1998, Nonlinear component analysis as a kernel eigenvalue problem,
// appendix A). The result centers other points.
func Center(gram mat.Matrix) (Centering, error) {
	k, err := writable(gram)
	if err == nil {
		_, _, err = check("center", k)
	}
	if err != nil {
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

// writable returns the elements of k themselves.
func writable(k mat.Matrix) (host.Matrix[float64], error) {
	_, dense := k.(mat.RawMatrixer)
	if _, ok := k.(host.Matrix[float64]); !ok && !dense {
		return host.Matrix[float64]{}, fmt.Errorf("gram: center: a %T cannot be changed in place: give mat.DenseCopyOf of it", k)
	}
	return hostOf("center", k)
}

// Cross centers the values of other points with the sample, one row for each,
// in place, of a *mat.Dense or a host.Matrix.
func (c Centering) Cross(cross mat.Matrix) error {
	k, err := writable(cross)
	if err != nil {
		return err
	}
	if k.Cols != len(c.Rows) || k.Cols == 0 {
		return fmt.Errorf("gram: center: %s for a sample of %s", count.Of(k.Cols, "column"), count.Of(len(c.Rows), "point"))
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

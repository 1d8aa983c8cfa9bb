package gram

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
)

// Eigen is the eigendecomposition K = U Λ Uᵀ of a Gram matrix: Mercer's expansion of the kernel on a sample.
type Eigen struct {
	Values  []float64            // λ, in descending order
	Vectors host.Matrix[float64] // U: column j belongs to λ_j
	// Tolerance is 16n·2⁻⁵³ times the largest |λ| of the n×n matrix. An eigenvalue with an absolute value up to
	// Tolerance may be a rounding error.
	Tolerance float64
}

// Decompose returns the eigenvalues and eigenvectors of a symmetric matrix, in O(n³). It returns as soon as ctx is
// done; the computation then continues in the background.
func Decompose(ctx context.Context, gram mat.Matrix) (*Eigen, error) {
	k, _, err := check("decompose", gram)
	if err != nil {
		return nil, err
	}
	done := make(chan *Eigen, 1)
	var panicValue any // value of a panic in gonum, which Decompose raises again in its own goroutine
	go func() {
		var e *Eigen
		defer func() {
			panicValue = recover()
			done <- e
		}()
		e = decompose(k)
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("gram: decompose: stopped: %w", context.Cause(ctx))
	case e := <-done:
		if panicValue != nil {
			panic(panicValue)
		}
		if e == nil {
			return nil, fmt.Errorf("gram: decompose: the eigenvalues do not converge")
		}
		return e, nil
	}
}

// lower is a symmetric matrix stored as its lower triangle.
type lower struct{ host.Matrix[float64] }

func (k lower) SymmetricDim() int   { return k.Rows }
func (k lower) At(i, j int) float64 { return k.Matrix.At(max(i, j), min(i, j)) }
func (k lower) T() mat.Matrix       { return k }

func decompose(k host.Matrix[float64]) *Eigen {
	var f mat.EigenSym
	if !f.Factorize(lower{k}, true) {
		return nil
	}
	n := k.Rows
	var u mat.Dense
	f.VectorsTo(&u)
	ascending := f.Values(nil)
	e := &Eigen{Values: make([]float64, n), Vectors: host.New[float64](n, n)}
	for j := range n {
		source := n - 1 - j
		e.Values[j] = ascending[source]
		for i := range n {
			e.Vectors.Row(i)[j] = u.At(i, source)
		}
	}
	e.Tolerance = tolerance(n, max(math.Abs(e.Values[0]), math.Abs(e.Values[n-1])))
	return e
}

// Rank returns the number of eigenvalues above Tolerance.
func (e *Eigen) Rank() int {
	r := 0
	for r < len(e.Values) && e.Values[r] > e.Tolerance {
		r++
	}
	return r
}

// EffectiveDim returns tr K(K + λI)⁻¹ = Σ λ_j/(λ_j + λ) for the eigenvalues λ_j of K. For λ > 0
// this is the degrees of freedom of kernel ridge regression (Hastie, Tibshirani and Friedman 2009,
// equation 3.50), and for λ = 0 the Rank. Eigenvalues up to Tolerance count as 0.
func (e *Eigen) EffectiveDim(lambda float64) float64 {
	sum := 0.0
	for _, v := range e.Values[:e.Rank()] {
		sum += v / (v + lambda)
	}
	return sum
}

// Negative returns the number of eigenvalues below −Tolerance. If there are none, K meets Mercer's
// condition within Tolerance. The caller may change Tolerance.
func (e *Eigen) Negative() int {
	n := 0
	for n < len(e.Values) && e.Values[len(e.Values)-1-n] < -e.Tolerance {
		n++
	}
	return n
}

// Features returns the coordinates of the sample along its principal axes in feature space: the n × Rank matrix of the
// eigenvectors times the roots of their eigenvalues above Tolerance. The inner products of its rows are K.
func (e *Eigen) Features() host.Matrix[float64] {
	n, r := len(e.Values), e.Rank()
	out := host.New[float64](n, r)
	for i := range n {
		for j := range r {
			out.Row(i)[j] = e.Vectors.Row(i)[j] * math.Sqrt(e.Values[j])
		}
	}
	return out
}

// Extend returns the coordinates of m other points along the axes of Features, an m × Rank matrix. Each row of k holds
// the kernel values of one point with the sample. Points are projected onto the span of the sample in feature space.
func (e *Eigen) Extend(k mat.Matrix) (host.Matrix[float64], error) {
	if e == nil {
		return host.Matrix[float64]{}, errors.New("gram: extend: there is no decomposition")
	}
	n, r := len(e.Values), e.Rank()
	cross, err := hostOf("extend", k)
	if err != nil {
		return cross, err
	}
	if cross.Cols != n {
		return host.Matrix[float64]{}, fmt.Errorf("gram: extend: %s for a sample of %s", count.Of(cross.Cols, "column"), count.Of(n, "point"))
	}
	out := host.New[float64](cross.Rows, r)
	for i := range cross.Rows {
		row := out.Row(i)
		for p, v := range cross.Row(i) {
			for j, u := range e.Vectors.Row(p)[:r] {
				row[j] += v * u
			}
		}
		for j := range row {
			row[j] /= math.Sqrt(e.Values[j])
		}
	}
	return out, nil
}

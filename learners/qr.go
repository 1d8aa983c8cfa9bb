package learners

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	lapack "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// qr solves the least-squares problem by Householder QR of (X Y), some rows at
// a time: the triangle of the rows so far stands above the next ones (Golub and
// Van Loan 2013, 5.3 and 6.5). Columns are scaled to norm 1 first, so that the
// rank does not depend on units. It returns the d×t weights and the condition of
// the scaled X, or a *RankError when singular values are below max(n, d)·ε times
// the largest, the rule of LAPACK's users.
func (c *centred) qr(ctx context.Context, intercept bool) (backend.Host[float64], float64, error) {
	none := backend.Host[float64]{}
	scale, err := c.scales(ctx)
	if err != nil {
		return none, 0, err
	}
	width := c.d + c.t
	rows := min(c.n, max(2*width, 1<<17/width))
	stack := blas64.General{Rows: width + rows, Cols: width, Stride: width, Data: make([]float64, (width+rows)*width)}
	tau := make([]float64, width)
	work := make([]float64, 1)
	lapack64.Geqrf(stack, tau, work, -1)
	work = make([]float64, int(work[0]))
	for i := 0; i < c.n; i += rows {
		if ctx.Err() != nil {
			return none, 0, context.Cause(ctx)
		}
		r := min(rows, c.n-i)
		for k := range width { // below the triangle stand the reflectors
			clear(stack.Data[k*width : k*width+k])
		}
		for k := range r {
			row := stack.Data[(width+k)*width:][:width]
			c.fill(backend.Host[float64]{Rows: 1, Cols: c.d, Stride: c.d, Data: row[:c.d]}, c.x, c.meanX, i+k)
			c.fill(backend.Host[float64]{Rows: 1, Cols: c.t, Stride: c.t, Data: row[c.d:]}, c.y, c.meanY, i+k)
			for j, s := range scale {
				row[j] *= s
			}
		}
		part := blas64.General{Rows: width + r, Cols: width, Stride: width, Data: stack.Data}
		if _, err := aside(ctx, func() bool { lapack64.Geqrf(part, tau, work, len(work)); return true }); err != nil {
			return none, 0, err
		}
	}
	triangle := mat.NewDense(c.d, c.d, nil)
	for p := range c.d {
		copy(triangle.RawRowView(p)[p:], stack.Data[p*width+p:p*width+c.d])
	}
	condition, err := c.rank(ctx, triangle, intercept)
	if err != nil {
		return none, 0, err
	}
	coef := backend.NewHost[float64](c.d, c.t)
	for p := range c.d {
		copy(coef.Row(p), stack.Data[p*width+c.d:(p+1)*width])
	}
	raw := triangle.RawMatrix()
	blas64.Trsm(blas.Left, blas.NoTrans, 1, blas64.Triangular{Uplo: blas.Upper, Diag: blas.NonUnit, N: c.d, Stride: raw.Stride, Data: raw.Data},
		blas64.General{Rows: c.d, Cols: c.t, Stride: coef.Stride, Data: coef.Data})
	for p, s := range scale {
		for j := range coef.Row(p) {
			coef.Row(p)[j] *= s
		}
	}
	return coef, condition, nil
}

// scales returns 1/‖column‖ for each column of X, and 0 for one whose deviations
// from its mean are rounding only.
func (c *centred) scales(ctx context.Context) ([]float64, error) {
	norms, row := make([]float64, c.d), backend.NewHost[float64](1, c.d)
	for i := range c.n {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c.fill(row, c.x, c.meanX, i)
		for j, v := range row.Data {
			norms[j] = math.Hypot(norms[j], v)
		}
	}
	for j, v := range norms {
		switch {
		case math.IsInf(v, 1):
			return nil, errors.New("values of x overflow: scale the features down")
		case v <= 4*epsilon*math.Sqrt(c.weight)*math.Abs(c.meanX[0][j]):
			norms[j] = 0
		default:
			norms[j] = 1 / v
		}
	}
	return norms, nil
}

// epsilon is the distance from 1 to the next float64.
const epsilon = 0x1p-52

// rank returns the condition of the triangle, or a *RankError.
func (c *centred) rank(ctx context.Context, triangle *mat.Dense, intercept bool) (float64, error) {
	var svd mat.SVD
	if ok, err := aside(ctx, func() bool { return svd.Factorize(triangle, mat.SVDNone) }); err != nil {
		return 0, err
	} else if !ok {
		return 0, errors.New("the singular values of x did not converge")
	}
	values := svd.Values(nil)
	rank := 0
	for rank < c.d && values[rank] > float64(max(c.n, c.d))*epsilon*values[0] {
		rank++
	}
	if rank == c.d {
		return values[0] / values[c.d-1], nil
	}
	// Columns pivoted by norm: those that come last depend on those before.
	pivoted := mat.DenseCopyOf(triangle).RawMatrix()
	order, tau, work := make([]int, c.d), make([]float64, c.d), make([]float64, 1)
	for j := range order {
		order[j] = -1 // free to move
	}
	var impl lapack.Implementation
	impl.Dgeqp3(c.d, c.d, pivoted.Data, pivoted.Stride, order, tau, work, -1)
	work = make([]float64, int(work[0]))
	if _, err := aside(ctx, func() bool {
		impl.Dgeqp3(c.d, c.d, pivoted.Data, pivoted.Stride, order, tau, work, len(work))
		return true
	}); err != nil {
		return 0, err
	}
	slices.Sort(order[rank:])
	return 0, &RankError{Rank: rank, Columns: c.d, Dependent: order[rank:], rows: c.n, centred: intercept}
}

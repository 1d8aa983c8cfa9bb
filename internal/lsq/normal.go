package lsq

import (
	"errors"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// normal computes products XᵀXw on the device for iterative methods: as one product with XᵀX if XᵀX
// is not much larger than X, and otherwise as products with X and Xᵀ.
type normal struct {
	t       *run.Task
	c       *Samples
	moments *moments                // moments.g is empty if products use X
	x       backend.Host[float64]   // X, n×d; empty if products use XᵀX
	sparse  *sparseColumns          // X of sparse samples, in host memory
	fixed   backend.Matrix[float64] // the device matrix of the products: XᵀX or X
	v, r    backend.Matrix[float64] // device vectors of d and n elements
	// square holds XᵀX of some columns, and then its factor. All factorizations share this memory.
	square       backend.Host[float64]
	factorMatrix backend.Matrix[float64]
}

// gramFeatures is the maximum number of features for which XᵀX is formed even if there are fewer
// samples than features. XᵀX then takes at most 32 MiB.
const gramFeatures = 2048

// byGram reports whether XᵀX is formed.
func (c *Samples) byGram() bool { return c.sparse == nil && c.d <= max(c.n, gramFeatures) }

// normalBytes returns the bytes of device memory that a value of the type normal takes for n samples.
func (c *Samples) normalBytes(n int) int64 {
	if c.sparse != nil {
		return c.sparseBytes(n)
	}
	if c.byGram() {
		return c.momentBytes(n) + 8*int64(c.d)*int64(c.d+2)
	}
	return 8 * (int64(n)*int64(c.d+c.t+1) + 2*int64(c.d)*int64(1+c.t))
}

func (c *Samples) normal(t *run.Task) (*normal, error) {
	a := &normal{t: t, c: c}
	var err error
	if c.sparse != nil {
		a.sparse = c.sparseColumns()
		a.moments = a.sparse.moments()
		return a, nil
	}
	if c.byGram() {
		if a.moments, err = c.moments(t); err == nil {
			a.fixed, err = backend.Copy(t.B, a.moments.g)
		}
	} else {
		err = a.uploadX()
	}
	if err == nil {
		a.v, err = t.B.New(c.d, 1)
	}
	if err != nil {
		a.free()
		return nil, err
	}
	return a, nil
}

// uploadX copies X to the device, and computes Xᵀy and yᵀy.
func (a *normal) uploadX() error {
	c, b := a.c, a.t.B
	a.x = backend.NewHost[float64](c.n, c.d)
	y := backend.NewHost[float64](c.n, c.t)
	c.fillX(a.x, 0)
	c.fillY(y, 0)
	var err error
	if a.fixed, err = backend.Place(b, a.x); err != nil {
		return err
	}
	if a.r, err = b.New(c.n, 1); err != nil {
		return err
	}
	a.moments = &moments{c: backend.NewHost[float64](c.t, c.d), s: make([]float64, c.t)}
	products, err := b.New(c.t, c.d)
	if err != nil {
		return err
	}
	defer products.Free()
	return run.Placed(b, y, a.moments.c, func(y, _ backend.Matrix[float64]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, y, a.fixed, 0, products)
		if err := b.ColDot(a.moments.s, y, y); err != nil {
			return err
		}
		for _, v := range a.moments.s {
			if v-v != 0 {
				return errors.New("values of x or y overflow: scale them down")
			}
		}
		return b.Download(a.moments.c, products)
	})
}

func (a *normal) free() {
	for _, m := range []backend.Matrix[float64]{a.fixed, a.v, a.r, a.factorMatrix} {
		if m != nil {
			m.Free()
		}
	}
}

func (a *normal) formed() bool { return a.moments.g.Rows > 0 }

// apply computes dst = XᵀXw.
func (a *normal) apply(dst, w []float64) error {
	if a.sparse != nil {
		a.sparse.apply(dst, w)
		return a.t.Stopped()
	}
	b, d := a.t.B, a.c.d
	if err := b.Upload(a.v, numeric.Column(w)); err != nil {
		return err
	}
	product, err := b.New(d, 1)
	if err != nil {
		return err
	}
	defer product.Free()
	if a.r == nil {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, a.fixed, a.v, 0, product)
	} else {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, a.fixed, a.v, 0, a.r)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, a.fixed, a.r, 0, product)
	}
	return b.Download(numeric.Column(dst), product)
}

// diagonal returns the squared norms of the columns of X.
func (a *normal) diagonal() []float64 {
	if a.sparse != nil {
		return a.sparse.diagonal
	}
	list := make([]float64, a.c.d)
	for p := range list {
		if a.r == nil {
			list[p] = a.moments.g.Row(p)[p]
		}
	}
	if a.r != nil {
		for i := range a.x.Rows {
			for p, v := range a.x.Row(i) {
				list[p] += v * v
			}
		}
	}
	return list
}

// gramOf returns the lower triangle of XᵀX of the columns in list.
func (a *normal) gramOf(list []int) (backend.Host[float64], error) {
	if a.sparse != nil {
		return a.sparse.gramOf(list), nil
	}
	s := len(list)
	if s > a.square.Rows {
		size := max(s, min(a.c.maxFactorColumns(), 2*a.square.Rows))
		a.square = backend.NewHost[float64](size, size)
	}
	g := a.square.View(0, 0, s, s)
	if a.r == nil {
		for i, p := range list {
			to, from := g.Row(i), a.moments.g.Row(p)
			for k, q := range list[:i+1] {
				to[k] = from[q]
			}
		}
		return g, nil
	}
	x := backend.NewHost[float64](a.x.Rows, s)
	for i := range x.Rows {
		from, to := a.x.Row(i), x.Row(i)
		for k, p := range list {
			to[k] = from[p]
		}
	}
	m, err := a.t.B.New(s, s)
	if err != nil {
		return g, err
	}
	defer m.Free()
	return g, run.Placed(a.t.B, x, g, func(x, _ backend.Matrix[float64]) error {
		a.t.B.Syrk(backend.Lower, backend.Transpose, 1, x, 0, m)
		return a.t.B.Download(g, m)
	})
}

// factorBytes returns the device memory of factor for n rows and the given number of columns.
func (c *Samples) factorBytes(n int, columns int64) int64 {
	elements := columns * (columns + 1)
	if c.sparse != nil {
		elements *= 3 // XᵀX, the copy of XᵀX on the device, and the factor
	} else if !c.byGram() {
		elements += columns * int64(n)
	}
	return 8 * elements
}

// cholesky is the Cholesky factor of X_AᵀX_A for the columns A, scaled so that X_AᵀX_A has the
// diagonal 1. If columns are linearly dependent, the weights of redundant columns are 0.
type cholesky struct {
	l     backend.Host[float64]
	order []int // order of the columns with pivoting; nil without pivoting
	rank  int
	scale []float64
}

// scaled returns the result of gramOf for columns divided by their norms. scale holds 1/‖x_p‖ of all columns.
func (a *normal) scaled(list []int, scale []float64) (backend.Host[float64], error) {
	g, err := a.gramOf(list)
	if err != nil {
		return g, err
	}
	for i, p := range list {
		row := g.Row(i)
		for k, q := range list[:i+1] {
			row[k] *= scale[p] * scale[q]
		}
	}
	return g, nil
}

// factor returns the factor of X_AᵀX_A for the columns A in list, valid until the next call. scale holds 1/‖x_p‖.
func (a *normal) factor(list []int, scale []float64) (*cholesky, error) {
	s := len(list)
	f := &cholesky{rank: s, scale: make([]float64, s)}
	for i, p := range list {
		f.scale[i] = scale[p]
	}
	g, err := a.scaled(list, scale)
	if err != nil {
		return nil, err
	}
	f.l = g
	size := 0
	if a.factorMatrix != nil {
		size, _ = a.factorMatrix.Dims()
	}
	if s > size {
		if a.factorMatrix != nil {
			a.factorMatrix.Free()
			a.factorMatrix = nil
		}
		size = max(s, min(a.c.maxFactorColumns(), 2*size))
		if a.factorMatrix, err = a.t.B.New(size, size); err != nil {
			return nil, err
		}
	}
	m := a.factorMatrix.View(0, 0, s, s)
	if err := a.t.B.Upload(m, g); err != nil {
		return nil, err
	}
	rounding := 8 * epsilon * float64(s+a.c.n) // rounding error of a squared pivot
	err = a.t.B.Potrf(backend.Lower, m)
	if err == nil {
		err = a.t.B.Download(f.l, m)
	}
	for i := 0; err == nil && i < s; i++ {
		if p := f.l.Row(i)[i]; p*p <= rounding {
			err = backend.ErrNotPosDef
		}
	}
	if !errors.Is(err, backend.ErrNotPosDef) {
		return f, err
	}
	// The matrix is singular to working precision. Factor it with pivoting, which stops when the
	// remaining squared norms are rounding errors.
	if g, err = a.scaled(list, scale); err != nil {
		return nil, err
	}
	f.l = g
	f.order, f.rank, err = pivotedCholesky(a.t.Ctx, g, rounding)
	return f, err
}

// solve overwrites v with (X_AᵀX_A)⁻¹v.
func (f *cholesky) solve(v []float64) {
	u := make([]float64, f.rank)
	column := func(i int) int {
		if f.order == nil {
			return i
		}
		return f.order[i]
	}
	for i := range u {
		u[i] = v[column(i)] * f.scale[column(i)]
	}
	solveLower(f.l, u)
	solveLowerTransposed(f.l, u)
	clear(v)
	for i, x := range u {
		v[column(i)] = x * f.scale[column(i)]
	}
}

// drop updates a factor without pivoting when column i of X_A is removed (Golub and Van Loan 2013, 6.5.4).
func (f *cholesky) drop(i int) {
	x := make([]float64, f.rank)
	for r := i + 1; r < f.rank; r++ {
		row := f.l.Row(r)
		x[r] = row[i]
		copy(f.l.Row(r - 1)[:i], row[:i])
		copy(f.l.Row(r - 1)[i:r], row[i+1:r+1])
	}
	f.rank--
	f.scale = slices.Delete(slices.Clone(f.scale), i, i+1)
	x = slices.Delete(x, i, i+1)
	for k := i; k < f.rank; k++ {
		pivot := f.l.Row(k)[k]
		size := math.Hypot(pivot, x[k])
		cos, sin := pivot/size, x[k]/size
		f.l.Row(k)[k] = size
		for r := k + 1; r < f.rank; r++ {
			row := f.l.Row(r)
			row[k], x[r] = cos*row[k]+sin*x[r], cos*x[r]-sin*row[k]
		}
	}
}

// null returns one row for each redundant column. The row holds the coefficients of a linear
// combination of this column and the independent columns that is 0 to working precision.
func (f *cholesky) null() backend.Host[float64] {
	s := len(f.scale)
	z := backend.NewHost[float64](s-f.rank, s)
	if f.rank == s || f.order == nil {
		return z.View(0, 0, 0, s)
	}
	for i := range z.Rows {
		row, b := z.Row(i), slices.Clone(f.l.Row(f.rank + i)[:f.rank])
		solveLowerTransposed(f.l, b)
		for k, v := range b {
			row[f.order[k]] = -v * f.scale[f.order[k]]
		}
		redundant := f.order[f.rank+i]
		row[redundant] = f.scale[redundant]
	}
	return z
}

// largest estimates the largest eigenvalue of DXᵀXD by the power method, which gives a lower bound. scale is the
// diagonal of D; nil means D = I. The method stops when a step changes the estimate by less than a percent.
func (a *normal) largest(scale []float64) (float64, error) {
	d := a.c.d
	v, w := make([]float64, d), make([]float64, d)
	for p := range v {
		v[p] = 1 + float64(p%7)/7 // a vector that is unlikely to be orthogonal to the eigenvector
	}
	times := func(v []float64) {
		for p, s := range scale {
			v[p] *= s
		}
	}
	value := 0.0
	for range 100 {
		size := 0.0
		for _, x := range v {
			size = math.Hypot(size, x)
		}
		if size == 0 {
			return 0, nil
		}
		for p := range v {
			v[p] /= size
		}
		times(v)
		if err := a.apply(w, v); err != nil {
			return 0, err
		}
		times(w)
		previous := value
		value = 0
		for _, x := range w {
			value = math.Hypot(value, x)
		}
		v, w = w, v
		if math.Abs(value-previous) <= 0.01*value {
			break
		}
	}
	return value, nil
}

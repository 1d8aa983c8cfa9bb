package gonum

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
)

var errNoDevice = errors.New("gonum: cholesky: no device was given: set Cholesky.Device")

// Cholesky is a mat.Cholesky that works on a Mercer device. It has all methods of mat.Cholesky, with the same
// results up to rounding, the same panics on misuse and the same mat.Condition errors. It implements mat.Symmetric.
//
// Factorize, SolveTo, SolveVecTo and InverseTo run on the device; operations of O(n²) run in gonum. The embedded
// factor is a complete mat.Cholesky: pass &c.Cholesky to functions that need a *mat.Cholesky, and change it only by
// methods of c.
//
// If the device's memory is not Go memory, the factor is also stored on the device, until the factor changes, Close
// is called, or c is garbage collected.
type Cholesky struct {
	mat.Cholesky
	// Device executes the factorizations and solves.
	Device backend.Device
	// Context cancels the work; nil means no cancellation.
	Context context.Context

	cond       float64       // condition number; 0 means that the embedded factor stores it
	deviceCopy *deviceMatrix // copy of the factor on a device that does not use Go memory
	err        error
}

type deviceMatrix struct{ m backend.Matrix[float64] }

func (c *Cholesky) queue() backend.Backend[float64] {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	return c.Device.F64().With(ctx, nil)
}

// Factorize sets c to the factor of a, in n³/3 operations on the device, and reports whether it succeeded. After a
// failure c is empty, and Err returns the reason: for example, a is not positive definite.
func (c *Cholesky) Factorize(a mat.Symmetric) (ok bool) {
	c.Reset()
	if c.Device == nil {
		c.err = errNoDevice
		return false
	}
	n := a.SymmetricDim()
	if n == 0 {
		panic(mat.ErrZeroLength)
	}
	u := mat.NewTriDense(n, mat.Upper, nil)
	norm := copyUpper(u, a)
	if c.err = c.factor(u); c.err != nil {
		c.Close()
		return false
	}
	c.Cholesky.SetFromU(u)
	c.cond = 1 / lapack64.Pocon(c.symmetric(), norm, make([]float64, 3*n), make([]int, n))
	return true
}

// factor overwrites the upper triangle u of a matrix with the Cholesky factor.
func (c *Cholesky) factor(u *mat.TriDense) error {
	h := hostOfUpper(u)
	b := c.queue()
	m, err := c.wrapOrCopy(b, h)
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	if err := b.Potrf(backend.Upper, m); err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	if c.deviceCopy != nil {
		// Below the diagonal, m still has the uploaded zeros.
		if err := b.Download(h, m); err != nil {
			return fmt.Errorf("gonum: cholesky: %w", err)
		}
	}
	return nil
}

// Err returns the reason why the last Factorize failed, or nil if it succeeded.
func (c *Cholesky) Err() error { return c.err }

// copyUpper sets u to the upper triangle of a, and returns the norm that gonum uses for condition numbers: the
// largest sum of absolute values in a row of a.
func copyUpper(u *mat.TriDense, a mat.Symmetric) float64 {
	n := a.SymmetricDim()
	raw := u.RawTriangular()
	sums := make([]float64, n)
	source, direct := a.(mat.RawSymmetricer)
	for i := range n {
		row := raw.Data[i*raw.Stride : i*raw.Stride+n]
		if direct {
			s := source.RawSymmetric()
			copy(row[i:], s.Data[i*s.Stride+i:i*s.Stride+n])
		} else {
			for j := i; j < n; j++ {
				row[j] = a.At(i, j)
			}
		}
		sums[i] += math.Abs(row[i])
		for j := i + 1; j < n; j++ {
			v := math.Abs(row[j])
			sums[i] += v
			sums[j] += v
		}
	}
	norm := 0.0
	for _, v := range sums {
		norm = max(norm, v)
	}
	return norm
}

// wrapOrCopy returns h as a matrix of the device. If the device does not use Go memory, this is a copy, c.deviceCopy.
func (c *Cholesky) wrapOrCopy(b backend.Backend[float64], h backend.Host[float64]) (backend.Matrix[float64], error) {
	if w, ok := b.(backend.Wrapper[float64]); ok {
		return w.Wrap(h), nil
	}
	m, err := backend.Copy(b, h)
	if err != nil {
		return nil, err
	}
	c.deviceCopy = &deviceMatrix{m}
	runtime.SetFinalizer(c.deviceCopy, func(f *deviceMatrix) { f.m.Free() })
	return m, nil
}

// upper returns the embedded factor as a matrix of the device.
func (c *Cholesky) upper(b backend.Backend[float64]) (backend.Matrix[float64], error) {
	if c.deviceCopy != nil {
		return c.deviceCopy.m, nil
	}
	return c.wrapOrCopy(b, hostOfUpper(c.RawU().(*mat.TriDense)))
}

func hostOfUpper(u *mat.TriDense) backend.Host[float64] {
	r := u.RawTriangular()
	return backend.Host[float64]{Rows: r.N, Cols: r.N, Stride: r.Stride, Data: r.Data}
}

// symmetric returns the factor in the form for package lapack64.
func (c *Cholesky) symmetric() blas64.Symmetric {
	r := c.RawU().(*mat.TriDense).RawTriangular()
	return blas64.Symmetric{Uplo: blas.Upper, N: r.N, Stride: r.Stride, Data: r.Data}
}

// Close frees the copy of the factor in the device's memory. c remains usable.
func (c *Cholesky) Close() {
	if c.deviceCopy != nil {
		runtime.SetFinalizer(c.deviceCopy, nil)
		c.deviceCopy.m.Free()
		c.deviceCopy = nil
	}
}

// clear discards all data of the previous factor.
func (c *Cholesky) clear() {
	c.Close()
	c.cond, c.err = 0, nil
}

// Cond returns the condition number, like mat.Cholesky.Cond.
func (c *Cholesky) Cond() float64 {
	if c.cond > 0 && !c.IsEmpty() {
		return c.cond
	}
	return c.Cholesky.Cond()
}

// condition returns a mat.Condition error if A is nearly singular, and otherwise nil.
func (c *Cholesky) condition() error {
	if cond := c.Cond(); cond > mat.ConditionTolerance {
		return mat.Condition(cond)
	}
	return nil
}

// checkedQueue returns the backend of the device. It panics if c is empty, and returns an error if Device is nil.
func (c *Cholesky) checkedQueue() (backend.Backend[float64], error) {
	c.LogDet() // panics like mat.Cholesky if c is empty
	if c.Device == nil {
		return nil, errNoDevice
	}
	return c.queue(), nil
}

// SolveTo sets dst to A⁻¹b, in 2n²t operations on the device for t columns. dst may be b. SolveTo returns a
// mat.Condition if A is nearly singular. If the device fails, SolveTo returns its error, and dst is undefined.
func (c *Cholesky) SolveTo(dst *mat.Dense, b mat.Matrix) error {
	q, err := c.checkedQueue()
	if err != nil {
		return err
	}
	rows, cols := b.Dims()
	if rows != c.SymmetricDim() {
		panic(mat.ErrShape)
	}
	if dst.IsEmpty() {
		dst.ReuseAs(rows, cols)
	} else if r, k := dst.Dims(); r != rows || k != cols {
		panic(mat.ErrShape)
	}
	if d, ok := b.(*mat.Dense); !ok || d != dst {
		dst.Copy(b)
	}
	r := dst.RawMatrix()
	if err := c.solve(q, backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}); err != nil {
		return err
	}
	return c.condition()
}

// SolveVecTo sets dst to A⁻¹b for a vector b; see SolveTo.
func (c *Cholesky) SolveVecTo(dst *mat.VecDense, b mat.Vector) error {
	q, err := c.checkedQueue()
	if err != nil {
		return err
	}
	n := b.Len()
	if n != c.SymmetricDim() {
		panic(mat.ErrShape)
	}
	if dst.IsEmpty() {
		dst.ReuseAsVec(n)
	} else if dst.Len() != n {
		panic(mat.ErrShape)
	}
	if d, ok := b.(*mat.VecDense); !ok || d != dst {
		dst.CopyVec(b)
	}
	r := dst.RawVector()
	if err := c.solve(q, backend.Host[float64]{Rows: r.N, Cols: 1, Stride: r.Inc, Data: r.Data}); err != nil {
		return err
	}
	return c.condition()
}

// SolveCholTo sets dst to A⁻¹B for the matrix B whose factor is b.
func (c *Cholesky) SolveCholTo(dst *mat.Dense, b *Cholesky) error {
	q, err := c.checkedQueue()
	if err != nil {
		return err
	}
	n := c.SymmetricDim()
	var u mat.TriDense
	b.UTo(&u) // panics like mat.Cholesky if b is empty
	if b.SymmetricDim() != n {
		panic(mat.ErrShape)
	}
	if dst.IsEmpty() {
		dst.ReuseAs(n, n)
	}
	dst.Mul(u.T(), &u)
	r := dst.RawMatrix()
	if err := c.solve(q, backend.Host[float64]{Rows: n, Cols: n, Stride: r.Stride, Data: r.Data}); err != nil {
		return err
	}
	return c.condition()
}

// solve overwrites h with (UᵀU)⁻¹h.
func (c *Cholesky) solve(q backend.Backend[float64], h backend.Host[float64]) error {
	u, err := c.upper(q)
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	return inPlace(q, h, func(m backend.Matrix[float64]) {
		q.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, u, m)
		q.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, u, m)
	})
}

// inPlace calls work with h as a matrix of the device, and waits until the device has finished. If the device does not
// use Go memory, work gets a copy of h, and inPlace downloads the result to h.
func inPlace(q backend.Backend[float64], h backend.Host[float64], work func(m backend.Matrix[float64])) error {
	m, err := backend.Place(q, h)
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	defer m.Free()
	work(m)
	if _, ok := q.(backend.Wrapper[float64]); ok {
		err = q.Sync()
	} else {
		err = q.Download(h, m)
	}
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	return nil
}

// InverseTo sets dst to A⁻¹ = U⁻¹U⁻ᵀ, in 2n³ operations on the device. Its errors are those of SolveTo.
func (c *Cholesky) InverseTo(dst *mat.SymDense) error {
	q, err := c.checkedQueue()
	if err != nil {
		return err
	}
	n := c.SymmetricDim()
	if dst.IsEmpty() {
		dst.ReuseAsSym(n)
	} else if dst.SymmetricDim() != n {
		panic(mat.ErrShape)
	}
	u, err := c.upper(q)
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	inverse, err := q.New(n, n)
	if err != nil {
		return fmt.Errorf("gonum: cholesky: %w", err)
	}
	defer inverse.Free()
	r := dst.RawSymmetric()
	err = inPlace(q, backend.Host[float64]{Rows: n, Cols: n, Stride: r.Stride, Data: r.Data}, func(m backend.Matrix[float64]) {
		q.AddDiag([]float64{1}, inverse)
		q.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, u, inverse)
		q.Syrk(backend.Upper, backend.NoTrans, 1, inverse, 0, m)
	})
	if err != nil {
		return err
	}
	return c.condition()
}

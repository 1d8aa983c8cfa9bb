package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/kernels"
)

// check solves a small system whose solution is known, in both precisions, with every library that was found. A
// device whose solution is wrong is not opened.
func (d *device) check() error {
	if err := checkPrecision(d.F64().(*queue[float64])); err != nil {
		return err
	}
	if err := checkPrecision(d.F32().(*queue[float32])); err != nil {
		return err
	}
	if q := d.F32().(*queue[float32]); q.ReducedUnit() > 0 {
		err := q.wait("a product in FP16", q.checkHalf)
		if errors.Is(err, ErrLost) {
			return err
		}
		d.noHalf = err != nil
	}
	d.memory.resetPeak()
	return nil
}

// checkHalf multiplies matrices of small integers in FP16 and checks that the result is exact.
func (q *queue[T]) checkHalf() error {
	const n = 64
	d := q.engine.device
	a, got := make([]T, n*n), make([]T, n*n)
	for i := range a {
		a[i] = T(i*i%7 - 3)
	}
	r := rounding{reduced: true, scale: 1, bytes: 4 * n * n}
	return q.scratch(12*n*n, func(p driver.DevicePtr) error {
		A := &matrix[T]{device: d, ptr: p, rows: n, cols: n, stride: n}
		r.memory = p + driver.DevicePtr(n*n*sizeOf[T]())
		err := firstOf(
			func() error { return d.copyToDevice(p, bytesOf(a)) },
			func() error {
				left, end, err := q.toHalf(backend.NoTrans, A, r.memory, r)
				if err != nil {
					return err
				}
				right, _, err := q.toHalf(backend.NoTrans, A, end, r)
				if err != nil {
					return err
				}
				return q.halfProduct(d.libraries.Blas, n, 1, left, right, 0, A, r)
			},
			func() error { return d.copyToHost(p, bytesOf(got)) },
		)
		for i := range got {
			want := T(0)
			for k := range n {
				want += a[i/n*n+k] * a[k*n+i%n]
			}
			if err == nil && got[i] != want {
				err = fmt.Errorf("element %d is %v, not %v", i, got[i], want)
			}
		}
		return err
	})
}

func checkPrecision[T backend.Float](q *queue[T]) error {
	// With 17 features, GramMul uses the general device function. All features except two are 0.
	const n, features = 40, 17
	x, v := backend.NewHost[T](n, features), backend.NewHost[T](n, 1)
	for i := range n {
		x.Row(i)[0], x.Row(i)[1] = T(i%7)/4, T(i%11)/8
		v.Data[i] = T(i%5) - 2
	}
	k := kernels.Gaussian{Sigma: 1}
	// The processor computes the expected results: K, product = K v, and sumProduct = (K + L) v, where L is the
	// Gram matrix of the kernel `wider`. A = K + n·I has a condition number of at most 2.
	wider := kernels.Gaussian{Sigma: 2}
	a, product, sumProduct := backend.NewHost[T](n, n), make([]float64, n), make([]float64, n)
	for i := range n {
		for j := range n {
			p, r := float64(x.Row(i)[0]-x.Row(j)[0]), float64(x.Row(i)[1]-x.Row(j)[1])
			value := math.Exp(-(p*p + r*r) / 2)
			a.Row(i)[j] = T(value)
			product[i] += value * float64(v.Data[j])
			sumProduct[i] += (value + math.Exp(-(p*p+r*r)/8)) * float64(v.Data[j])
		}
	}
	var matrices []interface{ Free() }
	defer func() {
		for _, m := range matrices {
			m.Free()
		}
	}()
	toDevice := func(h backend.Host[T]) (*matrix[T], error) {
		m, err := q.New(h.Rows, h.Cols)
		if err != nil {
			return nil, err
		}
		matrices = append(matrices, m)
		return m.(*matrix[T]), q.Upload(m, h)
	}
	points, err := toDevice(x)
	if err != nil {
		return err
	}
	vector, err := toDevice(v)
	if err != nil {
		return err
	}
	square, err := toDevice(a)
	if err != nil {
		return err
	}
	squared, err := toDevice(backend.NewHost[T](n, n))
	if err != nil {
		return err
	}
	out, err := toDevice(backend.NewHost[T](n, 1))
	if err != nil {
		return err
	}
	got := backend.NewHost[T](n, 1)
	// The bound covers the rounding errors of exp and of n products.
	tolerance := 32 * n * math.Ldexp(1, -52)
	if sizeOf[T]() == 4 {
		tolerance = 32 * n * math.Ldexp(1, -23)
	}
	compare := func(operation string, want func(i int) float64) error {
		if err := q.Download(got, out); err != nil {
			return err
		}
		for i, v := range got.Data {
			if !(math.Abs(float64(v)-want(i)) <= tolerance) {
				return fmt.Errorf("the device computes wrong results: %s in %T: element %d is %v, not %v", operation, v, i, v, want(i))
			}
		}
		return nil
	}
	// Compute K v with and without storing K, and A⁻¹ (A v).
	q.GramMul(out, k, points, points, vector)
	if err := compare("K·V", func(i int) float64 { return product[i] }); err != nil {
		return err
	}
	twoFeatures := points.window(0, 0, n, 2)
	q.GramMul(out, k, twoFeatures, twoFeatures, vector)
	if err := compare("K·V of few features", func(i int) float64 { return product[i] }); err != nil {
		return err
	}
	q.GramMul(out, kernels.Sum{k, wider}, points, points, vector)
	if err := compare("K·V of a sum of kernels", func(i int) float64 { return sumProduct[i] }); err != nil {
		return err
	}
	// Compute K²v/n by a product of matrices followed by a matrix-vector product.
	q.Gemm(backend.NoTrans, backend.NoTrans, 1./n, square, square, 0, squared)
	q.Gemm(backend.NoTrans, backend.NoTrans, 1, squared, vector, 0, out)
	if err := compare("a product of matrices", func(i int) float64 {
		sum := 0.0
		for j, v := range product {
			sum += float64(a.Row(i)[j]) * v / n
		}
		return sum
	}); err != nil {
		return err
	}
	q.Gram(square, k, points, points)
	q.AddDiag([]T{n}, square)
	q.Symm(backend.Lower, 1, square, vector, 0, out)
	if err := compare("a product", func(i int) float64 { return product[i] + n*float64(v.Data[i]) }); err != nil {
		return err
	}
	if err := q.wait("potrf", func() error { return q.smallPotrf(square) }); err != nil {
		return err
	}
	q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, square, out)
	if bl := q.engine.device.libraries.Blas; bl != nil { // potrf calls cuBLAS if the triangle is large
		err := q.wait("trsv", func() error { return q.blasTrsv(bl, backend.Left, backend.Lower, backend.Transpose, square, out) })
		if err != nil {
			return err
		}
	} else {
		q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, square, out)
	}
	return compare("a solution", func(i int) float64 { return float64(v.Data[i]) })
}

// smallPotrf factors a triangle with cuSOLVER, if available, even if the order is small.
func (q *queue[T]) smallPotrf(a *matrix[T]) error {
	d := q.engine.device
	if d.libraries.Solver == nil {
		return q.potrf(backend.Lower, a, rounding{})
	}
	f := &factoring[T]{q: q, ul: backend.Lower, solver: d.libraries.Solver, maxOrder: a.rows}
	return errors.Join(f.solve(a, 0), f.close())
}

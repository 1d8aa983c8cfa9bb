package cuda

import (
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/flop"
)

// rounding specifies the precision to which a factorization for a preconditioner rounds the factors of its
// off-diagonal products. Sums are in float32. The zero value is full precision.
//
// FP16 has the 11 significant bits of TF32, at twice the rate and half the bytes, but only the exponents −24 to 15.
// The factor L is therefore scaled by a power of two s, for which the largest elements of sL are just below 2¹⁴,
// and products are divided by s². If the range of FP16 is too small, the factors are rounded to TF32.
type rounding struct {
	reduced bool
	scale   float64 // the scale s, or 0 if the factors are not in FP16

	memory driver.DevicePtr // memory for factors in FP16
	bytes  int64
}

// reducedUnit is the unit roundoff of FP16 and of TF32.
const reducedUnit = 0x1p-11

// ReducedUnit returns the unit roundoff of reduced-precision factorizations. It returns 0 if T is float64, if
// cuBLAS is missing or does not support products in FP16, or if the card is not faster in FP16 than in float32.
func (q *queue[T]) ReducedUnit() float64 {
	if sizeOf[T]() == 8 || q.engine.device.Rates().Reduced == 0 {
		return 0
	}
	return reducedUnit
}

func (q *queue[T]) PotrfPackedReduced(a backend.Packed[T]) error {
	return q.waitPotrfPacked("PotrfPackedReduced", a, q.ReducedUnit() > 0)
}

// halfScale returns the scale s (see rounding) for the Cholesky factor L of a matrix A of order n with the diagonal a.
// It returns 0 if s²·min a < n·2⁻²⁸, because underflow in FP16 may then change a product more than rounding does:
//
//  1. Row i of L has the norm √a_i.
//  2. Underflow changes an element of sL by at most 2⁻²⁵, and the product of rows i and j of sL by at most about
//     s√(n a_j)·2⁻²⁵.
//  3. Rounding changes this product by about 2⁻¹¹ s²√(a_i a_j).
func halfScale[T backend.Float](a []T) float64 {
	minDiag, maxDiag := math.Inf(1), 0.0
	for _, v := range a {
		minDiag, maxDiag = min(minDiag, float64(v)), max(maxDiag, float64(v)) // min and max propagate NaN
	}
	if !(minDiag > 0 && maxDiag < math.MaxFloat32) {
		return 0
	}
	_, e := math.Frexp(math.Sqrt(maxDiag)) // every √a_i is less than 2ᵉ
	s := math.Ldexp(1, 14-e)
	// The factor 1/s² must be in the range of float32.
	if s*s*minDiag < float64(len(a))*0x1p-28 || math.Abs(float64(14-e)) > 60 {
		return 0
	}
	return s
}

// halfPad returns n rounded up to a multiple of 64, so that rows of factors in FP16 are aligned to 128 bytes.
func halfPad(n int) int { return ceil(n, 64) * 64 }

// rounded calls factor with the rounding that suits a matrix of order n.
func (q *queue[T]) rounded(n int, diagonal func([]T) error, factor func(rounding) error) error {
	a, d := make([]T, n), q.engine.device
	if err := diagonal(a); err != nil {
		return err
	}
	r := rounding{reduced: true, scale: halfScale(a)}
	if r.scale == 0 || n < cuts.minHalf {
		return factor(rounding{reduced: true})
	}
	// In each product AB of the factorization, A has p rows and B has q columns, where p + q ≤ n.
	rows := int64(n + 2*halfPad(1))
	minBytes := 2 * rows * int64(halfPad(1))
	r.bytes = max(minBytes, min(2*rows*int64(halfPad(n)), cuts.halfBytes, d.memory.limitBytes()/32))
	for {
		var err error
		if r.memory, err = d.alloc(r.bytes); err == nil {
			break
		}
		if !errors.Is(err, backend.ErrMemory) || r.bytes == minBytes {
			return err
		}
		r.bytes = max(r.bytes/2, minBytes)
	}
	err := factor(r)
	return errors.Join(err, d.api.Wait(d.stream), d.release(r.memory))
}

// halfMatrix is a stored matrix in FP16 (t = NoTrans) or the transpose of a stored matrix.
type halfMatrix struct {
	ptr    driver.DevicePtr
	stride int
	t      backend.Trans
}

// from returns the part of the matrix from row i and column j on.
func (h halfMatrix) from(i, j int) halfMatrix {
	if h.t == backend.Transpose {
		i, j = j, i
	}
	return halfMatrix{h.ptr + driver.DevicePtr(2*(i*h.stride+j)), h.stride, h.t}
}

// toHalf queues a copy of scale·op(a) to p, and returns the copy and the address after its end.
func (q *queue[T]) toHalf(t backend.Trans, a *matrix[T], p driver.DevicePtr, r rounding) (halfMatrix, driver.DevicePtr, error) {
	h := halfMatrix{p, halfPad(a.cols), t}
	d := q.engine.device
	d.args.Reset().Int(a.rows).Int(a.cols).Ptr(a.ptr).Long(a.stride).Float(float32(r.scale)).Ptr(p).Long(h.stride)
	return h, p + driver.DevicePtr(2*a.rows*h.stride), d.launch("to_half", spread(a.rows, a.cols))
}

// terms divides the k columns of A in a product AB into ranges for which the parts of A and B in FP16 fit in
// r.memory, and calls f for each range. rows is the number of rows of A plus the number of columns of B.
func (r rounding) terms(k, rows int, f func(from, count int) error) error {
	maxCount := int(r.bytes/int64(2*rows)) / halfPad(1) * halfPad(1)
	for from := 0; from < k; from += maxCount {
		if err := f(from, min(maxCount, k-from)); err != nil {
			return err
		}
	}
	return nil
}

// columnRange returns the columns from … from+count−1 of op(a).
func columnRange[T backend.Float](t backend.Trans, a *matrix[T], from, count int) *matrix[T] {
	if t == backend.Transpose {
		return a.window(from, 0, count, a.cols)
	}
	return a.window(0, from, a.rows, count)
}

// halfGemm computes C ← α op(A) op(B) + β C with factors in FP16.
func (q *queue[T]) halfGemm(bl *driver.Blas, tA, tB backend.Trans, alpha T, a, b *matrix[T], beta T, c *matrix[T], r rounding) error {
	return r.terms(a.view().op(tA).cols, halfPad(c.rows)+halfPad(c.cols), func(from, count int) error {
		left, end, err := q.toHalf(tA, columnRange(tA, a, from, count), r.memory, r)
		if err != nil {
			return err
		}
		right, _, err := q.toHalf(tB, columnRange(1-tB, b, from, count), end, r)
		if err != nil {
			return err
		}
		if from > 0 {
			beta = 1
		}
		return q.halfProduct(bl, count, alpha, left, right, beta, c, r)
	})
}

// halfProduct computes C ← α/s² A B + β C with k terms, where A and B are already scaled by s.
func (q *queue[T]) halfProduct(bl *driver.Blas, k int, alpha T, a, b halfMatrix, beta T, c *matrix[T], r rounding) error {
	factor := float32(float64(alpha) / (r.scale * r.scale))
	rows, cols := q.chunk(c.rows, c.cols, k)
	for i := 0; i < c.rows; i += rows {
		for j := 0; j < c.cols; j += cols {
			m, n := min(rows, c.rows-i), min(cols, c.cols-j)
			left, right := a.from(i, 0), b.from(0, j)
			err := q.step(flop.Gemm(m, n, k), func() error {
				return driver.GemmHalf(bl, opOf(b.t), opOf(a.t), n, m, k, factor, right.ptr, b.stride, left.ptr, a.stride, float32(beta), c.at(i, j), c.stride)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// halfSyrk computes C ← α op(A) op(A)ᵀ + β C with op(A) in FP16, except the diagonal blocks, whose order is size.
func (q *queue[T]) halfSyrk(bl *driver.Blas, ul backend.Uplo, t backend.Trans, alpha T, a *matrix[T], beta T, c *matrix[T], size int, r rounding) error {
	return r.terms(a.view().op(t).cols, halfPad(c.rows), func(from, count int) error {
		p, _, err := q.toHalf(t, columnRange(t, a, from, count), r.memory, r)
		if err != nil {
			return err
		}
		if from > 0 {
			beta = 1
		}
		transposed := halfMatrix{p.ptr, p.stride, 1 - t}
		var offDiagonal func(i, n int) error
		offDiagonal = func(i, n int) error {
			n1 := ceil(ceil(n, size), 2) * size
			if n1 >= n {
				return nil
			}
			j := i + n1
			cBlock, row, column := c.window(j, i, n-n1, n1), j, i
			if ul == backend.Upper {
				cBlock, row, column = c.window(i, j, n1, n-n1), i, j
			}
			return firstOf(
				func() error {
					return q.halfProduct(bl, count, alpha, p.from(row, 0), transposed.from(0, column), beta, cBlock, r)
				},
				func() error { return offDiagonal(i, n1) },
				func() error { return offDiagonal(j, n-n1) },
			)
		}
		return offDiagonal(0, c.rows)
	})
}

// These ratios of achieved to peak rates are assumptions, not measurements: for products in
// float64, for reading memory, and for the instructions of a product with a K that is not stored.
const (
	productShare = 0.82
	memoryShare  = 0.87
	pairShare    = 0.55
	// These are the approximate seconds of a launch, and of a cuBLAS call that solves with a triangle of order
	// cuts.fewOrder and a small number of columns.
	stepSeconds  = 10e-6
	solveSeconds = 80e-6
)

// Rates computes the device's rates from the clocks and the bus width that the driver reports and from NVIDIA's tables.
// It assumes that a factorization in reduced precision runs a tenth of its operations at the rate of full precision.
func (d *device) Rates() flop.Rates {
	p := d.props
	r := flop.Rates{
		Single: p.singleRate() / p.doubleRate(), Values: float64(max(p.ratio, 1)),
		Products: productShare * p.doubleRate(), Bytes: memoryShare * p.memoryRate(), Step: stepSeconds,
		Pairs: pairShare * p.singleRate() / 2 / float64(max(p.ratio, 1)), Solve: solveSeconds / float64(cuts.fewOrder), ReducedSolve: 2 * stepSeconds / float64(cuts.fewOrder),
	}
	if d.libraries.Blas == nil {
		r.Single = r.Values // the device functions do not use tensor cores
		r.Products = min(r.Products, pairShare*p.singleRate()/float64(max(p.ratio, 1)))
		return r
	}
	if p.reducedRate() > p.singleRate() && !d.noHalf {
		r.Reduced = 1 / (0.9*p.doubleRate()/p.reducedRate() + 0.1*p.doubleRate()/p.singleRate())
	}
	return r
}

// memoryRate returns the memory bandwidth in bytes per second. If a virtual GPU does not report the memory's clock,
// the result is the bandwidth of the slowest card with the same compute capability.
func (p properties) memoryRate() float64 {
	switch {
	case p.bandwidth > 0:
		return p.bandwidth
	case p.major >= 9 && p.minor == 0:
		return 2e12
	case p.major == 8 && p.minor == 0:
		return 1.5e12
	case p.major == 7 && p.minor == 0:
		return 0.9e12
	}
	return 0.3e12
}

package bench

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
)

// operand holds the operands of an operation on one device.
type operand[T backend.Float] struct {
	q backend.Backend[T]
	judge
	x, y backend.Host[T]
}

// productLimit bounds the relative difference between two computed products of K and a vector of
// ones. With the unit roundoff u, each product has an error of at most (d + 12)u from the elements
// of K (see ridgeLimit), and of at most 10√n·u from the sums of n terms.
func productLimit[T backend.Float](n, d int) float64 {
	return (20*math.Sqrt(float64(n)) + 2*(float64(d)+12)) * roundoff[T]()
}

// entry creates the entry of an operation. The judge checks a product with K or, for "fit" and "factor", the residual.
func (o *operand[T]) entry(operation string, residualLimit, productLimit float64) (e Entry, err error) {
	n, mem := o.x.Rows, placer[T]{q: o.q}
	e.Close = mem.free
	if operation == "fit" {
		var alpha backend.Host[T]
		e.Run = func() (err error) {
			alpha, err = direct(o.q, o.kernel, o.x, o.y, T(o.lambda))
			return err
		}
		e.Check = func() *Check { return checked(residualLimit, func() (float64, error) { return o.residualOf(alpha) }) }
		return e, nil
	}
	x := mem.place(o.x)
	if operation == "mul" {
		v, out := mem.place(o.ones()), mem.alloc(n, 1)
		e.Run = func() error {
			o.q.GramMul(out, o.kernel, x, x, v)
			return o.q.Sync()
		}
		e.Check = func() *Check {
			return checked(productLimit, func() (float64, error) { return o.productDifference(out) })
		}
		return e, mem.freeOnError()
	}
	k := mem.alloc(n, n)
	if operation == "gram" {
		e.Run = func() error {
			o.q.Gram(k, o.kernel, x, x)
			return o.q.Sync()
		}
		e.Check = func() *Check { return checked(productLimit, func() (float64, error) { return o.gramDifference(k) }) }
		return e, mem.freeOnError()
	}
	e.Before = func() error {
		o.q.Gram(k, o.kernel, x, x)
		o.q.AddDiag([]T{T(o.lambda)}, k)
		return o.q.Sync()
	}
	e.Run = func() error { return o.q.Potrf(backend.Lower, k) }
	e.Check = func() *Check {
		return checked(residualLimit, func() (float64, error) {
			scratch := placer[T]{q: o.q}
			defer scratch.free()
			alpha, b := backend.NewHost[T](n, 1), scratch.alloc(n, 1) // the solution overwrites b, a copy of y
			if scratch.err != nil {
				return 0, scratch.err
			}
			err := o.q.Upload(b, o.y)
			twoTriangles(o.q, k, b)
			if err := errors.Join(err, o.q.Download(alpha, b)); err != nil {
				return 0, err
			}
			return o.residualOf(alpha)
		})
	}
	return e, mem.freeOnError()
}

// ones returns a column of ones. The terms of its product with K do not cancel.
func (o *operand[T]) ones() backend.Host[T] {
	n := o.x.Rows
	return backend.Host[T]{Rows: n, Cols: 1, Stride: 1, Data: slices.Repeat([]T{1}, n)}
}

// gramDifference compares the product of the stored lower triangle of K and ones with the judge's product.
func (o *operand[T]) gramDifference(k backend.Matrix[T]) (float64, error) {
	mem := placer[T]{q: o.q}
	defer mem.free()
	v, out := mem.place(o.ones()), mem.alloc(o.x.Rows, 1)
	if mem.err != nil {
		return 0, mem.err
	}
	o.q.Symm(backend.Lower, 1, k, v, 0, out)
	return o.productDifference(out)
}

// productDifference compares a product of K and ones with the judge's product.
func (o *operand[T]) productDifference(out backend.Matrix[T]) (float64, error) {
	n := o.x.Rows
	got := backend.NewHost[T](n, 1)
	if err := o.q.Download(got, out); err != nil {
		return 0, err
	}
	want, err := o.product(o.synthetic.x, o.synthetic.x, slices.Repeat([]float64{1}, n))
	if err != nil {
		return 0, err
	}
	return floats.Distance(converted[float64](got.Data), want, 2) / floats.Norm(want, 2), nil
}

// residualOf returns the residual of α. The judge computes it in float64, without storing K.
func (o *operand[T]) residualOf(alpha backend.Host[T]) (float64, error) {
	return o.residual(function{points: o.synthetic.x, coef: converted[float64](alpha.Data)})
}

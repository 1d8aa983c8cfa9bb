package backendtest

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// This file has operations on host matrices for the tests, independent of the oracle.

func bits(v float64) uint64 { return math.Float64bits(v) }

func round[T backend.Float](h host) backend.Host[T] {
	r := backend.NewHost[T](h.Rows, h.Cols)
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			r.Data[i*r.Stride+j] = T(v)
		}
	}
	return r
}

func widen[T backend.Float](h backend.Host[T]) host {
	r := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			r.Data[i*r.Stride+j] = float64(v)
		}
	}
	return r
}

// fromFunc returns the matrix with the elements f(i, j).
func fromFunc(rows, cols int, f func(i, j int) float64) host {
	h := backend.NewHost[float64](rows, cols)
	for i := range rows {
		for j := range cols {
			h.Data[i*cols+j] = f(i, j)
		}
	}
	return h
}

func filled(rows, cols int, v float64) host {
	return fromFunc(rows, cols, func(int, int) float64 { return v })
}

// integers returns a matrix of random integers from −largest to largest.
func (r *rig[T]) integers(rows, cols, largest int) host {
	return fromFunc(rows, cols, func(int, int) float64 { return float64(r.rng.IntN(2*largest+1) - largest) })
}

// normals returns a matrix of standard normal numbers, rounded to the precision under test.
func (r *rig[T]) normals(rows, cols int) host {
	return fromFunc(rows, cols, func(int, int) float64 { return float64(T(r.rng.NormFloat64())) })
}

func transpose(h host) host {
	return fromFunc(h.Cols, h.Rows, func(i, j int) float64 { return h.Data[j*h.Stride+i] })
}

// op returns h or its transpose. Since op(op(h)) = h, op(h) is also the operand A for which op(A) = h.
func op(t backend.Trans, h host) host {
	if t == backend.Transpose {
		return transpose(h)
	}
	return h
}

func abs(h host) host {
	return fromFunc(h.Rows, h.Cols, func(i, j int) float64 { return math.Abs(h.Row(i)[j]) })
}

func abs1(v float64) float64 { return math.Abs(v) }

func scale(f float64, h host) host {
	return fromFunc(h.Rows, h.Cols, func(i, j int) float64 { return f * h.Row(i)[j] })
}

func mul(a, b host) host {
	c := backend.NewHost[float64](a.Rows, b.Cols)
	for i := range a.Rows {
		row := c.Row(i)
		for p, aip := range a.Row(i) {
			for j, bpj := range b.Row(p) {
				row[j] += aip * bpj
			}
		}
	}
	return c
}

// mulSparse returns AB. It skips the zeros of A: all elements of B must be finite.
func mulSparse(a, b host) host {
	c := backend.NewHost[float64](a.Rows, b.Cols)
	for i := range a.Rows {
		row := c.Row(i)
		for p, aip := range a.Row(i) {
			if aip == 0 {
				continue
			}
			for j, bpj := range b.Row(p) {
				row[j] += aip * bpj
			}
		}
	}
	return c
}

// combine returns αS + βC, or αS without reading C if β is 0.
func combine(alpha float64, s host, beta float64, c host) host {
	return fromFunc(s.Rows, s.Cols, func(i, j int) float64 {
		v := alpha * s.Row(i)[j]
		if beta != 0 {
			v += beta * c.Row(i)[j]
		}
		return v
	})
}

func inTriangle(ul backend.Uplo, i, j int) bool {
	if ul == backend.Lower {
		return j <= i
	}
	return j >= i
}

// triangle returns h with sentinels outside the triangle ul.
func triangle(ul backend.Uplo, h host) host {
	return fromFunc(h.Rows, h.Cols, func(i, j int) float64 {
		if inTriangle(ul, i, j) {
			return h.Row(i)[j]
		}
		return sentinel
	})
}

// mirror returns the symmetric matrix that has the triangle ul of h.
func mirror(ul backend.Uplo, h host) host {
	return fromFunc(h.Rows, h.Cols, func(i, j int) float64 {
		if inTriangle(ul, i, j) {
			return h.Row(i)[j]
		}
		return h.Row(j)[i]
	})
}

// exactTriangle returns a lower triangular matrix of small integers that can be inverted without rounding, with
// about perRow nonzero elements in a row.
//
// The diagonal D holds powers of two, up to their signs. Each index has one of three random classes, and an element
// of the strict triangle N is zero unless the class of its row exceeds that of its column. Products with three
// factors N are then 0, and the inverse D⁻¹ − D⁻¹ND⁻¹ + D⁻¹ND⁻¹ND⁻¹ has small elements.
func (r *rig[T]) exactTriangle(n, perRow int, positive bool) host {
	class := make([]int, n)
	for i := range class {
		class[i] = r.rng.IntN(3)
	}
	return fromFunc(n, n, func(i, j int) float64 {
		switch {
		case i == j:
			d := float64(int(1) << r.rng.IntN(2))
			if !positive && r.rng.IntN(2) == 0 {
				d = -d
			}
			return d
		case j > i || class[i] <= class[j]:
			return 0
		case r.rng.IntN(n) < 2*perRow:
			return float64(r.rng.IntN(5) - 2)
		}
		return 0
	})
}

var (
	bothTrans = []backend.Trans{backend.NoTrans, backend.Transpose}
	bothUplos = []backend.Uplo{backend.Lower, backend.Upper}
	bothSides = []backend.Side{backend.Left, backend.Right}

	// Products with these small numbers are exact.
	alphas = []float64{1, -1, 2, 0, 0.5, -3}
	betas  = []float64{0, 1, -1, 2, 0.5, -3}
)

func pick[E any, T backend.Float](r *rig[T], list []E) E { return list[r.rng.IntN(len(list))] }

// blockSizes are numbers near the sizes of register tiles, panels and blocks.
var blockSizes = []int{15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257}

// block returns a random element of blockSizes, at most LargeN, or at most 129 with -short.
func (r *rig[T]) block() int {
	if short() {
		return blockSizes[r.rng.IntN(18)]
	}
	return pick(r, r.upToLarge(blockSizes...))
}

// upToLarge returns the given sizes that are at most LargeN.
func (r *rig[T]) upToLarge(sizes ...int) []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n > r.LargeN })
}

// included returns true for every call or, with Fewer or -short, for a random part of the calls.
func (r *rig[T]) included() bool { return r.divisor() == 1 || r.rng.IntN(r.divisor()) == 0 }

// reduced returns n or, with Fewer or -short, a fraction of n, rounded up.
func (r *rig[T]) reduced(n int) int { return (n + r.divisor() - 1) / r.divisor() }

// divisor returns 16 if required.FewCases is true, or else 4 with Fewer or -short, or else 1.
func (r *rig[T]) divisor() int {
	switch {
	case few():
		return 16
	case r.Fewer || short():
		return 4
	}
	return 1
}

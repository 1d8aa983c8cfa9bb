package numeric

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
)

// Dot returns xᵀy, computed as four partial sums.
func Dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Mean returns Σ w_i x_i/Σ w_i. Nil weights are all 1.
func Mean(x, weights []float64) float64 {
	sum, total := 0.0, 0.0
	for i, v := range x {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		sum += w * v
		total += w
	}
	return sum / total
}

// Finite reports whether no element of x is NaN or infinite.
func Finite(x []float64) bool {
	var s0, s1, s2, s3 float64 // 0, or NaN once an element is not finite
	for len(x) >= 4 {
		s0 += x[0] - x[0]
		s1 += x[1] - x[1]
		s2 += x[2] - x[2]
		s3 += x[3] - x[3]
		x = x[4:]
	}
	for _, v := range x {
		s0 += v - v
	}
	return s0+s1+s2+s3 == 0
}

// Axpy computes y ← y + a·x.
func Axpy(a float64, x, y []float64) { floats.AddScaled(y[:len(x)], a, x) }

// Repeated returns a slice of count elements equal to v.
func Repeated[T backend.Float](v T, count int) []T { return slices.Repeat([]T{v}, count) }

// Trace returns the sum of the elements of diagonal.
func Trace(diagonal []float64) float64 {
	s := 0.0
	for _, v := range diagonal {
		s += v
	}
	return s
}

// Squared returns ‖row‖².
func Squared[T backend.Float](row []T) float64 {
	var sums [4]float64 // four sums, so that an addition need not wait for the preceding addition
	for len(row) >= 4 {
		for k, v := range row[:4] {
			sums[k] += float64(v) * float64(v)
		}
		row = row[4:]
	}
	for _, v := range row {
		sums[0] += float64(v) * float64(v)
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3])
}

// Roots returns the square roots of the elements of v.
func Roots(v []float64) []float64 {
	r := make([]float64, len(v))
	for i, x := range v {
		r[i] = math.Sqrt(x)
	}
	return r
}

// Widen sets dst to the elements of src, converted to float64.
func Widen[T backend.Float](dst []float64, src []T) {
	for j, v := range src {
		dst[j] = float64(v)
	}
}

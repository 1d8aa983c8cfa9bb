package svm

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// Tube specifies ε-support vector regression: f and b minimize ½‖f‖² + C Σ w_i max(|y_i − f(x_i) − b| − Epsilon, 0)
// for the n×1 targets y = (Y − Mean)/Scale. If Nu is not 0, a variable ε replaces Epsilon, and the objective has the
// additional term C·Nu·Σw·ε.
type Tube struct {
	Y                       backend.Host[float64]
	Weights                 []float64
	C, Epsilon, Mean, Scale float64
	Nu                      float64
}

// Regression returns the quadratic program of t for the n×d samples x.
func Regression(k kernels.Kernel, x numeric.Points, t Tube) *Problem {
	if t.Nu > 0 {
		t.Epsilon = 0
	}
	p := &Problem{Kernel: k, X: x, Alpha: make([]float64, 2*x.Rows)}
	// Variable i is the multiplier of f ≥ y − ε at row i, and variable n + i the multiplier of f ≤ y + ε.
	for _, sign := range []float64{1, -1} {
		for i, w := range t.Weights {
			p.Sign = append(p.Sign, sign)
			p.P = append(p.P, t.Epsilon-sign*(t.Y.Row(i)[0]/t.Scale-t.Mean/t.Scale))
			p.C = append(p.C, t.C*w)
		}
	}
	if t.Nu > 0 {
		p.nu = nuTube
		sum, n := 0.0, x.Rows
		for _, w := range t.Weights {
			sum += t.C * w * t.Nu / 2
		}
		for _, offset := range []int{0, n} {
			initial(p.Alpha[offset:offset+n], p.C[offset:offset+n], sum)
		}
	}
	return p
}

// OneClass returns the quadratic program for the support of a distribution, where f and b minimize the objective
// ½‖f‖² + Σ w_i max(−b − f(x_i), 0) + nu Σw b. The solver selects the largest optimal b, so that the samples with
// f(x) + b < 0 have at most a fraction nu of the total weight.
func OneClass(k kernels.Kernel, x numeric.Points, weights []float64, nu float64) *Problem {
	n := x.Rows
	p := &Problem{Kernel: k, X: x, Sign: make([]float64, n), P: make([]float64, n), C: weights, Alpha: make([]float64, n), Inside: true}
	remaining := 0.0
	for _, w := range weights {
		remaining += nu * w
	}
	for i, c := range p.C { // the initial α need only have the correct sum
		p.Sign[i] = 1
		p.Alpha[i] = min(c, remaining)
		remaining = max(remaining-c, 0)
	}
	return p
}

// Standardization returns the weighted mean and standard deviation of y, which has one column. The
// weights must be > 0. If all values are equal, scale is 1.
func Standardization(y backend.Host[float64], weights []float64) (mean, scale float64, err error) {
	low, high, total := math.Inf(1), math.Inf(-1), 0.0
	for i, w := range weights {
		low, high, total = min(low, y.Row(i)[0]), max(high, y.Row(i)[0]), total+w
	}
	if low == high {
		return low, 1, nil
	}
	// Subtract the lowest value and divide by half the range: then no square overflows.
	halfWidth := high/2 - low/2
	for i, w := range weights {
		mean += w / total * ((y.Row(i)[0]/2 - low/2) / halfWidth)
	}
	square := 0.0
	for i, w := range weights {
		d := (y.Row(i)[0]/2-low/2)/halfWidth - mean
		square += w / total * d * d
	}
	mean, scale = low+2*(halfWidth*mean), 2*halfWidth*math.Sqrt(square)
	if scale == 0 || math.IsInf(scale, 1) {
		return 0, 0, fmt.Errorf("the standard deviation of y is %v: scale y", scale)
	}
	return mean, scale, nil
}

// Support returns the indices of the rows of x with β ≠ 0, the rows themselves, and their β. If β = 0, it returns
// the first row.
func (r *Result) Support(x numeric.Points) (list []int, points numeric.Points, beta backend.Host[float64]) {
	for i, v := range r.Beta {
		if v != 0 {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		list = []int{0} // β = 0: a model must have at least one point
	}
	points, beta = x.Take(list), backend.NewHost[float64](len(list), 1)
	for j, i := range list {
		beta.Data[j] = r.Beta[i]
	}
	return list, points, beta
}

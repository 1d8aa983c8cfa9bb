// Package pairwise evaluates kernels over objects for all pairs of objects, in parallel.
package pairwise

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Evaluator computes the matrices of a kernel whose values a Worker computes.
type Evaluator struct {
	Raw bool // whether to omit the division of k(a, b) by √(k(a, a) k(b, b))
	// Infinite returns the error for object i, counted from 0, if its value k(a, a) is not finite.
	// By the Cauchy–Schwarz inequality, all values are finite if all k(a, a) are finite.
	Infinite func(i int) error
}

// Gram returns k for all pairs of n objects.
func (e Evaluator) Gram(ctx context.Context, n int, o objects.Options, pairs Worker) (host.Matrix[float64], error) {
	gram, err := Matrix(ctx, n, n, true, o, pairs)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	diag := make([]float64, n)
	for i := range diag {
		diag[i] = gram.Row(i)[i]
	}
	if err := e.finite(diag); err != nil {
		return host.Matrix[float64]{}, err
	}
	if !e.Raw {
		Normalize(gram, diag, diag)
	}
	return gram, nil
}

// Cross returns k for the pairs of n objects with m other objects. The Worker pairs evaluates these pairs. own[0]
// evaluates pairs of the n objects, and own[1] evaluates pairs of the m objects.
func (e Evaluator) Cross(ctx context.Context, n, m int, o objects.Options, pairs Worker, own [2]Worker) (host.Matrix[float64], error) {
	cross, err := Matrix(ctx, n, m, false, o, pairs)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	var diag [2][]float64
	for i, count := range [2]int{n, m} {
		if diag[i], err = e.rawDiag(ctx, count, o, own[i]); err != nil {
			return host.Matrix[float64]{}, err
		}
	}
	if !e.Raw {
		Normalize(cross, diag[0], diag[1])
	}
	return cross, nil
}

// Diag returns k(a, a) for each of n objects.
func (e Evaluator) Diag(ctx context.Context, n int, o objects.Options, pairs Worker) ([]float64, error) {
	diag, err := e.rawDiag(ctx, n, o, pairs)
	if err == nil && !e.Raw {
		diag = Ones(diag)
	}
	return diag, err
}

// rawDiag is like Diag, but does not normalize and does not report progress.
func (e Evaluator) rawDiag(ctx context.Context, n int, o objects.Options, pairs Worker) ([]float64, error) {
	diag, err := Each(ctx, n, objects.Options{Threads: o.Threads}, func(stop Stop) func(i int) float64 {
		f := pairs(stop)
		return func(i int) float64 {
			var v [1]float64
			f(i, i, i+1, v[:])
			return v[0]
		}
	})
	if err == nil {
		err = e.finite(diag)
	}
	return diag, err
}

func (e Evaluator) finite(diag []float64) error {
	for i, v := range diag {
		if v-v != 0 {
			return e.Infinite(i)
		}
	}
	return nil
}

// Normalized is a parameter of kernels. The default 1 divides k(a, b) by √(k(a, a) k(b, b)).
var Normalized = kernels.Parameter{Name: "normalized", Type: kernels.Integer, Default: "1", Rule: "1, or 0 for the plain sum"}

// Raw reports whether the parameter Normalized is 0.
func Raw(values map[string]float64) (bool, error) {
	switch v := values[Normalized.Name]; v {
	case 0, 1:
		return v == 0, nil
	default:
		return false, fmt.Errorf("objects: normalized must be 1 or 0, got %v", v)
	}
}

// Normalize divides k(a_i, b_j) by √(k(a_i, a_i) k(b_j, b_j)), and sets it to 0 if k(a_i, a_i) or
// k(b_j, b_j) is 0. If a and b are the same objects, the diagonal is exactly 1 or 0.
func Normalize(k host.Matrix[float64], a, b []float64) {
	rows, cols := roots(a), roots(b)
	same := len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
	for i, r := range rows {
		row := k.Row(i)
		for j, c := range cols {
			row[j] *= r * c
		}
		if same && r > 0 {
			row[i] = 1
		}
	}
}

func roots(values []float64) []float64 {
	r := make([]float64, len(values))
	for i, v := range values {
		if v > 0 {
			r[i] = 1 / math.Sqrt(v)
		}
	}
	return r
}

// Ones returns the diagonal of a normalized kernel: 0 where the element of diag is 0, and otherwise 1.
func Ones(diag []float64) []float64 {
	ones := make([]float64, len(diag))
	for i, v := range diag {
		if v > 0 {
			ones[i] = 1
		}
	}
	return ones
}

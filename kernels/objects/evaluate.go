package objects

import (
	"context"

	"github.com/mercer-go/mercer/host"
)

// Worker returns the function of one worker of Pairs.
type Worker = func(stop Stop) func(i, lo, hi int, out []float64)

// Evaluator computes the matrices of a kernel that is given by its values on pairs.
type Evaluator struct {
	Raw bool // not divided by √(k(a, a) k(b, b))
	// Infinite returns the error for object i, counted from 0, whose value k(a, a) is not finite.
	// By the Cauchy–Schwarz inequality, all values are finite if these are.
	Infinite func(i int) error
}

// Gram returns k for all pairs of n objects.
func (e Evaluator) Gram(ctx context.Context, n int, o Options, pairs Worker) (host.Matrix[float64], error) {
	gram, err := Pairs(ctx, n, n, true, o, pairs)
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

// Cross returns k for n objects with m others. The two workers in own evaluate pairs within the
// first set and within the second.
func (e Evaluator) Cross(ctx context.Context, n, m int, o Options, pairs Worker, own [2]Worker) (host.Matrix[float64], error) {
	cross, err := Pairs(ctx, n, m, false, o, pairs)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	var diag [2][]float64
	for side, count := range [2]int{n, m} {
		if diag[side], err = e.self(ctx, count, o, own[side]); err != nil {
			return host.Matrix[float64]{}, err
		}
	}
	if !e.Raw {
		Normalize(cross, diag[0], diag[1])
	}
	return cross, nil
}

// Diag returns k(a, a) for each of n objects.
func (e Evaluator) Diag(ctx context.Context, n int, o Options, pairs Worker) ([]float64, error) {
	diag, err := e.self(ctx, n, o, pairs)
	if err == nil && !e.Raw {
		diag = Ones(diag)
	}
	return diag, err
}

// self is Diag without normalization and progress.
func (e Evaluator) self(ctx context.Context, n int, o Options, pairs Worker) ([]float64, error) {
	diag, err := Each(ctx, n, Options{Threads: o.Threads}, func(stop Stop) func(i int) float64 {
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

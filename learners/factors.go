package learners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Preparer is a Model whose Intervals or Variance needs factors of a matrix. The first call
// computes the factors in about the time of a fit, even if the model was loaded from a file. The
// model keeps the factors for later calls on devices of the same name.
type Preparer interface {
	Model
	// Prepare computes the factors in advance. Simultaneous calls of Prepare, Intervals and Variance share one
	// computation, which continues until the contexts of all these calls have ended. If the factors would take
	// more than half of the free memory, the model does not keep them: each call computes them again, and Prepare
	// returns an error that wraps ErrNotKept.
	Prepare(ctx context.Context, dev backend.Device) error
}

// ErrNotKept is wrapped by the error of Preparer.Prepare if the factors are too large to be kept.
var ErrNotKept = errors.New("the factor is not kept, so that each call computes it again: calibrate the model instead, or free memory")

// factors holds the factors of a model, one for each λ.
type factors[F any] struct {
	learner string
	cache   *run.Kept[map[float64]F]
	lambdas []float64
	bytes   int64 // size of a stored factor; 0 if the model is not fitted
	build   func(ctx context.Context, lambda float64) (F, error)
}

// cached returns a map from each λ to its factor, or nil if the factors are too large to be kept.
func (f factors[F]) cached(ctx context.Context, dev backend.Device) (map[float64]F, error) {
	if f.bytes == 0 {
		return nil, errNotFitted
	}
	stored, err := f.cache.Get(ctx, dev.Info().Device, func(ctx context.Context) (*map[float64]F, error) {
		if !run.WorthKeeping(f.total()) {
			return nil, nil
		}
		stored := map[float64]F{}
		for _, lambda := range f.lambdas {
			var err error
			if stored[lambda], err = f.build(ctx, lambda); err != nil {
				return nil, err
			}
		}
		return &stored, nil
	})
	if stored == nil {
		return nil, err
	}
	return *stored, nil
}

// factorFor returns the factor for one λ.
func (f factors[F]) factorFor(ctx context.Context, dev backend.Device, lambda float64) (factor F, err error) {
	stored, err := f.cached(ctx, dev)
	switch {
	case err != nil:
		return factor, err
	case stored == nil:
		return f.build(ctx, lambda)
	}
	return stored[lambda], nil
}

// factorBytes returns the size of the factor of K + λW⁻¹ that package solvers stores for the points.
func factorBytes(k kernels.Kernel, points numeric.Points) int64 {
	elements := numeric.Elements(points.Rows, points.Rows)
	if m, ok := markov.Of(k); ok && points.Cols == 1 {
		elements = min(elements, m.PosteriorElements(points.Rows))
	}
	return numeric.Bytes(elements)
}

func (f factors[F]) total() int64 { return int64(len(f.lambdas)) * f.bytes }

func (f factors[F]) prepare(ctx context.Context, dev backend.Device) error {
	err := errNoDevice
	if dev != nil {
		var stored map[float64]F
		if stored, err = f.cached(ctx, dev); err == nil && stored == nil {
			err = fmt.Errorf("the factor takes %.1f GB, more than half of the free memory: %w", float64(f.total())/1e9, ErrNotKept)
		}
	}
	var zero struct{}
	wrapError(f.learner+": prepare", nil, &zero, &err)
	return err
}

// byLambda maps each λ to the outputs fitted with it. If s.lambdas is empty, all outputs have s.lambda.
func (s *solutions) byLambda(outputs int) map[float64][]int {
	list := map[float64][]int{}
	for j := range outputs {
		lambda := s.lambda
		if len(s.lambdas) > 0 {
			lambda = s.lambdas[j]
		}
		list[lambda] = append(list[lambda], j)
	}
	return list
}

func (s *solutions) distinctLambdas(outputs int) []float64 {
	return slices.Sorted(maps.Keys(s.byLambda(outputs)))
}

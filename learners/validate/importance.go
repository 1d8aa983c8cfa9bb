package validate

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// ImportanceParams are the parameters of Importance.
type ImportanceParams struct {
	// Widths are the numbers of adjacent columns of x that are shuffled together, such as the indicators of one
	// category. Their sum is d. Nil means that each column is shuffled separately.
	Widths           []int
	Repeats          int // number of times each group of columns is shuffled
	Seed             uint64
	learners.Options // only Weights, Classes and Progress are used
}

// Importance returns, for each group of columns and each repeat, by how much the score of a model
// on the n×d samples x with the n×t targets y decreases when the rows of these columns are permuted
// (Breiman 2001). The score is R², or for classes the accuracy.
func Importance(ctx context.Context, dev backend.Device, m learners.Model, x mat.Matrix, y *mat.Dense, p ImportanceParams) ([][]float64, error) {
	score := func(x mat.Matrix) (float64, error) {
		s, err := scoreModel(ctx, dev, m, p.Options.Classes, x, y, p.Options.Weights)
		if err != nil {
			return 0, err
		}
		if s.Accuracy != nil {
			return *s.Accuracy, nil
		}
		return *s.R2, nil
	}
	baseline, err := score(x)
	if err != nil {
		return nil, err
	}
	points, err := numeric.PointsOf(x)
	if err != nil {
		return nil, fmt.Errorf("validate: importance: x: %w", err)
	}
	n, d := x.Dims()
	widths := p.Widths
	for range d {
		if p.Widths == nil {
			widths = append(widths, 1)
		}
	}
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	drops := make([][]float64, len(widths))
	first := 0
	for k, width := range widths {
		for r := range p.Repeats {
			shuffled, err := score(points.Shuffled(rng.Perm(n), first, width).Matrix())
			if err != nil {
				return nil, err
			}
			drops[k] = append(drops[k], baseline-shuffled)
			if p.Options.Progress != nil {
				p.Options.Progress(solvers.Progress{Stage: "importance", Fraction: float64(k*p.Repeats+r+1) / float64(len(widths)*p.Repeats)})
			}
		}
		first += width
	}
	return drops, nil
}

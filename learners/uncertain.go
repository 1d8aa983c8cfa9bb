package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/mat"
)

// Uncertain is a Model that also knows how far off its predictions may be.
type Uncertain interface {
	Model
	// Variance returns the variances of new targets at the rows of x, noise
	// included: n×outputs, ≥ 0. What Predict promises holds here too.
	Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
}

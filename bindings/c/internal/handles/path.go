package handles

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// pathGroup is the number of values of λ in one call of path.At, after which Path stores the results.
const pathGroup = 8

// PathProblem is kernel ridge regression with one kernel and many λ.
type PathProblem struct {
	Kernel    string    // "" means the Gaussian kernel that learners.KernelRidge chooses, whose sigma is half the median distance
	Weights   []float64 // weights of the rows; nil means all 1
	Intercept bool
	Lambdas   []float64 // ≥ 0
	Memory    int64     // maximum number of bytes to take on the device; 0 means all free memory
	Names     Names     // the caller's parameter names, for texts that say why a λ has no score
	Progress  func(solvers.Progress)
}

// PathScores holds the slices in which Path stores the fields of solvers.PathPoint for each λ;
// scores whose slice is nil are not computed. The scores of a λ without a solution are NaN.
type PathScores struct {
	GCV, LOO         []float64 // len(Lambdas)×t
	Errors           []float64 // len(Lambdas)×n×t
	DegreesOfFreedom []float64 // len(Lambdas)
}

// Path scores each λ by generalized cross-validation and by leave-one-out errors, both in closed form: see
// solvers.Path. With the kernel precomputed() x is the n×n matrix of its values. It returns, in JSON, the kernel,
// the method and the λ without a solution. If no λ has a solution, it returns the error of the last λ.
func Path(ctx context.Context, d *Device, p PathProblem, x, y Matrix, to PathScores) (json string, err error) {
	err = d.use(ctx, func(dev backend.Device) error {
		problem, err := p.problem(ctx, x, y)
		if err != nil {
			return err
		}
		if err := to.check(len(p.Lambdas), problem.Y); err != nil {
			return err
		}
		path, err := solvers.NewPath(ctx, dev, problem, solvers.PathParams{
			Lambdas: len(p.Lambdas), LeaveOneOut: to.LOO != nil || to.Errors != nil, Memory: p.Memory, Progress: p.Progress,
		})
		if err != nil {
			return err
		}
		defer path.Close()
		type failure struct {
			Lambda float64 `json:"lambda"`
			Reason string  `json:"reason"`
		}
		failures := []failure{}
		var last error
		for first := 0; first < len(p.Lambdas); first += pathGroup {
			points, err := path.At(ctx, p.Lambdas[first:min(first+pathGroup, len(p.Lambdas))])
			if err != nil {
				return err
			}
			for i, point := range points {
				if point.Err != nil {
					last = point.Err
					failures = append(failures, failure{point.Lambda, p.Names.Text(point.Err)})
				}
				to.store(first+i, problem.Y, point)
			}
		}
		if len(failures) == len(p.Lambdas) {
			return last
		}
		json, err = text(map[string]any{
			"kernel": problem.Kernel.String(), "method": path.Method, "reason": path.Reason, "memory_bytes": path.Bytes(),
			"device": dev.Info().Device, "failed": failures,
		})
		return err
	})
	return json, err
}

// problem checks the λ and returns the problem in the form of package solvers.
func (p PathProblem) problem(ctx context.Context, x, y Matrix) (q solvers.Problem, err error) {
	if len(p.Lambdas) == 0 {
		return q, errors.New("libmercer: path: the list of lambdas is empty")
	}
	for i, l := range p.Lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return q, fmt.Errorf("libmercer: path: lambda %d must be a finite number ≥ 0, got %v", i+1, l)
		}
	}
	q.Weights, q.Intercept = p.Weights, p.Intercept
	if q.Y, err = y.host("y"); err != nil {
		return q, err
	}
	if p.Kernel != "" {
		if q.Kernel, err = kernels.Parse(p.Kernel); err != nil {
			return q, err
		}
	}
	points, _, err := x.points(q.Kernel)
	if err == nil && p.Kernel == "" {
		var sigma float64
		sigma, err = learners.DefaultSigma(ctx, points.Matrix(), p.Weights, 1)
		q.Kernel = kernels.Gaussian{Sigma: sigma}
	}
	q.X, q.Sparse = points.Dense, points.Sparse
	return q, err
}

// check returns an error if a slice of results does not have the length that the problem requires.
func (s PathScores) check(lambdas int, y backend.Host[float64]) error {
	for _, c := range []struct {
		name string
		to   []float64
		want int
	}{{"gcv", s.GCV, lambdas * y.Cols}, {"loo", s.LOO, lambdas * y.Cols}, {"errors", s.Errors, lambdas * y.Rows * y.Cols}, {"freedom", s.DegreesOfFreedom, lambdas}} {
		if c.to != nil && len(c.to) != c.want {
			return fmt.Errorf("libmercer: path: %s: the result has %d numbers, but the given memory holds only %d", c.name, c.want, len(c.to))
		}
	}
	return nil
}

func (s PathScores) store(l int, y backend.Host[float64], point solvers.PathPoint) {
	store := func(to, values []float64, count int) {
		if to == nil {
			return
		}
		to = to[l*count : (l+1)*count]
		for i := range to {
			to[i] = math.NaN()
		}
		copy(to, values) // values is empty for a λ without a solution
	}
	store(s.GCV, point.GCV, y.Cols)
	store(s.LOO, point.LOO, y.Cols)
	store(s.Errors, point.Errors.Data, y.Rows*y.Cols)
	if point.Err != nil {
		point.DegreesOfFreedom = math.NaN()
	}
	store(s.DegreesOfFreedom, []float64{point.DegreesOfFreedom}, 1)
}

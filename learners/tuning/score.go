package tuning

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// numRefined is the number of additional λ that are tried between the two neighbors of the best λ.
const numRefined = 6

// score returns the points of one kernel, one for each λ.
func (s *search) score(p solvers.Problem, j job) ([]Point, error) {
	if s.par.Criterion == KFold {
		return s.folds(p, j)
	}
	numLambdas := len(s.par.Lambdas)
	if s.refine {
		numLambdas += numRefined
	}
	path, err := solvers.NewPath(s.ctx, j.devices[0], p, solvers.PathParams{
		Lambdas: numLambdas, LeaveOneOut: s.par.Criterion == LeaveOneOut,
		Memory: s.par.Memory, Progress: j.progress,
	})
	if err != nil {
		return nil, err
	}
	defer path.Close()
	points, err := s.pointsAt(path, s.par.Lambdas)
	if err != nil || !s.refine {
		return points, err
	}
	refined, err := s.pointsAt(path, refinedLambdas(points))
	if err != nil {
		return nil, err
	}
	points = append(points, refined...)
	slices.SortFunc(points, func(a, b Point) int {
		if a.Lambda < b.Lambda {
			return -1
		}
		return 1
	})
	return points, nil
}

func (s *search) pointsAt(path *solvers.Path, lambdas []float64) ([]Point, error) {
	solutions, err := path.At(s.ctx, lambdas)
	if err != nil {
		return nil, err
	}
	points := make([]Point, len(solutions))
	for i, solution := range solutions {
		points[i] = Point{Lambda: solution.Lambda, Score: solution.Score(), Err: solution.Err}
		if s.par.Criterion == Evidence && solution.Err == nil {
			points[i].Score = -solution.Evidence / s.samples()
		}
		if math.IsNaN(points[i].Score) {
			points[i].Score = math.Inf(1)
		}
	}
	return points, nil
}

// samples returns the number of samples, counting a sample of weight w as w samples.
func (s *search) samples() float64 {
	if s.p.Weights == nil {
		return float64(s.p.Y.Rows)
	}
	sum := 0.0
	for _, w := range s.p.Weights {
		sum += w
	}
	return sum
}

// refinedLambdas returns additional λ between the best λ and each of its neighbors, equally spaced on a
// logarithmic scale, or nil if the best λ is 0 or has no neighbor.
func refinedLambdas(points []Point) []float64 {
	best := -1
	for i, p := range points {
		if p.Err == nil && (best < 0 || p.Score < points[best].Score) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	var list []float64
	for _, side := range []int{-1, 1} {
		if next := best + side; next >= 0 && next < len(points) && points[next].Lambda > 0 && points[best].Lambda > 0 {
			low, high := points[best].Lambda, points[next].Lambda
			list = append(list, solvers.Lambdas(low, high, numRefined/2+2)[1:numRefined/2+1]...)
		}
	}
	return list
}

func rowsOf(h backend.Host[float64], rows []int) backend.Host[float64] {
	selected := backend.NewHost[float64](len(rows), h.Cols)
	for i, r := range rows {
		copy(selected.Row(i), h.Row(r))
	}
	return selected
}

package tuning

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/pool"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// folds computes the scores by k-fold cross-validation: for each fold, it solves a path of λ on the
// samples of the other folds. A λ has a score only if it has a solution for every fold.
func (s *search) folds(p solvers.Problem, j job) ([]Point, error) {
	var live []int
	for i := range p.Y.Rows {
		if p.Weights == nil || p.Weights[i] > 0 {
			live = append(live, i)
		}
	}
	parted := s.par.Folds
	if len(live) < parted {
		return nil, message.Errorf("tuning: %s cannot be divided into %d folds: {$folds}", count.Of(len(live), "sample"), parted)
	}
	fold, err := validate.Folds(len(live), parted, nil, s.par.Seed)
	if err != nil {
		return nil, err
	}
	splits, _ := validate.Held(fold)
	points := make([]Point, len(s.par.Lambdas))
	for i, l := range s.par.Lambdas {
		points[i].Lambda = l
	}
	weights, errors := make([]float64, parted), make([][]Point, parted)
	report := parts(parted, j.inside)
	err = pool.Each(j.devices, parted, func(dev backend.Device, i int) (err error) {
		k := parted - 1 - i // solve the last folds first: they have the most training samples, and an error then states the largest memory
		rest, held := splits(k)
		for _, rows := range [][]int{rest, held} {
			for i, row := range rows {
				rows[i] = live[row]
			}
		}
		errors[k] = make([]Point, len(points))
		weights[k], err = s.fold(dev, p, rest, held, errors[k], report(k))
		return err
	})
	if err != nil {
		return nil, err
	}
	total := 0.0
	for k, of := range errors {
		total += weights[k]
		for i, at := range of {
			points[i].Score += at.Score
			if at.Err != nil {
				points[i].Err = at.Err
			}
		}
	}
	for i := range points {
		points[i].Score /= total * float64(p.Y.Cols)
		if points[i].Err != nil || math.IsNaN(points[i].Score) {
			points[i].Score = math.Inf(1)
		}
	}
	return points, nil
}

// fold sets the Score of each point to the weighted sum of squared errors on the held-out rows. It
// returns the sum of the weights of these rows.
func (s *search) fold(dev backend.Device, p solvers.Problem, rest, held []int, points []Point, report func(solvers.Progress)) (float64, error) {
	q := p
	x := pointsOf(p)
	of, other := x.Take(rest), x.Take(held)
	q.X, q.Sparse, q.Y = of.Dense, of.Sparse, rowsOf(p.Y, rest)
	weight := func(int) float64 { return 1 }
	if p.Weights != nil {
		weight = func(i int) float64 { return p.Weights[i] }
		q.Weights = make([]float64, len(rest))
		for i, r := range rest {
			q.Weights[i] = p.Weights[r]
		}
	}
	solved, err := solvers.SolvePath(s.ctx, dev, q, s.par.Lambdas, solvers.PathParams{Memory: s.par.Memory, Progress: report})
	if err != nil {
		return 0, err
	}
	values, err := pathValues(s.ctx, dev, q, solved, other)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for i, r := range held {
		w := weight(r)
		total += w
		for l := range points {
			for j, y := range p.Y.Row(r) {
				e := y - values.Row(i)[l*p.Y.Cols+j]
				points[l].Score += w * e * e
			}
		}
	}
	for l, at := range solved {
		if at.Err != nil {
			points[l].Err = at.Err
		}
	}
	return total, nil
}

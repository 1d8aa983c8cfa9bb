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
	var usedRows []int
	for i := range p.Y.Rows {
		if p.Weights == nil || p.Weights[i] > 0 {
			usedRows = append(usedRows, i)
		}
	}
	numFolds := s.par.Folds
	if len(usedRows) < numFolds {
		return nil, message.Errorf("tuning: %s cannot be divided into %d folds: {$folds}", count.Of(len(usedRows), "sample"), numFolds)
	}
	fold, err := validate.Folds(len(usedRows), numFolds, nil, s.par.Seed)
	if err != nil {
		return nil, err
	}
	splits, _ := validate.PredefinedSplits(fold)
	points := make([]Point, len(s.par.Lambdas))
	for i, l := range s.par.Lambdas {
		points[i].Lambda = l
	}
	weights, foldPoints := make([]float64, numFolds), make([][]Point, numFolds)
	report := splitProgress(numFolds, j.progress)
	err = pool.Each(j.devices, numFolds, func(dev backend.Device, i int) (err error) {
		k := numFolds - 1 - i // solve the last folds first: they have the most training samples, and an error then states the largest memory
		train, test := splits(k)
		for _, rows := range [][]int{train, test} {
			for i, row := range rows {
				rows[i] = usedRows[row]
			}
		}
		foldPoints[k] = make([]Point, len(points))
		weights[k], err = s.fold(dev, p, train, test, foldPoints[k], report(k))
		return err
	})
	if err != nil {
		return nil, err
	}
	total := 0.0
	for k, inFold := range foldPoints {
		total += weights[k]
		for i, point := range inFold {
			points[i].Score += point.Score
			if point.Err != nil {
				points[i].Err = point.Err
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
func (s *search) fold(dev backend.Device, p solvers.Problem, train, test []int, points []Point, report func(solvers.Progress)) (float64, error) {
	q := p
	x := pointsOf(p)
	trainX, testX := x.Take(train), x.Take(test)
	q.X, q.Sparse, q.Y = trainX.Dense, trainX.Sparse, rowsOf(p.Y, train)
	weight := func(int) float64 { return 1 }
	if p.Weights != nil {
		weight = func(i int) float64 { return p.Weights[i] }
		q.Weights = make([]float64, len(train))
		for i, r := range train {
			q.Weights[i] = p.Weights[r]
		}
	}
	solutions, err := solvers.SolvePath(s.ctx, dev, q, s.par.Lambdas, solvers.PathParams{Memory: s.par.Memory, Progress: report})
	if err != nil {
		return 0, err
	}
	values, err := pathValues(s.ctx, dev, q, solutions, testX)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for i, r := range test {
		w := weight(r)
		total += w
		for l := range points {
			for j, y := range p.Y.Row(r) {
				e := y - values.Row(i)[l*p.Y.Cols+j]
				points[l].Score += w * e * e
			}
		}
	}
	for l, solution := range solutions {
		if solution.Err != nil {
			points[l].Err = solution.Err
		}
	}
	return total, nil
}

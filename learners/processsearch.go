package learners

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

const (
	// The largest numbers of samples and of functions in a search: an evaluation takes up to 4e10 operations.
	searchRows      = 2000
	searchFunctions = 2000
)

func ardParameter(ard *bool, kernel *kernels.Kernel) Parameter {
	return boolParam("ard", ard, "false", "one length scale for each feature, if no kernel is given").refusedIf(func() string {
		if *ard && *kernel != nil {
			return "applies only to the default kernel; write gaussian(sigma=[1,1,…]) instead"
		}
		return ""
	})
}

// processSearch is a search for the kernel and the λ that maximize the likelihood of a subset of
// the samples. The search starts at the values of the fields kernel and lambda.
type processSearch struct {
	kernel                      kernels.Kernel
	lambda                      float64
	ard, noIntercept, unitScale bool
	seed                        uint64
	rows                        int // maximum number of samples
	// evaluate returns the function evidence.Params.Evaluate for the samples of subset, or nil to
	// use the likelihood of the exact process.
	evaluate func(subset solvers.Rows) (func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error), error)
}

// reserveCopy returns ctx and o for evaluations of the search, during which a copy of its samples
// exists: see besideCopy.
func (s processSearch) reserveCopy(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (context.Context, Options) {
	n, d, _ := data.Dims()
	return besideCopy(ctx, dev, o, numeric.DensePoints(backend.Host[float64]{Rows: min(n, s.rows), Cols: d}))
}

// search returns the points of the search, the best point first.
func (s processSearch) search(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (*searchResult, error) {
	if g, ok := s.kernel.(kernels.Gaussian); ok && s.ard {
		_, d, _ := data.Dims()
		s.kernel = kernels.Gaussian{Sigmas: slices.Repeat([]float64{g.Sigma}, d)}
	}
	x, y, weights, err := sampleRows(ctx, data, s.rows, s.seed)
	if err != nil {
		return nil, err
	}
	progress, result := newProgress(o), &searchResult{}
	p := solvers.Problem{Kernel: s.kernel, X: x, Y: y, Weights: weights, Lambda: s.lambda}
	par := evidence.Params{
		EvidenceParams: solvers.EvidenceParams{FitScale: !s.unitScale, Memory: o.Memory}, Seed: s.seed,
		Report: func(full, partial int) {
			result.evaluations = full + partial
			progress.Report("optimize", 0.9*(1-elementary.Exp(-float64(full+partial)/30)))
		},
	}
	if par.Evaluate, err = s.evaluate(solvers.InMemory(x, y, weights, nil)); err != nil {
		return nil, err
	}
	if par.Evaluate == nil && !s.noIntercept {
		_, p.Y = evidence.Center(y, weights)
		for _, j := range constantTargets(y, weights) {
			for i := range p.Y.Rows {
				p.Y.Row(i)[j] = 0
			}
		}
	}
	result.list, err = evidence.Maximize(ctx, dev, p, par)
	return result, err
}

// searchResult holds the points of a search, or without a search the given kernel and λ.
type searchResult struct {
	list        []evidence.Candidate
	evaluations int
}

// fit calls its argument fit with one point after the other until a call succeeds. It returns the
// point of this call and facts about the search.
func (s *searchResult) fit(fit func(k kernels.Kernel, lambda float64) error) (c evidence.Candidate, facts []Fact, err error) {
	index, warning, err := attempt.Candidates{
		Len:     len(s.list),
		Name:    func(i int) string { return fmt.Sprintf("kernel %v, lambda %.4g", s.list[i].Kernel, s.list[i].Lambda) },
		Refused: attempt.Numeric,
		Fit:     func(i int) error { return fit(s.list[i].Kernel, s.list[i].Lambda) },
	}.First()
	if err != nil {
		return c, nil, err
	}
	c = s.list[index]
	if s.evaluations > 0 {
		facts = warned([]Fact{{"evaluations", s.evaluations}, {"lambda found", c.Lambda}}, cmp.Or(warning, c.Warning))
	}
	return c, facts, nil
}

// sampleRows returns at most `limit` samples of weight > 0 of data, chosen by the seed, in the order of data.
func sampleRows(ctx context.Context, data solvers.Rows, limit int, seed uint64) (x, y backend.Host[float64], weights []float64, err error) {
	n, d, t := data.Dims()
	rows := rand.New(rand.NewPCG(seed, 4)).Perm(n)[:min(n, limit)]
	slices.Sort(rows)
	x, y = backend.NewHost[float64](len(rows), d), backend.NewHost[float64](len(rows), t)
	first, count := 0, 0
	err = data.Pass(ctx, false, func(b solvers.Block) error {
		for ; len(rows) > 0 && rows[0] < first+b.X.Rows; rows = rows[1:] {
			i, w := rows[0]-first, 1.0
			if b.Weights != nil {
				w = b.Weights[i]
			}
			if !(w > 0) {
				continue
			}
			copy(x.Row(count), b.X.Row(i))
			copy(y.Row(count), b.Y.Row(i))
			weights = append(weights, w)
			count++
		}
		first += b.X.Rows
		return nil
	})
	return x.View(0, 0, count, d), y.View(0, 0, count, t), weights, err
}

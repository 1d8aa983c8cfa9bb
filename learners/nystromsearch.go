package learners

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

const (
	// searchRows and searchCenters limit the samples and the centers of a search for the parameters
	// of a kernel. For many more samples than centers, the bound on the likelihood may be largest
	// at a λ that is too large. An evaluation takes up to 4e10 operations.
	searchRows    = 2000
	searchCenters = 2000
)

// optimized searches for the kernel and the λ that maximize the likelihood of a part of the samples,
// from k and l.Lambda. If all samples of that part can be centers, the likelihood is that of the exact
// process, which takes a tenth of the time of the bound; otherwise it is the bound for the centers. It
// returns the points of the search, the best point first, and the number of evaluations. centers
// holds given centers, or is empty.
func (l NystromRidge) optimized(ctx context.Context, dev backend.Device, k kernels.Kernel, data solvers.Rows, centers backend.Host[float64], o Options) (found []evidence.Candidate, evaluations int, err error) {
	if g, ok := k.(kernels.Gaussian); ok && l.ARD {
		_, d, _ := data.Dims()
		k = kernels.Gaussian{Sigmas: slices.Repeat([]float64{g.Sigma}, d)}
	}
	x, y, weights, err := someRows(ctx, data, searchRows, l.Seed)
	if err != nil {
		return nil, 0, err
	}
	progress := newProgress(o)
	p := solvers.Problem{Kernel: k, X: x, Y: y, Weights: weights, Lambda: l.Lambda}
	par := evidence.Params{
		EvidenceParams: solvers.EvidenceParams{FitScale: !l.UnitScale, Memory: o.Memory}, Seed: l.Seed,
		Report: func(all, part int) {
			evaluations = all + part
			progress.Report("optimize", 0.9*(1-elementary.Exp(-float64(all+part)/30)))
		},
	}
	if count := cmp.Or(l.Centers, x.Rows); centers.Rows > 0 || count < x.Rows {
		if err := l.searchBound(ctx, dev, p, centers, count, &par); err != nil {
			return nil, 0, err
		}
	} else if !l.NoIntercept {
		_, p.Y = evidence.Center(y, weights)
		for _, j := range constantTargets(y, weights) {
			for i := range p.Y.Rows {
				p.Y.Row(i)[j] = 0
			}
		}
	}
	found, err = evidence.Maximize(ctx, dev, p, par)
	return found, evaluations, err
}

// searchBound makes the search of par evaluate the bound of the likelihood of p for the given centers,
// or for count centers if there are none.
func (l NystromRidge) searchBound(ctx context.Context, dev backend.Device, p solvers.Problem, centers backend.Host[float64], count int, par *evidence.Params) (err error) {
	part := solvers.InMemory(p.X, p.Y, p.Weights, nil)
	if centers.Rows == 0 {
		if centers, err = (solvers.CenterChoice{Count: count, Seed: l.Seed}).Sample(ctx, part); err != nil {
			return err
		}
	}
	centers = centers.View(0, 0, min(centers.Rows, searchCenters), centers.Cols)
	par.Evaluate = func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error) {
		res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{Kernel: k, Data: part, Centers: centers, Lambda: lambda, Intercept: !l.NoIntercept},
			solvers.StreamParams{Memory: par.Memory, Posterior: true, Gradient: true, UnitScale: l.UnitScale})
		if err != nil {
			return nil, err
		}
		last := len(res.Gradient) - 1
		return &solvers.Evidence{Log: res.Posterior.Bound, Scale: res.Posterior.Scale, Gradient: res.Gradient[:last], Lambda: res.Gradient[last]}, nil
	}
	return nil
}

// someRows returns at most limit samples of weight > 0 of data, in their order, chosen by the seed.
func someRows(ctx context.Context, data solvers.Rows, limit int, seed uint64) (x, y backend.Host[float64], weights []float64, err error) {
	n, d, t := data.Dims()
	rows := rand.New(rand.NewPCG(seed, 4)).Perm(n)[:min(n, limit)]
	slices.Sort(rows)
	x, y = backend.NewHost[float64](len(rows), d), backend.NewHost[float64](len(rows), t)
	first, kept := 0, 0
	err = data.Pass(ctx, false, func(b solvers.Block) error {
		for ; len(rows) > 0 && rows[0] < first+b.X.Rows; rows = rows[1:] {
			i, w := rows[0]-first, 1.0
			if b.Weights != nil {
				w = b.Weights[i]
			}
			if !(w > 0) {
				continue
			}
			copy(x.Row(kept), b.X.Row(i))
			copy(y.Row(kept), b.Y.Row(i))
			weights = append(weights, w)
			kept++
		}
		first += b.X.Rows
		return nil
	})
	return x.View(0, 0, kept, d), y.View(0, 0, kept, t), weights, err
}

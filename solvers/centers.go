package solvers

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/rowkey"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// CenterRule names a rule that chooses the centers of a NystromProblem among the samples. At most
// one of several equal samples becomes a center.
type CenterRule string

const (
	// UniformCenters draws the centers uniformly from the samples.
	UniformCenters CenterRule = "uniform"
	// PivotCenters takes the pivots of randomly pivoted Cholesky as centers.
	PivotCenters CenterRule = "rpcholesky"
)

// CenterRules lists the rules, beginning with the default.
func CenterRules() []CenterRule {
	return []CenterRule{UniformCenters, PivotCenters}
}

// CenterChoice specifies how centers are chosen. Each sample has a priority computed from its key (Block.Keys) and
// Seed. The rule chooses among the samples of smallest priority, so that equal seeds give equal centers for any
// order of the samples.
type CenterChoice struct {
	Rule  CenterRule // "" means UniformCenters
	Count int        // number of centers, M; 0 means about 10√n. If there are fewer than M different samples, each different sample is a center
	// pool is the number of samples from which a rule other than UniformCenters chooses. 0 means max(2M, 500).
	pool int
	Seed uint64
}

// sizes returns M and the size of the pool for n samples.
func (c CenterChoice) sizes(n int) (m, pool int) {
	m = c.Count
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	m = min(m, n)
	if c.Rule == UniformCenters || c.Rule == "" {
		return m, m
	}
	pool = c.pool
	if pool == 0 {
		pool = max(2*m, 500)
	}
	return m, min(max(pool, m), n)
}

func (c CenterChoice) check() error {
	if c.Rule != "" && !slices.Contains(CenterRules(), c.Rule) {
		return fmt.Errorf("solvers: no rule for centers is called %q; the rules are %q", c.Rule, CenterRules())
	}
	if c.Count < 0 || c.pool < 0 {
		return fmt.Errorf("solvers: the numbers of centers and of samples to choose among must be ≥ 0, got %d and %d", c.Count, c.pool)
	}
	return nil
}

// bytes returns the device memory that choosing the centers takes. rowBytes(r) is the memory of r rows of X.
func (c CenterChoice) bytes(n int, rowBytes func(rows int) int64) int64 {
	m, pool := c.sizes(n)
	if c.Rule == PivotCenters {
		return numeric.Total(rowBytes(pool), numeric.Bytes(numeric.Elements(pool, m)), lowrank.PivotBytes[float64](m, rowBytes))
	}
	return 0
}

func (c CenterChoice) flops(n, d int) float64 {
	m, pool := c.sizes(n)
	if c.Rule == PivotCenters {
		return flop.Gram(pool, m, d, false) + flop.Trsm(m, pool)
	}
	return 0
}

// choose returns p.Centers or the centers of p.Choice, and in q a sample of count rows for Falkon's preconditioner.
func (p NystromProblem) choose(r *streamRun, count int) (centers backend.Host[float64], q stream.Sampled, err error) {
	n, d, _ := p.Data.Dims()
	m, size := p.Choice.sizes(n)
	pool := stream.NewSampler(size, d)
	sampler, offer := stream.SamplerOfRows(count, d, p.Choice.Seed)
	hasCenters := p.Centers.Rows > 0
	if hasCenters && count == 0 {
		return p.Centers, q, nil
	}
	f := stream.NewFeed(sourceOf(p.Data), min(1<<12, max(1, 1<<17/d)))
	if !hasCenters {
		f.WithKeys()
	}
	if p.Sparse == nil {
		f.Rule = kernels.PointRule(p.Kernel)
	}
	err = f.Each(r.Ctx, func(firstRow int, x, _ backend.Host[float64], w []float64) error {
		if !hasCenters {
			for i := range x.Rows {
				pool.Offer(rowkey.Priority(f.Keys[i], p.Choice.Seed), x.Row(i), w[i])
			}
		}
		offer(firstRow, x, w)
		return nil
	})
	if err != nil {
		return centers, q, err
	}
	q = sampler.Sampled(f.N)
	if hasCenters {
		return p.Centers, q, nil
	}
	poolRows := pool.Sampled(f.N).X
	distinct := stream.DistinctPoints(poolRows, p.Points(poolRows))
	if m = min(m, distinct.Rows); m == distinct.Rows {
		return distinct, q, nil
	}
	rows, err := r.pivotCenters(p, distinct, m) // the rule is PivotCenters: other rules have a pool of M samples
	if err != nil {
		return centers, q, err
	}
	slices.Sort(rows) // order the centers by priority, like the rows of the pool
	return stream.SelectRows(distinct, rows), q, nil
}

// pivotCenters returns the pivots of randomly pivoted Cholesky on the pool.
func (r *streamRun) pivotCenters(p NystromProblem, pool backend.Host[float64], m int) ([]int, error) {
	points := p.Points(pool)
	var x backend.Matrix[float64]
	var err error
	if points.Sparse != nil {
		if x, err = points.Place(r.B); err == nil {
			r.Mem.Keep(x)
		}
	} else if x, err = r.Mem.New(pool.Rows, pool.Cols); err == nil {
		err = r.B.Upload(x, pool)
	}
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(x)
	f, err := r.Mem.New(pool.Rows, m)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(f)
	return lowrank.RandomPivots(lowrank.Task[float64]{Ctx: r.Ctx, B: r.B, Mem: r.Mem, Kernel: p.Kernel, X: x, Seed: p.Choice.Seed}, f)
}

// Sample draws up to Count different samples of weight > 0 uniformly in one pass. UniformCenters
// takes the same samples as centers.
func (c CenterChoice) Sample(ctx context.Context, data Rows) (backend.Host[float64], error) {
	if err := checkRows(data); err != nil {
		return backend.Host[float64]{}, err
	}
	n, d, _ := data.Dims()
	sampler := stream.NewSampler(min(n, c.Count), d)
	f := stream.NewFeed(sourceOf(data), min(n, 1<<12, max(1, 1<<17/d))).WithKeys()
	err := f.Each(ctx, func(_ int, x, _ backend.Host[float64], w []float64) error {
		for i := range x.Rows {
			sampler.Offer(rowkey.Priority(f.Keys[i], c.Seed), x.Row(i), w[i])
		}
		return nil
	})
	return stream.DistinctRows(sampler.Sampled(f.N).X), err
}

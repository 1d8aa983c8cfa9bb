package solvers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// CenterRule names a way to choose the centers of a NystromProblem among the
// samples. Repeated samples are never two centers.
type CenterRule string

const (
	// UniformCenters are drawn without regard to the kernel.
	UniformCenters CenterRule = "uniform"
	// PivotCenters are the pivots of randomly pivoted Cholesky: see pivoted.go.
	PivotCenters CenterRule = "rpcholesky"
	// LeverageCenters are drawn by approximate ridge leverage scores: see
	// leverage.go.
	LeverageCenters CenterRule = "leverage"
	// SpreadCenters are those of k-means++, by squared distances: see spread.go.
	SpreadCenters CenterRule = "kmeans++"
)

// CenterRules lists the rules, the default first.
func CenterRules() []CenterRule {
	return []CenterRule{UniformCenters, PivotCenters, LeverageCenters, SpreadCenters}
}

// CenterChoice says how centers are chosen. The same seed gives the same ones.
type CenterChoice struct {
	Rule  CenterRule // "" is UniformCenters
	Count int        // M; 0 is about 10√n. All different samples are taken when there are fewer
	// Pool is the number of samples, drawn uniformly in one pass, among which a
	// rule other than UniformCenters looks, and of which Falkon's preconditioner
	// is made; 0 is 2M, and M for UniformCenters.
	Pool int
	Seed uint64
}

// sizes returns M and the size of the pool for n samples.
func (c CenterChoice) sizes(n int) (m, pool int) {
	m = c.Count
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	m = min(m, n)
	pool = c.Pool
	if pool == 0 {
		pool = m
		if c.Rule != UniformCenters && c.Rule != "" {
			pool = max(2*m, 500)
		}
	}
	return m, min(max(pool, m), n)
}

func (c CenterChoice) check() error {
	if c.Rule != "" && !slices.Contains(CenterRules(), c.Rule) {
		return fmt.Errorf("solvers: no rule for centers is called %q: there are %q", c.Rule, CenterRules())
	}
	if c.Count < 0 || c.Pool < 0 {
		return fmt.Errorf("solvers: the numbers of centers and of samples to choose among must be ≥ 0, got %d and %d", c.Count, c.Pool)
	}
	return nil
}

// bytes is what the choice takes on the device.
func (c CenterChoice) bytes(n, d int) int64 {
	m, pool := c.sizes(n)
	switch c.Rule {
	case PivotCenters:
		return sum(bytes(sum(elements(pool, d), elements(pool, m))), lowRankScratch(pool, m, d))
	case LeverageCenters:
		return leverageBytes(pool, m, d)
	case SpreadCenters:
		return bytes(sum(elements(pool, d), elements(spreadWidth(m), d), elements(pool, spreadWidth(m))))
	}
	return 0
}

// flops of the choice, about.
func (c CenterChoice) flops(n, d int) float64 {
	m, pool := c.sizes(n)
	switch c.Rule {
	case PivotCenters:
		return backend.GramFlops(pool, m, d, false) + backend.TrsmFlops(m, pool)
	case LeverageCenters:
		return backend.GramFlops(pool, m, d, false) + backend.TrsmFlops(m, pool) + backend.PotrfFlops(m)
	case SpreadCenters:
		return backend.GemmFlops(pool, m, d)
	}
	return 0
}

// choose returns the centers, those given if there are any, and the samples for
// Falkon's preconditioner.
func (p NystromProblem) choose(r *streamRun) (centers, sample backend.Host[float64], err error) {
	n, d, _ := p.Data.Dims()
	c := p.Choice
	m, size := c.sizes(n)
	given := p.Centers.Rows > 0
	if given {
		if r.plan.Method == Normal {
			return p.Centers, sample, nil
		}
		m = p.Centers.Rows
		size = min(n, max(m, c.Pool))
	}
	random := rand.New(rand.NewPCG(c.Seed, 0x63656e74))
	pool, live, err := reservoir(r.ctx, p.Data, size, random)
	if err != nil {
		return centers, sample, err
	}
	if given {
		return p.Centers, pool, nil
	}
	if m = min(m, pool.Rows); m == pool.Rows {
		return pool, pool, nil
	}
	var rows []int
	switch c.Rule {
	case PivotCenters:
		rows, err = r.pivotCenters(p, pool, m)
	case LeverageCenters:
		rows, err = r.leverageCenters(p, pool, m, live, random)
	case SpreadCenters:
		rows, err = r.spreadCenters(pool, m, random)
	default:
		rows = drawRows(random, pool.Rows, m)
	}
	if err != nil {
		return centers, sample, err
	}
	slices.Sort(rows) // the order of the samples, whatever that of the choice
	centers = backend.NewHost[float64](len(rows), d)
	for j, i := range rows {
		copy(centers.Row(j), pool.Row(i))
	}
	return centers, pool, nil
}

// reservoir reads the samples once and returns up to size different ones of
// weight > 0, each set of them equally likely when none are repeated (algorithm R
// of Waterman, in Knuth, The Art of Computer Programming 2, 3.4.2), and the
// number of samples of weight > 0.
func reservoir(ctx context.Context, data Rows, size int, random *rand.Rand) (pool backend.Host[float64], live int, err error) {
	_, d, _ := data.Dims()
	pool = backend.NewHost[float64](size, d)
	at := make(map[string]bool, size)
	text := make([]byte, 0, 8*d)
	key := func(row []float64) []byte {
		text = text[:0]
		for _, v := range row {
			bits := math.Float64bits(v + 0) // −0 is 0
			for range 8 {
				text = append(text, byte(bits))
				bits >>= 8
			}
		}
		return text
	}
	seen, filled := 0, 0
	f := newFeed(data, min(1<<12, max(1, 1<<17/d)))
	err = f.pass(ctx, func(_ int, x, _ backend.Host[float64], _ []float64) error {
		for i := range x.Rows {
			row := x.Row(i)
			if at[string(key(row))] {
				continue
			}
			seen++
			if filled < size {
				copy(pool.Row(filled), row)
				at[string(key(row))] = true
				filled++
			} else if j := random.IntN(seen); j < size {
				delete(at, string(key(pool.Row(j))))
				copy(pool.Row(j), row)
				at[string(key(row))] = true
			}
		}
		return nil
	})
	return pool.View(0, 0, filled, d), f.n, err
}

// drawRows returns count different numbers below n, each set equally likely,
// in increasing order (algorithm S of the same section).
func drawRows(r *rand.Rand, n, count int) []int {
	s := make([]int, 0, count)
	for i := range n {
		if r.IntN(n-i) < count-len(s) {
			s = append(s, i)
		}
	}
	return s
}

// pivotCenters are the pivots of randomly pivoted Cholesky on the pool.
func (r *streamRun) pivotCenters(p NystromProblem, pool backend.Host[float64], m int) ([]int, error) {
	x, err := r.mem.new(pool.Rows, pool.Cols)
	if err != nil {
		return nil, err
	}
	defer r.mem.free(x)
	if err := r.b.Upload(x, pool); err != nil {
		return nil, err
	}
	f, err := r.mem.new(pool.Rows, m)
	if err != nil {
		return nil, err
	}
	defer r.mem.free(f)
	pivots, err := newPivoting(lowRankTask{ctx: r.ctx, b: r.b, mem: r.mem, kernel: p.Kernel, x: x, seed: p.Choice.Seed}, f)
	if err != nil {
		return nil, err
	}
	if err := pivots.random(); err != nil {
		return nil, err
	}
	return pivots.pivots, nil
}

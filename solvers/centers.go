package solvers

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
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
	// KMeansCenters are those of k-means++, by squared distances: see kmeans.go.
	KMeansCenters CenterRule = "kmeans++"
)

// CenterRules lists the rules, the default first.
func CenterRules() []CenterRule {
	return []CenterRule{UniformCenters, PivotCenters, LeverageCenters, KMeansCenters}
}

// CenterChoice says how centers are chosen. The same seed gives the same ones.
type CenterChoice struct {
	Rule  CenterRule // "" is UniformCenters
	Count int        // M; 0 is about 10√n. All different samples are taken when there are fewer
	// Pool is the number of samples, drawn uniformly in one pass, among which a
	// rule other than UniformCenters looks; 0 is 2M, and at least 500.
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
	if c.Rule == UniformCenters || c.Rule == "" {
		return m, m
	}
	pool = c.Pool
	if pool == 0 {
		pool = max(2*m, 500)
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
		return bytes(sum(elements(pool, d), elements(pool, m), pivotingElements(m, d)))
	case LeverageCenters:
		return leverageBytes(pool, m, d)
	case KMeansCenters:
		return bytes(sum(elements(pool, d), elements(kMeansWidth(m), d), elements(pool, kMeansWidth(m))))
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
	case KMeansCenters:
		return backend.GemmFlops(pool, m, d)
	}
	return 0
}

// choose returns the centers, those given if there are any, and the samples for
// Falkon's preconditioner, count of them. It reads the samples once if it must.
func (p NystromProblem) choose(r *streamRun, count int) (centers backend.Host[float64], q sampled, err error) {
	n, d, _ := p.Data.Dims()
	m, size := p.Choice.sizes(n)
	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(p.Choice.Seed, stream)) }
	pool := newReservoir(size, d, random(1))
	pool.distinct = make(map[string]bool, size)
	some := newReservoir(count, d, random(2))
	given := p.Centers.Rows > 0
	if given && count == 0 {
		return p.Centers, q, nil
	}
	f := newFeed(p.Data, min(1<<12, max(1, 1<<17/d)))
	f.rule = kernels.PointRule(p.Kernel)
	err = f.pass(r.Ctx, func(_ int, x, _ backend.Host[float64], w []float64) error {
		for i := range x.Rows {
			if !given {
				pool.offer(x.Row(i), w[i])
			}
			some.offer(x.Row(i), w[i])
		}
		return nil
	})
	if err != nil {
		return centers, q, err
	}
	q = some.sampled(f.n)
	if given {
		return p.Centers, q, nil
	}
	from := pool.sampled(f.n).x
	if m = min(m, from.Rows); m == from.Rows {
		return from, q, nil
	}
	var rows []int
	switch p.Choice.Rule {
	case PivotCenters:
		rows, err = r.pivotCenters(p, from, m)
	case LeverageCenters:
		rows, err = r.leverageCenters(p, from, m, f.n, random(3))
	case KMeansCenters:
		rows, err = r.kMeansPlusPlus(from, m, random(3))
	}
	if err != nil {
		return centers, q, err
	}
	slices.Sort(rows) // the order of the samples, whatever that of the choice
	centers = backend.NewHost[float64](len(rows), d)
	for j, i := range rows {
		copy(centers.Row(j), from.Row(i))
	}
	return centers, q, nil
}

// sampled is some of the samples, drawn uniformly, that stand for all.
type sampled struct {
	x     backend.Host[float64]
	roots []float64 // of the weight of each, and of how many it stands for
}

// A reservoir draws from a stream: each set of samples is equally likely
// (algorithm R of Waterman, in Knuth, The Art of Computer Programming 2, 3.4.2).
type reservoir struct {
	x        backend.Host[float64]
	weights  []float64
	filled   int
	seen     int
	random   *rand.Rand
	distinct map[string]bool // not nil: a sample equal to one that is here is passed over
	text     []byte
}

func newReservoir(size, d int, random *rand.Rand) *reservoir {
	return &reservoir{x: backend.NewHost[float64](size, d), weights: make([]float64, size), random: random}
}

func (r *reservoir) offer(row []float64, weight float64) {
	if r.distinct != nil && r.distinct[r.key(row)] {
		return
	}
	r.seen++
	at := r.filled
	if at == r.x.Rows {
		if at = r.random.IntN(r.seen); at >= r.x.Rows {
			return
		}
		if r.distinct != nil {
			delete(r.distinct, r.key(r.x.Row(at)))
		}
	} else {
		r.filled++
	}
	copy(r.x.Row(at), row)
	r.weights[at] = weight
	if r.distinct != nil {
		r.distinct[r.key(row)] = true
	}
}

// key is equal for equal rows.
func (r *reservoir) key(row []float64) string {
	r.text = r.text[:0]
	for _, v := range row {
		r.text = binary.LittleEndian.AppendUint64(r.text, math.Float64bits(v+0)) // −0 is 0
	}
	return string(r.text)
}

// sampled returns what was drawn from n samples.
func (r *reservoir) sampled(n int) sampled {
	s := sampled{x: r.x.View(0, 0, r.filled, r.x.Cols), roots: make([]float64, r.filled)}
	for i := range s.roots {
		s.roots[i] = math.Sqrt(r.weights[i] * float64(n) / float64(r.filled))
	}
	return s
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
	x, err := r.Mem.New(pool.Rows, pool.Cols)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(x)
	if err := r.B.Upload(x, pool); err != nil {
		return nil, err
	}
	f, err := r.Mem.New(pool.Rows, m)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(f)
	pivots, err := newPivoting(lowRankTask{ctx: r.Ctx, b: r.B, mem: r.Mem, kernel: p.Kernel, x: x, seed: p.Choice.Seed}, f)
	if err != nil {
		return nil, err
	}
	if err := pivots.random(); err != nil {
		return nil, err
	}
	return pivots.pivots, nil
}

// Sample returns up to count different samples of weight > 0, drawn uniformly in
// one pass; the same seed gives the same ones.
func Sample(ctx context.Context, data Rows, count int, seed uint64) (backend.Host[float64], error) {
	if err := checkRows(data); err != nil {
		return backend.Host[float64]{}, err
	}
	n, d, _ := data.Dims()
	some := newReservoir(min(n, count), d, rand.New(rand.NewPCG(seed, 4)))
	some.distinct = make(map[string]bool)
	f := newFeed(data, min(n, 1<<12))
	err := f.pass(ctx, func(_ int, x, _ backend.Host[float64], w []float64) error {
		for i := range x.Rows {
			some.offer(x.Row(i), w[i])
		}
		return nil
	})
	return some.sampled(f.n).x, err
}

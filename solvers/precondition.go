package solvers

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// A preconditioner is an approximate inverse of K + λW⁻¹, symmetric and positive
// definite, on the device.
type preconditioner[T backend.Float] interface {
	// apply queues z ← P⁻¹ r, both n×c; it waits only where it needs the host.
	// z is no part of r.
	apply(z, r backend.Matrix[T]) error
}

// lowRankTask asks for a low-rank approximation of a Gram matrix.
type lowRankTask struct {
	ctx    context.Context
	b      backend.Backend[float64]
	mem    *run.Arena // for what is needed meanwhile; the maker frees it
	kernel kernels.Kernel
	x      backend.Matrix[float64] // n×d, on the device
	seed   uint64
	// stop is a trace of K − FFᵀ at which more columns are not worth their cost;
	// 0 fills F.
	stop float64
}

// A lowRankMaker fills columns 0 … rank−1 of f, n×k of zeros, with F such that
// K = k(X, X) ≈ F Fᵀ and K − F Fᵀ is positive semidefinite up to rounding, and
// returns rank ≤ k and the trace of what is left. The same task gives the same
// bits. Beside f it takes at most lowRankScratch bytes on the device. It works in blocks, so that ctx is obeyed.
type lowRankMaker func(task lowRankTask, f backend.Matrix[float64]) (rank int, left float64, err error)

// lowRankMakers are the ways to make F, by the names that Params.Preconditioner
// takes. The first that is there of "rpcholesky" and "nystrom" is the default.
var lowRankMakers = map[string]lowRankMaker{
	"rpcholesky": rpCholesky,
	"greedy":     greedyCholesky,
	"nystrom":    uniformNystrom,
}

// Preconditioners returns the names that Params.Preconditioner takes beside "".
func Preconditioners() []string {
	return append(slices.Sorted(maps.Keys(lowRankMakers)), "none")
}

func checkPreconditioner(name string) error {
	if list := Preconditioners(); name != "" && !slices.Contains(list, name) {
		return fmt.Errorf("solvers: no preconditioner is called %q: there are %s", name, strings.Join(list, ", "))
	}
	return nil
}

// lowRankScratch is what the maker called name takes on the device beside f.
func lowRankScratch(name string, k, d int) int64 {
	if name == "nystrom" {
		return bytes(add(elements(k, k), elements(k, d)))
	}
	return bytes(pivotingElements(k, d))
}

// lowRank is P = F Fᵀ + D with D = λW⁻¹, applied by the identity of Woodbury
//
//	P⁻¹ = D^{-½} (I − G Gᵀ) D^{-½},  G = D^{-½} F L⁻ᵀ,  L Lᵀ = I + Fᵀ D⁻¹ F
//
// in two products with G, n×k. A factor common to all of P⁻¹ is left out: no
// method of conjugate gradients sees it.
type lowRank[T backend.Float] struct {
	b    backend.Backend[T]
	g    backend.Matrix[T] // n×k, a view of own
	half []float64         // D^{-½}; nil where all are the same
	t    backend.Matrix[T] // k×c
	own  run.Releaser
}

// newLowRank makes the preconditioner from the first rank columns of f, which
// become G, and the diagonal of D, which has length 1 or n and is ≥ 0, for
// products with up to c columns. It takes rank×c elements more, beside rank×rank
// while it is made. Where D is too small beside F for the precision in which it
// will be used, of which unit is the rounding, D is raised: I − G Gᵀ would be
// rounding only. left is the trace of K − F Fᵀ: up to its mean D may be raised
// without harm, since the condition of P⁻¹(K + D) is about that of K − F Fᵀ + D
// then too, and it is, as far as the digits of I − G Gᵀ need it. jitter is by how
// much, in the largest of its elements.
func newLowRank(mem *run.Arena, b backend.Backend[float64], f backend.Matrix[float64], rank int, d []float64, left float64, c int, unit float64) (p *lowRank[float64], raised float64, err error) {
	n, _ := f.Dims()
	p = &lowRank[float64]{b: b, g: f.View(0, 0, n, rank), own: f}
	smallest := d[0]
	if len(d) > 1 && slices.Min(d) > 0 {
		p.half = make([]float64, n)
		for i, v := range d {
			p.half[i] = 1 / math.Sqrt(v)
		}
		if err := scaleRows(b, p.g, p.g, p.half); err != nil {
			return nil, 0, err
		}
		smallest, left = 1, left/slices.Max(d)
	}
	s, err := mem.New(rank, rank)
	if err != nil {
		return nil, 0, err
	}
	defer mem.Free(s)
	trace := make([]float64, rank)
	if err := b.ColDot(trace, p.g, p.g); err != nil {
		return nil, 0, err
	}
	total := smallest + traceOf(trace)
	const digits = 1e4 // that I − G Gᵀ has at least where D may be raised
	j := newJitter(max(smallest, unit*total, min(left/float64(n), digits*unit*total)), total)
	if err := j.factor(b, s, func() error { b.Syrk(backend.Lower, backend.Transpose, 1, p.g, 0, s); return nil }); err != nil {
		return nil, 0, fmt.Errorf("preconditioner of rank %d: %w", rank, err)
	}
	b.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, s, p.g)
	if p.t, err = mem.New(rank, c); err != nil {
		return nil, 0, err
	}
	raised = j.added - smallest
	if p.half != nil {
		raised *= slices.Max(d)
	}
	return p, raised, b.Sync()
}

// narrowed is p in float32: G is copied, and what p has on the device freed.
func narrowed(p *lowRank[float64], mem *run.Arena, dev backend.Device, b backend.Backend[float32]) (*lowRank[float32], error) {
	n, k := p.g.Dims()
	_, c := p.t.Dims()
	q := &lowRank[float32]{b: b, half: p.half}
	var err error
	if q.g, err = run.NewMatrix(mem, b, n, k); err != nil {
		return nil, err
	}
	if q.t, err = run.NewMatrix(mem, b, k, c); err != nil {
		return nil, err
	}
	q.own = q.g
	dev.Narrow(q.g, p.g)
	if err := dev.Sync(); err != nil {
		return nil, err
	}
	mem.Free(p.own)
	mem.Free(p.t)
	return q, nil
}

func (p *lowRank[T]) apply(z, r backend.Matrix[T]) error {
	_, k := p.g.Dims()
	_, c := r.Dims()
	if err := p.scaled(z, r); err != nil {
		return err
	}
	t := p.t.View(0, 0, k, c)
	p.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.g, z, 0, t)
	p.b.Gemm(backend.NoTrans, backend.NoTrans, -1, p.g, t, 1, z)
	if p.half == nil {
		return nil
	}
	return scaleRows(p.b, z, z, p.half)
}

func (p *lowRank[T]) scaled(z, r backend.Matrix[T]) error {
	if p.half == nil {
		copyMatrix(p.b, z, r)
		return nil
	}
	return scaleRows(p.b, z, r, p.half)
}

// copyMatrix queues dst ← src: an empty product clears dst, and src is added.
func copyMatrix[T backend.Float](b backend.Backend[T], dst, src backend.Matrix[T]) {
	n, c := src.Dims()
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, src.View(0, 0, n, 0), src.View(0, 0, 0, c), 0, dst)
	one := make([]T, c)
	for j := range one {
		one[j] = 1
	}
	b.ColAxpy(one, src, dst)
}

// scaleRows sets row i of dst to s_i times that of src, which may be dst. The
// rows go through the host in blocks: no device has the operation, and the
// product with K that goes with it costs n times as much.
func scaleRows[T backend.Float](b backend.Backend[T], dst, src backend.Matrix[T], s []float64) error {
	n, c := src.Dims()
	rows := max(1, min(n, 1<<18/max(c, 1)))
	buffer := backend.NewHost[T](rows, c)
	for i := 0; i < n; i += rows {
		h := buffer.View(0, 0, min(rows, n-i), c)
		if err := b.Download(h, src.View(i, 0, h.Rows, c)); err != nil {
			return err
		}
		for r := range h.Rows {
			for j := range h.Row(r) {
				h.Row(r)[j] *= T(s[i+r])
			}
		}
		if err := b.Upload(dst.View(i, 0, h.Rows, c), h); err != nil {
			return err
		}
	}
	return nil
}

// uniformNystrom is Nyström's approximation from k rows of X drawn without
// replacement (Williams and Seeger 2001): F = K(X, S) L⁻ᵀ with
// L Lᵀ = K(S, S) + δI, δ rising until the factorisation succeeds.
func uniformNystrom(task lowRankTask, f backend.Matrix[float64]) (rank int, left float64, err error) {
	n, k := f.Dims()
	_, d := task.x.Dims()
	b := task.b
	r := rand.New(rand.NewPCG(task.seed, 0x6e797374726f6d))
	s, err := task.mem.New(k, d)
	if err != nil {
		return 0, 0, err
	}
	defer task.mem.Free(s)
	row := backend.NewHost[float64](1, d)
	for i, from := range r.Perm(n)[:k] {
		if err := b.Download(row, task.x.View(from, 0, 1, d)); err != nil {
			return 0, 0, err
		}
		if err := b.Upload(s.View(i, 0, 1, d), row); err != nil {
			return 0, 0, err
		}
	}
	l, err := task.mem.New(k, k)
	if err != nil {
		return 0, 0, err
	}
	defer task.mem.Free(l)
	trace := 0.0
	for i := range k {
		if err := b.Download(row, s.View(i, 0, 1, d)); err != nil {
			return 0, 0, err
		}
		trace += kernels.Diag(task.kernel, row.Row(0))
	}
	if err := newJitter(epsilon*trace, trace).factor(b, l, func() error { b.Gram(l, task.kernel, s, s); return nil }); err != nil {
		return 0, 0, err
	}
	b.Gram(f, task.kernel, task.x, s)
	b.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, f)
	all := make([]float64, k)
	if err := b.ColDot(all, f, f); err != nil {
		return 0, 0, err
	}
	for i := range n {
		if err := b.Download(row, task.x.View(i, 0, 1, d)); err != nil {
			return 0, 0, err
		}
		left += kernels.Diag(task.kernel, row.Row(0))
	}
	return k, max(left-traceOf(all), 0), nil
}

package band

import (
	"context"
	"errors"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// Solver solves systems with A + λI for groups of at most GroupSize λ. A = QBQᵀ with a banded B.
type Solver struct {
	Params
	// Factors holds the factors for the last group of λ. If a λ has no factor, Errs has the reason.
	Factors []*Factor
	Errs    []error

	form    *form
	scratch []*factorScratch
	y, z    []backend.Matrix[float64]  // n × Columns for each worker
	x, g    backend.Matrix[float64]    // memory for the factors of a group
	s       [2]backend.Matrix[float64] // wide(width) × GroupSize·Columns
	sol     [2]backend.Matrix[float64] // n × GroupSize·Columns
	rows    [2]backend.Matrix[float64] // GroupSize·width × Samples
}

// Params describes the problems of a Solver.
type Params struct {
	Columns  int  // number of columns of the right-hand sides
	Inverses bool // whether Diagonals will be called
	Samples  int  // number of columns of the argument m of Diagonals
	// Queue returns a queue of the device. Each goroutine calls it once.
	Queue   func(ctx context.Context) backend.Backend[float64]
	Workers int // number of goroutines; each works on one λ at a time
}

// New decomposes the symmetric matrix A = QBQᵀ. Its lower triangle is in a; the elements above the
// diagonal of a must be 0. Q overwrites a and is freed with mem.
func New(mem *run.Arena, b backend.Backend[float64], a backend.Matrix[float64], p Params) (*Solver, error) {
	width := Width(p.Inverses)
	f, err := newForm(b, mem, a, width)
	if err != nil {
		return nil, err
	}
	q := &Solver{Params: p, form: f, Factors: make([]*Factor, GroupSize), Errs: make([]error, GroupSize)}
	for range p.Workers {
		s, err := newFactorScratch(b, mem, width)
		if err != nil {
			return nil, err
		}
		y, err := mem.New(f.n, p.Columns)
		if err != nil {
			return nil, err
		}
		z, err := mem.New(f.n, p.Columns)
		if err != nil {
			return nil, err
		}
		q.scratch, q.y, q.z = append(q.scratch, s), append(q.y, y), append(q.z, z)
	}
	strips := 0
	if p.Inverses {
		strips = GroupSize * width
	}
	for _, w := range []struct {
		m          *backend.Matrix[float64]
		rows, cols int
	}{
		{&q.x, GroupSize * f.n, width}, {&q.g, GroupSize * f.n, width},
		{&q.s[0], groupColumns(width), GroupSize * p.Columns}, {&q.s[1], groupColumns(width), GroupSize * p.Columns},
		{&q.sol[0], f.n, GroupSize * p.Columns}, {&q.sol[1], f.n, GroupSize * p.Columns},
		{&q.rows[0], strips, p.Samples}, {&q.rows[1], strips, p.Samples},
	} {
		if w.rows == 0 {
			continue
		}
		if *w.m, err = mem.New(w.rows, w.cols); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// Transposed returns Qᵀ. It requires that Inverses is set and that Rotate was called.
func (q *Solver) Transposed() backend.Matrix[float64] { return q.form.a }

// Rotate returns Qᵀy. If Inverses is set, it also forms Q.
func (q *Solver) Rotate(b backend.Backend[float64], y backend.Host[float64]) (backend.Host[float64], error) {
	rotated := backend.NewHost[float64](y.Rows, y.Cols)
	m := q.sol[0].View(0, 0, y.Rows, y.Cols)
	if err := b.Upload(m, y); err != nil {
		return rotated, err
	}
	q.form.b = b
	if err := q.form.apply(backend.Transpose, m, q.s); err != nil {
		return rotated, err
	}
	if err := b.Download(rotated, m); err != nil {
		return rotated, err
	}
	if q.Inverses {
		return rotated, q.form.formQ()
	}
	return rotated, nil
}

// Solve returns the solutions (A + λI)⁻¹y for all λ, side by side in one matrix. The argument rhs is Qᵀy, the
// result of Rotate. If A + λI is not positive definite to working precision, Solve stores the error for this λ in
// Errs, and the solution is 0.
func (q *Solver) Solve(ctx context.Context, b backend.Backend[float64], lambdas []float64, rhs backend.Host[float64]) (backend.Host[float64], error) {
	f, count, c := q.form, len(lambdas), q.Columns
	sols := backend.NewHost[float64](f.n, count*c)
	next := make(chan int, count)
	for i := range lambdas {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	failures := make([]error, len(q.scratch))
	panics := make([]any, len(q.scratch)) // panics of the workers, to be raised again in the caller's goroutine
	for id := range q.scratch {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { panics[id] = recover() }()
			w := *q.scratch[id]
			w.b = q.Queue(ctx)
			for i := range next {
				l := &Factor{lambda: lambdas[i], x: q.x, g: q.g, member: i, group: count}
				q.Factors[i] = l
				q.Errs[i] = f.factor(ctx, &w, l, f.rounding(), !q.Inverses)
				if q.Errs[i] == nil {
					q.Errs[i] = q.solveOne(&w, l, q.y[id], q.z[id], rhs, sols.View(0, i*c, f.n, c))
				}
				if err := q.Errs[i]; err != nil && !errors.Is(err, backend.ErrNotPosDef) {
					failures[id] = err
					return
				}
			}
		}()
	}
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return sols, err
	}
	return sols, q.applyQ(b, sols)
}

func (q *Solver) solveOne(w *factorScratch, l *Factor, y, z backend.Matrix[float64], rhs, sol backend.Host[float64]) error {
	if err := w.b.Upload(y, rhs); err != nil {
		return err
	}
	if err := q.form.solve(w.b, l, y, z); err != nil {
		return err
	}
	return w.b.Download(sol, y)
}

// applyQ overwrites X with QX.
func (q *Solver) applyQ(b backend.Backend[float64], x backend.Host[float64]) error {
	in, out := q.sol[0].View(0, 0, x.Rows, x.Cols), q.sol[1].View(0, 0, x.Rows, x.Cols)
	if err := b.Upload(in, x); err != nil {
		return err
	}
	if q.form.qFormed {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, q.form.a, in, 0, out)
		return b.Download(x, out)
	}
	q.form.b = b
	if err := q.form.apply(backend.NoTrans, in, q.s); err != nil {
		return err
	}
	return b.Download(x, in)
}

// Diagonals adds to diags[i] the sums of squares of the columns of Z = L⁻¹m for the factor L of λ_i. If m = Qᵀ,
// these sums are the diagonal of (A + λ_iI)⁻¹. With X_j and G_j of Factor, Z has the blocks of rows
//
//	Z_j = X_j m_j − X_j G_j Z_{j−1}
//
// with one product for the first terms X_j m_j of all λ.
func (q *Solver) Diagonals(ctx context.Context, b backend.Backend[float64], m backend.Matrix[float64], diags [][]float64) error {
	f, count := q.form, len(diags)
	_, n := m.Dims()
	sums := make([]float64, n)
	for j := range f.blocks() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, r := f.rows(j)
		z, previous := q.rows[j%2].View(0, 0, count*r, n), q.rows[(j+1)%2]
		x := q.x.View(first*count, 0, count*r, r)
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, m.View(first, 0, r, n), 0, z)
		for i := range count {
			if q.Errs[i] != nil {
				continue
			}
			zi := z.View(i*r, 0, r, n)
			if j > 0 {
				l := q.Factors[i]
				xg := q.scratch[0].s[0].View(0, 0, r, f.width)
				b.Gemm(backend.NoTrans, backend.Transpose, 1, l.inverse(f, j), l.coupling(f, j-1), 0, xg)
				b.Gemm(backend.NoTrans, backend.NoTrans, -1, xg, previous.View(i*f.width, 0, f.width, n), 1, zi)
			}
			if err := b.ColDot(sums, zi, zi); err != nil {
				return err
			}
			for k, v := range sums {
				diags[i][k] += v
			}
		}
	}
	return nil
}

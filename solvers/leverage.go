package solvers

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// leverageBytes is what leverageCenters takes on the device.
func leverageBytes(pool, m, d int) int64 {
	r := pieceRows(pool, m)
	return bytes(sum(elements(m+r, d), elements(m+r, m)))
}

// leverageCenters draws m of the pool without replacement, with chances
// proportional to approximate ridge leverage scores. The score of x, the
// diagonal element of K(K + λI)⁻¹ that belongs to it, is estimated from m
// samples J of the pool, which stand for all n (Rudi, Calandriello, Carratino,
// Rosasco 2018, equation 8):
//
//	s(x) = k(x, x) − k(x, J) (k(J, J) + λ m/n I)⁻¹ k(J, x),  ℓ(x) = s/(s + λ)
//
// which is the score of x when it is added to J. A member of J is judged by what
// s would be without it.
//
// Where M is below the effective dimension Σℓ, a heap of samples whose scores
// are small one by one may be left without a center: PivotCenters have no such
// weakness.
func (r *streamRun) leverageCenters(p NystromProblem, pool backend.Host[float64], m, n int, random *rand.Rand) ([]int, error) {
	d := pool.Cols
	inside := drawRows(random, pool.Rows, m)
	xj, err := r.Mem.New(m, d)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(xj)
	if err := r.B.Upload(xj, selectRows(pool, inside)); err != nil {
		return nil, err
	}
	l, err := r.Mem.New(m, m)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(l)
	scores := diagonalOf(p.Kernel, pool)
	trace := traceOf(scores) * float64(m) / float64(pool.Rows)
	// Below its rounding a shift is none.
	j := jitter{added: max(p.Lambda*float64(m)/float64(n), 4*epsilon*trace), times: 100, tries: 4}
	if err := factor(&j, r.B, l, func() error { r.B.Gram(l, p.Kernel, xj, xj); return nil }); err != nil {
		return nil, err
	}
	shift := j.added

	rows := pieceRows(pool.Rows, m)
	x, err := r.Mem.New(rows, d)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(x)
	k, err := r.Mem.New(rows, m)
	if err != nil {
		return nil, err
	}
	defer r.Mem.Free(k)
	buffer := backend.NewHost[float64](rows, m)
	for i := 0; i < pool.Rows; i += rows {
		count := min(rows, pool.Rows-i)
		xi, ki, h := x.View(0, 0, count, d), k.View(0, 0, count, m), buffer.View(0, 0, count, m)
		if err := r.B.Upload(xi, pool.View(i, 0, count, d)); err != nil {
			return nil, err
		}
		r.B.Gram(ki, p.Kernel, xi, xj)
		r.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, ki)
		if err := r.B.Download(h, ki); err != nil {
			return nil, err
		}
		for q := range count {
			for _, v := range h.Row(q) {
				scores[i+q] -= v * v
			}
		}
	}
	for _, i := range inside {
		// s = s′μ/(s′ + μ) with the s′ of the others and the shift μ.
		scores[i] = scores[i] * shift / max(shift-scores[i], epsilon*shift)
	}
	for i, s := range scores {
		s = max(s, 4*epsilon*trace) // rounding left it: a small chance yet
		scores[i] = s / (s + max(p.Lambda, shift))
	}
	// The smallest of exponential times with the scores as rates (Efraimidis and
	// Spirakis 2006).
	times := make([]float64, pool.Rows)
	order := make([]int, pool.Rows)
	for i := range order {
		order[i] = i
		times[i] = random.ExpFloat64() / scores[i]
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return order[:m], nil
}

// diagonalOf returns k(x, x) for the rows of x.
func diagonalOf(k kernels.Kernel, x backend.Host[float64]) []float64 {
	prog := kernels.Compile(k)
	stats := make([]float64, len(prog.Stats))
	diag := make([]float64, x.Rows)
	for i := range diag {
		row := x.Row(i)
		for j, s := range prog.Stats {
			stats[j] = s.Eval(row, row)
		}
		diag[i] = prog.Run(stats)
	}
	return diag
}

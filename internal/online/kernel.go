package online

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Cache provides rows of the n×n matrix K of kernel values. svm.RowCache implements it.
type Cache interface {
	// Capacity returns the maximum number of rows of one call of Fetch.
	Capacity() int
	// Fetch computes the given rows of K that are not in the cache.
	Fetch(rows []int) error
	// Row returns row i, which is valid until the next call.
	Row(i int) ([]float64, error)
}

// Expansion is f(x) = Σ_i a_i k(x_i, x) + b over all samples.
type Expansion struct {
	A       backend.Host[float64] // n×Outputs
	B       []float64
	F       backend.Host[float64] // n×Outputs: the last f, without averaging, at the samples
	Norm    float64               // norm of the last f
	Support int                   // number of samples in the last f
}

// Kernel learns f as a sum of kernel functions of at most `budget` samples; a budget of 0 means no limit. The
// argument diag holds the values k(x_i, x_i).
func (l *Loop) Kernel(t *run.Task, k kernels.Kernel, cache Cache, diag []float64, budget int) (*Expansion, error) {
	n := l.X.Rows
	h := &kernelHypothesis{
		Loop: l, b: t.B, k: k, cache: cache, diag: diag, budget: budget,
		f: backend.NewHost[float64](l.Outputs, n), a: backend.NewHost[float64](n, l.Outputs), offset: make([]float64, 2*l.Outputs),
	}
	for c := range l.Outputs {
		h.offset[c] = l.Start
	}
	if l.Average {
		h.delayed = backend.NewHost[float64](n, l.Outputs)
	}
	l.block = Block
	if budget > 0 {
		l.block = 1 // with a budget, a mistake may change the terms of several samples
	}
	if err := l.run(t, h); err != nil {
		return nil, err
	}
	return h.result(), nil
}

// kernelHypothesis stores the current f at all samples. Only a mistake requires a row of K.
type kernelHypothesis struct {
	*Loop
	b          backend.Backend[float64]
	k          kernels.Kernel
	cache      Cache
	diag       []float64
	f          backend.Host[float64] // C×n: f at all samples, without the bias
	a, delayed backend.Host[float64] // n×C; for the average, delayed is the sum of the changes of a, each multiplied by its step
	offset     []float64             // b, and for the average the sum of its changes, each multiplied by its step
	budget     int
	support    []int // indices of the samples in f, if there is a budget
}

// result returns the last f, with the averages of a and b if they are requested.
func (h *kernelHypothesis) result() *Expansion {
	e := &Expansion{A: h.a, B: h.offset[:h.Outputs], F: backend.NewHost[float64](h.X.Rows, h.Outputs)}
	square := 0.0
	for i := range h.X.Rows {
		updated := false
		for c, a := range h.a.Row(i) {
			e.F.Row(i)[c] = h.f.Row(c)[i] + h.offset[c]
			square += a * h.f.Row(c)[i]
			updated = updated || a != 0
		}
		if updated {
			e.Support++
		}
	}
	e.Norm = math.Sqrt(max(square, 0))
	if h.Average {
		steps := h.averaged()
		for i := range e.A.Rows {
			for c := range e.A.Cols {
				e.A.Row(i)[c] -= h.delayed.Row(i)[c] / steps
			}
		}
		for c := range e.B {
			e.B[c] -= h.offset[h.Outputs+c] / steps
		}
	}
	return e
}

func (h *kernelHypothesis) values(block []int) (backend.Host[float64], error) {
	f := backend.NewHost[float64](len(block), h.f.Rows)
	for r, i := range block {
		for c := range f.Cols {
			f.Row(r)[c] = h.f.Row(c)[i] + h.offset[c]
		}
	}
	return f, nil
}

func (h *kernelHypothesis) gram(block []int) (backend.Host[float64], error) {
	g := backend.NewHost[float64](len(block), len(block))
	x, err := gather(h.b, h.X, block)
	if err != nil {
		return g, err
	}
	defer x.Free()
	out, err := h.b.New(len(block), len(block))
	if err != nil {
		return g, err
	}
	defer out.Free()
	h.b.Gram(out, h.k, x, x)
	return g, h.b.Download(g, out)
}

func (h *kernelHypothesis) learn(block []int, delta backend.Host[float64], mistaken, steps []int) error {
	for len(mistaken) > 0 {
		batch := mistaken[:min(len(mistaken), h.cache.Capacity())]
		mistaken = mistaken[len(batch):]
		rows := make([]int, len(batch))
		for q, r := range batch {
			rows[q] = block[r]
		}
		if err := h.cache.Fetch(rows); err != nil {
			return err
		}
		for q, r := range batch {
			if err := h.add(rows[q], delta.Row(r)); err != nil {
				return err
			}
			for c, v := range delta.Row(r) {
				if delayed := v * float64(steps[q]); h.delayed.Data != nil {
					h.delayed.Row(rows[q])[c] += delayed
					h.offset[h.f.Rows+c] += delayed * h.Bias
				}
			}
		}
		steps = steps[len(batch):]
		if h.budget > 0 {
			if err := h.trim(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds delta[c] k(x_i, ·) to each output c of f.
func (h *kernelHypothesis) add(i int, delta []float64) error {
	row, err := h.cache.Row(i)
	if err != nil {
		return err
	}
	for c, v := range delta {
		if v == 0 {
			continue
		}
		h.a.Row(i)[c] += v
		h.offset[c] += v * h.Bias
		f := h.f.Row(c)
		for j, k := range row {
			f[j] += v * k
		}
	}
	return nil
}

// trim adds samples to the support. While the support exceeds the budget, it removes the sample whose margin is
// largest after its own term is subtracted from f.
func (h *kernelHypothesis) trim(added []int) error {
	for _, i := range added {
		if !slices.Contains(h.support, i) {
			h.support = append(h.support, i)
		}
	}
	for len(h.support) > h.budget {
		best, maxScore := 0, math.Inf(-1)
		value := make([]float64, h.f.Rows)
		for s, i := range h.support {
			for c := range value {
				value[c] = h.f.Row(c)[i] + h.offset[c] - h.a.Row(i)[c]*(h.diag[i]+h.Bias)
			}
			if m := lead(value, h.Class[i]); m > maxScore {
				best, maxScore = s, m
			}
		}
		i := h.support[best]
		h.support = slices.Delete(h.support, best, best+1)
		remove := slices.Clone(h.a.Row(i))
		for c := range remove {
			remove[c] = -remove[c]
		}
		if err := h.add(i, remove); err != nil {
			return err
		}
		clear(h.a.Row(i))
	}
	return nil
}

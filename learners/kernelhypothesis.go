package learners

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers/svm"
)

// kernelHypothesis is f of all samples, kept up to date: a mistake costs a row
// of K, and a sample that is judged rightly nothing.
type kernelHypothesis struct {
	b       backend.Backend[float64]
	k       kernels.Kernel
	x       backend.Host[float64]
	cache   *svm.RowCache
	bias    float64               // R²
	f       backend.Host[float64] // C×n, without the bias
	a, late backend.Host[float64] // n×C; late is a with each change multiplied by its step, for the average
	offset  []float64             // b, and the same for its average
	run     *mistakes
	budget  int
	support []int // in f, where there is a budget
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
	x, err := gather(h.b, h.x, block)
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
		part := mistaken[:min(len(mistaken), h.cache.Capacity())]
		mistaken = mistaken[len(part):]
		rows := make([]int, len(part))
		for q, r := range part {
			rows[q] = block[r]
		}
		if err := h.cache.Fetch(rows); err != nil {
			return err
		}
		for q, r := range part {
			if err := h.add(rows[q], delta.Row(r)); err != nil {
				return err
			}
			for c, v := range delta.Row(r) {
				if late := v * float64(steps[q]); h.late.Data != nil {
					h.late.Row(rows[q])[c] += late
					h.offset[h.f.Rows+c] += late * h.bias
				}
			}
		}
		steps = steps[len(part):]
		if h.budget > 0 {
			if err := h.trim(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds δ k(x_i, ·).
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
		h.offset[c] += v * h.bias
		f := h.f.Row(c)
		for j, k := range row {
			f[j] += v * k
		}
	}
	return nil
}

// trim adds samples to the support, and lets the one leave whose margin without
// it is the largest, while there are more than the budget.
func (h *kernelHypothesis) trim(added []int) error {
	for _, i := range added {
		if !slices.Contains(h.support, i) {
			h.support = append(h.support, i)
		}
	}
	for len(h.support) > h.budget {
		best, most := 0, math.Inf(-1)
		value := make([]float64, h.f.Rows)
		for s, i := range h.support {
			for c := range value {
				value[c] = h.f.Row(c)[i] + h.offset[c] - h.a.Row(i)[c]*(h.cache.Diag[i]+h.bias)
			}
			if m := lead(value, h.run.index[i]); m > most {
				best, most = s, m
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

// lead is y f of two classes, and by what the value of the right class is above
// the next of more.
func lead(f []float64, class int) float64 {
	if len(f) == 1 {
		return float64(2*class-1) * f[0]
	}
	least := math.Inf(1)
	for c, v := range f {
		if c != class {
			least = min(least, f[class]-v)
		}
	}
	return least
}

// facts are those of the last hypothesis.
func (h *kernelHypothesis) facts(radius float64) []Fact {
	n := h.x.Rows
	f, square, support := backend.NewHost[float64](n, h.f.Rows), 0.0, 0
	for i := range n {
		used := false
		for c, a := range h.a.Row(i) {
			f.Row(i)[c] = h.f.Row(c)[i] + h.offset[c]
			square += a * h.f.Row(c)[i]
			used = used || a != 0
		}
		if used {
			support++
		}
	}
	facts := h.run.facts(f, math.Sqrt(max(square, 0)), radius)
	return append(facts, Fact{"support", support})
}

// model keeps the samples with a ≠ 0.
func (h *kernelHypothesis) model(kind PerceptronKind, facts []Fact) *KernelPerceptronModel {
	a, b := h.a, h.offset[:h.f.Rows]
	if kind == AveragedPerceptron {
		steps := h.run.averaged()
		for i := range a.Rows {
			for c := range a.Cols {
				a.Row(i)[c] -= h.late.Row(i)[c] / steps
			}
		}
		for c := range b {
			b[c] -= h.offset[h.f.Rows+c] / steps
		}
	}
	used := make([]float64, a.Rows) // as weights
	for i := range used {
		if slices.ContainsFunc(a.Row(i), func(v float64) bool { return v != 0 }) {
			used[i] = 1
		}
	}
	if !slices.Contains(used, 1) {
		used[0] = 1 // f = 0 is a model too: all changes have undone each other
	}
	m := &KernelPerceptronModel{index: dropZeroIndex(h.run.index, used)}
	m.kernelExpansion = kernelExpansion{model{kernelPerceptronName, facts}, h.k, dropZeroWeight(h.x, used), dropZeroWeight(a, used), b}
	m.classes = h.run.classes
	return m
}

package stream

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/rowkey"
)

// Sampled is a uniform random sample that represents all samples.
type Sampled struct {
	X     backend.Host[float64]
	roots []float64 // √(weight of the sample · number of samples that it represents)
}

// A Sampler stores the samples with the smallest priorities among all samples offered to it, and at most one sample
// for each priority.
type Sampler struct {
	x          backend.Host[float64]
	weights    []float64
	entries    []entry // a heap with the largest priority first
	priorities map[uint64]bool
}

// An entry describes a row of Sampler.x.
type entry struct {
	priority uint64
	index    int
}

// NewSampler returns a Sampler that stores at most size samples of d features.
func NewSampler(size, d int) *Sampler {
	return &Sampler{x: backend.NewHost[float64](size, d), weights: make([]float64, size), priorities: make(map[uint64]bool, size)}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *Sampler) Len() int { return len(s.entries) }

func (s *Sampler) Less(i, j int) bool { return s.entries[i].priority > s.entries[j].priority }

func (s *Sampler) Swap(i, j int) { s.entries[i], s.entries[j] = s.entries[j], s.entries[i] }

func (s *Sampler) Push(r any) { s.entries = append(s.entries, r.(entry)) }

func (s *Sampler) Pop() any { panic("solvers: a sampler cannot remove rows") }

// Offer adds a sample if its priority is among the smallest priorities, and if no stored sample has the same priority.
func (s *Sampler) Offer(priority uint64, row []float64, weight float64) {
	full := len(s.entries) == s.x.Rows
	if s.x.Rows == 0 || full && priority >= s.entries[0].priority || s.priorities[priority] {
		return
	}
	index := len(s.entries)
	if full {
		index = s.entries[0].index
		delete(s.priorities, s.entries[0].priority)
		s.entries[0].priority = priority
		heap.Fix(s, 0)
	} else {
		heap.Push(s, entry{priority, index})
	}
	s.priorities[priority] = true
	copy(s.x.Row(index), row)
	s.weights[index] = weight
}

// Sampled returns the sample drawn from n samples, in the order of the priorities. The Sampler must
// not be used afterwards.
func (s *Sampler) Sampled(n int) Sampled {
	slices.SortFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.priority, b.priority) })
	for i, r := range s.entries {
		from := r.index
		for from < i { // an earlier exchange has moved the row: follow it
			from = s.entries[from].index
		}
		a, b := s.x.Row(i), s.x.Row(from)
		for j := range a {
			a[j], b[j] = b[j], a[j]
		}
		s.weights[i], s.weights[from] = s.weights[from], s.weights[i]
	}
	count := len(s.entries)
	q := Sampled{X: s.x.View(0, 0, count, s.x.Cols), roots: make([]float64, count)}
	for i := range q.roots {
		q.roots[i] = math.Sqrt(s.weights[i] * float64(n) / float64(count))
	}
	return q
}

// SamplerOfRows returns a sampler for the rows of a pass, whose priorities depend on their positions. The function
// offer passes the rows of a part of the pass to the sampler.
func SamplerOfRows(size, d int, seed uint64) (s *Sampler, offer func(from int, x backend.Host[float64], w []float64)) {
	s = NewSampler(size, d)
	return s, func(from int, x backend.Host[float64], w []float64) {
		for i := range x.Rows {
			s.Offer(rowkey.Priority(uint64(from+i), seed), x.Row(i), w[i])
		}
	}
}

// DistinctRows returns the distinct rows of x in order, or x itself if all rows differ.
func DistinctRows(x backend.Host[float64]) backend.Host[float64] {
	return DistinctPoints(x, numeric.DensePoints(x))
}

// DistinctPoints returns the rows of x whose points differ from the points of all earlier rows.
func DistinctPoints(x backend.Host[float64], points numeric.Points) backend.Host[float64] {
	keys := make(map[string]bool, x.Rows)
	rows := make([]int, 0, x.Rows)
	var bits []byte
	for i := range x.Rows {
		bits = bits[:0]
		if points.Sparse != nil {
			columns, _ := points.Sparse.Row(i)
			for _, c := range columns {
				bits = binary.LittleEndian.AppendUint32(bits, uint32(c))
			}
		}
		for _, v := range points.Stored(i) {
			bits = binary.LittleEndian.AppendUint64(bits, math.Float64bits(v+0)) // adding 0 replaces −0 by 0
		}
		if !keys[string(bits)] {
			keys[string(bits)] = true
			rows = append(rows, i)
		}
	}
	if len(rows) == x.Rows {
		return x
	}
	return SelectRows(x, rows)
}

// SelectRows returns a copy of the given rows of x.
func SelectRows(x backend.Host[float64], rows []int) backend.Host[float64] {
	selected := backend.NewHost[float64](len(rows), x.Cols)
	for j, i := range rows {
		copy(selected.Row(j), x.Row(i))
	}
	return selected
}

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

// A Sampler stores, of all samples offered to it, the samples with the smallest priorities, with at
// most one sample for each priority.
type Sampler struct {
	x       backend.Host[float64]
	weights []float64
	drawn   []drawnRow // a heap with the largest priority first
	known   map[uint64]bool
}

// A drawnRow describes a row of Sampler.x.
type drawnRow struct {
	priority uint64
	at       int
}

// NewSampler returns a Sampler that stores at most size samples of d features.
func NewSampler(size, d int) *Sampler {
	return &Sampler{x: backend.NewHost[float64](size, d), weights: make([]float64, size), known: make(map[uint64]bool, size)}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *Sampler) Len() int { return len(s.drawn) }

func (s *Sampler) Less(i, j int) bool { return s.drawn[i].priority > s.drawn[j].priority }

func (s *Sampler) Swap(i, j int) { s.drawn[i], s.drawn[j] = s.drawn[j], s.drawn[i] }

func (s *Sampler) Push(r any) { s.drawn = append(s.drawn, r.(drawnRow)) }

func (s *Sampler) Pop() any { panic("solvers: a sampler cannot remove rows") }

// Offer adds a sample if its priority is among the smallest priorities, and if no stored sample has
// the same priority.
func (s *Sampler) Offer(priority uint64, row []float64, weight float64) {
	full := len(s.drawn) == s.x.Rows
	if s.x.Rows == 0 || full && priority >= s.drawn[0].priority || s.known[priority] {
		return
	}
	at := len(s.drawn)
	if full {
		at = s.drawn[0].at
		delete(s.known, s.drawn[0].priority)
		s.drawn[0].priority = priority
		heap.Fix(s, 0)
	} else {
		heap.Push(s, drawnRow{priority, at})
	}
	s.known[priority] = true
	copy(s.x.Row(at), row)
	s.weights[at] = weight
}

// Sampled returns the sample drawn from n samples, in the order of the priorities. The Sampler must
// not be used afterwards.
func (s *Sampler) Sampled(n int) Sampled {
	slices.SortFunc(s.drawn, func(a, b drawnRow) int { return cmp.Compare(a.priority, b.priority) })
	for i, r := range s.drawn {
		from := r.at
		for from < i { // an earlier exchange has moved the row: follow it
			from = s.drawn[from].at
		}
		a, b := s.x.Row(i), s.x.Row(from)
		for j := range a {
			a[j], b[j] = b[j], a[j]
		}
		s.weights[i], s.weights[from] = s.weights[from], s.weights[i]
	}
	filled := len(s.drawn)
	q := Sampled{X: s.x.View(0, 0, filled, s.x.Cols), roots: make([]float64, filled)}
	for i := range q.roots {
		q.roots[i] = math.Sqrt(s.weights[i] * float64(n) / float64(filled))
	}
	return q
}

// SamplerOfRows returns a sampler for the rows of a pass. A row's priority depends on its position,
// so that equal rows are distinct samples. offer passes the rows of a part of the pass to the
// sampler.
func SamplerOfRows(size, d int, seed uint64) (s *Sampler, offer func(from int, x backend.Host[float64], w []float64)) {
	s = NewSampler(size, d)
	return s, func(from int, x backend.Host[float64], w []float64) {
		for i := range x.Rows {
			s.Offer(rowkey.Priority(uint64(from+i), seed), x.Row(i), w[i])
		}
	}
}

// Different returns the distinct rows of x in order, or x itself if all rows differ. The rows of a
// sample have different keys, but an encoder may have mapped them to the same numbers. A center
// must occur only once.
func Different(x backend.Host[float64]) backend.Host[float64] {
	return DifferentPoints(x, numeric.DensePoints(x))
}

// DifferentPoints returns the rows of x whose points differ from all points before them.
func DifferentPoints(x backend.Host[float64], points numeric.Points) backend.Host[float64] {
	known := make(map[string]bool, x.Rows)
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
		if !known[string(bits)] {
			known[string(bits)] = true
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
	part := backend.NewHost[float64](len(rows), x.Cols)
	for j, i := range rows {
		copy(part.Row(j), x.Row(i))
	}
	return part
}

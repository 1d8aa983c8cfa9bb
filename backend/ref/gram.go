package ref

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	n, m, d := backend.CheckGram(dst, k, x, z)
	K, X, Z := own(q.dev, "Gram", dst), own(q.dev, "Gram", x), own(q.dev, "Gram", z)
	symmetric := X.same(Z)
	eval := pair(k, X, Z)
	progress := q.meter(backend.GramFlops(n, m, d, symmetric), n)
	for i := range n {
		if q.stopped() {
			return
		}
		end := m
		if symmetric {
			end = i + 1
		}
		for j := range end {
			K.set(i, j, eval(i, j))
		}
		progress.step()
	}
}

// GramMul keeps one row of k(X, Z), in float64.
func (q *queue[T]) GramMul(dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) {
	n, m, d, t := backend.CheckGramMul(dst, k, x, z, v)
	F, X, Z, V := own(q.dev, "GramMul", dst), own(q.dev, "GramMul", x), own(q.dev, "GramMul", z), own(q.dev, "GramMul", v)
	eval := pair(k, X, Z)
	row := make([]float64, m)
	progress := q.meter(backend.GramMulFlops(n, m, d, t), n)
	for i := range n {
		if q.stopped() {
			return
		}
		for j := range m {
			row[j] = eval(i, j)
		}
		for c := range t {
			var s float64
			for j, kij := range row {
				s += kij * V.at(j, c)
			}
			F.set(i, c, s)
		}
		progress.step()
	}
}

// pair returns (i, j) ↦ k(x_i, z_j) in float64: the statistics of the pair by
// their defining sums, and the kernel's program on them.
func pair[T backend.Float](k kernels.Kernel, x, z grid[T]) func(i, j int) float64 {
	program := kernels.Compile(k)
	stats := make([]float64, len(program.Stats))
	return func(i, j int) float64 {
		for s, stat := range program.Stats {
			stats[s] = statistic(stat, x, i, z, j)
		}
		return program.Run(stats)
	}
}

// statistic is stat.Eval for row i of x and row j of z. The scale multiplies
// the difference of two features, not each of them, so that its rounding is
// relative to the distance.
func statistic[T backend.Float](stat kernels.Stat, x grid[T], i int, z grid[T], j int) float64 {
	var sum float64
	for p := range x.cols {
		scale := 1.0
		if stat.Scale != nil {
			scale = stat.Scale[p]
		}
		switch a, b := x.at(i, p), z.at(j, p); stat.Kind {
		case kernels.Dot:
			sum += (a * scale) * (b * scale)
		case kernels.SqDist:
			diff := (a - b) * scale
			sum += diff * diff
		case kernels.L1:
			sum += math.Abs((a - b) * scale)
		}
	}
	return sum
}

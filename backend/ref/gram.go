package ref

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	n, m, d := check.Gram(dst, k, x, z)
	K, X, Z := gridOf(q.dev, "Gram", dst), gridOf(q.dev, "Gram", x), gridOf(q.dev, "Gram", z)
	symmetric := X.sameMatrix(Z)
	eval := kernelFunc(k, X, Z)
	progress := q.meter(flop.Gram(n, m, d, symmetric), n)
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

// GramMul computes and stores one row of k(X, Z) at a time, in float64.
func (q *queue[T]) GramMul(dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) {
	n, m, d, t := check.GramMul(dst, k, x, z, v)
	F, X, Z, V := gridOf(q.dev, "GramMul", dst), gridOf(q.dev, "GramMul", x), gridOf(q.dev, "GramMul", z), gridOf(q.dev, "GramMul", v)
	eval := kernelFunc(k, X, Z)
	row := make([]float64, m)
	progress := q.meter(flop.GramMul(n, m, d, t), n)
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

// kernelFunc returns the function (i, j) ↦ k(x_i, z_j) in float64, with statistics by their definitions.
func kernelFunc[T backend.Float](k kernels.Kernel, x, z grid[T]) func(i, j int) float64 {
	program := kernels.Compile(k)
	a, b := widened(x), widened(z)
	stats := make([]float64, len(program.Stats))
	pointStats := make([][]float64, len(program.Stats))
	for s, stat := range program.Stats {
		switch stat.Kind {
		case kernels.SelfX, kernels.RootX:
			pointStats[s] = ofPoints(stat, a)
		case kernels.SelfZ, kernels.RootZ:
			pointStats[s] = ofPoints(stat, b)
		}
	}
	return func(i, j int) float64 {
		for s, stat := range program.Stats {
			switch stat.Kind {
			case kernels.SelfX, kernels.RootX:
				stats[s] = pointStats[s][i]
			case kernels.SelfZ, kernels.RootZ:
				stats[s] = pointStats[s][j]
			default:
				stats[s] = stat.Eval(a[i], b[j])
			}
		}
		return program.Run(stats)
	}
}

// ofPoints evaluates a statistic of one point at all points.
func ofPoints(stat kernels.Stat, points [][]float64) []float64 {
	values := make([]float64, len(points))
	for i, x := range points {
		values[i] = stat.Eval(x, x)
	}
	return values
}

// widened returns the rows of x in float64.
func widened[T backend.Float](x grid[T]) [][]float64 {
	rows := make([][]float64, x.rows)
	for i := range rows {
		rows[i] = make([]float64, x.cols)
		for p := range rows[i] {
			rows[i][p] = x.at(i, p)
		}
	}
	return rows
}

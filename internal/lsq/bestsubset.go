package lsq

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"gonum.org/v1/gonum/blas/blas64"
)

// bestSubsets is the state of the search for the set S of columns of A that minimizes
//
//	min over w of ‖z − A_S w‖² + penalty·|S|,  |S| ≤ maxSize
//
// for a vector z, by the branch and bound of Gatu and Kontoghiorghes (2006), Branch-and-bound algorithms for
// computing the best-subset regression models. Each node of the tree has fixed columns and free columns, and
// stores the triangle R of the QR factorization of its free columns, and Qᵀz. Its children remove free columns.
// The search prunes a child if the residual of all its columns, plus the penalty of its smallest subset, is not
// below the best objective so far. It omits subsets with a linearly dependent set of leading free columns.
type bestSubsets struct {
	ctx     context.Context
	maxSize int     // maximum size of S
	penalty float64 // penalty for each column
	tiny    float64 // diagonal elements of R whose absolute value is at most tiny are treated as 0
	slack   float64 // decreases of the objective by at most this amount are treated as rounding errors
	work    int     // number of operations that the search may still perform
	nodes   int

	bestObjective float64 // the smallest objective so far
	chosen        []int
	triangles     [][]float64 // triangles[n] is memory for the triangle of a node with n free columns
}

// subsetColumns is the maximum number of columns that search accepts. subsetWork is the maximum number of
// operations of a search, which take one or two seconds and suffice for all subsets of 24 columns.
const (
	subsetColumns = 64
	subsetWork    = 1 << 28
)

// search returns the indices of the best columns of a for the target z in ascending order, their
// objective, and whether the search was complete. a is k×d, and its columns have the norm 1 or 0.
func search(t *run.Task, a backend.Host[float64], z []float64, maxSize int, penalty float64, samples int) (chosen []int, best float64, complete bool, err error) {
	k, d := a.Rows, a.Cols
	s := &bestSubsets{
		ctx: t.Ctx, maxSize: maxSize, penalty: penalty, work: subsetWork,
		tiny: float64(max(samples, d)) * epsilon, triangles: make([][]float64, d+1),
	}
	order := s.forward(a, z)
	// ordered holds the columns of a in the order of the forward selection and z as the last column. The function
	// triangular reduces it to R and Qᵀz.
	ordered := backend.NewHost[float64](max(k, d), d+1)
	for i := range k {
		row := ordered.Row(i)
		for j, p := range order {
			row[j] = a.Row(i)[p]
		}
		row[d] = z[i]
	}
	r, err := triangular(t, ordered, d, ordered.Rows)
	if err != nil {
		return nil, 0, false, err
	}
	triangle := r.Data[:d*(d+1)]
	total, lost := 0.0, 0.0
	for i := range r.Rows {
		v := r.Row(i)[d]
		total += v * v
		if i >= d {
			lost += v * v
		}
	}
	s.slack = 16 * epsilon * total
	s.bestObjective = total
	err = s.node(triangle, nil, order, lost)
	slices.Sort(s.chosen)
	return s.chosen, s.bestObjective, s.work > 0, err
}

// searchSubsets searches for the best subset for each output of c. It stores the weights in m, and
// returns the objective of each output and whether its search was complete.
func (c *Samples) searchSubsets(t *run.Task, l L0, m *L0Fit) (best []float64, complete []bool, err error) {
	norms, err := c.scales(t.Ctx)
	if err != nil {
		return nil, nil, err
	}
	ynorms, err := c.targetScales(t.Ctx)
	if err != nil {
		return nil, nil, err
	}
	a, z, err := c.triangle(t, norms, ynorms)
	if err != nil {
		return nil, nil, err
	}
	best, complete = make([]float64, c.t), make([]bool, c.t)
	for j, size := range ynorms {
		maxSize, penalty := l.Support, 0.0
		if maxSize == 0 {
			maxSize, penalty = c.d, l.Lambda/size/size
		}
		var chosen []int
		if chosen, best[j], complete[j], err = search(t, a, z.Row(j), maxSize, penalty, c.n); err != nil {
			return nil, nil, err
		}
		best[j] *= size * size
		if len(chosen) == 0 {
			continue
		}
		columns := backend.NewHost[float64](a.Rows, len(chosen)+1)
		for i := range a.Rows {
			row := columns.Row(i)
			for s, p := range chosen {
				row[s] = a.Row(i)[p]
			}
			row[len(chosen)] = z.Row(j)[i]
		}
		r, err := triangular(t, columns, len(chosen), len(chosen))
		if err != nil {
			return nil, nil, err
		}
		w := make([]float64, len(chosen))
		for s := range w {
			w[s] = r.Row(s)[len(chosen)]
		}
		solveUpper(r, w)
		for s, p := range chosen {
			m.Coef.Row(p)[j] = w[s] / norms[p] * size
		}
		if err := t.Step("search", float64(j+1)/float64(c.t)); err != nil {
			return nil, nil, err
		}
	}
	return best, complete, nil
}

// forward returns the columns in the order in which forward selection chooses them.
func (s *bestSubsets) forward(a backend.Host[float64], z []float64) []int {
	columns := numeric.Transpose(a)
	residual := slices.Clone(z)
	var order []int
	for range a.Cols {
		next, gain := -1, -1.0
		for p := range columns.Rows {
			x := columns.Row(p)
			if slices.Contains(order, p) {
				continue
			}
			g := 0.0
			if size := numeric.Norm2(x); size > s.tiny {
				g = numeric.Dot(x, residual) / size
			}
			if g*g > gain {
				next, gain = p, g*g
			}
		}
		order = append(order, next)
		unit := columns.Row(next)
		size := numeric.Norm2(unit)
		if size <= s.tiny {
			continue
		}
		scale(1/size, unit)
		numeric.Axpy(-numeric.Dot(unit, residual), unit, residual)
		for p := range columns.Rows {
			if x := columns.Row(p); !slices.Contains(order, p) {
				numeric.Axpy(-numeric.Dot(unit, x), unit, x)
			}
		}
	}
	return order
}

// node examines the subsets that contain all columns of fixed and at least one column of free. r holds the q×q
// triangle R of the columns of free, and Qᵀz in column q+1. lost is the squared norm of the component of z that is
// orthogonal to all these columns.
func (s *bestSubsets) node(r []float64, fixed, free []int, lost float64) error {
	s.nodes++
	if s.nodes%1024 == 0 && s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	q := len(free)
	stride := q + 1
	independent := 0 // number of leading columns of free that are linearly independent
	for independent < q && math.Abs(r[independent*stride+independent]) > s.tiny {
		independent++
	}
	for i := 1; i <= independent && len(fixed)+i <= s.maxSize; i++ {
		size := len(fixed) + i
		if now := residualOf(r, q, i, lost) + s.penalty*float64(size); now < s.bestObjective-s.slack {
			s.bestObjective = now
			s.chosen = append(append(s.chosen[:0], fixed...), free[:i]...)
		}
	}
	// Remove the last columns first: their subtrees are small and keep the columns that were selected first.
	for j := min(independent, q-2); j >= 0; j-- {
		fixedColumns := len(fixed) + j // the loop above has examined these columns, and the child's subsets have more
		if fixedColumns >= s.maxSize || lost+s.penalty*float64(fixedColumns+1) >= s.bestObjective-s.slack || s.work <= 0 {
			continue
		}
		s.work -= (q - j) * (q - j)
		child, increase := s.removeColumn(r, q, j)
		if lost+increase+s.penalty*float64(fixedColumns+1) >= s.bestObjective-s.slack {
			continue
		}
		if err := s.node(child, append(fixed[:len(fixed):len(fixed)], free[:j]...), free[j+1:], lost+increase); err != nil {
			return err
		}
	}
	return nil
}

// residualOf returns the squared residual of z for the fixed columns and the first i free columns.
func residualOf(r []float64, q, i int, lost float64) float64 {
	for ; i < q; i++ {
		lost += r[i*(q+1)+q] * r[i*(q+1)+q]
	}
	return lost
}

// removeColumn removes column j from the columns of the triangular factor r. It returns the part of the new factor for
// the columns after column j, and the amount by which the squared residual increases.
func (s *bestSubsets) removeColumn(r []float64, q, j int) (child []float64, lost float64) {
	n := q - j - 1
	if s.triangles[n] == nil {
		s.triangles[n] = make([]float64, (n+1)*(n+1))
	}
	child = s.triangles[n]
	stride := n + 1
	for i := range n + 1 { // removing column j leaves an upper Hessenberg matrix
		copy(child[i*stride:(i+1)*stride], r[(j+i)*(q+1)+j+1:(j+i+1)*(q+1)])
	}
	for i := range n {
		c, sn, length, _ := blas64.Rotg(child[i*stride+i], child[(i+1)*stride+i])
		child[i*stride+i], child[(i+1)*stride+i] = length, 0
		for p := i + 1; p < stride; p++ {
			x, y := child[i*stride+p], child[(i+1)*stride+p]
			child[i*stride+p], child[(i+1)*stride+p] = c*x+sn*y, c*y-sn*x
		}
	}
	residual := child[n*stride+n]
	return child, residual * residual
}

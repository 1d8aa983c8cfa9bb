package lowrank

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// rpCholesky is randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2024), accelerated by rejection (Epperly,
// Tropp, Webber 2024, "Embrace rejection", algorithm 2.2). A round draws several candidates with probabilities
// proportional to the residual diagonal, and the function reject accepts some of them, so that the pivots have the
// same distribution as if they were drawn one at a time. rpCholesky has the type maker.
func rpCholesky[T backend.Float](task Task[T], f backend.Matrix[T]) (approximation, error) {
	p, err := newPivoting(task, f)
	if err == nil {
		err = p.random()
	}
	if err != nil {
		return approximation{}, err
	}
	return approximation{rank: len(p.pivots), trace: p.trace}, nil
}

// RandomPivots computes F of a task by rpCholesky and returns the pivots, which are rows of X in the order of the
// elimination.
func RandomPivots[T backend.Float](task Task[T], f backend.Matrix[T]) ([]int, error) {
	p, err := newPivoting(task, f)
	if err != nil {
		return nil, err
	}
	err = p.random()
	return p.pivots, err
}

// GreedyPivots is like RandomPivots, but takes the largest diagonal element as the next pivot.
func GreedyPivots[T backend.Float](task Task[T], f backend.Matrix[T]) ([]int, error) {
	p, err := newPivoting(task, f)
	if err != nil {
		return nil, err
	}
	err = p.greedy()
	return p.pivots, err
}

func (p *pivoting[T]) random() error {
	r := rand.New(rand.NewPCG(p.Seed, 0x52504368))
	for p.canExtend() {
		s := draw(r, p.diag, p.width())
		h, err := p.residual(s)
		if err != nil {
			return err
		}
		significant := false
		for j := range s {
			significant = significant || float64(h.Row(j)[j]) > p.floor
		}
		if !significant { // only rounding errors remain at the candidates: exclude them from now on
			for _, i := range s {
				p.diag[i] = 0
			}
			p.trace = numeric.Trace(p.diag)
			continue
		}
		accepted, l := reject(r, h, p.diag, s, p.rank-len(p.pivots), p.floor)
		if err := p.extend(pick(s, accepted), l); err != nil {
			return err
		}
	}
	return nil
}

// draw returns count indices of elements of weight, drawn independently with probabilities
// proportional to the elements. The sum of the elements must be > 0.
func draw(r *rand.Rand, weight []float64, count int) []int {
	sums := make([]float64, len(weight))
	total, last := 0.0, 0
	for i, w := range weight {
		total += w
		sums[i] = total
		if w > 0 {
			last = i
		}
	}
	s := make([]int, count)
	for j := range s {
		// Choose the first element whose cumulative sum exceeds target. The weight of this element is not 0.
		target := r.Float64() * total
		i, found := slices.BinarySearch(sums, target)
		if found {
			for i < last && sums[i] <= target {
				i++
			}
		}
		s[j] = min(i, last)
	}
	return s
}

// reject processes the candidates s in order, with h = (K − FFᵀ)_SS for the rows S in s. It accepts candidate j
// with probability r/p and then eliminates j, where p is diag[s[j]] and r is the residual after the pivots
// accepted so far. It returns the indices in s of at most maxCount accepted candidates, and the Cholesky factor of
// h at these candidates.
func reject[T backend.Float](r *rand.Rand, h backend.Host[T], diag []float64, s []int, maxCount int, floor float64) (accepted []int, l backend.Host[T]) {
	e := newElimination(h)
	for j := range s {
		u := r.Float64() // each candidate takes one random number, even if it is not accepted
		residual := e.residual(j)
		if len(accepted) < maxCount && residual > floor && u*diag[s[j]] < residual {
			e.eliminate(j, j+1)
			accepted = append(accepted, j)
		}
	}
	return accepted, factorAt[T](e, accepted)
}

// An elimination is a Cholesky factorization of a small matrix on the host that chooses its pivots step by step.
type elimination struct {
	a     [][]float64 // the Schur complement; only i ≥ j is stored
	steps [][]float64 // columns of the factor, in the order of the pivots
}

func newElimination[T backend.Float](h backend.Host[T]) *elimination {
	e := &elimination{a: make([][]float64, h.Rows)}
	for i := range e.a {
		e.a[i] = make([]float64, i+1)
		for j, v := range h.Row(i)[:i+1] {
			e.a[i][j] = float64(v)
		}
	}
	return e
}

// residual returns diagonal element j of the Schur complement.
func (e *elimination) residual(j int) float64 { return e.a[j][j] }

// at returns element (i, j) of the Schur complement.
func (e *elimination) at(i, j int) float64 {
	if i < j {
		i, j = j, i
	}
	return e.a[i][j]
}

// eliminate makes j the next pivot. It updates the Schur complement from row `first` on.
func (e *elimination) eliminate(j, first int) {
	root := math.Sqrt(e.a[j][j])
	column := make([]float64, len(e.a))
	column[j] = root
	for i := first; i < len(column); i++ {
		column[i] = e.at(i, j) / root
	}
	for i := first; i < len(column); i++ {
		row, c := e.a[i][first:], column[i]
		for p, v := range column[first : i+1] {
			row[p] -= c * v
		}
	}
	e.steps = append(e.steps, column)
}

// factorAt returns the lower triangular factor of the submatrix of the pivots, which must be in the
// order of the elimination.
func factorAt[T backend.Float](e *elimination, pivots []int) backend.Host[T] {
	l := backend.NewHost[T](len(pivots), len(pivots))
	for p, column := range e.steps {
		for q := p; q < len(pivots); q++ {
			l.Row(q)[p] = T(column[pivots[q]])
		}
	}
	return l
}

// pick returns the elements s[i] for the given indices i.
func pick(s, indices []int) []int {
	picked := make([]int, len(indices))
	for p, j := range indices {
		picked[p] = s[j]
	}
	return picked
}

// greedy takes the row with the largest element of the residual diagonal as the next pivot, and the first such row
// if there are several (Fine and Scheinberg 2001; Harbrecht, Peters and Schneider 2012).
//
// The rows with the largest residuals are the candidates of a round. Residuals only decrease. As long as the
// largest residual of a candidate is at least the largest residual of the other rows at the beginning of the
// round, the pivots follow from the small matrix of the candidates, and F is updated for all of them at once.
func (p *pivoting[T]) greedy() error {
	for p.canExtend() {
		s, largestOther := largestElements(p.diag, p.width())
		h, err := p.residual(s)
		if err != nil {
			return err
		}
		e := newElimination(h)
		var accepted []int
		for len(accepted) < p.rank-len(p.pivots) {
			best := -1
			for j := range s {
				if best < 0 || e.residual(j) > e.residual(best) || e.residual(j) == e.residual(best) && s[j] < s[best] {
					best = j
				}
			}
			residual := e.residual(best)
			// The first pivot of a round is the row with the largest residual, even if rounding errors of h
			// contradict this.
			if residual <= p.floor || len(accepted) > 0 && residual < largestOther {
				break
			}
			e.eliminate(best, 0)
			e.a[best][best] = 0
			accepted = append(accepted, best)
		}
		if len(accepted) == 0 {
			return nil // only rounding errors remain
		}
		if err := p.extend(pick(s, accepted), factorAt[T](e, accepted)); err != nil {
			return err
		}
	}
	return nil
}

// largestElements returns the indices of the count largest elements of v in decreasing order, and the largest
// other element, or 0 if there is none. The indices of equal elements are in ascending order.
func largestElements(v []float64, count int) (indices []int, largestOther float64) {
	for i, x := range v {
		if len(indices) == count && x <= v[indices[count-1]] {
			largestOther = max(largestOther, x)
			continue
		}
		if len(indices) == count {
			largestOther = max(largestOther, v[indices[count-1]])
			indices = indices[:count-1]
		}
		pos := len(indices)
		for pos > 0 && v[indices[pos-1]] < x {
			pos--
		}
		indices = append(indices, 0)
		copy(indices[pos+1:], indices[pos:])
		indices[pos] = i
	}
	return indices, largestOther
}

package lowrank

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// rpCholesky is randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2024),
// accelerated by rejection (Epperly, Tropp, Webber 2024, "Embrace rejection",
// algorithm 2.2): candidates are drawn together from what is left of the
// diagonal, and each is accepted with the probability that it would have had
// after those before it. The pivots have the law of the method that takes one
// at a time; the work on F is done for all accepted ones at once.
//
// It is a maker.
func rpCholesky[T backend.Float](task Task[T], f backend.Matrix[T]) (approximation, error) {
	p, err := newPivoting(task, f)
	if err == nil {
		err = p.random()
	}
	if err != nil {
		return approximation{}, err
	}
	return approximation{rank: len(p.pivots), trace: p.left}, nil
}

// RandomPivots makes F of a task by rpCholesky, and returns its pivots, rows of X in the order
// of their choice.
func RandomPivots[T backend.Float](task Task[T], f backend.Matrix[T]) ([]int, error) {
	p, err := newPivoting(task, f)
	if err != nil {
		return nil, err
	}
	err = p.random()
	return p.pivots, err
}

// GreedyPivots is randomPivots with the largest pivot first.
func GreedyPivots[T backend.Float](task Task[T], f backend.Matrix[T]) ([]int, error) {
	p, err := newPivoting(task, f)
	if err != nil {
		return nil, err
	}
	err = p.greedy()
	return p.pivots, err
}

// random chooses pivots by chance.
func (p *pivoting[T]) random() error {
	r := rand.New(rand.NewPCG(p.Seed, 0x52504368))
	for p.more() {
		s := draw(r, p.diag, p.width())
		h, err := p.remain(s)
		if err != nil {
			return err
		}
		some := false
		for j := range s {
			some = some || float64(h.Row(j)[j]) > p.floor
		}
		if !some { // their Schur complement is rounding: they are no candidates any more
			for _, i := range s {
				p.diag[i] = 0
			}
			p.left = numeric.Trace(p.diag)
			continue
		}
		accepted, l := reject(r, h, p.diag, s, p.rank-len(p.pivots), p.floor)
		if err := p.extend(pick(s, accepted), l); err != nil {
			return err
		}
	}
	return nil
}

// draw returns count numbers of elements of weight, independent of each other,
// with probabilities proportional to it. The sum of the weights is > 0.
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
		// The first element whose sum is above the point; never one of weight 0.
		at := r.Float64() * total
		i, found := slices.BinarySearch(sums, at)
		if found {
			for i < last && sums[i] <= at {
				i++
			}
		}
		s[j] = min(i, last)
	}
	return s
}

// reject goes through the candidates s in order, with h = (K − FFᵀ)_SS. It
// accepts candidate j with the probability (what is left of its diagonal
// element after the pivots accepted before it) / (what the proposal said), and
// eliminates it then. It returns the numbers in s of those accepted, at most
// most, and the factor of h at them.
func reject[T backend.Float](r *rand.Rand, h backend.Host[T], diag []float64, s []int, largest int, floor float64) (accepted []int, l backend.Host[T]) {
	e := newElimination(h)
	for j := range s {
		u := r.Float64() // one for each candidate, accepted or not
		left := e.left(j)
		if len(accepted) < largest && left > floor && u*diag[s[j]] < left {
			e.eliminate(j, j+1)
			accepted = append(accepted, j)
		}
	}
	return accepted, factorAt[T](e, accepted)
}

// An elimination is a Cholesky factorization of a small matrix on the host
// whose pivots are chosen on the way.
type elimination struct {
	a     [][]float64 // what is left; only i ≥ j is kept
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

// left is what is left of diagonal element j.
func (e *elimination) left(j int) float64 { return e.a[j][j] }

// at is element (i, j) of what is left.
func (e *elimination) at(i, j int) float64 {
	if i < j {
		i, j = j, i
	}
	return e.a[i][j]
}

// eliminate makes j the next pivot. Of rows before first nothing is wanted any more
// but the factor's elements at pivots that were chosen before.
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

// factorAt returns the lower triangular factor of the matrix at the pivots,
// which are given in the order in which they were eliminated.
func factorAt[T backend.Float](e *elimination, pivots []int) backend.Host[T] {
	l := backend.NewHost[T](len(pivots), len(pivots))
	for p, column := range e.steps {
		for q := p; q < len(pivots); q++ {
			l.Row(q)[p] = T(column[pivots[q]])
		}
	}
	return l
}

// pick returns s at the given places.
func pick(s, places []int) []int {
	picked := make([]int, len(places))
	for p, j := range places {
		picked[p] = s[j]
	}
	return picked
}

// greedy takes as each pivot the row with the largest element of the residual's
// diagonal, the first of several (Fine and Scheinberg 2001; Harbrecht, Peters and
// Schneider 2012). It keeps the largest error of the diagonal small, but follows
// outliers where random does not.
//
// The rows of which most is left are candidates together. What is left only
// falls, so that the largest among the candidates is the largest of all as long
// as it is not below the best row outside; until then pivots are found in the
// small matrix, and the work on F is done for all of them at once. The pivots
// are those of the method that looks at all rows each time.
func (p *pivoting[T]) greedy() error {
	for p.more() {
		s, outside := largest(p.diag, p.width())
		h, err := p.remain(s)
		if err != nil {
			return err
		}
		e := newElimination(h)
		var chosen []int
		for len(chosen) < p.rank-len(p.pivots) {
			best := -1
			for j := range s {
				if best < 0 || e.left(j) > e.left(best) || e.left(j) == e.left(best) && s[j] < s[best] {
					best = j
				}
			}
			left := e.left(best)
			// The first is the largest of all, whatever rounding h has.
			if left <= p.floor || len(chosen) > 0 && left < outside {
				break
			}
			e.eliminate(best, 0)
			e.a[best][best] = 0
			chosen = append(chosen, best)
		}
		if len(chosen) == 0 {
			return nil // rounding is all that is left
		}
		if err := p.extend(pick(s, chosen), factorAt[T](e, chosen)); err != nil {
			return err
		}
	}
	return nil
}

// largest returns the numbers of the count largest elements of v, the largest
// first and the first of equal ones first, and the largest element that is not
// among them (0 when there is none).
func largest(v []float64, count int) (best []int, outside float64) {
	for i, x := range v {
		if len(best) == count && x <= v[best[count-1]] {
			outside = max(outside, x)
			continue
		}
		if len(best) == count {
			outside = max(outside, v[best[count-1]])
			best = best[:count-1]
		}
		at := len(best)
		for at > 0 && v[best[at-1]] < x {
			at--
		}
		best = append(best, 0)
		copy(best[at+1:], best[at:])
		best[at] = i
	}
	return best, outside
}

package solvers

import "github.com/mercer-go/mercer/backend"

// greedyCholesky takes as each pivot the row of which most is left on the
// diagonal, the first of several (Fine and Scheinberg 2001; Harbrecht, Peters,
// Schneider 2012). It keeps the largest error of the diagonal small, but follows
// outliers where rpCholesky does not.
//
// It is a lowRankMaker.
func greedyCholesky[T backend.Float](task lowRankTask[T], f backend.Matrix[T]) (rank int, left float64, err error) {
	p, err := newPivoting(task, f)
	if err == nil {
		err = p.greedy()
	}
	if err != nil {
		return 0, 0, err
	}
	return len(p.pivots), p.left, nil
}

// greedy chooses the largest pivots.
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

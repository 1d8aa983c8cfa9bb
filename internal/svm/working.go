package svm

import (
	"math"

	"github.com/mercer-go/mercer/internal/run"
)

// working is a working set of SMO with q variables and their block of K.
type working struct {
	k     []float64 // the q×q block of K
	diag  []float64
	v     []float64
	alpha []float64
	moved []float64 // total change of s_i α_i
	sign  []float64
	c     []float64
	rise  []float64 // as in smo
	fall  []float64
	q     int

	separate bool // whether a step changes two variables with equal s_i
}

// curvature replaces a curvature that is not positive, as in LIBSVM. A pair of equal rows has such a curvature.
const curvature = 1e-12

func newWorking(s *smo, set []int) *working {
	q, rows := len(set), make([]int, len(set))
	for a, i := range set {
		rows[a] = s.row(i)
	}
	vectors := grow(&s.mem.vectors, 8*q)
	vector := func(k int) []float64 { return vectors[k*q : (k+1)*q] }
	w := &working{
		k: grow(&s.mem.block, q*q), diag: vector(0), v: vector(1), alpha: vector(2), moved: vector(3), sign: vector(4), c: vector(5),
		rise: vector(6), fall: vector(7), q: q,
	}
	clear(w.moved)
	run.Parallel(q, func(first, last int) {
		for a := first; a < last; a++ {
			row := s.cache.rows.Row(s.cache.slot[rows[a]])
			to := w.k[a*q : (a+1)*q][:len(rows)]
			for b, r := range rows {
				to[b] = row[r]
			}
		}
	})
	for a, i := range set {
		w.diag[a] = s.cache.Diag[rows[a]]
		w.v[a], w.alpha[a], w.sign[a], w.c[a], w.rise[a], w.fall[a] = s.v[i], s.alpha[i], s.sign[i], s.c[i], s.rise[i], s.fall[i]
	}
	return w
}

// minimize takes at most limit steps, until the violation within the set is at most tol. It returns
// the number of steps.
func (w *working) minimize(tol float64, limit int) int {
	if w.separate {
		return w.minimizeSeparately(tol, limit)
	}
	i, maxV := -1, math.Inf(-1)
	for a, v := range w.v {
		if v += w.rise[a]; v > maxV {
			i, maxV = a, v
		}
	}
	for step := range limit {
		if i < 0 {
			return step
		}
		j, minV := w.partner(i)
		if j < 0 || w.v[i]-minV <= tol {
			return step
		}
		i = w.move(i, j)
	}
	return limit
}

// partner returns the variable j for which a step of the pair (i, j) decreases the objective most.
// It also returns the smallest v of the variables that may decrease.
func (w *working) partner(i int) (int, float64) {
	ki, vi, kii := w.k[i*w.q:][:w.q], w.v[i], w.diag[i]
	j, best, minV := -1, 0.0, math.Inf(1)
	diag, fall := w.diag[:w.q], w.fall[:w.q]
	for b, v := range w.v[:w.q] {
		v += fall[b]
		if v < minV {
			minV = v
		}
		d := vi - v
		if d <= 0 {
			continue
		}
		a := kii + diag[b] - 2*ki[b]
		if a <= 0 {
			a = curvature
		}
		// The condition is d²/a > best, without a division.
		if d*d > best*a {
			j, best = b, d*d/a
		}
	}
	return j, minV
}

// move takes the optimal step of the pair within the bounds. It returns the variable with the
// largest v of the variables that may increase, or −1 if none may increase.
func (w *working) move(i, j int) int {
	ki, kj := w.k[i*w.q:][:w.q], w.k[j*w.q:][:w.q]
	a := w.diag[i] + w.diag[j] - 2*ki[j]
	if a <= 0 {
		a = curvature
	}
	t := (w.v[i] - w.v[j]) / a
	roomI, roomJ := w.distance(i, true), w.distance(j, false)
	t = min(t, roomI, roomJ)
	w.shift(i, t, t == roomI)
	w.shift(j, -t, t == roomJ)
	next, maxV := -1, math.Inf(-1)
	rise := w.rise[:w.q]
	for b := range w.v[:w.q] {
		v := w.v[b] - t*(ki[b]-kj[b])
		w.v[b] = v
		if v += rise[b]; v > maxV {
			next, maxV = b, v
		}
	}
	return next
}

// distance returns the largest possible increase of s_i α_i if rise is true, or else the largest decrease.
func (w *working) distance(i int, rise bool) float64 {
	if rise == (w.sign[i] > 0) {
		return w.c[i] - w.alpha[i]
	}
	return w.alpha[i]
}

// shift adds t to s_i α_i. If bound is true, it sets α_i exactly to the bound.
func (w *working) shift(i int, t float64, bound bool) {
	w.moved[i] += t
	increase := (t > 0) == (w.sign[i] > 0) // α increases
	switch {
	case bound && increase:
		w.alpha[i] = w.c[i]
	case bound:
		w.alpha[i] = 0
	default:
		w.alpha[i] = min(max(w.alpha[i]+w.sign[i]*t, 0), w.c[i])
	}
	increases, decreases := w.alpha[i] < w.c[i], w.alpha[i] > 0
	if w.sign[i] < 0 {
		increases, decreases = decreases, increases
	}
	w.rise[i], w.fall[i] = offsets(increases, decreases)
}

// offsets returns the terms −∞ or ∞ that exclude a variable from the maximum or the minimum of v, otherwise 0.
func offsets(mayRise, mayFall bool) (rise, fall float64) {
	if !mayRise {
		rise = math.Inf(-1)
	}
	if !mayFall {
		fall = math.Inf(1)
	}
	return rise, fall
}

package solvers

import (
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// A series is a kernel as a power series in a product of features,
//
//	k(x, z) = g(u) g(v) Σ_p a_p (uᵀv)^p,  a_p ≥ 0,
//
// where u and v are x and z, less a center and scaled: of a Gaussian kernel
// g(u) = exp(−‖u‖²/2) and a_p = 1/p!; of (xᵀz + c)^D, g = 1, a_p = C(D, p) c^(D−p),
// and u is x. The terms up to the power q are products of the vectors φ(u) of the
// C(d+q, q) monomials of u (Cotter, Keshet and Srebro 2011).
type series struct {
	weight   float64   // of the whole
	scale    []float64 // of each feature; nil: of all 1
	gaussian bool
	power    int     // D; 0 of a Gaussian kernel
	constant float64 // c
}

// taylor is the name of the preconditioner.
const taylor = "taylor"

// largestPower is the maximum power of the monomials.
const largestPower = 32

// newSeries returns the series of k for points of d features, or why there is none.
func newSeries(k kernels.Kernel, d int) (series, error) {
	s := series{weight: 1}
	for {
		scaled, ok := k.(kernels.Scaled)
		if !ok {
			break
		}
		s.weight *= scaled.Weight
		k = scaled.Kernel
	}
	switch k := k.(type) {
	case kernels.Gaussian:
		s.gaussian, s.scale = true, make([]float64, d)
		for j := range s.scale {
			s.scale[j] = 1 / k.Sigma
			if k.Sigmas != nil {
				s.scale[j] = 1 / k.Sigmas[j]
			}
		}
	case kernels.Polynomial:
		s.power, s.constant = k.Degree, k.C
		if k.Degree < 2 || k.Degree > largestPower || k.C <= 0 {
			return s, errNoSeries
		}
	default:
		return s, errNoSeries
	}
	if first := s.first(); !(first > 0) || math.IsInf(first, 1) || math.IsInf(s.ratio(0), 1) {
		return s, fmt.Errorf("the first term of its power series is %v", first)
	}
	return s, nil
}

var errNoSeries = fmt.Errorf("it takes a Gaussian kernel, or a polynomial one of degree 2 to %d with a positive constant term", largestPower)

// first is a_0 with the weight of the whole.
func (s series) first() float64 {
	if s.gaussian {
		return s.weight
	}
	return s.weight * math.Pow(s.constant, float64(s.power))
}

// ratio is a_{p+1} / a_p.
func (s series) ratio(p int) float64 {
	if s.gaussian {
		return 1 / float64(p+1)
	}
	return float64(s.power-p) / (float64(p+1) * s.constant)
}

// terms is the number of monomials up to the power q, or largest+1 where they are more
// than largest.
func (s series) terms(d, q, largest int) int {
	count := 1.0
	for p := range q {
		count *= float64(d+p+1) / float64(p+1)
		if !(count < float64(largest)+0.5) {
			return largest + 1
		}
	}
	return int(math.Round(count))
}

// most is the maximum power up to which there are no more than rank monomials.
func (s series) most(d, rank int) int {
	q := 0
	for q < s.last() && s.terms(d, q+1, rank) <= rank {
		q++
	}
	return q
}

// last is the maximum power of the monomials, whatever the rank.
func (s series) last() int {
	if s.gaussian {
		return largestPower
	}
	return s.power
}

// place sets u from x and returns ‖u‖².
func (s series) place(u, x, center []float64) (size float64) {
	for j, v := range x {
		if s.gaussian {
			v = (v - center[j]) * s.scale[j]
		}
		u[j] = v
		size += v * v
	}
	return size
}

// front is g(u) for ‖u‖² = size.
func (s series) front(size float64) float64 {
	if s.gaussian {
		return math.Exp(-size / 2)
	}
	return 1
}

// left is what the terms after the power q are at two equal points, ‖u‖² = size.
func (s series) left(size float64, q int) float64 {
	if s.gaussian {
		term := math.Exp(-size)
		if term == 0 {
			return s.weight
		}
		head := term
		for p := range q {
			term *= size / float64(p+1)
			head += term
		}
		if head < 0.5 {
			return s.weight * (1 - head)
		}
		sum := 0.0
		for p := q + 1; term > epsilon/8*sum; p++ { // they fall, since size < q+1 or nearly
			term *= size / float64(p)
			sum += term
		}
		return s.weight * sum
	}
	term, sum := s.first(), 0.0
	for p := range s.power {
		term *= s.ratio(p) * size
		if p >= q {
			sum += term
		}
	}
	return sum
}

// after sets to[i] to what the terms after the power powers[i] are, for uᵀv = dot and
// the product of g(u) and g(v) being front; value is k. The powers rise.
func (s series) after(to []float64, powers []int, dot, front, value float64) {
	term := s.first() * front
	rest, p := value, 0
	for i, q := range powers {
		for ; p <= q; p++ {
			rest -= term
			term *= s.ratio(p) * dot
		}
		to[i] = rest
	}
}

// value is k for uᵀv = dot and ‖u‖² + ‖v‖² = sizes.
func (s series) value(dot, sizes float64) float64 {
	if s.gaussian {
		return s.weight * math.Exp(dot-sizes/2)
	}
	return s.weight * math.Pow(s.constant+dot, float64(s.power))
}

// features sets phi to the monomials of u up to the power q, such that φ(u)ᵀφ(v) is the
// sum of the terms up to there. order has for each of them, but those of the last
// power, the last feature in it and how often that is there.
func (s series) features(phi, u []float64, q int, front float64, order []monomial) {
	phi[0] = math.Sqrt(s.first()) * front
	begin, end := 0, 1
	for p := range q {
		factor := math.Sqrt(float64(p+1) * s.ratio(p))
		at := end
		for m := begin; m < end; m++ {
			v, from := phi[m]*factor, order[m].last
			to := phi[at : at+len(u)-from]
			for j, x := range u[from:] {
				to[j] = v * x
			}
			to[0] *= order[m].again
			at += len(to)
		}
		begin, end = end, at
	}
}

// monomial is a product of features in the order of their numbers.
type monomial struct {
	last  int     // the number of the last one
	again float64 // 1/√(times+1), times being how often that one is there at the end
}

// monomials lists those of d features up to the power q−1, in the order of features.
func monomials(d, q int) []monomial {
	type counted struct{ last, times int }
	list := []counted{{0, 0}}
	begin := 0
	for p := 1; p < q; p++ {
		end := len(list)
		for _, m := range list[begin:end] {
			for j := m.last; j < d; j++ {
				times := 1
				if j == m.last {
					times = m.times + 1
				}
				list = append(list, counted{j, times})
			}
		}
		begin = end
	}
	order := make([]monomial, len(list))
	for i, m := range list {
		order[i] = monomial{m.last, 1 / math.Sqrt(float64(m.times+1))}
	}
	return order
}

// taylorFeatures makes F of the monomials of the power series, up to the largest power
// of which all are among the columns of f. What it leaves of K is small beside its
// diagonal where the rows are far from each other, as in many dimensions they are: the
// diagonal is returned, so that it becomes part of D. The center of a Gaussian kernel is
// the median of the rows that the plan looks at.
//
// It is a lowRankMaker.
func taylorFeatures[T backend.Float](task lowRankTask[T], f backend.Matrix[T]) (approximation, error) {
	n, k := f.Dims()
	_, d := task.x.Dims()
	s, err := newSeries(task.kernel, d)
	if err != nil {
		return approximation{}, fmt.Errorf("taylor: %w", err)
	}
	q := s.most(d, k)
	order, rank := monomials(d, q), s.terms(d, q, k)
	sample := backend.NewHost[float64](min(n, remainderRows), d)
	places := map[int]int{}
	for i, row := range chooseRows(n, sample.Rows) {
		places[row] = i
	}
	err = eachRow(task.b, task.x, func(i int, x []T) {
		if to, ok := places[i]; ok {
			widen(sample.Row(to), x)
		}
	})
	if err != nil {
		return approximation{}, err
	}
	center := medians(sample)
	a := approximation{rank: rank, diagonal: make([]float64, n)}
	var out backend.Host[T]
	err = eachBlock(task.b, task.x, max(d, rank), func(from int, x backend.Host[T]) error {
		if err := task.ctx.Err(); err != nil {
			return err
		}
		if from == 0 {
			out = backend.NewHost[T](x.Rows, rank)
		}
		run.Parallel(x.Rows, func(first, last int) {
			point, u, phi := make([]float64, d), make([]float64, d), make([]float64, rank)
			for i := first; i < last; i++ {
				widen(point, x.Row(i))
				size := s.place(u, point, center)
				s.features(phi, u, q, s.front(size), order)
				for j, v := range phi {
					out.Row(i)[j] = T(v)
				}
				// Where nothing is left, the rounding of F and a digit more.
				a.diagonal[from+i] = max(s.left(size, q), 16*unitOf[T]()*squared(phi))
			}
		})
		for i := range x.Rows {
			if all := T(a.diagonal[from+i] + squared(out.Row(i))); all-all != 0 {
				point := make([]float64, d)
				widen(point, x.Row(i))
				return PointError(task.kernel, from+i, point, float64(all))
			}
			a.trace += a.diagonal[from+i]
		}
		return task.b.Upload(f.View(from, 0, x.Rows, rank), out.View(0, 0, x.Rows, rank))
	})
	if !s.gaussian && q == s.power { // F is all of K
		a.diagonal = nil
	}
	return a, err
}

// medians are those of each column: no row, however far, moves them much.
func medians(x backend.Host[float64]) []float64 {
	list, column := make([]float64, x.Cols), make([]float64, x.Rows)
	for j := range list {
		for i := range column {
			column[i] = x.Row(i)[j]
		}
		slices.Sort(column)
		list[j] = column[len(column)/2]
	}
	return list
}

// widen copies a row.
func widen[T backend.Float](to []float64, from []T) {
	for j, v := range from {
		to[j] = float64(v)
	}
}

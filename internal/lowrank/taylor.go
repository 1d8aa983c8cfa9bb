package lowrank

import (
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// A series writes a kernel as a power series in the dot product of two feature vectors,
//
//	k(x, z) = g(u) g(v) Σ_p a_p (uᵀv)^p,  a_p ≥ 0,
//
// where u and v are x and z after centering and scaling. For a Gaussian kernel g(u) = exp(−‖u‖²/2) and a_p = 1/p!. For
// the kernel (xᵀz + c)^D, g = 1, a_p = C(D, p) c^(D−p) and u = x. The sum of the terms of degree at most q is
// φ(u)ᵀφ(v), where φ(u) holds the scaled C(d+q, q) monomials of u of degree at most q (Cotter, Keshet and Srebro 2011).
type series struct {
	weight   float64   // factor of the kernel
	scale    []float64 // factor of each feature; nil if all factors are 1
	gaussian bool
	degree   int     // D of a polynomial kernel
	constant float64 // c of a polynomial kernel
}

// Taylor is the name of the preconditioner.
const Taylor = "taylor"

// maxMonomialDegree bounds the degree of the monomials.
const maxMonomialDegree = 32

// newSeries returns the power series of k for points with d features, or an error with the reason why there is none.
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
		s.degree, s.constant = k.Degree, k.C
		if k.Degree < 2 || k.Degree > maxMonomialDegree || k.C <= 0 {
			return s, errNoSeries
		}
	default:
		return s, errNoSeries
	}
	if a0 := s.firstCoefficient(); !(a0 > 0) || math.IsInf(a0, 1) || math.IsInf(s.ratio(0), 1) {
		return s, fmt.Errorf("the constant term of its power series must be positive and finite, but is %v", a0)
	}
	return s, nil
}

var errNoSeries = fmt.Errorf("it needs a Gaussian kernel, or a polynomial kernel of degree 2 to %d with a positive constant term", maxMonomialDegree)

// firstCoefficient returns a_0 times the weight of the kernel.
func (s series) firstCoefficient() float64 {
	if s.gaussian {
		return s.weight
	}
	return s.weight * elementary.Pow(s.constant, float64(s.degree))
}

// ratio returns a_{p+1} / a_p.
func (s series) ratio(p int) float64 {
	if s.gaussian {
		return 1 / float64(p+1)
	}
	return float64(s.degree-p) / (float64(p+1) * s.constant)
}

// monomials returns the number C(d+q, q) of monomials of d features of degree at most q, or
// limit+1 if there are more than limit.
func (s series) monomials(d, q, limit int) int {
	count := 1.0
	for p := range q {
		count *= float64(d+p+1) / float64(p+1)
		if !(count < float64(limit)+0.5) {
			return limit + 1
		}
	}
	return int(math.Round(count))
}

// maxPower returns the largest degree q for which there are at most rank monomials.
func (s series) maxPower(d, rank int) int {
	q := 0
	for q < s.maxDegree() && s.monomials(d, q+1, rank) <= rank {
		q++
	}
	return q
}

func (s series) maxDegree() int {
	if s.gaussian {
		return maxMonomialDegree
	}
	return s.degree
}

// transform sets u to x after centering and scaling, and returns ‖u‖².
func (s series) transform(u, x, center []float64) (norm2 float64) {
	for j, v := range x {
		if s.gaussian {
			v = (v - center[j]) * s.scale[j]
		}
		u[j] = v
		norm2 += v * v
	}
	return norm2
}

// envelope returns g(u), given ‖u‖².
func (s series) envelope(norm2 float64) float64 {
	if s.gaussian {
		return elementary.Exp(-norm2 / 2)
	}
	return 1
}

// tail returns the sum of the terms of degree above q for two equal points, given ‖u‖².
func (s series) tail(norm2 float64, q int) float64 {
	if s.gaussian {
		term := elementary.Exp(-norm2)
		if term == 0 {
			return s.weight
		}
		head := term
		for p := range q {
			term *= norm2 / float64(p+1)
			head += term
		}
		if head < 0.5 {
			return s.weight * (1 - head)
		}
		// 1 − head would cancel. Sum the terms above q instead. They decrease from about q+1 on, because ‖u‖² is
		// at most about q+1 if head ≥ ½.
		sum := 0.0
		for p := q + 1; term > numeric.Epsilon/8*sum; p++ {
			term *= norm2 / float64(p)
			sum += term
		}
		return s.weight * sum
	}
	term, sum := s.firstCoefficient(), 0.0
	for p := range s.degree {
		term *= s.ratio(p) * norm2
		if p >= q {
			sum += term
		}
	}
	return sum
}

// tails sets dst[i] to the sum of the terms of degree above powers[i] of k(x, z), where powers is in ascending order.
// The argument dot is uᵀv, envelopes is g(u)g(v), and value is k(x, z), with u and v of series.
func (s series) tails(dst []float64, powers []int, dot, envelopes, value float64) {
	term := s.firstCoefficient() * envelopes
	sum, p := value, 0
	for i, q := range powers {
		for ; p <= q; p++ {
			sum -= term
			term *= s.ratio(p) * dot
		}
		dst[i] = sum
	}
}

// value returns k(x, z), given uᵀv and ‖u‖² + ‖v‖².
func (s series) value(dot, norms2 float64) float64 {
	if s.gaussian {
		return s.weight * elementary.Exp(dot-norms2/2)
	}
	return s.weight * elementary.Pow(s.constant+dot, float64(s.degree))
}

// features sets phi to φ(u), the scaled monomials of u of degree at most q. Each monomial is computed from a
// monomial of the next lower degree; order lists the monomials of degree below q (newMonomialOrder).
func (s series) features(phi, u []float64, q int, envelope float64, order []monomial) {
	phi[0] = math.Sqrt(s.firstCoefficient()) * envelope
	begin, end := 0, 1
	for p := range q {
		factor := math.Sqrt(float64(p+1) * s.ratio(p))
		pos := end
		for m := begin; m < end; m++ {
			v, last := phi[m]*factor, order[m].last
			dst := phi[pos : pos+len(u)-last]
			for j, x := range u[last:] {
				dst[j] = v * x
			}
			dst[0] *= order[m].repeat
			pos += len(dst)
		}
		begin, end = end, pos
	}
}

// A monomial is a product of features in the order of their indices. Its successors of the next
// degree are its products with its last feature and with each later feature.
type monomial struct {
	last   int     // index of the last feature
	repeat float64 // 1/√(t+1) for the exponent t of the last feature: the factor when the product repeats this feature
}

// newMonomialOrder lists the monomials of d features of degree below q in the order of the method features.
func newMonomialOrder(d, q int) []monomial {
	type lastFactor struct{ last, exponent int }
	list := []lastFactor{{0, 0}}
	begin := 0
	for p := 1; p < q; p++ {
		end := len(list)
		for _, m := range list[begin:end] {
			for j := m.last; j < d; j++ {
				exponent := 1
				if j == m.last {
					exponent = m.exponent + 1
				}
				list = append(list, lastFactor{j, exponent})
			}
		}
		begin = end
	}
	order := make([]monomial, len(list))
	for i, m := range list {
		order[i] = monomial{m.last, 1 / math.Sqrt(float64(m.exponent+1))}
	}
	return order
}

// taylorFeatures has the type maker. It sets the columns of f to the monomials of the power series of the kernel, up to
// the largest degree with at most as many monomials as f has columns, and returns the diagonal of K − FFᵀ. A Gaussian
// kernel is centered at the median of the rows that newTaylorSample selects.
func taylorFeatures[T backend.Float](task Task[T], f backend.Matrix[T]) (approximation, error) {
	n, k := f.Dims()
	_, d := task.X.Dims()
	s, err := newSeries(task.Kernel, d)
	if err != nil {
		return approximation{}, fmt.Errorf("taylor: %w", err)
	}
	q := s.maxPower(d, k)
	order, rank := newMonomialOrder(d, q), s.monomials(d, q, k)
	sample := backend.NewHost[float64](min(n, taylorSampleRows), d)
	sampled := map[int]int{}
	for i, row := range chooseRows(n, sample.Rows) {
		sampled[row] = i
	}
	err = numeric.EachRow(task.B, task.X, func(i int, x []T) {
		if to, ok := sampled[i]; ok {
			numeric.Widen(sample.Row(to), x)
		}
	})
	if err != nil {
		return approximation{}, err
	}
	center := medians(sample)
	a := approximation{rank: rank, diagonal: make([]float64, n)}
	var out backend.Host[T]
	err = numeric.EachBlock(task.B, task.X, max(d, rank), func(from int, x backend.Host[T]) error {
		if err := task.Ctx.Err(); err != nil {
			return err
		}
		if from == 0 {
			out = backend.NewHost[T](x.Rows, rank)
		}
		run.Parallel(x.Rows, func(first, last int) {
			point, u, phi := make([]float64, d), make([]float64, d), make([]float64, rank)
			for i := first; i < last; i++ {
				numeric.Widen(point, x.Row(i))
				norm2 := s.transform(u, point, center)
				s.features(phi, u, q, s.envelope(norm2), order)
				for j, v := range phi {
					out.Row(i)[j] = T(v)
				}
				// Raise the element of K − FFᵀ to at least 16 times the rounding error of F.
				a.diagonal[from+i] = max(s.tail(norm2, q), 16*numeric.UnitOf[T]()*numeric.Squared(phi))
			}
		})
		for i := range x.Rows {
			if diagonal := T(a.diagonal[from+i] + numeric.Squared(out.Row(i))); diagonal-diagonal != 0 {
				point := make([]float64, d)
				numeric.Widen(point, x.Row(i))
				return numeric.PointError(task.Kernel, from+i, point, float64(diagonal))
			}
			a.trace += a.diagonal[from+i]
		}
		return task.B.Upload(f.View(from, 0, x.Rows, rank), out.View(0, 0, x.Rows, rank))
	})
	if !s.gaussian && q == s.degree { // FFᵀ is K
		a.diagonal = nil
	}
	return a, err
}

// medians returns the median of each column, on which a few distant rows have little influence.
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

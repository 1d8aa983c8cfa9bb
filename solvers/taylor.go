package solvers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

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

// largestPower is of how many terms a series has features at most; further terms
// have so many that a pivot's column of K is worth more.
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

// terms is how many features have powers up to q, or largest+1 where they are more than
// largest.
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

// most is the largest power of which all features are among rank.
func (s series) most(d, rank int) int {
	q := 0
	for q < s.last() && s.terms(d, q+1, rank) <= rank {
		q++
	}
	return q
}

// last is the largest power of which there may be features.
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
// diagonal is returned, so that it becomes part of D.
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
	center := make([]float64, d)
	err = eachRow(task.b, task.x, func(_ int, x []T) {
		for j, v := range x {
			center[j] += float64(v) / float64(n)
		}
	})
	if err != nil {
		return approximation{}, err
	}
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
				a.diagonal[from+i] = s.left(size, q)
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

func widen[T backend.Float](to []float64, from []T) {
	for j, v := range from {
		to[j] = float64(v)
	}
}

// A remainder is an estimate of the spectrum of D^-½ (K + λW⁻¹ − FFᵀ) D^-½ for F of the
// monomials up to a power, and D = λW⁻¹ and the diagonal of K − FFᵀ. The preconditioner
// FFᵀ + D takes K + λW⁻¹ to a matrix with eigenvalues between the least and the largest
// of these, or 1.
type remainder struct {
	rank   int
	spread []cluster // the eigenvalues
	// lambda is about a lower bound of the eigenvalues of K + λW⁻¹.
	lambda float64
}

// remainders are those for the power that the rank has room for or, where it is 0, for the
// powers that are worth a look; where the preconditioner was not asked for, of those for
// which no rows lie near each other.
func (z *sizes) remainders(par Params) ([]remainder, error) {
	if z.rests != nil {
		return z.rests, nil
	}
	s, err := newSeries(z.kernel, z.d)
	if err != nil {
		return nil, fmt.Errorf("solvers: preconditioner: no taylor for the kernel %v: %w: use rpcholesky", z.kernel, err)
	}
	asked := par.Preconditioner == taylor
	var powers []int
	if par.Rank > 0 {
		powers = []int{s.most(z.d, min(par.Rank, z.n))}
	} else {
		largest := min(z.n/4, 8192)
		for q, before := 1, 1; q <= s.last() && len(powers) < 4; q++ {
			now := s.terms(z.d, q, largest)
			if now > largest {
				break
			}
			if now >= 2*before {
				powers, before = append(powers, q), now
			}
		}
	}
	if len(powers) == 0 && asked {
		powers = []int{0}
	}
	if len(powers) > 0 {
		z.rests = newRemainders(z.ctx, newSamples(z.p), s, powers, asked)
	}
	return z.rests, nil
}

const (
	remainderRows = 256 // of the sample
	// nearRows is of how many of them the distance to all rows is looked at: where a
	// twentieth of the rows has another near it, one of them is among these but in a case
	// of 5.
	nearRows = 32
	// nearest is how large an element of D^-½ (K − FFᵀ − D) D^-½ may be there.
	nearest = 0.5
)

// newRemainders is one for each power, or for those without rows near each other.
func newRemainders(ctx context.Context, p *samples, s series, powers []int, all bool) []remainder {
	m := min(p.n, remainderRows)
	chosen := chooseRows(p.n, m)
	x, center := backend.NewHost[float64](m, p.d), make([]float64, p.d)
	for i, row := range chosen {
		p.fill(x.View(i, 0, 1, p.d), p.X, p.meanX, row, false)
		for j, v := range x.Row(i) {
			center[j] += v / float64(m)
		}
	}
	u := backend.NewHost[float64](m, p.d)
	rows := make([]measured, m)
	for i, row := range chosen {
		rows[i] = p.measure(s, u.Row(i), x.Row(i), center, row, powers)
	}
	near := p.nearest(ctx, s, powers, center, chosen[:min(m, nearRows)], u, rows)
	list := make([]remainder, len(powers))
	run.Parallel(len(powers), func(first, last int) {
		for i := first; i < last; i++ {
			r := remainder{rank: s.terms(p.d, powers[i], math.MaxInt32)}
			if ctx.Err() == nil && (all || near[i] <= nearest) {
				r.spread = p.spread(ctx, s, i, powers[i], u, rows)
				least, smallest := math.Inf(1), max(0, 1-near[i])
				for _, row := range rows {
					least = min(least, row.whole[i])
				}
				for _, c := range r.spread {
					smallest = min(smallest, c.value)
				}
				r.lambda = least * smallest
			}
			list[i] = r
		}
	})
	return slices.DeleteFunc(list, func(r remainder) bool { return r.spread == nil && !all })
}

// spread is about the spectrum of D^-½ (K + λW⁻¹ − FFᵀ) D^-½, whose diagonal is 1, for the
// powers up to q, number i of those that are measured, by a sample of m rows.
//
// Where that is all rows, its eigenvalues are taken. Else what F has of low powers is taken
// out of it: there P is large. Each further power is taken for N independent features of
// equal weight, as many as the squares of its elements outside the diagonal show beside
// the diagonal, whose eigenvalues for n rows are those of Marchenko and Pastur (1967).
// Eigenvalues of the sample that stand out of those grow with the rows.
func (p *samples) spread(ctx context.Context, s series, i, q int, u backend.Host[float64], rows []measured) []cluster {
	const parts = 4 // the powers q+1, q+2, q+3, and all others
	m := len(rows)
	ends := []int{}
	for e := q; e < min(q+parts, s.last()+1); e++ {
		ends = append(ends, e)
	}
	off, rest := make([]small, len(ends)), make([]float64, len(ends))
	for e := range off {
		off[e] = newSmall(m, m)
	}
	for j := range m {
		for l := range j {
			rows[j].element(rest, s, ends, u.Row(j), u.Row(l), rows[l])
			scale := 1 / math.Sqrt(rows[j].whole[i]*rows[l].whole[i])
			for e, v := range rest {
				off[e].set(j, l, v*scale)
				off[e].set(l, j, v*scale)
			}
		}
	}
	if m == p.n {
		var list []cluster
		for _, v := range fallingEigenvalues(ctx, off[0]) {
			list = append(list, cluster{value: max(0, 1+v), r: 1})
		}
		return list
	}
	stays := p.takeOut(off, s, min(q, s.most(p.d, m/4)), u, rows, i)
	pairs := float64(m) * float64(m-1) * stays * stays
	n := float64(p.n)
	var bulk []features // those of which there are fewer than rows
	above := features{}
	base := make([]float64, m) // of each row: λW⁻¹ beside D, and the powers of more features than rows
	for j, row := range rows {
		base[j] = 1 - row.left[i]/row.whole[i]
	}
	deviation := 0.0
	for e := range ends {
		one, of := features{}, make([]float64, m)
		for k, v := range off[e].data {
			if e+1 < len(ends) {
				v -= off[e+1].data[k]
			}
			one.square += v * v / pairs
		}
		for j, row := range rows {
			left := s.left(row.size, ends[e])
			if e+1 < len(ends) {
				left -= s.left(row.size, ends[e+1])
			}
			of[j] = left / row.whole[i]
			one.share += of[j] / float64(m)
		}
		deviation += one.square
		if !(one.share > 0) || !(one.square > 0) {
			continue
		}
		if one.count() < n {
			bulk = append(bulk, one)
		} else {
			above.share += one.share
			above.square += one.square
			for j, v := range of {
				base[j] += v
			}
		}
	}
	share := above.share
	for _, one := range bulk {
		share += one.share
	}
	var list []cluster
	noise := 2*math.Sqrt(float64(m)*deviation*stays) + float64(m)*deviation/max(share, deviation)
	for _, v := range fallingEigenvalues(ctx, off[0]) {
		if !(v > 1.25*noise) {
			break
		}
		list = append(list, cluster{value: 1 + n*v/float64(m), r: 1})
	}
	others := n - float64(len(list))
	for _, one := range bulk {
		list = one.add(list, n, 1-one.share)
		others -= one.count()
	}
	const steps, levels = 32, 16
	ratio := 0.0
	if above.share > 0 {
		ratio = n * above.square / (above.share * above.share)
	}
	slices.Sort(base)
	for l := range levels {
		level := base[(2*l+1)*m/(2*levels)]
		own := min(above.share, level)
		for k := range steps {
			x, weight := semicircle(k, steps)
			root := 1 + math.Sqrt(ratio)*x
			list = append(list, cluster{value: level + own*(root*root-1), r: math.Sqrt(max(1, others) * weight / levels)})
		}
	}
	return list
}

// features are those of a power, as independent ones of equal weight.
type features struct {
	share  float64 // of the diagonal
	square float64 // the mean of the squares outside it
}

func (f features) count() float64 { return f.share * f.share / f.square }

// add adds the eigenvalues that they have for n rows, more than they are.
func (f features) add(list []cluster, n, base float64) []cluster {
	const steps = 32
	for k := range steps {
		x, weight := semicircle(k, steps)
		root := 1 + math.Sqrt(f.count()/n)*x
		list = append(list, cluster{value: base + f.share*n/f.count()*root*root, r: math.Sqrt(f.count() * weight)})
	}
	return list
}

// semicircle is point k of so many in −2 … 2, and its part of a semicircle's area: the
// square roots of the eigenvalues have about that distribution.
func semicircle(k, steps int) (x, weight float64) {
	angle := (float64(k) + 0.5) * math.Pi / float64(steps)
	return math.Cos(angle), 2 * math.Sin(angle) * math.Sin(angle) / float64(steps)
}

// takeOut takes the monomials up to a power out of the rows and the columns of all in off,
// and returns which part of the space is left. Their diagonals stay 0.
func (p *samples) takeOut(off []small, s series, power int, u backend.Host[float64], rows []measured, q int) float64 {
	m, k := len(rows), s.terms(p.d, power, math.MaxInt32)
	order, basis, phi := monomials(p.d, power), newSmall(k, m), make([]float64, k)
	for i, row := range rows {
		s.features(phi, u.Row(i), power, row.front, order)
		for j, v := range phi {
			basis.set(j, i, v/math.Sqrt(row.whole[q]))
		}
	}
	row := func(j int) []float64 { return basis.data[j*m:][:m] }
	taken := 0
	for j := range k {
		v, before := row(j), norm(m, func(i int) float64 { return row(j)[i] })
		for range 2 { // once more, for what rounding leaves
			for l := range taken {
				axpy(-dot(row(l), v), row(l), v)
			}
		}
		if size := norm(m, func(i int) float64 { return v[i] }); size > 1e-8*before {
			for i, x := range v {
				row(taken)[i] = x / size
			}
			taken++
		}
	}
	for _, o := range off {
		for range 2 { // o ← o (I − QQᵀ), and that transposed
			for i := range m {
				r := o.data[i*m:][:m]
				for j := range taken {
					axpy(-dot(row(j), r), row(j), r)
				}
			}
			for i := range m {
				for j := range i {
					a, b := o.at(i, j), o.at(j, i)
					o.set(i, j, b)
					o.set(j, i, a)
				}
			}
		}
		for i := range m {
			o.set(i, i, 0)
		}
	}
	return 1 - float64(taken)/float64(m)
}

// measured is what a row of the sample is by itself: ‖u‖², g(u), and for each power the
// diagonal of K − FFᵀ and of D.
type measured struct {
	size, front float64
	left, whole []float64
}

func (p *samples) measure(s series, u, x, center []float64, row int, powers []int) measured {
	r := measured{size: s.place(u, x, center), left: make([]float64, len(powers)), whole: make([]float64, len(powers))}
	r.front = s.front(r.size)
	for i, q := range powers {
		r.left[i] = s.left(r.size, q)
		r.whole[i] = r.left[i] + p.Lambda/p.weightOf(row)
	}
	return r
}

// element sets to to the elements of K − FFᵀ for two rows.
func (r measured) element(to []float64, s series, powers []int, u, v []float64, other measured) {
	product := dot(u, v)
	s.after(to, powers, product, r.front*other.front, s.value(product, r.size+other.size))
}

// nearest returns for each power the largest magnitude of the elements of D^-½ (K − FFᵀ) D^-½
// outside the diagonal in the given rows, of which u and rows are the first.
func (p *samples) nearest(ctx context.Context, s series, powers []int, center []float64, chosen []int, u backend.Host[float64], rows []measured) []float64 {
	largest := make([]atomic.Uint64, len(powers))
	run.Parallel(p.n, func(first, last int) {
		x, v := backend.NewHost[float64](1, p.d), make([]float64, p.d)
		rest := make([]float64, len(powers))
		for i := first; i < last && (i%256 != 0 || ctx.Err() == nil); i++ {
			p.fill(x, p.X, p.meanX, i, false)
			row := p.measure(s, v, x.Row(0), center, i, powers)
			for j, own := range chosen {
				if own == i {
					continue
				}
				row.element(rest, s, powers, v, u.Row(j), rows[j])
				for q, v := range rest {
					raise(&largest[q], math.Abs(v)/math.Sqrt(row.whole[q]*rows[j].whole[q]))
				}
			}
		}
	})
	list := make([]float64, len(powers))
	for q := range list {
		list[q] = math.Float64frombits(largest[q].Load())
	}
	return list
}

// raise sets to to v where that is larger or NaN; both are ≥ 0, so that their bits have
// the order of the numbers.
func raise(to *atomic.Uint64, v float64) {
	now := math.Float64bits(v)
	for {
		before := to.Load()
		if now <= before || to.CompareAndSwap(before, now) {
			return
		}
	}
}

// iterations is about how many iterations conjugate gradients take to reduce the residual
// by tol.
func (r remainder) iterations(tol float64) int {
	list := make([]cluster, len(r.spread))
	copy(list, r.spread)
	its, _ := conjugateSteps(list, tol)
	return its
}

package solvers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// A remainder is an estimate of the spectrum of D^-½ (K + λW⁻¹ − FFᵀ) D^-½ for F of the
// monomials up to a power, and D = λW⁻¹ and the diagonal of K − FFᵀ. The preconditioner
// P = FFᵀ + D makes of K + λW⁻¹ a matrix P^-½ (K + λW⁻¹) P^-½ whose eigenvalues are between
// the smallest and the largest of these, or 1, since P − D is positive semidefinite.
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
	// nearRows is the number of them that are compared with all rows: where 3 % of the rows
	// have another near them, one of those is among these but for one sample in 50.
	nearRows = 128
	// nearest is how large an element of D^-½ (K − FFᵀ) D^-½ outside the diagonal may be
	// there, with two equal rows near 1 where λ is small.
	nearest = 0.5
)

// newRemainders is one for each power, or for those without rows near each other.
func newRemainders(ctx context.Context, p *samples, s series, powers []int, all bool) []remainder {
	m := min(p.n, remainderRows)
	chosen := chooseRows(p.n, m)
	x := backend.NewHost[float64](m, p.d)
	for i, row := range chosen {
		p.fill(x.View(i, 0, 1, p.d), p.X, p.meanX, row, false)
	}
	center := medians(x)
	u := backend.NewHost[float64](m, p.d)
	rows := make([]measured, m)
	for i, row := range chosen {
		rows[i] = p.measure(s, u.Row(i), x.Row(i), center, row, powers)
	}
	near := p.nearest(ctx, s, powers, center, chosen[:min(m, nearRows)], u, rows, all)
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
// the diagonal, whose eigenvalues for n rows are those of Marchenko and Pastur (1967):
// where N < n the n − N others are the diagonal without that power. Eigenvalues of the sample
// that stand out of those grow with the rows.
func (p *samples) spread(ctx context.Context, s series, i, q int, u backend.Host[float64], rows []measured) (list []cluster) {
	m, n := len(rows), float64(p.n)
	off, diagonals := p.laterPowers(s, i, q, u, rows)
	if m == p.n {
		for _, v := range fallingEigenvalues(ctx, sumOfSmall(off)) {
			list = append(list, cluster{value: max(0, 1+v), r: 1})
		}
		return list
	}
	stays := p.takeOut(off, s, min(q, s.most(p.d, m/4)), u, rows, i)
	pairs := float64(m) * float64(m-1) * stays * stays
	var few []features // the powers of which there are fewer than rows
	var many, total features
	base := make([]float64, m) // of each row, without those
	for j, row := range rows {
		base[j] = 1 - row.left[i]/row.whole[i]
	}
	for e, o := range off {
		one := features{square: dot(o.data, o.data) / pairs}
		for _, v := range diagonals[e] {
			one.share += v / float64(m)
		}
		switch {
		case !(one.share > 0) || !(one.square > 0):
			continue
		case one.count() < n:
			few = append(few, one)
		default:
			many = many.with(one)
			for j, v := range diagonals[e] {
				base[j] += v
			}
		}
		total = total.with(one)
	}
	noise := 0.0 // the largest eigenvalue that the sample has by chance
	if total.share > 0 {
		noise = 2*math.Sqrt(float64(m)*total.square*stays) + float64(m)*total.square/total.share
	}
	for _, v := range fallingEigenvalues(ctx, sumOfSmall(off)) {
		if !(v > 1.25*noise) {
			break
		}
		list = append(list, cluster{value: 1 + n*v/float64(m), r: 1})
	}
	others := n - float64(len(list))
	for _, one := range few {
		list = semicircle(list, n/one.count(), 1-one.share, one.share, one.count())
		others -= one.count()
	}
	ratio := 0.0
	if many.share > 0 {
		ratio = n / many.count()
	}
	slices.Sort(base)
	const levels = 16
	for l := range levels {
		level := base[(2*l+1)*m/(2*levels)]
		own := min(many.share, level)
		list = semicircle(list, ratio, level-own, own, max(1, others)/levels)
	}
	return list
}

// sumOfSmall adds matrices.
func sumOfSmall(list []small) small {
	sum := newSmall(list[0].rows, list[0].cols)
	for _, s := range list {
		axpy(1, s.data, sum.data)
	}
	return sum
}

// laterPowers returns, for each of the powers q+1 and q+2 and for all others together,
// its elements of D^-½ K D^-½ between rows of the sample, with a diagonal of 0, and the
// diagonal; D is number i of those that are measured.
func (p *samples) laterPowers(s series, i, q int, u backend.Host[float64], rows []measured) (off []small, diagonals [][]float64) {
	m := len(rows)
	ends := []int{}
	for e := q; e < min(q+3, s.last()+1); e++ {
		ends = append(ends, e)
	}
	after := make([]float64, len(ends)+1) // the last stays 0
	for range ends {
		off, diagonals = append(off, newSmall(m, m)), append(diagonals, make([]float64, m))
	}
	for j, row := range rows {
		for l, other := range rows[:j] {
			row.element(after[:len(ends)], s, ends, dot(u.Row(j), u.Row(l)), other)
			for e := range ends {
				v := (after[e] - after[e+1]) / math.Sqrt(row.whole[i]*other.whole[i])
				off[e].set(j, l, v)
				off[e].set(l, j, v)
			}
		}
		for e, end := range ends {
			after[e] = s.left(row.size, end)
		}
		for e := range ends {
			diagonals[e][j] = (after[e] - after[e+1]) / row.whole[i]
		}
	}
	return off, diagonals
}

// features are those of a power, as independent ones of equal weight.
type features struct {
	share  float64 // of the diagonal
	square float64 // the mean of the squares outside it
}

// count is how many they are.
func (f features) count() float64 { return f.share * f.share / f.square }

// with is of two powers together.
func (f features) with(g features) features {
	return features{f.share + g.share, f.square + g.square}
}

// semicircle adds to list so many eigenvalues of base and share times those of ZZᵀ that are
// not 0, for a Z of independent elements with ratio times as many rows as columns and a mean
// square of 1 over its number of columns. Their roots have about the distribution of a
// semicircle.
func semicircle(list []cluster, ratio, base, share, count float64) []cluster {
	const steps = 32
	for k := range steps {
		angle := (float64(k) + 0.5) * math.Pi / steps
		root := max(1, math.Sqrt(ratio)) + min(1, math.Sqrt(ratio))*math.Cos(angle)
		weight := 2 * math.Sin(angle) * math.Sin(angle) / steps // of the semicircle's area
		list = append(list, cluster{value: base + share*root*root, r: math.Sqrt(count * weight)})
	}
	return list
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

// element sets to to the elements of K − FFᵀ for two rows, uᵀv being product.
func (r measured) element(to []float64, s series, powers []int, product float64, other measured) {
	s.after(to, powers, product, r.front*other.front, s.value(product, r.size+other.size))
}

// nearest returns for each power the largest magnitude of the elements of D^-½ (K − FFᵀ) D^-½
// outside the diagonal in the given rows, of which u and rows are the first. It is NaN where
// one is. Unless all are wanted it ends where each is above the limit.
func (p *samples) nearest(ctx context.Context, s series, powers []int, center []float64, chosen []int, u backend.Host[float64], rows []measured, all bool) []float64 {
	largest := make([]float64, len(powers))
	var mu sync.Mutex
	run.Parallel(p.n, func(first, last int) {
		x, v := backend.NewHost[float64](1, p.d), make([]float64, p.d)
		mine, rest := make([]float64, len(powers)), make([]float64, len(powers))
		enough := 0.0 // a pair with a smaller squared cosine of u and v has no larger element
		for i := first; i < last; i++ {
			if i%256 == 0 && (ctx.Err() != nil || !all && slices.Min(mine) > nearest) {
				break
			}
			p.fill(x, p.X, p.meanX, i, false)
			row := p.measure(s, v, x.Row(0), center, i, powers)
			for j, own := range chosen {
				product := dot(v, u.Row(j))
				if own == i || product*product <= enough*row.size*rows[j].size {
					continue
				}
				row.element(rest, s, powers, product, rows[j])
				enough = 1
				for q, v := range rest {
					mine[q] = larger(mine[q], math.Abs(v)/math.Sqrt(row.whole[q]*rows[j].whole[q]))
					// All terms have the power q+1 at least: Cauchy and Schwarz.
					enough = min(enough, math.Pow(mine[q], 2/float64(powers[q]+1)))
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for q, v := range mine {
			largest[q] = larger(largest[q], v)
		}
	})
	return largest
}

// iterations is about how many iterations conjugate gradients take to reduce the residual
// by tol.
func (r remainder) iterations(tol float64) int {
	list := make([]cluster, len(r.spread))
	copy(list, r.spread)
	its, _ := conjugateSteps(list, tol)
	return its
}

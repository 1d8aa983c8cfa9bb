package lowrank

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// The functions below estimate the number of iterations of conjugate gradients with the Taylor preconditioner
// P = FFᵀ + D, where F holds the monomials of degree at most q and D = λW⁻¹ + diag(K − FFᵀ), from the spectrum of
//
//	R = D^-½ (K + λW⁻¹ − FFᵀ) D^-½
//
// in a sample of the rows. R has a diagonal of ones. Every eigenvalue of P^-½ (K + λW⁻¹) P^-½ lies between the
// smallest and the largest eigenvalue of R, or is nearer to 1, because P − D is positive semidefinite.

// A TaylorEstimate describes the Taylor preconditioner of one degree q.
type TaylorEstimate struct {
	Rank     int       // number of monomials
	spectrum []cluster // eigenvalues of R
	Lambda   float64   // approximate lower bound on the eigenvalues of K + λW⁻¹
}

const (
	// taylorSampleRows is the number of sampled rows.
	taylorSampleRows = 256
	// comparedRows is the number of sampled rows that are compared with all rows. If 3 % of all rows have another
	// row near them, such a sample misses all these rows in 1 case of 50.
	comparedRows = 128
	// maxCoupling is the largest allowed magnitude of an off-diagonal element of R in the compared
	// rows. The element of two equal rows is near 1 if λ is small.
	maxCoupling = 0.5
)

// TaylorEstimates returns one estimate for each candidate degree. If rank is not 0, the only candidate is the
// largest degree with at most rank monomials. If rank is 0, there are up to four candidates, each with at least
// twice as many monomials as the preceding candidate. Unless requested is set, a degree is omitted if an element
// of R in the compared rows exceeds maxCoupling.
func TaylorEstimates(ctx context.Context, p Samples, rank int, requested bool) ([]TaylorEstimate, error) {
	s, err := newSeries(p.Kernel, p.D)
	if err != nil {
		return nil, err
	}
	var powers []int
	if rank > 0 {
		powers = []int{s.maxPower(p.D, min(rank, p.N))}
	} else {
		limit := min(p.N/4, 8192)
		for q, previous := 1, 1; q <= s.maxDegree() && len(powers) < 4; q++ {
			count := s.monomials(p.D, q, limit)
			if count > limit {
				break
			}
			if count >= 2*previous {
				powers, previous = append(powers, q), count
			}
		}
	}
	if len(powers) == 0 && requested {
		powers = []int{0}
	}
	if len(powers) == 0 {
		return nil, nil
	}
	t := newTaylorSample(p, s, powers)
	coupling := t.maxCouplings(ctx, requested)
	list := make([]TaylorEstimate, len(powers))
	run.Parallel(len(powers), func(first, last int) {
		for i := first; i < last; i++ {
			e := TaylorEstimate{Rank: s.monomials(p.D, powers[i], math.MaxInt32)}
			if ctx.Err() == nil && (requested || coupling[i] <= maxCoupling) {
				e.spectrum = t.spectrum(ctx, i)
				minDiagonal, smallest := math.Inf(1), max(0, 1-coupling[i])
				for _, row := range t.rows {
					minDiagonal = min(minDiagonal, row.diagonal[i])
				}
				for _, c := range e.spectrum {
					smallest = min(smallest, c.value)
				}
				e.Lambda = minDiagonal * smallest
			}
			list[i] = e
		}
	})
	return slices.DeleteFunc(list, func(e TaylorEstimate) bool { return e.spectrum == nil && !requested }), nil
}

// A taylorSample is a sample of the rows of X. The field rows holds the quantities of each sampled row.
type taylorSample struct {
	Samples
	series
	powers  []int // candidates for q, in ascending order
	center  []float64
	sampled []int                 // indices of the rows
	u       backend.Host[float64] // the rows after centering and scaling
	rows    []taylorRow
}

// A taylorRow describes one row x. The slices have one element for each candidate degree q in powers.
type taylorRow struct {
	norm2, envelope float64   // ‖u‖² and g(u)
	tail            []float64 // diagonal element of K − FFᵀ for this row
	diagonal        []float64 // diagonal element of D for this row
}

func newTaylorSample(p Samples, s series, powers []int) *taylorSample {
	m := min(p.N, taylorSampleRows)
	t := &taylorSample{Samples: p, series: s, powers: powers, sampled: chooseRows(p.N, m), u: backend.NewHost[float64](m, p.D), rows: make([]taylorRow, m)}
	x := backend.NewHost[float64](m, p.D)
	for i, row := range t.sampled {
		p.Row(x.Row(i), row)
	}
	t.center = medians(x)
	for i, row := range t.sampled {
		t.rows[i] = t.describe(t.u.Row(i), x.Row(i), row)
	}
	return t
}

// describe sets u to x, the row of X with the given index, after centering and scaling, and returns its taylorRow.
func (t *taylorSample) describe(u, x []float64, index int) taylorRow {
	r := taylorRow{norm2: t.transform(u, x, t.center), tail: make([]float64, len(t.powers)), diagonal: make([]float64, len(t.powers))}
	r.envelope = t.envelope(r.norm2)
	for i, q := range t.powers {
		r.tail[i] = t.tail(r.norm2, q)
		r.diagonal[i] = r.tail[i] + t.Lambda/t.Weight(index)
	}
	return r
}

// residuals sets dst[i] to the element of K − FFᵀ for the rows a and b, where F holds the monomials of degree at most
// powers[i], and powers is in ascending order. The argument dot is the dot product of the centered and scaled rows.
func (t *taylorSample) residuals(dst []float64, powers []int, dot float64, a, b taylorRow) {
	t.tails(dst, powers, dot, a.envelope*b.envelope, t.value(dot, a.norm2+b.norm2))
}

// maxCouplings returns, for each element of powers, the largest magnitude of an off-diagonal element of R in the first
// comparedRows sampled rows, or NaN if an element is NaN. If complete is false, it stops once the result for every
// power exceeds maxCoupling.
func (t *taylorSample) maxCouplings(ctx context.Context, complete bool) []float64 {
	compared := t.sampled[:min(len(t.sampled), comparedRows)]
	couplings := make([]float64, len(t.powers))
	var mu sync.Mutex
	run.Parallel(t.N, func(first, last int) {
		x, v := make([]float64, t.D), make([]float64, t.D)
		local, residuals := make([]float64, len(t.powers)), make([]float64, len(t.powers))
		cosine2 := 0.0 // a pair (u, v) whose squared cosine is at most cosine2 cannot increase an element of local
		for i := first; i < last; i++ {
			if i%256 == 0 && (ctx.Err() != nil || !complete && slices.Min(local) > maxCoupling) {
				break
			}
			t.Row(x, i)
			row := t.describe(v, x, i)
			for j, index := range compared {
				product := numeric.Dot(v, t.u.Row(j))
				if index == i || product*product <= cosine2*row.norm2*t.rows[j].norm2 {
					continue
				}
				t.residuals(residuals, t.powers, product, row, t.rows[j])
				cosine2 = 1
				for q, v := range residuals {
					local[q] = max(local[q], math.Abs(v)/math.Sqrt(row.diagonal[q]*t.rows[j].diagonal[q]))
					// By the Cauchy–Schwarz inequality, this quotient is at most |cosine|^(q+1) for the degree q.
					cosine2 = min(cosine2, elementary.Pow(local[q], 2/float64(t.powers[q]+1)))
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for q, v := range local {
			couplings[q] = max(couplings[q], v)
		}
	})
	return couplings
}

// spectrum estimates the eigenvalues of R for power number i from the m rows of the sample.
//
// If the sample has all rows, the result is the eigenvalues of R itself. Otherwise the estimate has these steps:
//
//   - Project the monomials of low degree out of the R of the sample, because F contains them.
//   - Model each degree above q by a value of type features with N features. The n rows then have N eigenvalues that
//     follow the law of Marchenko and Pastur (1967). If N < n, the other n − N eigenvalues are diagonal elements of R
//     without the terms of this degree.
//   - For an eigenvalue 1 + v of the sample that exceeds this law, assume the eigenvalue 1 + vn/m of R.
func (t *taylorSample) spectrum(ctx context.Context, i int) (list []cluster) {
	m, n := len(t.rows), float64(t.N)
	parts, diagonals := t.residualByDegree(i)
	if m == t.N {
		for _, v := range descendingEigenvalues(ctx, sumOfSmall(parts)) {
			list = append(list, cluster{value: max(0, 1+v), r: 1})
		}
		return list
	}
	remaining := t.projectOut(parts, min(t.powers[i], t.maxPower(t.D, m/4)), i)
	pairs := float64(m) * float64(m-1) * remaining * remaining
	var lowRank []features     // one element for each degree with N < n
	var fullRank, sum features // fullRank: the other degrees together; sum: all degrees together
	base := make([]float64, m) // diagonal elements of R without the terms in lowRank
	for j, row := range t.rows {
		base[j] = 1 - row.tail[i]/row.diagonal[i]
	}
	for e, part := range parts {
		f := features{meanSquare: numeric.Dot(part.Data, part.Data) / pairs}
		for _, v := range diagonals[e] {
			f.trace += v / float64(m)
		}
		switch {
		case !(f.trace > 0) || !(f.meanSquare > 0):
			continue
		case f.count() < n:
			lowRank = append(lowRank, f)
		default:
			fullRank = fullRank.plus(f)
			for j, v := range diagonals[e] {
				base[j] += v
			}
		}
		sum = sum.plus(f)
	}
	noise := 0.0 // the largest eigenvalue that independent features have in the sample
	if sum.trace > 0 {
		noise = 2*math.Sqrt(float64(m)*sum.meanSquare*remaining) + float64(m)*sum.meanSquare/sum.trace
	}
	for _, v := range descendingEigenvalues(ctx, sumOfSmall(parts)) {
		if !(v > 1.25*noise) {
			break
		}
		list = append(list, cluster{value: 1 + n*v/float64(m), r: 1})
	}
	otherCount := n - float64(len(list))
	for _, f := range lowRank {
		list = appendMarchenkoPastur(list, n/f.count(), 1-f.trace, f.trace, f.count())
		otherCount -= f.count()
	}
	ratio := 0.0
	if fullRank.trace > 0 {
		ratio = n / fullRank.count()
	}
	slices.Sort(base)
	const levels = 16
	for l := range levels {
		level := base[(2*l+1)*m/(2*levels)]
		trace := min(fullRank.trace, level)
		list = appendMarchenkoPastur(list, ratio, level-trace, trace, max(1, otherCount)/levels)
	}
	return list
}

// sumOfSmall returns the sum of the matrices in list.
func sumOfSmall(list []numeric.Small) numeric.Small {
	sum := numeric.NewSmall(list[0].Rows, list[0].Cols)
	for _, s := range list {
		numeric.Axpy(1, s.Data, sum.Data)
	}
	return sum
}

// residualByDegree splits D^-½ (K − FFᵀ) D^-½ of the sample, where F has the Taylor terms up to the degree q =
// t.powers[i], into the terms of degree q+1, of degree q+2, and of all higher degrees. It returns them without their
// diagonals in parts, and the diagonals.
func (t *taylorSample) residualByDegree(i int) (parts []numeric.Small, diagonals [][]float64) {
	m, q := len(t.rows), t.powers[i]
	var powers []int
	for p := q; p < min(q+3, t.maxDegree()+1); p++ {
		powers = append(powers, p)
	}
	for range powers {
		parts, diagonals = append(parts, numeric.NewSmall(m, m)), append(diagonals, make([]float64, m))
	}
	tails := make([]float64, len(powers)+1) // the last element remains 0
	for j, row := range t.rows {
		for l, other := range t.rows[:j] {
			t.residuals(tails[:len(powers)], powers, numeric.Dot(t.u.Row(j), t.u.Row(l)), row, other)
			for e := range powers {
				v := (tails[e] - tails[e+1]) / math.Sqrt(row.diagonal[i]*other.diagonal[i])
				parts[e].Set(j, l, v)
				parts[e].Set(l, j, v)
			}
		}
		for e, p := range powers {
			tails[e] = t.tail(row.norm2, p)
		}
		for e := range powers {
			diagonals[e][j] = (tails[e] - tails[e+1]) / row.diagonal[i]
		}
	}
	return parts, diagonals
}

// features models the matrix of the terms of one degree as ZZᵀ, with independent columns of Z of equal weight.
type features struct {
	trace      float64 // mean element of the diagonal
	meanSquare float64 // mean square of the off-diagonal elements
}

// count returns the number of columns of Z.
func (f features) count() float64 { return f.trace * f.trace / f.meanSquare }

// plus returns the features of the sum of two matrices with independent Z.
func (f features) plus(g features) features {
	return features{f.trace + g.trace, f.meanSquare + g.meanSquare}
}

// appendMarchenkoPastur appends count eigenvalues of base·I + scale·ZZᵀ, restricted to the range of Z. Z has
// `ratio` times as many rows as columns, and independent elements whose mean square is 1 over the number of
// columns. The square roots of the eigenvalues of ZZᵀ are assumed to have a semicircle distribution.
func appendMarchenkoPastur(list []cluster, ratio, base, scale, count float64) []cluster {
	const steps = 32
	for k := range steps {
		angle := (float64(k) + 0.5) * math.Pi / steps
		root := max(1, math.Sqrt(ratio)) + min(1, math.Sqrt(ratio))*math.Cos(angle)
		weight := 2 * math.Sin(angle) * math.Sin(angle) / steps // fraction of the semicircle's area
		list = append(list, cluster{value: base + scale*root*root, r: math.Sqrt(count * weight)})
	}
	return list
}

// projectOut projects the monomials of degree at most power out of the rows and columns of each matrix in parts, and
// sets the diagonals to 0. The monomials of each row are divided by the root of its element of D for power number i.
// The result is the fraction of the dimensions that remain.
func (t *taylorSample) projectOut(parts []numeric.Small, power, i int) (remaining float64) {
	m, k := len(t.rows), t.monomials(t.D, power, math.MaxInt32)
	order, basis, phi := newMonomialOrder(t.D, power), numeric.NewSmall(k, m), make([]float64, k)
	for c, row := range t.rows {
		t.features(phi, t.u.Row(c), power, row.envelope, order)
		for j, v := range phi {
			basis.Set(j, c, v/math.Sqrt(row.diagonal[i]))
		}
	}
	// Orthogonalize twice because of rounding errors, and omit dependent vectors (Gram–Schmidt).
	vector := func(j int) []float64 { return basis.Data[j*m:][:m] }
	rank := 0
	for j := range k {
		v := vector(j)
		size := numeric.Norm(m, func(c int) float64 { return v[c] })
		for range 2 {
			for l := range rank {
				numeric.Axpy(-numeric.Dot(vector(l), v), vector(l), v)
			}
		}
		if norm := numeric.Norm(m, func(c int) float64 { return v[c] }); norm > 1e-8*size {
			for c, x := range v {
				vector(rank)[c] = x / norm
			}
			rank++
		}
	}
	for _, part := range parts {
		for range 2 { // (I − QQᵀ) A (I − QQᵀ): project the rows, and then the rows of the transpose
			for r := range m {
				row := part.Data[r*m:][:m]
				for j := range rank {
					numeric.Axpy(-numeric.Dot(vector(j), row), vector(j), row)
				}
			}
			for r := range m {
				for c := range r {
					a, b := part.At(r, c), part.At(c, r)
					part.Set(r, c, b)
					part.Set(c, r, a)
				}
			}
		}
		for r := range m {
			part.Set(r, r, 0)
		}
	}
	return 1 - float64(rank)/float64(m)
}

// Iterations estimates the number of iterations in which conjugate gradients reduce the residual by the factor tol.
func (e TaylorEstimate) Iterations(tol float64) int {
	steps, _ := conjugateSteps(slices.Clone(e.spectrum), tol, maxSteps)
	return steps
}

package markov

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// maxDim is the largest dimension of a state.
const maxDim = 8

type (
	vector [maxDim]float64
	matrix [maxDim]vector
)

// Model is the state-space model of a kernel.
type Model struct {
	terms []term
	dim   int
}

// Dim returns the dimension of the state.
func (m Model) Dim() int { return m.dim }

// Terms returns the number of terms of the kernel.
func (m Model) Terms() int { return len(m.terms) }

// A term is a Matérn kernel of smoothness ν = order − ½, or the constant 1, multiplied by variance. It has `order`
// entries in the state, from index `offset` on.
type term struct {
	order, offset int
	rate          float64 // √(2ν)/σ; 0 for a constant
	variance      float64
	sigma         int   // index of the parameter σ in kernels.Params; −1 for a constant
	weights       []int // indices in kernels.Params of the factors of variance
}

// Of returns the state space of k for points of one feature. The result ok is false if k is not supported.
func Of(k kernels.Kernel) (m Model, ok bool) {
	if k == nil || k.Check(1) != nil {
		return m, false
	}
	params := 0
	m.terms, ok = termsOf(k, &params)
	for i := range m.terms {
		m.terms[i].offset = m.dim
		m.dim += m.terms[i].order
	}
	return m, ok && m.dim <= maxDim
}

// termsOf returns the terms of k. *params is the index of the first parameter of k in kernels.Params; termsOf
// advances it past the last parameter of k.
func termsOf(k kernels.Kernel, params *int) ([]term, bool) {
	next := func() int { *params++; return *params - 1 }
	switch k := k.(type) {
	case kernels.Laplacian:
		return []term{{order: 1, rate: 1 / k.Sigma, variance: 1, sigma: next()}}, true
	case kernels.Matern:
		return []term{{order: int(k.Nu + 0.5), rate: math.Sqrt(2*k.Nu) / k.Sigma, variance: 1, sigma: next()}}, true
	case kernels.Constant:
		return []term{{order: 1, variance: k.Value, sigma: -1, weights: []int{next()}}}, true
	case kernels.Scaled:
		constant, _ := termsOf(kernels.Constant{Value: k.Weight}, params)
		terms, ok := termsOf(k.Kernel, params)
		return times(terms, constant[0]), ok
	case kernels.Sum:
		var list []term
		for _, summand := range k {
			terms, ok := termsOf(summand, params)
			if !ok {
				return nil, false
			}
			list = append(list, terms...)
		}
		return list, true
	case kernels.Product: // supported if at most one factor is not constant
		list := []term{{order: 1, variance: 1, sigma: -1}}
		for _, factor := range k {
			terms, ok := termsOf(factor, params)
			switch {
			case !ok:
				return nil, false
			case len(terms) == 1 && terms[0].sigma < 0:
				list = times(list, terms[0])
			case len(list) == 1 && list[0].sigma < 0:
				list = times(terms, list[0])
			default:
				return nil, false
			}
		}
		return list, true
	}
	return nil, false
}

// times multiplies the terms by a constant term.
func times(terms []term, constant term) []term {
	for i := range terms {
		terms[i].variance *= constant.variance
		terms[i].weights = slices.Concat(terms[i].weights, constant.weights)
	}
	return terms
}

// scaled returns s for a step, and exp(−s). s is at most 1000, at which A is 0 in float64.
func (t *term) scaled(step float64) (s, decay float64) {
	s = min(t.rate*step, 1000)
	return s, elementary.Exp(-s)
}

// apply sets v to A(s) v, where A = exp(−s)(I + Ns + N²s²/2) for the generator N − I with a nilpotent N.
func (t *term) apply(s, decay float64, v []float64) {
	switch t.order {
	case 1:
		v[0] *= decay
	case 2:
		u := s * (v[0] + v[1])
		v[0], v[1] = decay*(v[0]+u), decay*(v[1]-u)
	case 3:
		h := s * s / 2
		a, b, c := v[0], v[1], v[2]
		w := h * (a + 2*b + c)
		v[0] = decay * (a + s*(a+b) + w)
		v[1] = decay * (b + s*(b+c) - w)
		v[2] = decay * (c - s*(a+3*b+2*c) + w)
	}
}

// applyTransposed sets v to A(s)ᵀ v.
func (t *term) applyTransposed(s, decay float64, v []float64) {
	switch t.order {
	case 1:
		v[0] *= decay
	case 2:
		u := s * (v[0] - v[1])
		v[0], v[1] = decay*(v[0]+u), decay*(v[1]+u)
	case 3:
		h := s * s / 2
		a, b, c := v[0], v[1], v[2]
		w := h * (a - b + c)
		v[0] = decay * (a + s*(a-c) + w)
		v[1] = decay * (b + s*(a+b-3*c) + 2*w)
		v[2] = decay * (c + s*(b-2*c) + w)
	}
}

// generate adds f·Gv to dst, where G is the generator N − I of the method apply.
func (t *term) generate(f float64, dst, v []float64) {
	if t.rate == 0 {
		return
	}
	last := t.order - 1
	for i := range last {
		dst[i] += f * v[i+1]
	}
	switch t.order { // the last row of G has the coefficients of −(1 + z)^order, except the highest
	case 1:
		dst[last] -= f * v[0]
	case 2:
		dst[last] -= f * (v[0] + 2*v[1])
	case 3:
		dst[last] -= f * (v[0] + 3*v[1] + 3*v[2])
	}
}

// intensity returns the spectral density of the noise, which acts on the last entry of the term's state.
func (t *term) intensity() float64 {
	if t.rate == 0 {
		return 0
	}
	return t.variance * [...]float64{2, 4, 16. / 3}[t.order-1]
}

// addStationary adds the covariance of the state to p.
func (t *term) addStationary(p *matrix) {
	for i := range t.order {
		p[t.offset+i][t.offset+i] += t.variance
	}
	if t.order == 3 {
		third := t.variance / 3
		p[t.offset+1][t.offset+1] += third - t.variance
		p[t.offset][t.offset+2] -= third
		p[t.offset+2][t.offset] -= third
	}
}

// addFirst adds the first column of the covariance of the state, times f, to v.
func (t *term) addFirst(f float64, v *vector) {
	v[t.offset] += f * t.variance
	if t.order == 3 {
		v[t.offset+2] -= f * t.variance / 3
	}
}

// addNoise adds Q(s) to p. Q(s) is the intensity times ∫₀ˢ vvᵀ du, where v is the last column of
// A(u). The entries of Q are multiples of I_k = ∫₀ˢ uᵏ exp(−2u) du.
func (t *term) addNoise(s, decay float64, p *matrix) {
	q := t.intensity()
	if q == 0 || s == 0 {
		return
	}
	i := integrals(2*t.order-2, s, decay*decay)
	add := func(row, col int, v float64) {
		p[t.offset+row][t.offset+col] += q * v
		if row != col {
			p[t.offset+col][t.offset+row] += q * v
		}
	}
	switch t.order {
	case 1: // v = exp(−s)
		add(0, 0, i[0])
	case 2: // v = exp(−s) (s, 1−s)
		add(0, 0, i[2])
		add(0, 1, i[1]-i[2])
		add(1, 1, i[0]-2*i[1]+i[2])
	case 3: // v = exp(−s) (s²/2, s−s²/2, 1−2s+s²/2)
		add(0, 0, i[4]/4)
		add(0, 1, i[3]/2-i[4]/4)
		add(0, 2, i[2]/2-i[3]+i[4]/4)
		add(1, 1, i[2]-i[3]+i[4]/4)
		add(1, 2, i[1]-2.5*i[2]+1.5*i[3]-i[4]/4)
		add(2, 2, i[0]-4*i[1]+5*i[2]-2*i[3]+i[4]/4)
	}
}

// reciprocals[k] is 1/k.
var reciprocals = func() (r [64]float64) {
	for k := range r {
		r[k] = 1 / float64(k)
	}
	return r
}()

// integrals returns the integrals I_k of uᵏexp(−2u) over 0 ≤ u ≤ s for k = 0, …, last; decay2 = exp(−2s). For s > 1
// it uses integration by parts from I_0. For smaller s, where the terms cancel, it begins with a series for I_last,
//
//	I_k = exp(−2s) s^(k+1) (1/(k+1) + 2s/(k+1)(k+2) + …),
//
// and the other integrals follow from kI_(k−1) = 2I_k + sᵏexp(−2s).
func integrals(last int, s, decay2 float64) (i [5]float64) {
	if s > 1 {
		power := decay2 // sᵏexp(−2s)
		i[0] = (1 - decay2) / 2
		for k := 1; k <= last; k++ {
			power *= s
			i[k] = (float64(k)*i[k-1] - power) / 2
		}
		return i
	}
	var power [6]float64
	power[0] = decay2
	for k := range last + 1 {
		power[k+1] = power[k] * s
	}
	sum, add := 0.0, reciprocals[last+1]
	for k := last + 2; k < len(reciprocals) && add > sum*0x1p-55; k++ {
		sum += add
		add *= 2 * s * reciprocals[k]
	}
	i[last] = power[last+1] * sum
	for k := last; k > 0; k-- {
		i[k-1] = (2*i[k] + power[k]) * reciprocals[k]
	}
	return i
}

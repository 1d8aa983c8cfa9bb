package svm

import (
	"math"

	"github.com/mercer-go/mercer/internal/message"
)

// initial sets alpha[i] to c[i] for i = 0, 1, … until the elements of alpha add up to sum.
func initial(alpha, c []float64, sum float64) {
	for i := range alpha {
		alpha[i] = min(c[i], sum)
		sum = max(sum-c[i], 0)
	}
}

// separate turns p, a problem of two classes, into the ν formulation, where first is the number of rows of the first
// class. In cross-validation the rows of a class may have too little weight for Nu; their α are then at the bounds.
func (f *Pairs) separate(p *Problem, first int) {
	p.nu = nuClasses
	clear(p.P)
	total := func(c []float64) (sum float64) {
		for _, v := range c {
			sum += v
		}
		return sum
	}
	a, b := total(p.C[:first]), total(p.C[first:])
	sum := min(f.Nu, maxNu(a, b)) / 2 * (a + b)
	initial(p.Alpha[:first], p.C[:first], sum)
	initial(p.Alpha[first:], p.C[first:], sum)
}

// maxNu returns the largest feasible ν for two classes of total weights a and b: for each class, Σα = (a + b)ν/2
// is at most the weight of the class.
func maxNu(a, b float64) float64 { return 2 * min(a, b) / (a + b) }

// CheckNu returns an error if Nu is not feasible for a pair of classes.
func (f *Pairs) CheckNu() error {
	if f.Nu == 0 {
		return nil
	}
	weights := make([]float64, len(f.Rows))
	for class, rows := range f.Rows {
		for _, i := range rows {
			weights[class] += f.Weights[i]
		}
	}
	for b := range weights {
		for a := range b {
			if limit := maxNu(weights[a], weights[b]); f.Nu > limit*(1+0x1p-40) {
				return message.Errorf("nu is %v, but the classes %q and %q allow at most %.4g, twice the share of the smaller class: {lower $nu, or weight the classes equally}", f.Nu, f.Names[a], f.Names[b], limit)
			}
		}
	}
	return nil
}

// separateViolation implements the method violation for the ν formulations.
func (s *smo) separateViolation() (maxV, minV float64) {
	maxV, minV = math.Inf(-1), math.Inf(1)
	for i := range s.v {
		s.v[i] = -s.f[s.row(i)] - s.sign[i]*s.p[i]
	}
	gap := math.Inf(-1)
	for _, sign := range []float64{1, -1} {
		high, low := s.limits(sign)
		middle := high/2 + low/2
		switch {
		case math.IsInf(high, 0) && math.IsInf(low, 0):
			continue // no variable of this sign can change
		case math.IsInf(high, 0):
			middle = low
		case math.IsInf(low, 0):
			middle = high
		}
		for i := range s.v {
			if s.sign[i] == sign {
				s.v[i] -= middle
			}
		}
		if high-low > gap || math.IsNaN(high-low) {
			gap, maxV, minV = high-low, high-middle, low-middle
		}
	}
	return maxV, minV
}

// limits returns the largest v of the variables of one sign that may increase, and the smallest v
// of the variables of this sign that may decrease.
func (s *smo) limits(sign float64) (maxV, minV float64) {
	maxV, minV = math.Inf(-1), math.Inf(1)
	for i, v := range s.v {
		if s.sign[i] != sign {
			continue
		}
		maxV, minV = max(maxV, v+s.rise[i]), min(minV, v+s.fall[i])
	}
	return maxV, minV
}

// level computes v, and returns the mean of v_i over the free variables with s_i = sign or, if there is no free
// variable, the middle of the interval of optimal values.
func (s *smo) level(sign float64) float64 {
	sum, free := 0.0, 0
	for i := range s.v {
		s.v[i] = -s.f[s.row(i)] - s.sign[i]*s.p[i]
		if s.sign[i] == sign && s.mayRise(i) && s.mayFall(i) {
			sum += s.v[i]
			free++
		}
	}
	maxV, minV := s.limits(sign)
	switch {
	case free > 0:
		return sum / float64(free)
	case math.IsInf(maxV, 0):
		return minV
	case math.IsInf(minV, 0):
		return maxV
	}
	return (maxV + minV) / 2
}

// settle converts the solved ν formulation to the equivalent problem with C or ε (Chang and Lin 2001, Training
// ν-support vector classifiers and Training ν-support vector regression). It returns the intercept b, and C or ε.
// Let V₊ and V₋ be the results of level for the signs 1 and −1. Then b = (V₋ + V₊)/2. For classes the margin is ρ
// = (V₋ − V₊)/2, and α/ρ and b/ρ solve the problem with the bounds c_i/ρ. For regression, ε is (V₊ − V₋)/2.
func (s *smo) settle() (intercept, parameter float64, err error) {
	rise, fall := s.level(1), s.level(-1)
	form := s.full.nu
	s.full.nu = plain
	intercept = rise/2 + fall/2
	if form == nuTube {
		epsilon := rise/2 - fall/2
		for i := range s.p {
			s.p[i] += epsilon
		}
		return intercept, epsilon, nil
	}
	margin := fall/2 - rise/2
	if !(margin > 0) || math.IsInf(1/margin, 0) {
		return 0, 0, message.Errorf("the margin is %v: the classes have equal samples, or nu is too large: {lower $nu}", margin)
	}
	for i := range s.alpha {
		s.alpha[i], s.c[i], s.p[i] = s.alpha[i]/margin, s.c[i]/margin, -1
	}
	s.permitAll()
	for r := range s.f {
		s.f[r] /= margin
	}
	s.gap /= margin
	s.set.Tol /= margin
	return intercept / margin, 1 / margin, nil
}

// minimizeSeparately is minimize for the ν formulations. As in LIBSVM, it considers for each sign the pairs of the
// variable with the largest v and another variable, and selects the pair for which the objective decreases most.
func (w *working) minimizeSeparately(tol float64, limit int) int {
	sign := func(a int) int {
		if w.sign[a] > 0 {
			return 1
		}
		return 0
	}
	for step := range limit {
		largest := [2]int{-1, -1}
		for a, v := range w.v {
			if k := sign(a); w.rise[a] == 0 && (largest[k] < 0 || v > w.v[largest[k]]) {
				largest[k] = a
			}
		}
		j, best, violation := -1, 0.0, 0.0
		for b, v := range w.v {
			i := largest[sign(b)]
			if w.fall[b] != 0 || i < 0 {
				continue
			}
			d := w.v[i] - v
			if d <= 0 {
				continue
			}
			violation = max(violation, d)
			a := w.diag[i] + w.diag[b] - 2*w.k[i*w.q+b]
			if a <= 0 {
				a = curvature
			}
			if d*d > best*a {
				j, best = b, d*d/a
			}
		}
		if j < 0 || violation <= tol {
			return step
		}
		w.move(largest[sign(j)], j)
	}
	return limit
}

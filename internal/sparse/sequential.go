package sparse

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
)

// sequential maximizes the evidence by steps that change one function (Tipping and Faul 2003).
// Between these steps it takes steps that change all α of the model and the noise.
func (e *evidence) sequential(tol float64, limit int) error {
	// Start with the function that alone explains the largest part of t.
	first, maxShare := 0, 0.0
	for j, c := range e.c {
		if share := c * c / e.g.Row(j)[j]; share > maxShare {
			first, maxShare = j, share
		}
	}
	e.insert(first, math.Max(e.beta*e.g.Row(first)[first]/math.Max(e.beta*maxShare-1, 1e-3), math.SmallestNonzeroFloat64))
	if err := e.refresh(); err != nil {
		return err
	}
	e.record()
	// The number of other steps between two steps of all α, of O(n m²) operations, grows from shortest to longest.
	const shortest, longest = 5, 100
	interval, stepsSince := shortest, 0
	start := math.Abs(e.value) + 1
	jointGain := math.Inf(1)
	for step := 1; step <= limit; step++ {
		j, alpha, gain := e.choose()
		// Once interval is longest and while steps of all α increase the evidence, a change of one α must gain minGain.
		const minGain = 0.01
		if gain > tol && stepsSince < interval && (interval < longest || e.position[j] < 0 || math.IsInf(alpha, 1) || gain > minGain || jointGain <= tol) {
			e.setAlpha(j, alpha)
			e.value += gain
			e.record()
			stepsSince++
			if err := e.t.Step("solve", 0.1+0.85*progressOf(gain, start, tol, step)); err != nil {
				return err
			}
			continue
		}
		// Recompute Σ, because sums of many small changes lose digits.
		if err := e.posterior(); err != nil {
			return err
		}
		// Early steps of all α would lead to a lower maximum than steps that add and remove functions. Before
		// interval is longest, change only the noise.
		improve := e.newtonStep
		if interval < longest {
			improve = e.updateNoise
		}
		for range 3 {
			var err error
			if jointGain, err = improve(); err != nil {
				return err
			}
			if jointGain <= max(tol, minGain) || interval < longest {
				break
			}
		}
		if err := e.statistics(); err != nil {
			return err
		}
		e.record()
		if _, _, gain := e.choose(); gain <= tol && jointGain <= tol {
			return nil
		}
		stepsSince, interval = 0, min(2*interval, longest)
		if err := e.t.Step("solve", 0.1+0.85*progressOf(jointGain, start, tol, step)); err != nil {
			return err
		}
	}
	_, _, gain := e.choose()
	e.warnLimit(limit, gain, tol)
	return e.refresh()
}

// dependentTol bounds S relative to φᵀφ: a smaller S counts as a rounding error, and φ as a linear combination of
// the functions in the model.
const dependentTol = 1e-10

// choose sets each S that is a rounding error to 0 and calls the function choose.
func (e *evidence) choose() (best int, alpha, gain float64) {
	for j := range e.s {
		if e.position[j] < 0 && e.s[j] <= dependentTol*e.beta*e.g.Row(j)[j] {
			e.s[j] = 0
		}
	}
	list := e.means()
	return choose(e.s, e.q, list[len(list)-1].q, e.alpha, e.position, len(e.active), nil)
}

// choose returns the basis function whose change of α increases the evidence most, its new α, and the increase (eq. 27,
// 32 and 37 of Tipping and Faul). The new α is +Inf for a function to remove. The argument s holds S, and first·second
// is Q². choose skips the functions in rejected, and the functions with S = 0 outside the model.
func choose(s, first, second, alphas []float64, position []int, active int, rejected map[int]bool) (best int, alpha, gain float64) {
	best = -1
	for j, a := range alphas {
		if rejected[j] {
			continue
		}
		if to, delta := bestAlpha(s[j], first[j]*second[j], a, position[j] >= 0, active); delta > gain {
			best, alpha, gain = j, to, delta
		}
	}
	return best, alpha, gain
}

// bestAlpha returns the best α of a function whose present α is a, and the gain of the evidence. The gain is 0 if
// no change increases the evidence. The argument in reports whether the function is in the model.
func bestAlpha(S, Q2, a float64, in bool, active int) (to, gain float64) {
	s, q2 := S, Q2
	if in { // S and Q² for the model without the function
		if !(a > s) {
			return a, 0 // a ≤ s is a rounding error, which the next refresh corrects
		}
		s, q2 = a*s/(a-s), a*q2/(a-s)*(a/(a-s))
	}
	if !(s > 0) {
		return a, 0
	}
	theta := q2 - s
	switch {
	case theta > 0 && in:
		to = s * s / theta
		change := 1/to - 1/a
		if change == 0 || !(1+S*change > 0) {
			return a, 0
		}
		return to, (Q2/(S+1/change) - math.Log1p(S*change)) / 2
	case theta > 0:
		return s * s / theta, (theta/s + elementary.Log(s/q2)) / 2
	case in && active > 1:
		return math.Inf(1), (Q2/(S-a) - math.Log1p(-S/a)) / 2
	}
	return a, 0
}

// setAlpha changes α_j and updates Σ, μ, S and Q (appendix of Tipping and Faul).
func (e *evidence) setAlpha(j int, alpha float64) {
	p := e.position[j]
	switch {
	case p < 0:
		e.add(j, alpha)
	case math.IsInf(alpha, 1):
		e.rankOne(p, 1/e.sigma[p][p])
		last := len(e.active) - 1
		e.sigma[p] = e.sigma[last]
		e.sigma = e.sigma[:last]
		for q := range e.sigma {
			e.sigma[q][p] = e.sigma[q][last]
			e.sigma[q] = e.sigma[q][:last]
		}
		for _, l := range e.means() {
			l.mu[p] = l.mu[last]
			l.mu = l.mu[:last]
		}
		e.remove(j)
	default:
		e.rankOne(p, 1/(e.sigma[p][p]+1/(alpha-e.alpha[j])))
		e.alpha[j] = alpha
	}
}

// rankOne subtracts κccᵀ from Σ, where c is column p of Σ, and updates S, Q and μ.
func (e *evidence) rankOne(p int, kappa float64) {
	column := append([]float64(nil), e.sigma[p]...)
	h := make([]float64, len(e.s))
	for q, v := range column {
		numeric.Axpy(e.beta*v, e.g.Row(e.active[q]), h)
	}
	for i, v := range h {
		e.s[i] += kappa * v * v
	}
	for q, v := range column {
		numeric.Axpy(-kappa*v, column, e.sigma[q])
	}
	for _, l := range e.means() {
		mu := l.mu[p]
		numeric.Axpy(kappa*mu, h, l.q)
		numeric.Axpy(-kappa*mu, column, l.mu)
	}
}

func (e *evidence) add(j int, alpha float64) {
	k := len(e.active)
	u, h := make([]float64, k), append([]float64(nil), e.g.Row(j)...)
	for p := range k {
		for q, i := range e.active {
			u[p] += e.sigma[p][q] * e.g.Row(j)[i]
		}
		numeric.Axpy(-e.beta*u[p], e.g.Row(e.active[p]), h)
	}
	variance := 1 / (alpha + e.s[j])
	row := make([]float64, k+1)
	for p := range k {
		numeric.Axpy(e.beta*e.beta*variance*u[p], u, e.sigma[p])
		row[p] = -e.beta * variance * u[p]
		e.sigma[p] = append(e.sigma[p], row[p])
	}
	row[k] = variance
	e.sigma = append(e.sigma, row)
	for i, v := range h {
		e.s[i] -= variance * e.beta * v * e.beta * v
	}
	for _, l := range e.means() {
		mu := variance * l.q[j]
		numeric.Axpy(-mu*e.beta, u, l.mu)
		numeric.Axpy(-mu*e.beta, h, l.q)
		l.mu = append(l.mu, mu)
	}
	e.insert(j, alpha)
}

package lsq

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/run"
)

// L0 is the problem of fitting w and b, for each output, to samples x_i with targets y_i and weights w_i:
//
//	min Σ_i w_i (y_i − wᵀx_i − b)² + Lambda·‖w‖₀
//
// If Support is positive, the constraint ‖w‖₀ ≤ Support replaces the penalty.
type L0 struct {
	Lambda  float64 // ignored if Support is positive
	Support int
	MaxIter int // maximum number of steps of iterative hard thresholding
}

// L0Fit is the best subset, or a local minimum if the search for the best subset is not complete.
type L0Fit struct {
	Coef      backend.Host[float64]
	Intercept []float64
	Complete  bool // whether the search for the best subset was complete for each output
	Steps     int  // number of steps of iterative hard thresholding
	Warnings  []string
}

// L0Bytes returns the memory of L0 for n rows, in bytes.
func (c *Samples) L0Bytes(l L0, n int) int64 {
	columns := int64(c.d)
	if l.Support > 0 {
		columns = int64(l.Support)
	}
	bytes := c.normalBytes(n) + c.factorBytes(n, columns)
	if c.d <= subsetColumns {
		return max(bytes, c.qrBytes(n))
	}
	return bytes
}

// L0 solves l. For up to 64 columns it searches over subsets of the columns. For more columns, or
// if the search does not complete, it uses iterative hard thresholding.
func (c *Samples) L0(t *run.Task, l L0) (*L0Fit, error) {
	m := &L0Fit{Coef: backend.NewHost[float64](c.d, c.t)}
	objectives, complete := make([]float64, c.t), make([]bool, c.t)
	var err error
	if c.d <= subsetColumns {
		if objectives, complete, err = c.searchSubsets(t, l, m); err != nil {
			return nil, err
		}
	}
	if m.Complete = !slices.Contains(complete, false); !m.Complete {
		if err := l.descend(t, c, m, objectives, complete); err != nil {
			return nil, err
		}
	}
	m.Intercept = c.intercepts(m.Coef)
	return m, t.Step("solve", 1)
}

// descend runs iterative hard thresholding for each output whose search is not complete. objectives holds the
// objectives of the searches. A result with a lower objective replaces that of the search.
func (l L0) descend(t *run.Task, c *Samples, m *L0Fit, objectives []float64, complete []bool) error {
	a, err := c.normal(t)
	if err != nil {
		return err
	}
	defer a.free()
	h, err := newThreshold(a, l)
	if err != nil {
		return err
	}
	for j, found := range complete {
		if found {
			continue
		}
		steps, decrease, err := h.minimize(j, l.MaxIter)
		m.Steps += steps
		if err != nil {
			return err
		}
		if decrease > 0 {
			m.Warnings = append(m.Warnings, fmt.Sprintf("output %d has not converged: the last of %s decreased the objective by %.2g of ‖y‖², and another step may decrease it further: {raise $iterations|raise $lambda}",
				j+1, count.Of(steps, "step"), decrease/a.moments.s[j]))
		}
		if c.d > subsetColumns || h.objective()+a.moments.s[j] < objectives[j] {
			for p, u := range h.u {
				m.Coef.Row(p)[j] = u * h.scale[p]
			}
		}
		if err := t.Step("solve", float64(j+1)/float64(c.t)); err != nil {
			return err
		}
	}
	return nil
}

// threshold implements iterative hard thresholding for columns scaled to norm 1, with the weights u = w/scale.
type threshold struct {
	a         *normal
	l         L0
	scale     []float64 // 1/‖x_p‖ of each column; 0 for a constant column
	lipschitz float64   // ≥ the largest eigenvalue of the scaled XᵀX
	u, q      []float64 // u, and q = XᵀXu for the scaled X
	c         []float64 // Xᵀy for the scaled X
}

func newThreshold(a *normal, l L0) (*threshold, error) {
	h := &threshold{a: a, l: l, scale: a.diagonal(), u: make([]float64, a.c.d), q: make([]float64, a.c.d), c: make([]float64, a.c.d)}
	live := 0
	for p, v := range h.scale {
		if v > 0 {
			h.scale[p] = 1 / math.Sqrt(v)
			live++
		}
	}
	largest, err := a.largest(h.scale)
	// The power method gives a lower bound on the largest eigenvalue. The trace, which is the number of nonzero
	// columns, is an upper bound.
	h.lipschitz = min(1.1*largest, float64(live))
	return h, err
}

// objective returns ‖y − Xw‖² − ‖y‖² plus the penalty.
func (h *threshold) objective() float64 {
	sum := 0.0
	for p, u := range h.u {
		sum += u * (h.q[p] - 2*h.c[p])
		if u != 0 && h.l.Support == 0 {
			sum += h.l.Lambda
		}
	}
	return sum
}

// minimize sets u to the best solution for output j that it finds in at most limit steps. It returns the number of
// steps and, if the iteration has not converged, the decrease of the objective in the last step.
func (h *threshold) minimize(j, limit int) (steps int, decrease float64, err error) {
	for p, c := range h.a.moments.c.Row(j) {
		h.u[p], h.q[p], h.c[p] = 0, 0, c*h.scale[p]
	}
	if h.lipschitz == 0 {
		return 0, 0, nil
	}
	minimum := h.objective()
	var previousColumns, columns []int // the columns with a nonzero weight, before and after a step
	u := make([]float64, len(h.u))
	bestU, bestQ := slices.Clone(h.u), slices.Clone(h.q)
	startU, startQ := make([]float64, len(h.u)), make([]float64, len(h.u))
	for step := 1; step <= limit; step++ {
		if err := h.a.t.Step("solve", float64(j)/float64(h.a.c.t)); err != nil {
			return step, 0, err
		}
		copy(startU, h.u)
		copy(startQ, h.q)
		// A step of length 1/lipschitz never increases the objective, but a longer step may select better columns.
		// Try lengths from 1 to 1/lipschitz, and use the step with the smallest objective.
		previous, moved := minimum, false
		for length, end := 1.0, false; !end; length /= 2 {
			if length <= 1/h.lipschitz {
				length, end = 1/h.lipschitz, true
			}
			for p := range u {
				u[p] = startU[p] + length*(h.c[p]-startQ[p])
			}
			selected := h.selectColumns(u, length)
			if slices.Equal(selected, previousColumns) { // the current weights are already the minimum over these columns
				continue
			}
			clear(h.u)
			for _, p := range selected {
				h.u[p] = u[p]
			}
			if err := h.refit(selected); err != nil {
				return step, 0, err
			}
			if err := h.apply(); err != nil {
				return step, 0, err
			}
			if now := h.objective(); now < minimum-16*epsilon*h.a.moments.s[j] {
				minimum, columns, moved = now, selected, true
				copy(bestU, h.u)
				copy(bestQ, h.q)
			}
		}
		copy(h.u, bestU)
		copy(h.q, bestQ)
		previousColumns, decrease = columns, previous-minimum
		if !moved {
			return step, 0, nil
		}
	}
	return limit, decrease, nil
}

// selectColumns returns the indices of the elements of u that the threshold does not set to 0, in
// ascending order. Of elements with equal absolute values it selects the first.
func (h *threshold) selectColumns(u []float64, length float64) []int {
	var selected []int
	for p, v := range u {
		// a nonzero weight v decreases the quadratic model of this step by v²/length
		if h.scale[p] != 0 && v != 0 && (h.l.Support > 0 || v*v > h.l.Lambda*length) {
			selected = append(selected, p)
		}
	}
	s := h.a.c.n // any n+1 columns of n rows are linearly dependent
	if h.l.Support > 0 {
		s = min(s, h.l.Support)
	}
	if len(selected) > s {
		slices.SortStableFunc(selected, func(p, q int) int { return -cmp.Compare(math.Abs(u[p]), math.Abs(u[q])) })
		selected = selected[:s]
		slices.Sort(selected)
	}
	return selected
}

// refit minimizes over the selected weights. If their columns are linearly dependent, it drops redundant columns.
func (h *threshold) refit(selected []int) error {
	if len(selected) == 0 {
		return nil
	}
	f, err := h.a.factor(selected, h.scale)
	if err != nil {
		return err
	}
	v := make([]float64, len(selected))
	for i, p := range selected {
		v[i] = h.c[p] / h.scale[p]
	}
	f.solve(v)
	for i, p := range selected {
		h.u[p] = v[i] / h.scale[p]
	}
	return nil
}

// apply computes q = XᵀXu for the scaled X.
func (h *threshold) apply() error {
	w := make([]float64, len(h.u))
	for p, u := range h.u {
		w[p] = u * h.scale[p]
	}
	if err := h.a.apply(h.q, w); err != nil {
		return err
	}
	for p, s := range h.scale {
		h.q[p] *= s
	}
	return nil
}

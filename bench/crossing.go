package bench

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/solvers"
)

// Plane is what a crossover measured of one device in one precision.
type Plane struct {
	Device, Precision string
	Primal, Dual      string // the entrants
	N, M              []int  // of the grid, rising
	Points            []Point
	Costs             solvers.Costs // fitted to the stages
	Fitted            bool          // there are costs
}

// Point is a point of the grid.
type Point struct {
	N, M         int
	Cell         *Cell
	Primal, Dual *Run
}

// Ratio is how many times as long as the primal the dual takes: above 1 the
// primal is the faster.
func (p *Point) Ratio() float64 { return p.Dual.Time.Median / p.Primal.Time.Median }

// Clear tells whether one form's slowest timing is below the other's fastest.
func (p *Point) Clear() bool {
	return p.Primal.Time.Max < p.Dual.Time.Min || p.Dual.Time.Max < p.Primal.Time.Min
}

// Planes lists the devices and precisions of a crossover, in the order in which
// they were measured.
func (r *Result) Planes() []*Plane {
	var list []*Plane
	for _, precision := range r.values("precision") {
		for _, e := range r.Entrants {
			if e.Kind != OwnKind || e.Method != Primal {
				continue
			}
			p := &Plane{Device: e.Device, Precision: precision, Primal: e.Name}
			for _, o := range r.Entrants {
				if o.Kind == OwnKind && o.Method == Dual && o.Device == e.Device {
					p.Dual = o.Name
				}
			}
			for i := range r.Cells {
				c := &r.Cells[i]
				if c.Case.Get("precision") != precision {
					continue
				}
				q := Point{N: c.Case.Int("n"), M: c.Case.Int("m"), Cell: c, Primal: c.Run(p.Primal), Dual: c.Run(p.Dual)}
				if !q.Primal.Timed() || !q.Dual.Timed() {
					continue
				}
				p.Points = append(p.Points, q)
				p.N, p.M = append(p.N, q.N), append(p.M, q.M)
			}
			p.N = slices.Compact(slices.Sorted(slices.Values(p.N)))
			p.M = slices.Compact(slices.Sorted(slices.Values(p.M)))
			p.Costs, p.Fitted = p.fitCosts()
			list = append(list, p)
		}
	}
	return list
}

// At returns the point of n and m, nil when it was not measured.
func (p *Plane) At(n, m int) *Point {
	for i := range p.Points {
		if p.Points[i].N == n && p.Points[i].M == m {
			return &p.Points[i]
		}
	}
	return nil
}

// Crossing is where, for m features, the primal takes over from the dual.
type Crossing struct {
	M int
	N float64 // samples; 0: the dual wins at the least n already, or the primal nowhere
	// Beyond says on which side of the grid the crossing lies when it is not on
	// it: -1 below the least n, +1 above the greatest.
	Beyond int
}

// Crossings are where the measured times of both are equal: interpolated, for
// each m, between the logarithms of n and of the ratio of the times, at the last
// change of the winner as n rises.
func (p *Plane) Crossings() []Crossing {
	var list []Crossing
	for _, m := range p.M {
		var at *Point
		c := Crossing{M: m, Beyond: 1}
		for _, n := range p.N {
			next := p.At(n, m)
			if next == nil {
				continue
			}
			switch {
			case at == nil && next.Ratio() >= 1:
				c.Beyond = -1
			case at != nil && at.Ratio() < 1 && next.Ratio() >= 1:
				from, to := math.Log(at.Ratio()), math.Log(next.Ratio())
				part := -from / (to - from)
				c.N = math.Exp(math.Log(float64(at.N)) + part*math.Log(float64(next.N)/float64(at.N)))
				c.Beyond = 0
			case at != nil && at.Ratio() >= 1 && next.Ratio() < 1:
				c.N, c.Beyond = 0, 1
			}
			at = next
		}
		if at != nil {
			list = append(list, c)
		}
	}
	return list
}

// PredictedSeconds is what the cost model says that a form takes.
func (p *Plane) PredictedSeconds(form string, n, m int) float64 {
	c := p.Costs
	if form == Primal {
		return (c.CovarianceCost(n, m, 1) + c.FactorCost(m) + c.ThinCost(ridgeStages(Primal, n, m)[2])) / c.Rate
	}
	return (c.GramCost(n, m) + c.FactorCost(n) + c.ThinCost(ridgeStages(Dual, n, m)[2])) / c.Rate
}

// Predicted is the number of samples from which on the cost model takes the
// primal for m features, 0 when that is beyond 2³⁰.
func (p *Plane) Predicted(m int) int {
	primal := func(n int) bool { return p.PredictedSeconds(Primal, n, m) <= p.PredictedSeconds(Dual, n, m) }
	low, high := 0, 1
	for !primal(high) {
		if low, high = high, 2*high; high > 1<<30 {
			return 0
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; primal(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// Judgement is how well a rule chooses between primal and dual.
type Judgement struct {
	Rule           string
	Right, Of      int     // points of the grid at which it takes the faster
	Extra          float64 // what it takes over all points, beside the faster of both, as a part of that: 0 is best
	Worst          float64 // the most that it takes at a point, beside the faster: 1 is best
	WorstN, WorstM int     // where
}

// Judge compares the rule "the primal when n ≥ m", the built-in cost model and
// the fitted one with what was measured.
func (p *Plane) Judge() []Judgement {
	builtin, fitted := *p, *p
	builtin.Costs = solvers.BuiltinCosts()
	rules := []struct {
		name   string
		primal func(n, m int) bool
	}{
		{"primal when n ≥ m", func(n, m int) bool { return n >= m }},
		{"built-in costs", builtin.primalIsCheaper},
	}
	if p.Fitted {
		rules = append(rules, struct {
			name   string
			primal func(n, m int) bool
		}{"fitted costs", fitted.primalIsCheaper})
	}
	var list []Judgement
	for _, rule := range rules {
		j := Judgement{Rule: rule.name, Worst: 1}
		var taken, best float64
		for i := range p.Points {
			q := &p.Points[i]
			primal, dual := q.Primal.Time.Median, q.Dual.Time.Median
			mine, least := dual, min(primal, dual)
			if rule.primal(q.N, q.M) {
				mine = primal
			}
			j.Of++
			if mine == least {
				j.Right++
			}
			if mine/least > j.Worst {
				j.Worst, j.WorstN, j.WorstM = mine/least, q.N, q.M
			}
			taken, best = taken+mine, best+least
		}
		if best > 0 {
			j.Extra = taken/best - 1
		}
		list = append(list, j)
	}
	return list
}

func (p *Plane) primalIsCheaper(n, m int) bool {
	return p.PredictedSeconds(Primal, n, m) <= p.PredictedSeconds(Dual, n, m)
}

// String is the rule's record in words.
func (j Judgement) String() string {
	text := fmt.Sprintf("%s: right at %d of %d points", j.Rule, j.Right, j.Of)
	if j.Right < j.Of {
		text += fmt.Sprintf(", at worst %s × the faster's time (n = %d, m = %d)", Times(j.Worst), j.WorstN, j.WorstM)
	}
	return text
}

// fitCosts fits the constants of the cost model to the medians of the stages, by
// least squares of the relative differences, none below 0. Stages that are
// shorter than lawful, a solve than a fifth of it, are left out. It returns false when too few are left.
func (p *Plane) fitCosts() (solvers.Costs, bool) {
	var gram, factor, solve system
	for i := range p.Points {
		q := &p.Points[i]
		n, m := float64(q.N), float64(q.M)
		for _, s := range q.Primal.Stages {
			switch s.Name {
			case GramStage:
				gram.add(lawful, s.Time.Median, s.Work, n*m, m*m, 0)
			case FactorStage:
				factor.add(lawful, s.Time.Median, s.Work, m*m)
			case SolveStage:
				solve.add(lawful/5, s.Time.Median, s.Work)
			}
		}
		for _, s := range q.Dual.Stages {
			switch s.Name {
			case GramStage:
				gram.add(lawful, s.Time.Median, s.Work, n*m, 0, n*n)
			case FactorStage:
				factor.add(lawful, s.Time.Median, s.Work, n*n)
			case SolveStage:
				solve.add(lawful/5, s.Time.Median, s.Work)
			}
		}
	}
	g, f, s := gram.solve(4), factor.solve(2), solve.solve(1)
	if g == nil || f == nil || s == nil { // the grid is too small to show a rate
		return solvers.Costs{}, false
	}
	return solvers.Costs{
		Rate:  1 / g[0],
		Input: g[1] / g[0], Covariance: g[2] / g[0], Gram: g[3] / g[0],
		Potrf: g[0] / f[0], Panel: f[1] / g[0],
		Thin: g[0] / s[0],
	}, true
}

// MachineCosts are the fitted costs of a crossover's devices in float64, for
// solvers.SaveCosts.
func (r *Result) MachineCosts() []solvers.MachineCosts {
	var list []solvers.MachineCosts
	for _, p := range r.Planes() {
		e := r.Entrant(p.Primal)
		if p.Precision == "float64" && p.Fitted {
			list = append(list, solvers.MachineCosts{
				Device: p.Device, Processor: e.Processor, Threads: e.Threads, Measured: r.Started.UTC(), Costs: p.Costs,
			})
		}
	}
	return list
}

// system is a least squares problem: seconds as a sum of terms.
type system struct {
	rows [][]float64
}

// add adds what took so many seconds, which the terms explain, if that is more
// than least.
func (s *system) add(least, seconds float64, terms ...float64) {
	if !(seconds > least) {
		return
	}
	row := make([]float64, len(terms))
	for i, t := range terms {
		row[i] = t / seconds
	}
	s.rows = append(s.rows, row)
}

// solve returns the factors ≥ 0 of the terms with the least squares of
// Σ factors·row − 1, the first above 0: it is the work, without which there is no
// rate, whatever noise says. nil when there are not more rows than factors. There
// are so few factors that every set of those that are not 0 can be tried.
func (s *system) solve(terms int) []float64 {
	if len(s.rows) <= terms {
		return nil
	}
	var best []float64
	least := math.Inf(1)
	ones := mat.NewVecDense(len(s.rows), nil)
	for i := range s.rows {
		ones.SetVec(i, 1)
	}
	for set := 1; set < 1<<terms; set += 2 { // with the first
		var used []int
		for i := range terms {
			if set>>i&1 == 1 {
				used = append(used, i)
			}
		}
		a := mat.NewDense(len(s.rows), len(used), nil)
		for j, i := range used {
			// Terms differ by many powers of ten: columns of length 1.
			for k, row := range s.rows {
				a.Set(k, j, row[i])
			}
		}
		lengths := make([]float64, len(used))
		for j := range used {
			if lengths[j] = mat.Norm(a.ColView(j), 2); lengths[j] == 0 {
				lengths[j] = 1
			}
			for k := range s.rows {
				a.Set(k, j, a.At(k, j)/lengths[j])
			}
		}
		var x, left mat.VecDense
		if x.SolveVec(a, ones) != nil {
			continue
		}
		left.MulVec(a, &x)
		left.SubVec(ones, &left)
		if mat.Min(&x) < 0 || mat.Norm(&left, 2) >= least {
			continue
		}
		least, best = mat.Norm(&left, 2), make([]float64, terms)
		for j, i := range used {
			best[i] = x.AtVec(j) / lengths[j]
		}
	}
	return best
}

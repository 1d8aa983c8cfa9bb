package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// CrossoverKind measures ridge regression by the primal and by the dual solver over a grid of n samples and
// m features, to find where the dual solver becomes faster than the primal solver. The Result has the cases
// {n, m} and the implementations "mercer DEVICE primal" and "mercer DEVICE dual".
const CrossoverKind = "crossover"

// These are the two forms of ridge regression.
const (
	primal = "primal" // (XᵀX + λI)w = Xᵀy, an m×m system
	dual   = "dual"   // (XXᵀ + λI)α = y, an n×n system; w = Xᵀα
)

var forms = []solvers.Method{solvers.Primal, solvers.Dual}

func runCrossover(ctx context.Context, b Benchmark) (*Result, error) {
	l, err := b.open(ctx)
	defer l.close()
	if err != nil {
		return nil, err
	}
	var list []Implementation
	for _, d := range l.devices {
		for _, form := range forms {
			e := ownImplementation(d)
			e.Name, e.Method, e.Processor = ridgeName(d, form), string(form), d.Info().Processor
			list = append(list, e)
		}
	}
	r, err := b.Runner.Run(ctx, CrossoverKind, list, l.gridTasks())
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, fmt.Sprintf("data: the elements of X are independent, of mean 0 and variance 1; y = Xv + noise; λ = n + m; both forms in float64, to a residual of %.0e", fitTol))
	return r, nil
}

func ridgeName(d backend.Device, form solvers.Method) string {
	return ownName(d) + " " + string(form)
}

func (l *setup) gridTasks() []Task {
	var list []Task
	for _, n := range l.Sizes {
		for _, m := range l.Widths {
			list = append(list, Task{
				Case:   Case{{"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}},
				Weight: float64(n)*float64(m)*float64(n+m) + leastWeight,
				Start: func(context.Context) ([]Entry, error) {
					p := newRidge(n, m)
					var entries []Entry
					for _, d := range l.devices {
						for _, form := range forms {
							entries = append(entries, l.plannedEntry(d, ridgeName(d, form), "", p.planned(l, d, form), p.limit()))
						}
					}
					return entries, nil
				},
			})
		}
	}
	return list
}

// leastWeight, the part of the weight of a case that accounts for pauses, is the same for all cases.
const leastWeight = 1e9

// ridge is a regression problem. The systems of its primal and its dual form have a condition number of at most 3,
// because the elements of X are independent, of mean 0 and variance 1, and λ = n + m.
type ridge struct {
	lambda float64
	x, y   backend.Host[float64]
}

// newRidge returns the regression y = Xv + ε with ‖v‖ about 1 and ε of variance 1/100.
func newRidge(n, m int) *ridge {
	p := &ridge{lambda: float64(n + m), x: backend.NewHost[float64](n, m), y: backend.NewHost[float64](n, 1)}
	rng := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	uniform := func() float64 { return math.Sqrt(3) * (2*rng.Float64() - 1) }
	v := make([]float64, m)
	for j := range v {
		v[j] = uniform() / math.Sqrt(float64(m))
	}
	for i := range n {
		row := p.x.Row(i)
		for j := range row {
			row[j] = uniform()
		}
		p.y.Data[i] = floats.Dot(row, v) + 0.1*uniform()
	}
	return p
}

// planned returns a fit of the regression by the given form, with its plan.
func (p *ridge) planned(l *setup, d backend.Device, form solvers.Method) plannedFit {
	problem := solvers.Problem{Kernel: kernels.Linear{}, X: p.x, Y: p.y, Lambda: p.lambda}
	par := solvers.Params{Method: form, Tol: fitTol, Memory: l.Memory}
	plan, err := solvers.MakePlan(d, problem, par)
	return plannedFit{plan, err, func() (solution, error) {
		res, err := solvers.Solve(l.ctx, d, problem, par)
		if err != nil {
			return solution{}, err
		}
		return solution{res: res, residual: func() (float64, error) { return p.residual(res.Coef.Data), nil }}, nil
	}}
}

func (p *ridge) normal(r []float64) []float64 {
	var v mat.VecDense
	v.MulVec(matrixOf(p.x).T(), mat.NewVecDense(len(r), r))
	return v.RawVector().Data
}

// residual returns ‖Xᵀ(y − Xw) − λw‖ / ‖Xᵀy‖, the residual of the primal system, for a w of either form.
func (p *ridge) residual(w []float64) float64 {
	var xw mat.VecDense
	xw.MulVec(matrixOf(p.x), mat.NewVecDense(len(w), w))
	residual := p.normal(floats.SubTo(make([]float64, p.x.Rows), p.y.Data, xw.RawVector().Data))
	floats.AddScaled(residual, -p.lambda, w)
	return floats.Norm(residual, 2) / floats.Norm(p.normal(p.y.Data), 2)
}

// limit bounds the residual of the primal system for a w that either form has computed to the tolerance τ:
//   - For w = Xᵀα the residual is Xᵀr with r = y − (XXᵀ + λI)α and ‖r‖ ≤ τ‖y‖, so that it is at most τ‖X‖‖y‖.
//   - For the primal form the residual is at most τ‖Xᵀy‖, which is not larger.
//   - The solver and this package both compute a residual, with a rounding error of at most 2(n + m)u‖X‖²‖w‖ for
//     the unit roundoff u and the Frobenius norm of X (Higham 2002, section 3.5), where ‖w‖ ≤ ‖y‖/(2√λ).
func (p *ridge) limit() float64 {
	x, y := floats.Norm(p.x.Data, 2), floats.Norm(p.y.Data, 2)
	rounding := 2 * p.lambda * 0x1p-53 * x / math.Sqrt(p.lambda) // λ = n + m
	return (fitTol + rounding) * x * y / floats.Norm(p.normal(p.y.Data), 2)
}

// grid holds the measurements of a crossover on one device in one precision.
type grid struct {
	title  string
	n, m   []int // in increasing order
	points map[[2]int]point
}

// point holds the runs of both forms at a point of a grid.
type point struct{ primal, dual *Run }

// winner returns the faster form of a point, and the ratio of the longer time to the shorter time. unclear is true
// if the timings of the two forms overlap.
func (q point) winner() (form string, ratio float64, unclear bool) {
	form, ratio = primal, q.dual.Time.Median/q.primal.Time.Median
	if ratio < 1 {
		form, ratio = dual, 1/ratio
	}
	return form, ratio, q.primal.Time.Max >= q.dual.Time.Min && q.dual.Time.Max >= q.primal.Time.Min
}

// grids returns a grid for each device and precision of a crossover, in the order of the
// measurements. Only older measurements have a precision, float64 or float32, in their cases.
func (r *Result) grids() []*grid {
	var list []*grid
	for _, precision := range r.values("precision") {
		for _, e := range r.Implementations {
			if e.Kind != OwnKind || e.Method != primal {
				continue
			}
			dualEntry := find(r.Implementations, func(o *Implementation) bool { return o.Kind == OwnKind && o.Method == dual && o.Device == e.Device })
			if dualEntry == nil {
				continue
			}
			g := &grid{title: e.Device + ", " + cmp.Or(precision, "float64"), points: map[[2]int]point{}}
			for _, c := range r.filter("precision", precision).Cells {
				q := point{c.Run(e.Name), c.Run(dualEntry.Name)}
				if q.primal.Timed() && q.dual.Timed() {
					n, m := c.Case.Int("n"), c.Case.Int("m")
					g.points[[2]int{n, m}] = q
					g.n, g.m = append(g.n, n), append(g.m, m)
				}
			}
			g.n, g.m = slices.Compact(slices.Sorted(slices.Values(g.n))), slices.Compact(slices.Sorted(slices.Values(g.m)))
			if len(g.points) > 0 {
				list = append(list, g)
			}
		}
	}
	return list
}

// equalAt returns the number n of samples at which, for m features, the primal and the dual form take the same time.
// It interpolates log n linearly in the logarithm of the ratio of the times, between the last n at which the dual
// form is faster and the next n. It returns 0 if the primal form is faster at every n, and Inf if the dual form is
// faster at the largest n.
func (g *grid) equalAt(m int) float64 {
	equal, previous, previousN := 0.0, math.NaN(), 0
	for _, n := range g.n {
		q, ok := g.points[[2]int{n, m}]
		if !ok {
			continue
		}
		ratio := math.Log(q.dual.Time.Median / q.primal.Time.Median)
		switch {
		case ratio < 0:
			equal = math.Inf(1)
		case previous < 0:
			equal = float64(previousN) * math.Pow(float64(n)/float64(previousN), -previous/(ratio-previous))
		}
		previous, previousN = ratio, n
	}
	return equal
}

func crossoverReport(r *Result, p *Report) {
	p.Title = "Primal or dual? Ridge regression"
	grids := r.grids()
	if len(grids) == 0 {
		return
	}
	var equal []string
	maxRatio := 1.0
	for _, g := range grids {
		low, high := math.Inf(1), 0.0
		for _, m := range g.m {
			if n := g.equalAt(m); n > 0 && !math.IsInf(n, 1) {
				low, high = min(low, n/float64(m)), max(high, n/float64(m))
			}
		}
		if high > 0 {
			equal = append(equal, fmt.Sprintf("%.2f to %.2f m on %s", low, high, g.title))
		}
		for _, q := range g.points {
			_, ratio, _ := q.winner()
			maxRatio = max(maxRatio, ratio)
		}
		p.add(g.table())
	}
	p.Answer = fmt.Sprintf("n samples, m features: the slower form takes up to %s times as long as the other.", ratioText(maxRatio))
	if len(equal) > 0 {
		p.Answer += " Both take the same time at n = " + strings.Join(equal, ", ") + "; for larger n the primal form is faster."
	}
	p.add(r.tables("n", secondsQuantity, "time", figures)...)
}

// table returns a table of the faster form at each point, and of the factor by which it is faster.
func (g *grid) table() *Table {
	t := &Table{
		Title: g.title + ": the faster form, and how many times as fast as the other",
		Head:  []string{`n \ m`},
		Notes: []string{"The sign ~ means that the timings of both forms overlap. The last row has the number of samples from which on the primal form is faster."},
	}
	last := []Field{{Text: "equal at n"}}
	measured, diagonal := Curve{Name: "measured"}, Curve{Name: "n = m", Dashed: true}
	for _, m := range g.m {
		t.Head = append(t.Head, fmt.Sprint(m))
		n := g.equalAt(m)
		switch {
		case n == 0:
			last = append(last, Field{Text: fmt.Sprintf("< %d", g.n[0])})
		case math.IsInf(n, 1):
			last = append(last, Field{Text: fmt.Sprintf("> %d", g.n[len(g.n)-1])})
		default:
			last = append(last, Field{Text: fmt.Sprintf("%.0f", n)})
			measured.Points = append(measured.Points, Point{float64(m), n, n, n})
		}
		diagonal.Points = append(diagonal.Points, Point{float64(m), float64(m), float64(m), float64(m)})
	}
	for _, n := range g.n {
		row := []Field{{Text: fmt.Sprint(n)}}
		for _, m := range g.m {
			q, ok := g.points[[2]int{n, m}]
			if !ok {
				row = append(row, Field{Text: "–"})
				continue
			}
			form, ratio, unclear := q.winner()
			field := Field{Text: form + " " + ratioText(ratio), Class: form}
			if unclear {
				field = Field{Text: "~" + field.Text, Class: "even"}
			}
			row = append(row, field)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, last)
	if len(measured.Points) > 1 {
		t.Chart = &Chart{X: "m features", Y: "n samples", Curves: []Curve{measured, diagonal}}
	}
	return t
}

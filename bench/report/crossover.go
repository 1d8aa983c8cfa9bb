package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// The sides of the map.
const primalSide, dualSide = 0, 1

func crossoverPage(r *bench.Result) (*page, error) {
	p := newPage(r, "Primal or dual? Ridge regression on "+processor(r))
	p.Lead = r.CrossoverAnswer()
	p.Footer = "n samples, m features. Primal: (XᵀX + λI)w = Xᵀy, n m² + m³/3 operations; dual: (XXᵀ + λI)α = y, w = Xᵀα, m n² + n³/3 operations: " +
		"by that count they cross at n = m. Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). The cost model has seven constants, fitted to the stages of all points of a device and precision; " +
		"with --save those of float64 are what mercer fit chooses by."
	planes := r.Planes()
	if len(planes) == 0 || len(planes[0].Points) == 0 {
		return p, nil
	}
	p.Summary, p.SummaryNote = crossoverSummary(planes), "n/m: from how many samples for each feature on the primal was measured to be the faster. "+
		"A rule is right at a point of the grid when it takes the faster form; × is what its worst mistake costs."
	for _, make := range []func(*bench.Result, []*bench.Plane) (*section, error){mapSection, growthSection, rooflineSection, devicesSection} {
		s, err := make(r, planes)
		if err != nil {
			return nil, err
		}
		if len(s.Cards) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	p.Sections = append(p.Sections, lawsSection(r, planes), pointsSection(r, planes))
	return p, nil
}

func planeTitle(p *bench.Plane) string { return p.Device + ", " + p.Precision }

// crossoverSummary is the table of the first screen.
func crossoverSummary(planes []*bench.Plane) *summary {
	s := &summary{Head: []string{"", "n/m", "rule n ≥ m", "built-in costs", "fitted costs", "best primal", "best dual"}}
	for _, p := range planes {
		row := []cell{{Text: p.Device, Note: p.Precision}, {Text: "–"}}
		if low, high, ok := p.Ratios(); ok {
			row[1].Text = bench.Span(low, high)
		}
		judged := p.Judge()
		for i := range 3 {
			x := cell{Text: "–"}
			if i < len(judged) {
				j := judged[i]
				x.Text = fmt.Sprintf("%d of %d", j.Right, j.Of)
				if j.Right < j.Of {
					x.Text += fmt.Sprintf(", %s ×", bench.Times(j.Worst))
				}
			}
			row = append(row, x)
		}
		best := [2]float64{1, 1}
		at := [2]string{"–", "–"}
		for i := range p.Points {
			q := &p.Points[i]
			if form, times, _ := q.Winner(); times > best[sideOf(form)] {
				best[sideOf(form)] = times
				at[sideOf(form)] = fmt.Sprintf("%s × at %d × %d", bench.Times(times), q.N, q.M)
			}
		}
		s.Rows = append(s.Rows, append(row, cell{Text: at[primalSide]}, cell{Text: at[dualSide]}))
	}
	return s
}

func sideOf(form string) int {
	if form == bench.Primal {
		return primalSide
	}
	return dualSide
}

// mapSection has the map of each plane: who wins, and by how much.
func mapSection(r *bench.Result, planes []*bench.Plane) (*section, error) {
	s := &section{
		Title: "Who wins, and by how much",
		Text: "Each tile says how many times as fast as the other the faster form is: P primal, D dual; ~ where the timings of both overlap. " +
			"The lines are where both take the same time: as measured, by the count of operations, and by the cost model.",
	}
	for _, p := range planes {
		t := tiling{
			name: "who wins, " + planeTitle(p), x: "m features", y: "n samples", xs: p.M, ys: p.N,
			tile: func(m, n int) (tile, bool) {
				q := p.At(n, m)
				if q == nil {
					return tile{}, false
				}
				form, times, mark := q.Winner()
				return tile{side: sideOf(form), level: levelOf(times), text: mark + strings.ToUpper(form[:1]) + " " + bench.Times(times)}, true
			},
		}
		least, most := min(p.N[0], p.M[0]), max(p.N[len(p.N)-1], p.M[len(p.M)-1])
		even := line{name: "n = m", style: dashed, points: []point{{x: float64(least) / 2, y: float64(least) / 2}, {x: 2 * float64(most), y: 2 * float64(most)}}}
		// Halfway points let clip find where the diagonal enters a grid that is not square.
		even.points = dense(even.points)
		measured := line{name: "measured crossover", style: solid}
		for _, c := range p.Crossings() {
			if c.N > 0 {
				measured.points = append(measured.points, point{x: float64(c.M), y: c.N})
			}
		}
		t.lines = []line{even}
		if p.Fitted {
			model := line{name: "by the cost model", style: dotted}
			for m := float64(p.M[0]) / math.Sqrt2; m <= float64(p.M[len(p.M)-1])*math.Sqrt2; m *= 1.05 {
				if n := p.Predicted(int(math.Round(m))); n > 0 {
					model.points = append(model.points, point{x: m, y: float64(n)})
				}
			}
			t.lines = append(t.lines, model)
		}
		t.lines = append(t.lines, measured)
		picture, err := t.draw()
		if err != nil {
			return nil, err
		}
		c := card{Title: planeTitle(p), Picture: picture, Stamp: stamp(r), Head: []string{"m", "measured n", "n = m", "cost model"}}
		for _, x := range p.Crossings() {
			c.Rows = append(c.Rows, []cell{{Text: fmt.Sprint(x.M)}, {Text: x.Text(p)}, {Text: fmt.Sprint(x.M)}, {Text: p.PredictedText(x.M)}})
		}
		for _, j := range p.Judge() {
			c.Notes = append(c.Notes, j.String()+".")
		}
		s.Cards = append(s.Cards, c)
		if s.Legend == nil {
			if s.Legend, err = mapLegend(t.lines); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// dense puts points between two, so that clip loses little of the line.
func dense(ends []point) []point {
	const parts = 200
	var list []point
	for i := range parts + 1 {
		f := float64(i) / parts
		list = append(list, point{x: ends[0].x * math.Pow(ends[1].x/ends[0].x, f), y: ends[0].y * math.Pow(ends[1].y/ends[0].y, f)})
	}
	return list
}

func mapLegend(lines []line) ([]key, error) {
	var list []key
	for side, name := range []string{"primal faster: < 1.1, < 1.5, < 4, ≥ 4 ×", "dual faster"} {
		swatch, err := sideSwatch(side)
		if err != nil {
			return nil, err
		}
		list = append(list, key{swatch, name})
	}
	for _, l := range lines {
		swatch, err := l.swatch()
		if err != nil {
			return nil, err
		}
		list = append(list, key{swatch, l.name})
	}
	return list, nil
}

// The looks of the two forms and of what is fitted to them.
const primalLook, dualLook = 0, 1

// growthSection has the times against n for the middle and the largest m, with
// the cost model's.
func growthSection(r *bench.Result, planes []*bench.Plane) (*section, error) {
	s := &section{Title: "Time against n", Text: "Both axes are logarithmic; the dotted lines are the fitted cost model."}
	for _, p := range planes {
		chosen := []int{p.M[len(p.M)/2]}
		if last := p.M[len(p.M)-1]; last != chosen[0] {
			chosen = append(chosen, last)
		}
		for _, m := range chosen {
			f := figure{name: fmt.Sprintf("time against n, %s, m = %d", planeTitle(p), m), x: "n", y: "ms", logY: true}
			primal, dual := series{name: bench.Primal, look: primalLook}, series{name: bench.Dual, look: dualLook}
			c := card{Title: fmt.Sprintf("%s, m = %d: ms", planeTitle(p), m), Head: []string{"n", bench.Primal, bench.Dual, "the faster"}}
			for _, n := range p.N {
				q := p.At(n, m)
				if q == nil {
					continue
				}
				x := float64(n)
				primal.points = append(primal.points, at(x, inMilliseconds(q.Primal.Time)))
				dual.points = append(dual.points, at(x, inMilliseconds(q.Dual.Time)))
				form, times, mark := q.Winner()
				c.Rows = append(c.Rows, []cell{
					{Text: fmt.Sprint(n)}, timing(q.Primal, inMilliseconds(q.Primal.Time)), timing(q.Dual, inMilliseconds(q.Dual.Time)), {Text: mark + form + " " + bench.Times(times) + " ×"},
				})
			}
			f.series = []series{primal, dual}
			if p.Fitted {
				for _, form := range []string{bench.Primal, bench.Dual} {
					law := series{law: true, look: primalLook, name: "primal by the cost model"}
					if form == bench.Dual {
						law.look, law.name = dualLook, "dual by the cost model"
					}
					for n := float64(p.N[0]); n <= float64(p.N[len(p.N)-1])*1.001; n *= 1.1 {
						law.points = append(law.points, flat(n, 1e3*p.PredictedSeconds(form, int(math.Round(n)), m)))
					}
					f.series = append(f.series, law)
				}
			}
			if err := s.add(r, c, f); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// at is a measured point.
func at(x float64, v bench.Spread) point { return point{x: x, y: v.Median, low: v.Min, high: v.Max} }

// flat is a point without a bar.
func flat(x, y float64) point { return point{x: x, y: y, low: y, high: y} }

// inMilliseconds turns seconds into milliseconds.
func inMilliseconds(v bench.Spread) bench.Spread {
	v.Median, v.Min, v.Max = 1e3*v.Median, 1e3*v.Min, 1e3*v.Max
	return v
}

// timing is the cell of a measured value.
func timing(run *bench.Run, v bench.Spread) cell {
	x := cell{Text: bench.Figures(v.Median), Note: "once"}
	if len(run.Timings) > 1 {
		x.Note = bench.Figures(v.Min) + "–" + bench.Figures(v.Max) + strings.Repeat("°", v.Outliers)
	}
	return x
}

// rooflineSection has the rates of the stages where n = m, under the ceiling.
func rooflineSection(r *bench.Result, planes []*bench.Plane) (*section, error) {
	s := &section{
		Title: "Rates of the stages under the ceiling",
		Text:  "Square problems, n = m. The ceiling is the multiply-adds that the processor was seen to make in registers in the same case.",
	}
	for _, p := range planes {
		f := figure{name: "GFLOP/s against n = m, " + planeTitle(p), x: "n = m", y: "GFLOP/s"}
		curves := []struct {
			name, stage string
			run         func(*bench.Point) *bench.Run
		}{
			{"XᵀX", bench.GramStage, func(q *bench.Point) *bench.Run { return q.Primal }},
			{"XXᵀ", bench.GramStage, func(q *bench.Point) *bench.Run { return q.Dual }},
			{"Cholesky", bench.FactorStage, func(q *bench.Point) *bench.Run { return q.Dual }},
			{"solve", bench.SolveStage, func(q *bench.Point) *bench.Run { return q.Dual }},
		}
		c := card{Title: planeTitle(p) + ": GFLOP/s", Head: []string{"n = m"}}
		limit := series{name: "ceiling", limit: true}
		for i, curve := range curves {
			f.series = append(f.series, series{name: curve.name, look: i})
			c.Head = append(c.Head, curve.name)
		}
		c.Head = append(c.Head, "ceiling")
		for _, n := range p.N {
			q := p.At(n, n)
			if q == nil {
				continue
			}
			row := []cell{{Text: fmt.Sprint(n)}}
			for i, curve := range curves {
				run := curve.run(q)
				v, ok := bench.StageRate(curve.stage).Of(run)
				if !ok {
					row = append(row, cell{Text: "–"})
					continue
				}
				f.series[i].points = append(f.series[i].points, at(float64(n), v))
				x := timing(run, v)
				if run.Ceiling > 0 {
					x.Share = bench.Percent(v.Median / run.Ceiling)
				}
				row = append(row, x)
			}
			ceiling := cell{Text: "–"}
			if q.Primal.Ceiling > 0 {
				limit.points = append(limit.points, flat(float64(n), q.Primal.Ceiling))
				ceiling.Text = bench.Figures(q.Primal.Ceiling)
			}
			c.Rows = append(c.Rows, append(row, ceiling))
		}
		if len(c.Rows) == 0 {
			continue
		}
		f.series = append(f.series, limit)
		if err := s.add(r, c, f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// devicesSection compares the devices where n = m, by the faster form of each;
// it is empty when there is one device.
func devicesSection(r *bench.Result, planes []*bench.Plane) (*section, error) {
	s := &section{Title: "Device against device", Text: "The faster form of each device on square problems, n = m; the last column is how many times as fast as the first device the fastest one is."}
	groups := map[string][]*bench.Plane{}
	var order []string
	for _, p := range planes {
		if groups[p.Precision] == nil {
			order = append(order, p.Precision)
		}
		groups[p.Precision] = append(groups[p.Precision], p)
	}
	for _, precision := range order {
		group := groups[precision]
		if len(group) < 2 {
			continue
		}
		f := figure{name: "time of each device against n = m, " + precision, x: "n = m", y: "s", logY: true}
		c := card{Title: precision + ": s", Head: []string{"n = m"}}
		for i, p := range group {
			f.series = append(f.series, series{name: p.Device, look: i})
			c.Head = append(c.Head, p.Device)
		}
		c.Head = append(c.Head, "×")
		for _, n := range group[0].N {
			row := []cell{{Text: fmt.Sprint(n)}}
			var first, least float64
			for i, p := range group {
				q := p.At(n, n)
				if q == nil {
					row = append(row, cell{Text: "–"})
					continue
				}
				run := q.Primal
				if q.Ratio() < 1 {
					run = q.Dual
				}
				f.series[i].points = append(f.series[i].points, at(float64(n), run.Time))
				row = append(row, timing(run, run.Time))
				if i == 0 {
					first, least = run.Time.Median, run.Time.Median
				}
				least = min(least, run.Time.Median)
			}
			if len(f.series[0].points) == 0 {
				continue
			}
			c.Rows = append(c.Rows, append(row, cell{Text: bench.Times(first / least)}))
		}
		if len(c.Rows) == 0 {
			continue
		}
		if err := s.add(r, c, f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// lawsSection lists what was fitted: the laws of growth and the cost model.
func lawsSection(r *bench.Result, planes []*bench.Plane) *section {
	s := &section{
		Title: "What was fitted",
		Text:  "The growth of the stages that take 0.1 ms and more, beside that of the count of operations; the deviation is the root mean square of the logarithm.",
	}
	for _, p := range planes {
		c := card{Title: planeTitle(p), Stamp: stamp(r), Head: []string{"", "stage", "seconds", "operations", "deviation", "points"}}
		for _, g := range r.Laws(p) {
			c.Rows = append(c.Rows, []cell{
				{Text: r.Entrant(g.Entrant).Method}, {Text: strings.TrimSuffix(g.Quantity, " seconds")}, {Text: g.String()},
				{Text: r.Theory(g)}, {Text: bench.Percent(g.Spread)}, {Text: fmt.Sprint(g.Cells)},
			})
		}
		c.Notes = []string{"The grid is too small for the cost model."}
		if p.Fitted {
			c.Notes = []string{"Cost model: " + p.CostText() + "."}
		}
		s.Cards = append(s.Cards, c)
	}
	return s
}

// pointsSection lists every point of the grid with its stages.
func pointsSection(r *bench.Result, planes []*bench.Plane) *section {
	s := &section{Title: "Every point", Text: "Milliseconds, with the rate in GFLOP/s below; the operations are counted, n m² and so on, not measured."}
	for _, p := range planes {
		c := card{Title: planeTitle(p) + ": ms", Stamp: stamp(r), Head: []string{"n × m", "", "flops", "all", bench.GramStage, bench.FactorStage, bench.SolveStage}}
		for i := range p.Points {
			q := &p.Points[i]
			for _, run := range []*bench.Run{q.Primal, q.Dual} {
				name := bench.Dual
				if run == q.Primal {
					name = bench.Primal
				}
				row := []cell{{Text: fmt.Sprintf("%d × %d", q.N, q.M)}, {Text: name}, {Text: fmt.Sprintf("%.3g", run.Work)}, timing(run, inMilliseconds(run.Time))}
				for _, stage := range []string{bench.GramStage, bench.FactorStage, bench.SolveStage} {
					x := cell{Text: "–"}
					if v := run.Stage(stage); v != nil {
						x.Text = bench.Figures(1e3 * v.Time.Median)
						if rate, ok := bench.StageRate(stage).Of(run); ok && v.Time.Median > 0 {
							x.Note = bench.Figures(rate.Median)
						}
					}
					row = append(row, x)
				}
				c.Rows = append(c.Rows, row)
			}
		}
		s.Cards = append(s.Cards, c)
	}
	return s
}

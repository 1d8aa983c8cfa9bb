package markdown

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// plane is the device and precision that a block asks for: those named by device=
// and precision=, or else the first.
func (c call) plane() (*bench.Plane, error) {
	for _, p := range c.file.Result.Planes() {
		if (c.args["device"] == "" || p.Device == c.args["device"]) && (c.args["precision"] == "" || p.Precision == c.args["precision"]) && len(p.Points) > 0 {
			return p, nil
		}
	}
	return nil, errors.New("no device and precision fit the arguments")
}

// crossoverMap says who wins at each point, and by how much.
func crossoverMap(c call) (string, error) {
	p, err := c.plane()
	if err != nil {
		return "", err
	}
	head := []string{fmt.Sprintf("%s, %s: n \\ m", p.Device, p.Precision)}
	for _, m := range p.M {
		head = append(head, fmt.Sprint(m))
	}
	rows := [][]string{head}
	for _, n := range p.N {
		row := []string{fmt.Sprint(n)}
		for _, m := range p.M {
			text := "–"
			if q := p.At(n, m); q != nil {
				form, times, mark := q.Winner()
				text = mark + form + " " + bench.Times(times)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return table(rows), nil
}

// crossoverCurve is where both take the same time: measured, by the count of
// operations and by the cost model, for every device and precision.
func crossoverCurve(c call) (string, error) {
	var planes []*bench.Plane
	head := []string{"m"}
	for _, p := range c.file.Result.Planes() {
		if len(p.Points) > 0 {
			planes = append(planes, p)
			title := p.Device + ", " + p.Precision
			head = append(head, title+", measured n", "by the cost model")
		}
	}
	if len(planes) == 0 {
		return "", errors.New("nothing was measured")
	}
	rows := [][]string{head}
	for i, first := range planes[0].Crossings() {
		row := []string{fmt.Sprint(first.M)}
		for _, p := range planes {
			x := p.Crossings()[i]
			row = append(row, x.Text(p), p.PredictedText(x.M))
		}
		rows = append(rows, row)
	}
	return table(rows), nil
}

// crossoverLaws are the fitted exponents beside those of the count, and the cost
// model.
func crossoverLaws(c call) (string, error) {
	rows := [][]string{{"", "stage", "measured, s", "operations", "deviation"}}
	var models []string
	r := c.file.Result
	for _, p := range r.Planes() {
		for _, g := range r.Laws(p) {
			rows = append(rows, []string{
				fmt.Sprintf("%s, %s, %s", p.Device, p.Precision, r.Entrant(g.Entrant).Method),
				strings.TrimSuffix(g.Quantity, " seconds"), g.String(), r.Theory(g), bench.Percent(g.Spread),
			})
		}
		if p.Fitted {
			models = append(models, fmt.Sprintf("- Cost model, %s, %s: %s.", p.Device, p.Precision, p.CostText()))
		}
	}
	if len(rows) == 1 {
		return "", errors.New("no law was fitted")
	}
	return table(rows) + "\n" + strings.Join(models, "\n"), nil
}

// crossoverRates are the rates of the stages where n = m.
func crossoverRates(c call) (string, error) {
	p, err := c.plane()
	if err != nil {
		return "", err
	}
	rows := [][]string{{fmt.Sprintf("%s, %s, GFLOP/s: n = m", p.Device, p.Precision), "XᵀX", "XXᵀ", "Cholesky", "solve", "ceiling"}}
	for _, n := range p.N {
		q := p.At(n, n)
		if q == nil {
			continue
		}
		row := []string{fmt.Sprint(n)}
		for _, x := range []struct {
			run   *bench.Run
			stage string
		}{{q.Primal, bench.GramStage}, {q.Dual, bench.GramStage}, {q.Dual, bench.FactorStage}, {q.Dual, bench.SolveStage}} {
			text := "–"
			if v, ok := bench.StageRate(x.stage).Of(x.run); ok {
				text = whole(v.Median)
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, whole(q.Primal.Ceiling)))
	}
	return table(rows), nil
}

package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// plannedProblem is a Problem for which TestPlanner measures the time of every method.
type plannedProblem struct {
	name   string
	kernel kernels.Kernel
	x, y   backend.Host[float64]
	lambda float64
}

// TestPlanner measures the time of each method on 52 problems, compares the times with the planner's costs, and
// appends a table to the file MERCER_PLANNER. The regret of a problem is the time of the chosen method divided by
// the time of the fastest method. The test needs a machine without other load. MERCER_PLANNER_PART = 2/5 selects
// the second of five parts of the problems.
func TestPlanner(t *testing.T) {
	file := os.Getenv("MERCER_PLANNER")
	if file == "" {
		t.Skip("takes minutes: make planner runs it")
	}
	dev, err := backend.Open(os.Getenv("MERCER_PLANNER_DEVICE"), backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	part, parts := 0, 1
	if text := os.Getenv("MERCER_PLANNER_PART"); text != "" {
		if _, err := fmt.Sscanf(text, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
			t.Fatalf("MERCER_PLANNER_PART is %q, not such as 2/5", text)
		}
		part--
	}
	var table strings.Builder
	var regrets []float64
	for i, p := range plannedProblems(t) {
		if i%parts != part {
			continue
		}
		row, regret := p.compare(t, dev)
		fmt.Fprintln(&table, row)
		if regret > 0 {
			regrets = append(regrets, regret)
		}
	}
	if len(regrets) == 0 {
		t.Fatalf("part %d of %d has no problem that a method solves", part+1, parts)
	}
	slices.Sort(regrets)
	t.Logf("%s, regret of %d problems: median %.2f, largest %.2f\n%s", dev.Info().Device, len(regrets), regrets[len(regrets)/2], regrets[len(regrets)-1], table.String())
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteString(table.String()); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// compare returns a problem's row of the table and its regret (see TestPlanner), or 0 if auto does not reach Tol.
func (p plannedProblem) compare(t *testing.T, dev backend.Device) (string, float64) {
	t.Helper()
	problem := Problem{Kernel: p.kernel, X: p.x, Y: p.y, Lambda: p.lambda}
	chosen, err := MakePlan(dev, problem, Params{})
	if err != nil {
		t.Fatal(err)
	}
	type timing struct {
		method    Method
		predicted float64
		seconds   float64 // +Inf if the method exceeds the time limit
	}
	var unsolved *ConvergenceError
	if _, err := Solve(t.Context(), dev, problem, Params{}); errors.As(err, &unsolved) {
		return fmt.Sprintf("| %s | %v | %d × %d | %g | – | – | %s, residual %.1e | – |", p.name, p.kernel, p.x.Rows, p.x.Cols, p.lambda, chosen.Method, unsolved.Result.Residual), 0
	}
	// The first fit by auto determines the time limit. Its time is not reported, because it includes allocations.
	limit := 4*p.seconds(t, dev, problem, "", math.Inf(1)) + 0.2
	auto := p.seconds(t, dev, problem, "", math.Inf(1))
	list := []timing{}
	for _, m := range methods {
		if m.name == OutOfCore || m.name == Primal && p.kernel != (kernels.Linear{}) {
			continue
		}
		z := newSizes(dev, problem, Params{Method: m.name})
		z.ctx = t.Context()
		e, err := m.estimate(z, Params{Method: m.name})
		if err != nil {
			continue // the method does not accept the problem
		}
		list = append(list, timing{m.name, e.cost, p.seconds(t, dev, problem, m.name, limit)})
	}
	auto = min(auto, p.seconds(t, dev, problem, "", math.Inf(1)))
	best := auto
	for _, m := range list {
		best = min(best, m.seconds)
	}
	order := func(field func(m timing) float64, format func(m timing) string) string {
		slices.SortStableFunc(list, func(a, b timing) int { return cmp.Compare(field(a), field(b)) })
		var texts []string
		for _, m := range list {
			texts = append(texts, string(m.method)+" "+format(m))
		}
		return strings.Join(texts, ", ")
	}
	predicted := order(func(m timing) float64 { return m.predicted }, func(m timing) string { return fmt.Sprintf("%.2g", m.predicted) })
	measured := order(func(m timing) float64 { return m.seconds }, func(m timing) string {
		if math.IsInf(m.seconds, 1) {
			return fmt.Sprintf("> %.2g s", limit)
		}
		return fmt.Sprintf("%.3g s", m.seconds)
	})
	return fmt.Sprintf("| %s | %v | %d × %d | %g | %s | %s | %s %.3g s | %.2f |", p.name, p.kernel, p.x.Rows, p.x.Cols, p.lambda, predicted, measured, chosen.Method, auto, auto/best), auto / best
}

// seconds returns the shortest time of several Solves, or +Inf if the first fails or exceeds the limit.
func (p plannedProblem) seconds(t *testing.T, dev backend.Device, problem Problem, m Method, limit float64) float64 {
	t.Helper()
	ctx, cancel := t.Context(), func() {}
	if !math.IsInf(limit, 1) {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(limit*float64(time.Second)))
	}
	defer cancel()
	best := math.Inf(1)
	for begin := time.Now(); ; {
		start := time.Now()
		if _, err := Solve(ctx, dev, problem, Params{Method: m}); err != nil {
			if m == Auto {
				t.Fatalf("%s, %v, λ %g: %v", p.name, p.kernel, p.lambda, err)
			}
			return best
		}
		best = min(best, time.Since(start).Seconds())
		if time.Since(begin).Seconds() > 0.4 {
			return best
		}
	}
}

func plannedProblems(t *testing.T) (list []plannedProblem) {
	t.Helper()
	lambdas := []float64{1e-6, 1e-3, 0.1, 10}
	for _, set := range []struct {
		name string
		n    int
	}{
		{"airfoil.csv", 1500}, {"power_plant.csv", 4000}, {"california_housing.csv", 3000}, {"kin40k.csv.gz", 5000},
		{"protein.csv.gz", 2000}, {"nycflights13.csv.gz", 3000}, {"letter.csv", 4000}, {"skin_segmentation.csv.gz", 2500}, {"mnist-train-images-idx3-ubyte.gz", 2500},
	} {
		x, y := plannedData(t, set.name, set.n)
		kernel := kernels.Gaussian{Sigma: math.Sqrt(float64(x.Cols))}
		if x.Cols == 784 {
			kernel.Sigma = 5
		}
		for _, lambda := range lambdas {
			list = append(list, plannedProblem{strings.SplitN(set.name, ".", 2)[0], kernel, x, y, lambda})
		}
	}
	for _, s := range []struct {
		kernel kernels.Kernel
		n, d   int
	}{
		{kernels.Laplacian{Sigma: 2}, 3000, 2}, {kernels.Gaussian{Sigma: 1.5}, 3000, 3}, {kernels.Polynomial{Degree: 3, C: 1}, 3000, 8}, {kernels.Gaussian{Sigma: 7}, 6000, 50},
	} {
		r := rand.New(rand.NewPCG(uint64(s.d), 1))
		x, y := backend.NewHost[float64](s.n, s.d), backend.NewHost[float64](s.n, 1)
		for i := range s.n {
			for j := range x.Row(i) {
				x.Row(i)[j] = r.NormFloat64()
				y.Data[i] += x.Row(i)[j] / math.Sqrt(float64(s.d))
			}
			y.Data[i] = math.Sin(2*y.Data[i]) + 0.1*r.NormFloat64()
		}
		for _, lambda := range lambdas {
			list = append(list, plannedProblem{"normal", s.kernel, x, y, lambda})
		}
	}
	return list
}

// plannedData returns n equally spaced rows of a data file, with standardized features or pixels scaled to [0, 1].
func plannedData(t *testing.T, name string, n int) (x, y backend.Host[float64]) {
	t.Helper()
	if strings.HasPrefix(name, "mnist") {
		table, err := dataset.Read(required.Data(t, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		x, y = backend.NewHost[float64](n, 784), backend.NewHost[float64](n, 1)
		for j, column := range table.Names()[:784] {
			values, err := table.Numbers(column)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				x.Row(i)[j] = values[i*(len(values)/n)] / 255
				y.Data[i] += x.Row(i)[j] * math.Sin(float64(j))
			}
		}
		return x, y
	}
	rows := required.Rows(t, name)
	width := len(rows[0]) - 1
	x, y = backend.NewHost[float64](n, width), backend.NewHost[float64](n, 1)
	classes := map[string]float64{}
	for i := range n {
		row := rows[i*(len(rows)/n)]
		for j, cell := range row[:width] {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				t.Fatal(err)
			}
			x.Row(i)[j] = v
		}
		v, err := strconv.ParseFloat(row[width], 64)
		if err != nil {
			if _, ok := classes[row[width]]; !ok {
				classes[row[width]] = float64(len(classes))
			}
			v = classes[row[width]]
		}
		y.Data[i] = v
	}
	standardizeColumns(x)
	standardizeColumns(y)
	return x, y
}

func standardizeColumns(h backend.Host[float64]) {
	for j := range h.Cols {
		mean, square := 0.0, 0.0
		for i := range h.Rows {
			mean += h.Row(i)[j] / float64(h.Rows)
		}
		for i := range h.Rows {
			h.Row(i)[j] -= mean
			square += h.Row(i)[j] * h.Row(i)[j] / float64(h.Rows)
		}
		for i := range h.Rows {
			if square > 0 {
				h.Row(i)[j] /= math.Sqrt(square)
			}
		}
	}
}

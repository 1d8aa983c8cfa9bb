package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/testdata"
)

func (a *app) demoCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Fit models to bundled data; print a table, draw a picture",
		Args:  maxArgs(0),
		RunE:  a.work(func(ctx context.Context, _ []string) error { return a.demo(ctx, out) }),
	}
	c.Flags().StringVar(&out, "out", "demo", "folder to write to; it is created if it does not exist")
	return c
}

// task is a problem of the demo, with held-out rows.
type task struct {
	name                       string
	x, xTest                   mat.Matrix
	y, yTest                   *mat.Dense
	ridgeLambda, lambda, sigma float64
}

// demoRow is a row of the demo's table.
type demoRow struct {
	Data     string  `json:"data"`
	N        int     `json:"n"`
	Test     int     `json:"test"`
	Model    string  `json:"model"`
	Kernel   string  `json:"kernel,omitempty"`
	Lambda   float64 `json:"lambda,omitempty"`
	Solver   string  `json:"solver,omitempty"`
	Residual float64 `json:"residual"`
	RMSE     float64 `json:"rmse"`
	R2       float64 `json:"r2"`
	Seconds  float64 `json:"seconds"`

	truth, predicted *mat.Dense
}

// demoReport is the output of `mercer demo`.
type demoReport struct {
	Device     string    `json:"device"`
	Threads    int       `json:"threads"`
	Models     []demoRow `json:"models"`
	Difference float64   `json:"primal_dual_difference"` // largest difference on the first data set between the predictions of ridge solved in the primal and in the dual
	Data       string    `json:"data"`
	Picture    string    `json:"picture"`
}

func (a *app) demo(ctx context.Context, out string) error {
	dev, err := a.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := makeFolder("--out", out); err != nil {
		return err
	}
	r := demoReport{
		Device:  dev.Info().Device,
		Threads: dev.Info().Threads,
		Data:    filepath.Join(out, "diabetes.csv"),
		Picture: filepath.Join(out, "predicted-vs-true.png"),
	}
	for _, path := range []string{r.Data, r.Picture} {
		if err := a.checkOutput(ctx, "--out", path); err != nil {
			return err
		}
	}
	patients, err := a.diabetes(ctx, r.Data)
	if err != nil {
		return err
	}
	for _, t := range []task{patients, friedman(3000, 1000)} {
		rows, err := t.run(ctx, dev, a.newProgress)
		if err != nil {
			return err
		}
		r.Models = append(r.Models, rows...)
	}
	if r.Difference, err = primalAgainstDual(ctx, dev, patients, a.newProgress); err != nil {
		return err
	}
	picture, err := demoPicture(r.Models).render(r.Picture, pixels{})
	if err != nil {
		return err
	}
	if err := a.writeFile(ctx, "--out", r.Picture, picture); err != nil {
		return err
	}
	return a.printJSONOrText(ctx, r, func() string { return r.text(out) })
}

// diabetes writes the bundled table to path, for the commands that the demo suggests, and reads it from there.
func (a *app) diabetes(ctx context.Context, path string) (task, error) {
	csv, err := testdata.FS.ReadFile("diabetes.csv")
	if err != nil {
		return task{}, err
	}
	if err := a.writeFile(ctx, "--out", path, csv); err != nil {
		return task{}, err
	}
	table, err := dataset.ReadCSV(path, nil)
	if err != nil {
		return task{}, err
	}
	// Among powers of ten for λ and powers of two for σ, these values have the lowest error in
	// five-fold cross-validation on the training rows.
	t := task{name: "diabetes", ridgeLambda: 10, lambda: 1, sigma: 4}
	train, test := table.Split(0.25, 1)
	enc, err := dataset.Learn(train, dataset.Rules{Targets: []string{"target"}, Standardize: true})
	if err != nil {
		return task{}, err
	}
	if t.x, t.y, err = encode(enc, train); err != nil {
		return task{}, err
	}
	t.xTest, t.yTest, err = encode(enc, test)
	return t, err
}

// friedman returns samples of the first function of Friedman (1991), Multivariate Adaptive Regression Splines, with
// noise of variance 1, so that no prediction has an RMSE below about 1.
func friedman(train, test int) task {
	rng := rand.New(rand.NewPCG(1, 0))
	draw := func(n int) (x, y *mat.Dense) {
		x, y = mat.NewDense(n, 10, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			row := x.RawRowView(i)
			for j := range row {
				row[j] = rng.Float64()
			}
			f := 10*math.Sin(math.Pi*row[0]*row[1]) + 20*(row[2]-0.5)*(row[2]-0.5) + 10*row[3] + 5*row[4]
			y.Set(i, 0, f+rng.NormFloat64())
		}
		return x, y
	}
	t := task{name: "friedman", ridgeLambda: 0.1, lambda: 0.001, sigma: 2} // λ and σ are chosen by cross-validation, as for the data set diabetes
	t.x, t.y = draw(train)
	t.xTest, t.yTest = draw(test)
	return t
}

// run predicts the held-out rows by the mean of the training targets, by ridge and by kernel ridge.
func (t task) run(ctx context.Context, dev backend.Device, p func() *progress) ([]demoRow, error) {
	n, _ := t.x.Dims()
	rows, _ := t.xTest.Dims()
	mean := mat.NewDense(rows, 1, nil)
	for i := range rows {
		mean.Set(i, 0, mat.Sum(t.y)/float64(n))
	}
	list := []demoRow{{Model: "the mean", predicted: mean}}
	for _, l := range []learners.Fitter{
		func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
			return learners.Ridge{Lambda: t.ridgeLambda}.Fit(ctx, dev, x, y, o)
		},
		func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
			return learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: t.sigma}, Lambda: t.lambda}.Fit(ctx, dev, x, y, o)
		},
	} {
		start := time.Now()
		m, predicted, err := t.fit(ctx, dev, l, p())
		if err != nil {
			return nil, err
		}
		r := newFitReport(nil, m, dev)
		list = append(list, demoRow{
			Model: r.Learner, Kernel: r.Kernel, Lambda: m.State().Params["lambda"].(float64), Solver: r.Solver, Residual: *r.Residual,
			Seconds: time.Since(start).Seconds(), predicted: predicted,
		})
	}
	for i := range list {
		s, err := validate.ScoreRegression(t.yTest, list[i].predicted, nil)
		if err != nil {
			return nil, err
		}
		list[i].Data, list[i].N, list[i].Test = t.name, n, rows
		list[i].RMSE, list[i].R2 = *s.RMSE, *s.R2
		list[i].truth = t.yTest
	}
	return list, nil
}

// fit fits a learner and predicts the held-out rows.
func (t task) fit(ctx context.Context, dev backend.Device, l learners.Fitter, p *progress) (learners.Model, *mat.Dense, error) {
	m, err := l(ctx, dev, t.x, t.y, learners.Options{Progress: p.report})
	p.close()
	if err != nil {
		return nil, nil, err
	}
	predicted, err := m.Predict(ctx, dev, t.xTest)
	return m, predicted, err
}

// primalAgainstDual solves a ridge problem in the primal and in the dual, and returns the largest difference of
// their predictions, divided by the largest absolute prediction.
func primalAgainstDual(ctx context.Context, dev backend.Device, t task, p func() *progress) (float64, error) {
	var predicted [2]*mat.Dense
	for i, m := range []solvers.Method{solvers.Primal, solvers.Dual} {
		l := learners.Ridge{Lambda: t.ridgeLambda, Method: m}
		fit := func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
			return l.Fit(ctx, dev, x, y, o)
		}
		var err error
		if _, predicted[i], err = t.fit(ctx, dev, fit, p()); err != nil {
			return 0, err
		}
	}
	var d mat.Dense
	d.Sub(predicted[0], predicted[1])
	return mat.Norm(&d, math.Inf(1)) / mat.Norm(predicted[0], math.Inf(1)), nil
}

// text returns the report as text.
func (r demoReport) text(out string) string {
	rows := [][]string{{"data", "rows", "held out", "model", "solver", "residual", "RMSE", "R²", "time"}}
	for _, m := range r.Models {
		name := m.Model
		if m.Kernel != "" {
			name += ", " + m.Kernel
		}
		if m.Solver != "" {
			name += ", λ=" + exact(m.Lambda)
		}
		row := []string{m.Data, fmt.Sprint(m.N), fmt.Sprint(m.Test), name, "", "", fmt.Sprintf("%#.4g", m.RMSE), fmt.Sprintf("%.3f", m.R2), ""}
		if m.Solver != "" {
			row[4], row[5], row[8] = m.Solver, fmt.Sprintf("%.1e", m.Residual), seconds(m.Seconds)
		}
		rows = append(rows, row)
	}
	return fmt.Sprintf(`Held-out error on %s, %d %s:

%s
diabetes is real (442 patients); friedman is 10 sin(πx₁x₂) + 20(x₃−½)² + 10x₄ + 5x₅
with noise of variance 1, so that no RMSE stays below about 1.
Ridge by the primal and by the dual: predictions differ by %.1e at most, relative.
Picture: %s

Next:
  %[7]s devices
  %[7]s fit --kernel 'gaussian(sigma=4)' --target target --test-fraction 0.25 --model %[8]s %[9]s
  %[7]s evaluate --model %[8]s %[9]s
`, r.Device, r.Threads, plural("thread", r.Threads), texttable.Format("lrrllrrrr", rows), r.Difference, r.Picture,
		os.Args[0], filepath.Join(out, "model.safetensors"), r.Data)
}

// demoColors are the colors of ridge and kernel ridge, from Okabe and Ito (2008), for readers with color blindness.
var demoColors = map[string]color.NRGBA{
	"ridge":        {R: 0xe6, G: 0x9f, B: 0x00, A: 0xb0},
	"kernel-ridge": {R: 0x00, G: 0x72, B: 0xb2, A: 0xb0},
}

// demoPicture draws predicted against true values, a panel for each data set.
func demoPicture(rows []demoRow) picture {
	var panels []*panel
	var p *panel
	var allPoints plotter.XYs
	for i, r := range rows {
		if i == 0 || r.Data != rows[i-1].Data {
			p, allPoints = newPanel(fmt.Sprintf("%s: %d rows, %d held out", r.Data, r.N, r.Test), "true", "predicted"), nil
			p.grid()
			panels = append(panels, p)
		}
		if clr, ok := demoColors[r.Model]; ok {
			points := pairs(r.truth, r.predicted, 0)
			p.dots(fmt.Sprintf("%s, RMSE %#.4g", r.Model, r.RMSE), rowMarker(clr), points)
			allPoints = append(allPoints, points...)
		}
		if i == len(rows)-1 || rows[i+1].Data != r.Data {
			p.diagonal(allPoints)
		}
	}
	return picture{title: "Predicted and true values", rows: [][]*panel{panels}}
}

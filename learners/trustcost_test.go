package learners

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/page"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestTrustCost measures the cost of the error bounds of package verified, and the cost of reproducible devices. It
// replaces the tables in the file whose path is in MERCER_TRUST. No other program should run at the same time.
func TestTrustCost(t *testing.T) {
	file := os.Getenv("MERCER_TRUST")
	if file == "" {
		t.Skip("takes minutes: make trust runs it")
	}
	dev := openCPU(t, backend.Config{})
	ctx := t.Context()
	write := func(t *testing.T, table, head string, rows []string) {
		columns := strings.Count(head, "|") - 1
		text := head + "\n|" + strings.Repeat("---|", columns) + "\n" + strings.Join(rows, "\n") + "\n"
		t.Log("\n" + text)
		if err := page.Replace(file, table, text); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("bound of every fit", func(t *testing.T) {
		var rows []string
		for _, p := range []costProblem{{n: 1000, d: 8}, {n: 4000, d: 8}, {n: 10_000, d: 8}, {n: 10_000, d: 50}} {
			x, y := p.draw()
			k := p.gaussian()
			var m *KernelRidgeModel
			fit := func() (err error) {
				m, err = KernelRidge{Kernel: k, Lambda: 0.1}.Fit(ctx, dev, x, y, Options{})
				return err
			}
			if err := fit(); err != nil {
				t.Fatal(err)
			}
			problem := solvers.Problem{Kernel: k, X: dense(x), Y: dense(y), Lambda: 0.1, Intercept: true}
			bound := func() error { // the same operations as in Fit; they do not depend on the values of the residuals
				b := &errorBound{}
				b.round(dev, &m.kernelExpansion, problem, &solvers.Result{Residuals: dense(y)}, nil, nil)
				b.addFacts(&model{}, "alpha")
				return nil
			}
			fitTime, boundTime, _ := inTurns(t, 7, fit, bound)
			rows = append(rows, fmt.Sprintf("| kernel-ridge | %d | %d | %s | %s | %.2f %% |", p.n, p.d, seconds(fitTime), seconds(boundTime), 100*boundTime/(fitTime-boundTime)))
		}
		write(t, "bound of every fit", "| learner | rows | features | fit | its bound | bound / rest of the fit |", rows)
	})
	t.Run("more precise bounds", func(t *testing.T) {
		var rows []string
		for _, c := range []struct {
			fit, option string
			p           costProblem
			fitter      func(p costProblem, bound bool) Fitter
			prove       bool
		}{
			{"kernel-ridge", "`Options.Prove`", costProblem{n: 100, d: 8}, fitKernelRidge, true},
			{"kernel-ridge", "`Options.Prove`", costProblem{n: 400, d: 8}, fitKernelRidge, true},
			{"kernel-ridge", "`Bound`", costProblem{n: 1000, d: 8}, fitKernelRidge, false},
			{"ridge", "`Bound`", costProblem{n: 10_000, d: 10}, fitRidge, false},
			{"nystrom-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 500}, fitNystrom, true},
			{"nystrom-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 2000}, fitNystrom, true},
			{"nystrom-ridge", "`Bound`", costProblem{n: 2000, d: 10, functions: 200}, fitNystrom, false},
			{"nystrom-ridge", "`Bound`", costProblem{n: 5000, d: 10, functions: 500}, fitNystrom, false},
			{"fourier-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 500}, fitFourier, true},
			{"fourier-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 2000}, fitFourier, true},
			{"fourier-ridge", "`Bound`", costProblem{n: 2000, d: 10, functions: 200}, fitFourier, false},
			{"fourier-ridge", "`Bound`", costProblem{n: 5000, d: 10, functions: 500}, fitFourier, false},
		} {
			x, y := c.p.draw()
			fit := func(bound bool) func() error {
				l := c.fitter(c.p, bound && !c.prove)
				return func() error {
					_, err := l(ctx, dev, x, y, Options{Prove: bound && c.prove})
					return err
				}
			}
			withBound, withoutBound, ratio := inTurns(t, 5, fit(true), fit(false))
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %.2f |", c.fit, c.option, c.p, seconds(withoutBound), seconds(withBound), ratio))
		}
		write(t, "more precise bounds", "| learner | option | problem | fit | fit with the bound | ratio |", rows)
	})
	t.Run("predictions with bounds", func(t *testing.T) {
		var rows []string
		for _, c := range []struct {
			fit, option string
			p           costProblem
			points      int
			fitter      func(p costProblem, bound bool) Fitter
			prove       bool
			bound       bool
		}{
			{"kernel-ridge", "", costProblem{n: 1000, d: 8}, 20_000, fitKernelRidge, false, false},
			{"kernel-ridge", "", costProblem{n: 10_000, d: 8}, 5000, fitKernelRidge, false, false},
			{"kernel-ridge", "`Options.Prove`", costProblem{n: 100, d: 8}, 20_000, fitKernelRidge, true, false},
			{"kernel-ridge", "`Options.Prove`", costProblem{n: 400, d: 8}, 20_000, fitKernelRidge, true, false},
			{"kernel-ridge", "`Options.Prove`", costProblem{n: 400, d: 8, targets: 3}, 20_000, fitKernelRidge, true, false},
			{"kernel-ridge", "`Bound`", costProblem{n: 1000, d: 8}, 1000, fitKernelRidge, false, true},
			{"ridge", "`Bound`", costProblem{n: 10_000, d: 10}, 20_000, fitRidge, false, true},
			{"nystrom-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 500}, 20_000, fitNystrom, true, false},
			{"nystrom-ridge", "`Bound`", costProblem{n: 2000, d: 10, functions: 200}, 2000, fitNystrom, false, true},
			{"fourier-ridge", "`Options.Prove`", costProblem{n: 10_000, d: 10, functions: 500}, 20_000, fitFourier, true, false},
			{"fourier-ridge", "`Bound`", costProblem{n: 2000, d: 10, functions: 200}, 2000, fitFourier, false, true},
		} {
			x, y := c.p.draw()
			fitted, err := c.fitter(c.p, c.bound)(ctx, dev, x, y, Options{Prove: c.prove})
			if err != nil {
				t.Fatal(err)
			}
			points, _ := costProblem{n: c.points, d: c.p.d}.draw()
			m := fitted.(interface {
				Model
				Bounded
			})
			withBound, withoutBound, ratio := inTurns(t, 21, func() error {
				_, _, err := m.PredictBound(ctx, dev, points)
				return err
			}, func() error {
				_, err := m.Predict(ctx, dev, points)
				return err
			})
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %.2f |", c.fit, c.option, c.p, c.points, seconds(withoutBound), seconds(withBound), ratio))
		}
		write(t, "predictions with bounds", "| learner | option | problem of the fit | rows | Predict | PredictBound | ratio |", rows)
	})
	t.Run("accuracy", func(t *testing.T) {
		var rows []string
		for _, solver := range []solvers.Method{solvers.CG, solvers.Mixed} {
			for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 3}, kernels.Laplacian{Sigma: 8}} {
				for _, n := range []int{1000, 4000} {
					x, y := costProblem{n: n, d: 8}.draw()
					for _, lambda := range []float64{1, 1e-2, 1e-4} {
						row := fmt.Sprintf("| %s | `%v` | %d | %g |", solver, k, n, lambda)
						for _, accuracy := range []float64{0, 1e-2, 1e-4, 1e-6} {
							m, err := KernelRidge{Kernel: k, Lambda: lambda, Solver: solver, Accuracy: accuracy}.Fit(ctx, dev, x, y, Options{})
							switch {
							case err == nil:
								row += fmt.Sprintf(" %d |", m.Solved().Iters)
							case accuracy > 0 && strings.Contains(err.Error(), "the proven error"):
								row += " – |"
							default:
								t.Fatal(err)
							}
						}
						rows = append(rows, row)
					}
				}
			}
		}
		write(t, "accuracy", "| solver | kernel | rows | λ | tol=1e-8 | accuracy=1e-2 | accuracy=1e-4 | accuracy=1e-6 |", rows)
	})
	t.Run("reproducible", func(t *testing.T) {
		reproducible := openCPU(t, backend.Config{Reproducible: true})
		var rows []string
		add := func(name string, p costProblem, repeats int, run func(dev backend.Device) error) {
			reproducibleTime, defaultTime, ratio := inTurns(t, repeats, func() error { return run(reproducible) }, func() error { return run(dev) })
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %.2f |", name, p, seconds(defaultTime), seconds(reproducibleTime), ratio))
		}
		fits := func(name string, fitter func(p costProblem, bound bool) Fitter, problems ...costProblem) {
			for _, p := range problems {
				x, y := p.draw()
				if name == "svc" {
					y.Apply(func(_, _ int, v float64) float64 { return math.Copysign(1, v) }, y)
				}
				l := fitter(p, false)
				add(name, p, 5, func(dev backend.Device) error {
					_, err := l(ctx, dev, x, y, Options{})
					return err
				})
			}
		}
		fits("kernel-ridge", fitKernelRidge, costProblem{n: 1000, d: 8}, costProblem{n: 4000, d: 8}, costProblem{n: 10_000, d: 8}, costProblem{n: 4000, d: 50}, costProblem{n: 4000, d: 400})
		fits("svc", func(p costProblem, _ bool) Fitter {
			return fitOf(SVC{Kernel: p.gaussian(), C: 1}.Fit)
		}, costProblem{n: 2000, d: 8}, costProblem{n: 4000, d: 50})
		fits("ridge", fitRidge, costProblem{n: 100_000, d: 20}, costProblem{n: 10_000, d: 500})
		fits("nystrom-ridge", fitNystrom, costProblem{n: 20_000, d: 10, functions: 1000})
		for _, p := range []costProblem{{n: 5000, d: 8}, {n: 5000, d: 50}} {
			x, y := p.draw()
			m, err := fitKernelRidge(p, false)(ctx, dev, x, y, Options{})
			if err != nil {
				t.Fatal(err)
			}
			points, _ := costProblem{n: 10_000, d: p.d}.draw()
			add("Predict of kernel-ridge for 10,000 rows", p, 5, func(dev backend.Device) error {
				_, err := m.Predict(ctx, dev, points)
				return err
			})
		}
		write(t, "reproducible", fmt.Sprintf("| fit or prediction | problem | %s | reproducible, %s | ratio |", dev.Info().Device, reproducible.Info().Device), rows)
	})
}

// openCPU opens the device "cpu" and closes it at the end of the test.
func openCPU(t *testing.T, c backend.Config) backend.Device {
	dev, err := backend.Open("cpu", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// A costProblem describes n standard normal samples with d features. Target c = 1, 2, … is sin(c Σ_j x_j) plus
// normal noise with standard deviation 0.1.
type costProblem struct{ n, d, functions, targets int }

func (p costProblem) String() string {
	if p.functions > 0 {
		return fmt.Sprintf("%d × %d, %d functions", p.n, p.d, p.functions)
	}
	if p.targets > 1 {
		return fmt.Sprintf("%d × %d, %d targets", p.n, p.d, p.targets)
	}
	return fmt.Sprintf("%d × %d", p.n, p.d)
}

func (p costProblem) draw() (x, y *mat.Dense) {
	random := rand.New(rand.NewPCG(uint64(p.n), uint64(p.d)))
	x, y = mat.NewDense(p.n, p.d, nil), mat.NewDense(p.n, max(1, p.targets), nil)
	for i := range p.n {
		row := x.RawRowView(i)
		sum := 0.0
		for j := range row {
			row[j] = random.NormFloat64()
			sum += row[j]
		}
		for c := range max(1, p.targets) {
			y.Set(i, c, math.Sin(float64(c+1)*sum)+0.1*random.NormFloat64())
		}
	}
	return x, y
}

func (p costProblem) gaussian() kernels.Kernel {
	return kernels.Gaussian{Sigma: math.Sqrt(float64(p.d))}
}

// fitOf returns a Fitter that calls fit.
func fitOf[M Model](fit func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (M, error)) Fitter {
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (Model, error) {
		return fit(ctx, dev, x, y, o)
	}
}

func fitKernelRidge(p costProblem, bound bool) Fitter {
	return fitOf(KernelRidge{Kernel: p.gaussian(), Lambda: 0.1, Bound: bound}.Fit)
}

func fitRidge(_ costProblem, bound bool) Fitter {
	return fitOf(Ridge{Lambda: 0.1, Bound: bound}.Fit)
}

func fitNystrom(p costProblem, bound bool) Fitter {
	return fitOf(NystromRidge{Kernel: p.gaussian(), Lambda: 0.1, Centers: p.functions, Bound: bound}.Fit)
}

func fitFourier(p costProblem, bound bool) Fitter {
	return fitOf(FourierRidge{Kernel: p.gaussian(), Lambda: 0.1, Features: p.functions, Bound: bound}.Fit)
}

// inTurns calls a and b in turn, each once without timing and then `repeats` times, and returns the medians of
// their times and of the ratios a/b.
func inTurns(t *testing.T, repeats int, a, b func() error) (ta, tb, ratio float64) {
	t.Helper()
	var aTimes, bTimes, ratios []float64
	timeOnce := func(f func() error) float64 {
		start := time.Now()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		return time.Since(start).Seconds()
	}
	for i := range repeats + 1 {
		sa, sb := timeOnce(a), timeOnce(b)
		if i > 0 {
			aTimes, bTimes, ratios = append(aTimes, sa), append(bTimes, sb), append(ratios, sa/sb)
		}
	}
	median := func(list []float64) float64 {
		slices.Sort(list)
		return list[len(list)/2]
	}
	return median(aTimes), median(bTimes), median(ratios)
}

// seconds formats a time in seconds with three digits.
func seconds(v float64) string { return fmt.Sprintf("%.3g s", v) }

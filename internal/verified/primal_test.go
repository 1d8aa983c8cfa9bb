package verified_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/page"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// A primal is a method that solves a problem in terms of M functions. It provides the solution, the
// functions in arithmetic of 320 bits, and the penalty.
type primal struct {
	name  string
	solve func(dev backend.Device, s *system, p solvers.Problem) (primalSolution, error)
}

type primalSolution struct {
	f       *verified.Expansion
	lambda  verified.Ball
	centers bool
	phi     func(j int, x []float64) *big.Float
	penalty func(j, l int) *big.Float
}

// ridge returns the method with the functions φ_j(x) = x_j.
func ridge(method solvers.Method) primal {
	return primal{"ridge, " + string(method), func(dev backend.Device, s *system, p solvers.Problem) (primalSolution, error) {
		p.Kernel = kernels.Linear{}
		r, err := solvers.Solve(context.Background(), dev, p, solvers.Params{Method: method, Tol: 1e-2})
		if err != nil {
			return primalSolution{}, err
		}
		coef := r.Coef
		if coef.Data == nil {
			return primalSolution{}, errors.New("no weights")
		}
		return primalSolution{
			f: &verified.Expansion{Alpha: coef, Intercept: r.Intercept, Features: func() func(int, []float64) verified.Ball {
				return func(j int, x []float64) verified.Ball { return verified.Exact(x[j]) }
			}},
			lambda:  verified.Exact(p.Lambda),
			phi:     func(j int, x []float64) *big.Float { return number(x[j]) },
			penalty: identity(number(p.Lambda)),
		}, nil
	}}
}

func identity(lambda *big.Float) func(j, l int) *big.Float {
	return func(j, l int) *big.Float {
		if j == l {
			return lambda
		}
		return zero()
	}
}

// nystrom returns the method with the functions k(c_j, x).
func nystrom(k kernels.Kernel, method solvers.Method, tol float64) primal {
	return primal{fmt.Sprintf("nystrom-ridge, `%v`, %s", k, method), func(dev backend.Device, s *system, p solvers.Problem) (primalSolution, error) {
		r, err := solvers.SolveNystrom(context.Background(), dev, solvers.NystromProblem{
			Kernel: k, Data: solvers.InMemory(p.X, p.Y, p.Weights, nil), Lambda: p.Lambda, Intercept: p.Intercept,
			Choice: solvers.CenterChoice{Count: min(p.X.Rows, 5+p.X.Rows/5)},
		}, solvers.StreamParams{Method: method, Tol: tol})
		if err != nil {
			return primalSolution{}, err
		}
		program := kernels.Compile(k)
		return primalSolution{
			f:      &verified.Expansion{Kernel: k, Points: r.Centers, Alpha: r.Beta, Intercept: r.Intercept},
			lambda: verified.Exact(p.Lambda), centers: true,
			phi: func(j int, x []float64) *big.Float { return bigKernel(program, r.Centers.Row(j), x) },
			penalty: func(j, l int) *big.Float {
				return mul(number(p.Lambda), bigKernel(program, r.Centers.Row(j), r.Centers.Row(l)))
			},
		}, nil
	}}
}

// fourier returns the method with the functions cos ω_jᵀx and sin ω_jᵀx.
func fourier(k kernels.Kernel) primal {
	return primal{fmt.Sprintf("fourier-ridge, `%v`", k), func(dev backend.Device, s *system, p solvers.Problem) (primalSolution, error) {
		r, err := solvers.SolveFourier(context.Background(), dev, solvers.FourierProblem{
			Kernel: k, Data: solvers.InMemory(p.X, p.Y, p.Weights, nil), Lambda: p.Lambda, Intercept: p.Intercept, Count: 2 * (3 + p.X.Rows/10),
		}, solvers.StreamParams{})
		if err != nil {
			return primalSolution{}, err
		}
		pairs := r.Frequencies.Rows
		angle, inner := verified.NewKernel(kernels.Linear{}), kernels.Compile(kernels.Linear{})
		return primalSolution{
			f: &verified.Expansion{Alpha: r.Beta, Intercept: r.Intercept, Features: func() func(int, []float64) verified.Ball {
				angle := verified.NewKernel(kernels.Linear{})
				return func(j int, x []float64) verified.Ball {
					if j < pairs {
						return verified.Cos(angle.Eval(r.Frequencies.Row(j), x))
					}
					return verified.Sin(angle.Eval(r.Frequencies.Row(j-pairs), x))
				}
			}},
			lambda: verified.Mul(verified.Exact(p.Lambda), angle.Eval([]float64{float64(pairs)}, []float64{1})), // k(0) = 1
			phi: func(j int, x []float64) *big.Float {
				c, s := bigCosSin(bigKernel(inner, r.Frequencies.Row(j%pairs), x))
				if j < pairs {
					return c
				}
				return s
			},
			penalty: identity(mul(number(p.Lambda), number(float64(pairs)))),
		}, nil
	}}
}

// exact returns the β and b, in one list for each target, that minimize the loss.
func (s *system) exact(p solvers.Problem, v primalSolution) [][]*big.Float {
	m, n := v.f.Alpha.Rows, p.X.Rows
	phi := make([][]*big.Float, n)
	weight := make([]*big.Float, n)
	for i := range n {
		weight[i] = number(1)
		if p.Weights != nil {
			weight[i] = number(p.Weights[i])
		}
		for j := range m {
			phi[i] = append(phi[i], v.phi(j, p.X.Row(i)))
		}
		phi[i] = append(phi[i], number(1))
	}
	size := m
	if p.Intercept {
		size++
	}
	sum := func(term func(i int) *big.Float) *big.Float {
		total := zero()
		for i := range n {
			total.Add(total, mul(weight[i], term(i)))
		}
		return total
	}
	l := bigFactor(size, func(j, l int) *big.Float {
		total := sum(func(i int) *big.Float { return mul(phi[i][j], phi[i][l]) })
		if j < m && l < m {
			total.Add(total, v.penalty(j, l))
		}
		return total
	})
	var all [][]*big.Float
	for c := range p.Y.Cols {
		rhs := make([]*big.Float, size)
		for j := range rhs {
			rhs[j] = sum(func(i int) *big.Float { return mul(phi[i][j], number(p.Y.Row(i)[c])) })
		}
		all = append(all, append(substitute(l, rhs), zero())[:m+1])
	}
	return all
}

// TestPrimalBounds checks that predictions of ridge, Nyström and Fourier features differ from the
// exact solutions by at most their bounds.
func TestPrimalBounds(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	list, n, m := []primal{
		ridge(solvers.Primal), ridge(solvers.Dual),
		nystrom(kernels.Gaussian{Sigma: 1.3}, solvers.Normal, 1e-2), nystrom(kernels.Laplacian{Sigma: 2}, solvers.Normal, 1e-2),
		nystrom(kernels.Matern{Nu: 2.5, Sigma: 1.5}, solvers.Normal, 1e-2), nystrom(kernels.Matern{Nu: 1.5, Sigma: 1.5}, solvers.Falkon, 1e-2),
		fourier(kernels.Gaussian{Sigma: 1.3}), fourier(kernels.Matern{Nu: 1.5, Sigma: 1.5}),
	}, []int{1, 2, 20, 100}, 30
	if testing.Short() {
		n, m = []int{20}, 10
	}
	rows := make([]primalRow, len(list))
	t.Run("functions", func(t *testing.T) {
		for i, way := range list {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				rows[i].name = way.name
				for _, n := range n {
					for _, hard := range []bool{false, true} {
						s := newSystem(kernels.Linear{}, n, m, 3, hard, hard)
						for _, lambda := range lambdas {
							for _, intercept := range []bool{false, true} {
								p := s.p
								p.Lambda, p.Intercept = lambda, intercept
								s.comparePrimal(t, dev, way, p, &rows[i])
							}
						}
					}
				}
			})
		}
	})
	all := primalRow{name: "all"}
	for _, r := range rows {
		all.predictions += r.predictions
		all.refused += r.refused
		all.violations += r.violations
		all.ratios = append(all.ratios, r.ratios...)
	}
	table := "| functions | predictions | violations | problems without a bound | median | maximum |\n|---|---:|---:|---:|---:|---:|\n"
	for _, r := range append(rows, all) {
		if len(r.ratios) == 0 {
			t.Fatalf("%s: no solution was compared", r.name)
		}
		slices.Sort(r.ratios)
		table += fmt.Sprintf("| %s | %d | %d | %d | %.2g | %.2g |\n", r.name, r.predictions, r.violations, r.refused, median(r.ratios), r.ratios[len(r.ratios)-1])
	}
	t.Log("\n" + table)
	if !(median(all.ratios) <= 2) { // with a correction, a bound is about as large as the error
		t.Errorf("the median of bound/error is %g", median(all.ratios))
	}
	if *writeTable {
		if err := page.Replace(trust, "bounds of functions", table); err != nil {
			t.Fatal(err)
		}
	}
}

// A primalRow holds the results for one method: the ratio of bound to error of each solution.
type primalRow struct {
	name                             string
	predictions, refused, violations int
	ratios                           []float64
}

func (s *system) comparePrimal(t *testing.T, dev backend.Device, way primal, p solvers.Problem, row *primalRow) {
	what := fmt.Sprintf("%s n=%d λ=%g intercept=%t weights=%t", way.name, p.X.Rows, p.Lambda, p.Intercept, p.Weights != nil)
	v, err := way.solve(dev, s, p)
	var stopped *solvers.ConvergenceError
	if errors.Is(err, backend.ErrNotPosDef) || errors.As(err, &stopped) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	problem := &verified.Primal{
		Lambda: v.lambda, Centers: v.centers, Intercept: p.Intercept,
		Pass: func(_ context.Context, use func(x, y backend.Host[float64], weights []float64) error) error {
			return use(p.X, p.Y, p.Weights)
		},
	}
	bound, err := problem.Bound(context.Background(), v.f)
	if errors.Is(err, verified.ErrDependent) {
		row.refused++
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	values, bounds, err := bound.Predict(context.Background(), v.f, s.at)
	if err != nil {
		t.Fatal(err)
	}
	solution, m := s.exact(p, v), v.f.Alpha.Rows
	for c := range p.Y.Cols {
		off := zero()
		for j := range m {
			e := sub(solution[c][j], number(v.f.Alpha.Row(j)[c]))
			off.Add(off, mul(e, e))
		}
		if norm, _ := bigSqrt(off).Float64(); !(norm <= bound.Targets[c].Alpha) {
			t.Errorf("%s, target %d: ‖β − β̂‖ is %g, the bound %g", what, c, norm, bound.Targets[c].Alpha)
		}
		worst, largest, square := 0.0, 0.0, 0.0
		for i := range s.at.Rows {
			f, size := zero().Set(solution[c][m]), zero()
			for j := range m {
				phi := v.phi(j, s.at.Row(i))
				f.Add(f, mul(phi, solution[c][j]))
				size.Add(size, mul(phi, phi))
			}
			e, _ := zero().Abs(sub(f, number(values.Row(i)[c]))).Float64()
			if !(e <= bounds.Row(i)[c]) {
				row.violations++
				t.Errorf("%s, target %d: the error at point %d is %g, the bound %g", what, c, i, e, bounds.Row(i)[c])
			}
			norm, _ := size.Float64()
			worst, largest, square = max(worst, e), max(largest, bounds.Row(i)[c]), max(square, norm)
		}
		// The uniform bound does not include the rounding error of the value.
		if uniform := bound.Uniform(c, square*(1+1e-12)); !(worst <= uniform+0x1p-52*s.size(values, c)) {
			t.Errorf("%s, target %d: the error is %g, the uniform bound %g", what, c, worst, uniform)
		}
		row.predictions += s.at.Rows
		if worst > 0x1p-150 { // otherwise the solution is exact
			row.ratios = append(row.ratios, largest/worst)
		}
	}
	if math.IsInf(bound.Targets[0].Norm, 0) {
		t.Errorf("%s: the bound is not finite", what)
	}
}

package verified_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/page"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// A primal is a method of regression with M functions φ_j. The function solve returns the solution,
// the φ_j in 320-bit arithmetic, and the penalty.
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
	// values returns f at the rows of x, computed in float64. roundoff bounds the errors of the φ_j.
	roundoff *verified.Roundoff
	sums     *stream.Sums // sums of the normal equations; nil for ridge
	values   func(t *testing.T, x backend.Host[float64]) backend.Host[float64]
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
			lambda:   verified.Exact(p.Lambda),
			phi:      func(j int, x []float64) *big.Float { return number(x[j]) },
			penalty:  identity(number(p.Lambda)),
			roundoff: verified.NewCoordinates(p.X.Cols),
			values: func(t *testing.T, x backend.Host[float64]) backend.Host[float64] {
				out := onDevice(t, dev, x.Rows, coef.Cols, []backend.Host[float64]{x, coef}, func(b backend.Backend[float64], out backend.Matrix[float64], in []backend.Matrix[float64]) {
					b.Gemm(backend.NoTrans, backend.NoTrans, 1, in[0], in[1], 0, out)
				})
				for i := range out.Rows {
					for c, v := range r.Intercept {
						out.Row(i)[c] += v
					}
				}
				return out
			},
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
		f := &verified.Expansion{Kernel: k, Points: r.Centers, Alpha: r.Beta, Intercept: r.Intercept}
		return primalSolution{
			f:      f,
			lambda: verified.Exact(p.Lambda), centers: true,
			phi: func(j int, x []float64) *big.Float { return bigKernel(program, r.Centers.Row(j), x) },
			penalty: func(j, l int) *big.Float {
				return mul(number(p.Lambda), bigKernel(program, r.Centers.Row(j), r.Centers.Row(l)))
			},
			sums:     r.Sums,
			roundoff: verified.NewRoundoff(k, numeric.DensePoints(r.Centers), true),
			values: func(t *testing.T, x backend.Host[float64]) backend.Host[float64] {
				return predict(t, dev, f, x)
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
			lambda: verified.Mul(verified.Exact(p.Lambda), angle.Eval([]float64{float64(pairs)}, []float64{1})), // the φ_j are not divided by √pairs
			phi: func(j int, x []float64) *big.Float {
				c, s := bigCosSin(bigKernel(inner, r.Frequencies.Row(j%pairs), x))
				if j < pairs {
					return c
				}
				return s
			},
			penalty:  identity(mul(number(p.Lambda), number(float64(pairs)))),
			sums:     r.Sums,
			roundoff: verified.NewWaves(numeric.DensePoints(r.Frequencies), stream.Cosines, stream.Sines),
			values: func(t *testing.T, x backend.Host[float64]) backend.Host[float64] {
				wave := func(k kernels.Kernel, from int, intercept []float64) backend.Host[float64] {
					return predict(t, dev, &verified.Expansion{Kernel: k, Points: r.Frequencies, Alpha: r.Beta.View(from, 0, pairs, r.Beta.Cols), Intercept: intercept}, x)
				}
				out, sines := wave(stream.Cosines, 0, r.Intercept), wave(stream.Sines, pairs, make([]float64, r.Beta.Cols))
				for i, v := range sines.Data {
					out.Data[i] += v
				}
				return out
			},
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
	var solutions [][]*big.Float
	for c := range p.Y.Cols {
		rhs := make([]*big.Float, size)
		for j := range rhs {
			rhs[j] = sum(func(i int) *big.Float { return mul(phi[i][j], number(p.Y.Row(i)[c])) })
		}
		solutions = append(solutions, append(substitute(l, rhs), zero())[:m+1])
	}
	return solutions
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
		for i, method := range list {
			t.Run(method.name, func(t *testing.T) {
				t.Parallel()
				rows[i].name = method.name
				for _, n := range n {
					for _, illConditioned := range []bool{false, true} {
						s := newSystem(kernels.Linear{}, n, m, 3, illConditioned, illConditioned)
						for _, lambda := range required.Subset(3, lambdas) {
							for _, intercept := range []bool{false, true} {
								p := s.p
								p.Lambda, p.Intercept = lambda, intercept
								s.comparePrimal(t, dev, method, p, &rows[i])
							}
						}
					}
				}
			})
		}
	})
	all := primalRow{name: "all"}
	for _, r := range rows {
		for i, results := range r.ways {
			all.ways[i].predictions += results.predictions
			all.ways[i].unproven += results.unproven
			all.ways[i].violations += results.violations
			all.ways[i].ratios = append(all.ways[i].ratios, results.ratios...)
		}
	}
	table := "| functions | predictions | violations | sharp: none proven | median | maximum | from float64: none proven | median | maximum | from sums: none proven | median | maximum |\n|---|" + strings.Repeat("---:|", 11) + "\n"
	for _, r := range append(rows, all) {
		table += fmt.Sprintf("| %s | %d | %d |", r.name, r.ways[0].predictions+r.ways[1].predictions+r.ways[2].predictions, r.ways[0].violations+r.ways[1].violations+r.ways[2].violations)
		for i, results := range r.ways {
			if i == 2 && (strings.HasPrefix(r.name, "ridge") || strings.HasSuffix(r.name, "falkon")) { // these methods store no sums, and have no bound from sums
				table += " | | |"
				continue
			}
			if len(results.ratios) == 0 {
				t.Fatalf("%s: no bound of column %d was compared with an error", r.name, i)
			}
			slices.Sort(results.ratios)
			table += fmt.Sprintf(" %d | %.2g | %.2g |", results.unproven, median(results.ratios), results.ratios[len(results.ratios)-1])
		}
		table += "\n"
	}
	t.Log("\n" + table)
	if sharp := all.ways[0].ratios; !(median(sharp) <= 2) { // a bound is about as large as the error
		t.Errorf("the median of bound/error is %g", median(sharp))
	}
	if *writeTable {
		if err := page.Replace(trust, "bounds of functions", table); err != nil {
			t.Fatal(err)
		}
	}
}

// A primalRow holds the results of one method: of Bound, of Rounded with Primal.Pass, and of Rounded without it.
type primalRow struct {
	name string
	ways [3]primalWay
}

// A primalWay holds the results of one kind of bound. ratios has the ratio of bound to error of each solution.
type primalWay struct {
	predictions, unproven, violations int
	ratios                            []float64
}

func (s *system) comparePrimal(t *testing.T, dev backend.Device, method primal, p solvers.Problem, row *primalRow) {
	ctx := context.Background()
	v, err := method.solve(dev, s, p)
	var convergenceErr *solvers.ConvergenceError
	if errors.Is(err, backend.ErrNotPosDef) || errors.As(err, &convergenceErr) {
		return
	}
	problemName := fmt.Sprintf("%s n=%d λ=%g intercept=%t weights=%t", method.name, p.X.Rows, p.Lambda, p.Intercept, p.Weights != nil)
	if err != nil {
		t.Fatalf("%s: %v", problemName, err)
	}
	problem := &verified.Primal{
		Lambda: v.lambda, Centers: v.centers, Intercept: p.Intercept,
		Pass: func(_ context.Context, use func(x numeric.Points, y backend.Host[float64], weights []float64) error) error {
			return use(numeric.DensePoints(p.X), p.Y, p.Weights)
		},
	}
	solution := s.exact(p, v)
	for i, name := range []string{"sharp", "from float64", "from sums"} {
		boundName := problemName + " " + name
		var bound *verified.ErrorBound
		var values, bounds backend.Host[float64]
		if i == 0 {
			if bound, err = problem.Bound(ctx, v.f); err == nil {
				values, bounds, err = bound.Predict(ctx, v.f, s.testPoints)
			}
		} else if i == 2 && v.sums == nil {
			continue
		} else if i == 2 {
			problem.Sums, problem.Pass = v.sums, nil
			if bound, err = problem.Rounded(ctx, dev.F64(), v.f, v.roundoff); err == nil {
				values, bounds = bound.Round(v.f, v.roundoff, numeric.DensePoints(s.testPoints), v.values(t, s.testPoints), 0)
			}
		} else if bound, err = problem.Rounded(ctx, dev.F64(), v.f, v.roundoff); err == nil {
			values, bounds = bound.Round(v.f, v.roundoff, numeric.DensePoints(s.testPoints), v.values(t, s.testPoints), 0)
		}
		if errors.Is(err, verified.ErrDependent) {
			row.ways[i].unproven++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", boundName, err)
		}
		s.checkPrimal(t, boundName, v, solution, bound, values, bounds, &row.ways[i])
	}
}

// checkPrimal compares the bounds with the errors of values, the predictions at s.testPoints.
func (s *system) checkPrimal(t *testing.T, boundName string, v primalSolution, solution [][]*big.Float, bound *verified.ErrorBound, values, bounds backend.Host[float64], row *primalWay) {
	m := v.f.Alpha.Rows
	for c := range solution {
		squaredError := zero()
		for j := range m {
			e := sub(solution[c][j], number(v.f.Alpha.Row(j)[c]))
			squaredError.Add(squaredError, mul(e, e))
		}
		if norm, _ := bigSqrt(squaredError).Float64(); norm > 0x1p-150 && !(norm <= bound.Targets[c].Alpha) { // smaller differences are rounding errors of the reference solution
			t.Errorf("%s, target %d: ‖β − β̂‖ is %g, the bound %g", boundName, c, norm, bound.Targets[c].Alpha)
		}
		maxError, largest, square := 0.0, 0.0, 0.0
		for i := range s.testPoints.Rows {
			f, size := zero().Set(solution[c][m]), zero()
			for j := range m {
				phi := v.phi(j, s.testPoints.Row(i))
				f.Add(f, mul(phi, solution[c][j]))
				size.Add(size, mul(phi, phi))
			}
			e, _ := zero().Abs(sub(f, number(values.Row(i)[c]))).Float64()
			if !(e <= bounds.Row(i)[c]) {
				row.violations++
				t.Errorf("%s, target %d: the error at point %d is %g, the bound %g", boundName, c, i, e, bounds.Row(i)[c])
			}
			norm, _ := size.Float64()
			maxError, largest, square = max(maxError, e), max(largest, bounds.Row(i)[c]), max(square, norm)
		}
		// Uniform does not include the rounding error of the float64 prediction.
		if uniform := bound.Uniform(c, square*(1+1e-12)); !bound.Rounded && !(maxError <= uniform+0x1p-52*s.size(values, c)) {
			t.Errorf("%s, target %d: the error is %g, the uniform bound %g", boundName, c, maxError, uniform)
		}
		row.predictions += s.testPoints.Rows
		if maxError > 0x1p-150 { // smaller errors are rounding errors of the reference solution
			row.ratios = append(row.ratios, largest/maxError)
		}
	}
	if math.IsInf(bound.Targets[0].Norm, 0) {
		t.Errorf("%s: the bound is not finite", boundName)
	}
}

// TestCorrectionsPerTarget checks that other targets do not increase the bound of a target.
func TestCorrectionsPerTarget(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, lambda := range lambdas {
		p := newSystem(kernels.Linear{}, 40, 1, 6, true, false).p
		p.Lambda = lambda
		v, err := nystrom(kernels.Gaussian{Sigma: 1.3}, solvers.Normal, 1e-2).solve(dev, nil, p)
		if errors.Is(err, backend.ErrNotPosDef) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		bound := func(y, beta backend.Host[float64], b []float64) []verified.TargetBound {
			problem := &verified.Primal{Lambda: v.lambda, Centers: true, Pass: func(_ context.Context, use func(x numeric.Points, y backend.Host[float64], weights []float64) error) error {
				return use(numeric.DensePoints(p.X), y, nil)
			}}
			e, err := problem.Bound(t.Context(), &verified.Expansion{Kernel: v.f.Kernel, Points: v.f.Points, Alpha: beta, Intercept: b})
			if errors.Is(err, verified.ErrDependent) {
				return nil
			}
			if err != nil {
				t.Fatal(err)
			}
			return e.Targets
		}
		together := bound(p.Y, v.f.Alpha, v.f.Intercept)
		for c := range together {
			alone := bound(p.Y.View(0, c, p.Y.Rows, 1), v.f.Alpha.View(0, c, v.f.Alpha.Rows, 1), v.f.Intercept[c:c+1])
			if !(together[c].Norm <= alone[0].Norm) {
				t.Errorf("λ = %g, target %d: the bound is %g with other targets and %g alone", lambda, c, together[c].Norm, alone[0].Norm)
			}
		}
	}
}

// TestSumsSize checks that the Size of a target does not depend on the order of the rows, with an outlier in the
// first or the last row. With an intercept the solver subtracts the first target from all targets.
func TestSumsSize(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, outlier = 200, 1e3
	x, y := backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1)
	for i := range n {
		x.Data[i], y.Data[i] = float64(i)/n, math.Sin(float64(i))
	}
	for _, index := range []int{0, n - 1} {
		y.Data[0], y.Data[n-1] = 1, 1
		y.Data[index] = outlier
		for _, intercept := range []bool{false, true} {
			r, err := solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{
				Kernel: kernels.Gaussian{Sigma: 1}, Data: solvers.InMemory(x, y, nil, nil), Lambda: 1, Intercept: intercept, Count: 10,
			}, solvers.StreamParams{})
			if err != nil {
				t.Fatal(err)
			}
			want := stat.PopStdDev(y.Data, nil)
			if !intercept {
				want = math.Hypot(want, stat.Mean(y.Data, nil))
			}
			// Size² is a difference of two numbers of at most outlier². Each of them has n + 8 roundings.
			if got := r.Sums.Targets[0].Size; !(math.Abs(got-want) <= (n+8)*0x1p-52*outlier*outlier/want) {
				t.Errorf("outlier %d, intercept %v: size %v, want %v", index, intercept, got, want)
			}
		}
	}
}

// TestVaryingSelf checks that Rounded returns ErrSamples if Pass is nil and k(x, x) depends on x. The centers are
// equal, so that Rounded would return another error if it computed a bound on the eigenvalues first.
func TestVaryingSelf(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	centers := numeric.DensePoints(backend.NewHost[float64](2, 1))
	f := &verified.Expansion{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Points: centers.Dense, Alpha: backend.NewHost[float64](2, 1), Intercept: []float64{0}}
	p := &verified.Primal{Lambda: verified.Exact(1), Centers: true, Sums: &stream.Sums{}}
	if _, err := p.Rounded(t.Context(), dev.F64(), f, verified.NewRoundoff(f.Kernel, centers, true)); !errors.Is(err, verified.ErrSamples) {
		t.Errorf("the error is %v", err)
	}
}

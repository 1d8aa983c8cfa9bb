package verified_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/page"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// A system is a kernel ridge problem with its exact kernel values.
type system struct {
	name       string
	p          solvers.Problem
	testPoints backend.Host[float64] // the points of the compared predictions
	gram       [][]*big.Float        // lower triangle of the matrix k(x_j, x_l)
	rows       [][]*big.Float        // k(x_j, testPoints_i)

	operators map[solvers.Operator]int // number of compared solutions by each operator
}

// operators lists parameters of solves that stop early: CG with each operator, and Mixed.
var operators = []solvers.Params{
	{Method: solvers.CG, Tol: 1e-4}, {Method: solvers.CG, Operator: solvers.Stored64, Tol: 1e-4}, {Method: solvers.CG, Operator: solvers.Stored32, Tol: 1e-4},
	{Method: solvers.CG, Operator: solvers.Fixed16, Tol: 1e-4}, {Method: solvers.CG, Operator: solvers.Unstored64, Tol: 1e-4},
	{Method: solvers.CG, Operator: solvers.Unstored32, Tol: 1e-4}, {Method: solvers.Mixed, Tol: 1e-4},
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// newSystem makes n samples of 3 features. If illConditioned is set, a third of the rows differ from other rows at
// most in the last bit of each element, and the other rows lie close together.
func newSystem(k kernels.Kernel, n, m, targets int, illConditioned, weights bool) *system {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	_, histogram := k.(kernels.ChiSquared)
	draw := func() float64 {
		v := random.NormFloat64()
		if illConditioned {
			v /= 8
		}
		if histogram {
			v = math.Abs(v)
		}
		return v
	}
	s := &system{name: k.String(), operators: map[solvers.Operator]int{}}
	s.p = solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, 3), Y: backend.NewHost[float64](n, targets)}
	s.testPoints = backend.NewHost[float64](m, 3)
	for i := range n {
		for j := range 3 {
			s.p.X.Row(i)[j] = draw()
		}
		if illConditioned && i%3 == 2 {
			copy(s.p.X.Row(i), s.p.X.Row(i-1))
			if i%2 == 0 {
				s.p.X.Row(i)[0] = math.Nextafter(s.p.X.Row(i)[0], 9)
			}
		}
		for c := range targets {
			s.p.Y.Row(i)[c] = math.Sin(float64(c+1)*s.p.X.Row(i)[0]) + s.p.X.Row(i)[1] + 0.1*random.NormFloat64()
		}
	}
	if weights {
		s.p.Weights = make([]float64, n)
		for i := range s.p.Weights {
			s.p.Weights[i] = math.Exp(random.NormFloat64())
		}
	}
	for i := range m {
		for j := range 3 {
			s.testPoints.Row(i)[j] = draw()
		}
		if i%5 == 0 {
			copy(s.testPoints.Row(i), s.p.X.Row(i%n))
		}
	}
	program := kernels.Compile(k)
	s.gram, s.rows = make([][]*big.Float, n), make([][]*big.Float, m)
	for i := range n {
		for j := range i + 1 {
			s.gram[i] = append(s.gram[i], bigKernel(program, s.p.X.Row(i), s.p.X.Row(j)))
		}
	}
	for i := range m {
		for j := range n {
			s.rows[i] = append(s.rows[i], bigKernel(program, s.p.X.Row(j), s.testPoints.Row(i)))
		}
	}
	return s
}

// factor returns the Cholesky factor of K + λW⁻¹ in 320 bits.
func (s *system) factor(lambda float64) [][]*big.Float {
	return bigFactor(s.p.X.Rows, func(i, j int) *big.Float {
		if i != j {
			return s.gram[i][j]
		}
		d := number(lambda)
		if s.p.Weights != nil {
			d = div(d, number(s.p.Weights[i]))
		}
		return add(s.gram[i][i], d)
	})
}

// bigFactor returns the Cholesky factor of the matrix whose lower triangle is element(i, j).
func bigFactor(n int, element func(i, j int) *big.Float) [][]*big.Float {
	l := make([][]*big.Float, n)
	product := zero()
	for i := range n {
		l[i] = make([]*big.Float, i+1)
		for j := range i + 1 {
			v := zero().Set(element(i, j))
			for q := range j {
				v.Sub(v, product.Mul(l[i][q], l[j][q]))
			}
			if i == j {
				v.Sqrt(v)
			} else {
				v.Quo(v, l[j][j])
			}
			l[i][j] = v
		}
	}
	return l
}

// substitute overwrites v with the solution of the equations whose Cholesky factor is l.
func substitute(l [][]*big.Float, v []*big.Float) []*big.Float {
	n, product := len(v), zero()
	for i := range n {
		for j := range i {
			v[i].Sub(v[i], product.Mul(l[i][j], v[j]))
		}
		v[i].Quo(v[i], l[i][i])
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			v[i].Sub(v[i], product.Mul(l[j][i], v[j]))
		}
		v[i].Quo(v[i], l[i][i])
	}
	return v
}

// solve returns the exact α, n×t, and b from the Cholesky factor.
func (s *system) solve(l [][]*big.Float, intercept bool) (alpha [][]*big.Float, b []*big.Float) {
	n, t := s.p.X.Rows, s.p.Y.Cols
	column := func(element func(i int) float64) []*big.Float {
		v := make([]*big.Float, n)
		for i := range v {
			v[i] = number(element(i))
		}
		return substitute(l, v)
	}
	total := func(v []*big.Float) *big.Float {
		sum := zero()
		for _, e := range v {
			sum.Add(sum, e)
		}
		return sum
	}
	ones := column(func(int) float64 { return 1 })
	q := total(ones)
	for c := range t {
		a, shift := column(func(i int) float64 { return s.p.Y.Row(i)[c] }), zero()
		if intercept {
			shift = div(total(a), q)
			for i := range a {
				a[i] = sub(a[i], mul(shift, ones[i]))
			}
		}
		alpha, b = append(alpha, a), append(b, shift)
	}
	return alpha, b
}

// factorAndSolve overwrites r with (K + λW⁻¹)⁻¹r in float64.
func factorAndSolve(p solvers.Problem, r backend.Host[float64]) error {
	n := p.X.Rows
	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			a.SetSym(i, j, kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)))
		}
		d := p.Lambda
		if p.Weights != nil {
			d /= p.Weights[i]
		}
		a.SetSym(i, i, a.At(i, i)+d)
	}
	var factor mat.Cholesky
	if !factor.Factorize(a) {
		return errors.New("not positive definite")
	}
	rhs := mat.NewDense(r.Rows, r.Cols, r.Data)
	err := factor.SolveTo(rhs, rhs)
	var condition mat.Condition
	if errors.As(err, &condition) {
		return nil
	}
	return err
}

// pessimism holds the ratios of bounds to errors in one test.
type pessimism struct {
	predictions int
	violations  int
	ratios      map[int][]float64 // by n: for each solution, the largest bound divided by the largest error
}

// sortedRatios returns the ratios of bounds to errors for all n for which include(n) is true, in ascending order.
func (p *pessimism) sortedRatios(include func(n int) bool) (list []float64) {
	for n, ratios := range p.ratios {
		if include(n) {
			list = append(list, ratios...)
		}
	}
	slices.Sort(list)
	return list
}

// compare solves s exactly and with Mercer, and checks every bound with and without the correction.
func (s *system) compare(t *testing.T, dev backend.Device, lambda float64, intercept bool, factor [][]*big.Float, sums *[len(ways)]pessimism) {
	ctx := context.Background()
	p := s.p
	p.Lambda, p.Intercept = lambda, intercept
	r, err := solvers.Solve(ctx, dev, p, solvers.Params{Method: solvers.Dual, Tol: 1e-2})
	if errors.Is(err, backend.ErrNotPosDef) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &verified.Expansion{Kernel: p.Kernel, Points: p.X, Alpha: r.Alpha, Intercept: r.Intercept}
	alpha, b := s.solve(factor, intercept)
	// Also check a solution by CG or Mixed that stops early. Different problems use different operators.
	par := operators[(p.X.Rows+int(-math.Log10(lambda))/2+len(s.p.Weights)+3*len(b)*index(intercept))%len(operators)]
	if _, _, bounded := kernels.Bounds(p.Kernel, p.X.Cols); par.Operator == solvers.Fixed16 && !bounded {
		par.Operator = solvers.Stored32
	}
	early, err := solvers.Solve(ctx, dev, p, par)
	// For an ill-conditioned K the operator that auto selects may be too imprecise: ignore this error.
	if err != nil && par.Operator == solvers.OperatorAuto && !errors.As(err, new(*solvers.ConvergenceError)) {
		t.Fatal(err)
	}
	rounded := func(r *solvers.Result) (*verified.ErrorBound, backend.Host[float64], backend.Host[float64]) {
		system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: lambda, Intercept: intercept}
		roundoff := verified.NewRoundoff(p.Kernel, numeric.DensePoints(p.X), true)
		f := &verified.Expansion{Kernel: p.Kernel, Points: p.X, Alpha: r.Alpha, Intercept: r.Intercept}
		residuals := r.Residuals
		if residuals.Data == nil { // solves of a linear kernel return no residuals
			residuals = predict(t, dev, f, p.X)
			for i := range residuals.Rows {
				d := lambda
				if p.Weights != nil {
					d /= p.Weights[i]
				}
				for c := range residuals.Cols {
					residuals.Row(i)[c] = p.Y.Row(i)[c] - (residuals.Row(i)[c] + d*r.Alpha.Row(i)[c])
				}
			}
		}
		bound, values := system.Rounded(r.Alpha, r.Intercept, residuals, roundoff), predict(t, dev, f, s.testPoints)
		values, bounds := bound.Round(f, roundoff, numeric.DensePoints(s.testPoints), values, roundings(dev, f))
		return bound, values, bounds
	}
	proven := func(solve func(r backend.Host[float64]) error) (*verified.ErrorBound, backend.Host[float64], backend.Host[float64]) {
		system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: lambda, Intercept: intercept, Solve: solve}
		bound, err := system.Bound(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		values, bounds, err := bound.Predict(ctx, f, s.testPoints)
		if err != nil {
			t.Fatal(err)
		}
		return bound, values, bounds
	}
	smallFit := func() (*verified.ErrorBound, backend.Host[float64], backend.Host[float64]) {
		bound, _, _ := proven(func(r backend.Host[float64]) error { return factorAndSolve(p, r) })
		roundoff := verified.NewRoundoff(p.Kernel, numeric.DensePoints(p.X), true)
		bound.ForDevice(f, roundoff)
		corrected := f.Corrected(bound)
		values, bounds := bound.Round(f, roundoff, numeric.DensePoints(s.testPoints), predict(t, dev, corrected, s.testPoints), roundings(dev, corrected))
		return bound, values, bounds
	}
	for i, name := range ways {
		boundName := fmt.Sprintf("%s n=%d λ=%g intercept=%t weights=%t %s", s.name, p.X.Rows, lambda, intercept, p.Weights != nil, name)
		var bound *verified.ErrorBound
		var values, bounds backend.Host[float64]
		switch i {
		case 0:
			bound, values, bounds = smallFit()
		case 1:
			bound, values, bounds = rounded(r)
		case 2:
			bound, values, bounds = proven(func(r backend.Host[float64]) error { return factorAndSolve(p, r) })
		case 3:
			if !*writeTable && !testing.Short() {
				continue // run this slow case only with -short, where n is small, or to write the table
			}
			bound, values, bounds = proven(nil)
		case 4:
			if err != nil {
				continue
			}
			r = early
			bound, values, bounds = rounded(r)
			s.operators[par.Operator]++
		}
		for c := range p.Y.Cols {
			squaredError := zero()
			for i, a := range alpha[c] {
				e := sub(a, number(r.Alpha.Row(i)[c]))
				squaredError.Add(squaredError, mul(e, e))
			}
			if norm, _ := bigSqrt(squaredError).Float64(); !(norm <= bound.Targets[c].Alpha) {
				t.Errorf("%s, target %d: ‖α − α̂‖ is %g, the bound %g", boundName, c, norm, bound.Targets[c].Alpha)
			}
			maxError, largest, maxDiag := 0.0, 0.0, 0.0
			for i := range s.testPoints.Rows {
				exact := zero().Set(b[c])
				for j, k := range s.rows[i] {
					exact.Add(exact, mul(k, alpha[c][j]))
				}
				e, _ := zero().Abs(sub(exact, number(values.Row(i)[c]))).Float64()
				if !(e <= bounds.Row(i)[c]) {
					sums[i].violations++
					t.Errorf("%s, target %d: the error at point %d is %g, the bound %g", boundName, c, i, e, bounds.Row(i)[c])
				}
				maxError, largest = max(maxError, e), max(largest, bounds.Row(i)[c])
				maxDiag = max(maxDiag, kernels.Diag(p.Kernel, s.testPoints.Row(i)))
			}
			// The uniform bound does not include the rounding errors of a prediction.
			if uniform := bound.Uniform(c, maxDiag*(1+1e-12)); !bound.Rounded && !(maxError <= uniform+0x1p-52*s.size(values, c)) {
				t.Errorf("%s, target %d: the error is %g, the uniform bound %g", boundName, c, maxError, uniform)
			}
			sums[i].predictions += s.testPoints.Rows
			if maxError > 0x1p-150 { // smaller errors are rounding errors of the reference solution
				if sums[i].ratios == nil {
					sums[i].ratios = map[int][]float64{}
				}
				sums[i].ratios[s.p.X.Rows] = append(sums[i].ratios[s.p.X.Rows], largest/maxError)
			}
		}
	}
}

// size returns the largest absolute prediction of target c.
func (s *system) size(values backend.Host[float64], c int) float64 {
	largest := 0.0
	for i := range values.Rows {
		largest = max(largest, math.Abs(values.Row(i)[c]))
	}
	return largest
}

// ways names the kinds of bounds that system.compare checks.
var ways = [...]string{"small fits", "from float64", "with correction", "without correction", "from float64, iterative to 1e-4"}

func predict(t *testing.T, dev backend.Device, f *verified.Expansion, x backend.Host[float64]) backend.Host[float64] {
	t.Helper()
	out := onDevice(t, dev, x.Rows, f.Alpha.Cols, []backend.Host[float64]{x, f.Points, f.Alpha}, func(b backend.Backend[float64], out backend.Matrix[float64], in []backend.Matrix[float64]) {
		b.GramMul(out, f.Kernel, in[0], in[1], in[2])
	})
	for i := range out.Rows {
		for c, v := range f.Intercept {
			out.Row(i)[c] += v
		}
	}
	return out
}

// roundings returns the largest number of rounding errors in one term of a sum that predict computes.
func roundings(dev backend.Device, f *verified.Expansion) int {
	return dev.F64().(backend.RoundingBackend[float64]).GramMulRoundings(f.Points.Rows, f.Alpha.Cols)
}

// onDevice returns the matrix that the function work computes on dev from copies of the matrices of the slice in.
func onDevice(t *testing.T, dev backend.Device, rows, cols int, in []backend.Host[float64], work func(b backend.Backend[float64], out backend.Matrix[float64], in []backend.Matrix[float64])) backend.Host[float64] {
	t.Helper()
	b := dev.F64()
	var matrices []backend.Matrix[float64]
	out := backend.NewHost[float64](rows, cols)
	for _, h := range append([]backend.Host[float64]{out}, in...) {
		m, err := b.New(h.Rows, h.Cols)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if err := b.Upload(m, h); err != nil {
			t.Fatal(err)
		}
		matrices = append(matrices, m)
	}
	work(b, matrices[0], matrices[1:])
	if err := b.Download(out, matrices[0]); err != nil {
		t.Fatal(err)
	}
	return out
}

// lambdas holds the values of λ in TestRidgeBounds.
var lambdas = []float64{1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1}

// largest is the largest number of rows in TestRidgeBounds.
const largest = 400

// TestRidgeBounds checks that at least 10⁵ predictions differ from the exact solutions by at most
// their bounds, and that the median of bound/error is small.
func TestRidgeBounds(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	list, m, n := tested(), 30, []int{1, 2, 20, 32, 100, largest}
	if testing.Short() {
		list, m, n = []kernels.Kernel{kernels.Gaussian{Sigma: 1.3}, kernels.Polynomial{Degree: 3, C: 1}}, 10, []int{1, 40}
	}
	rows := make([]row, len(list))
	t.Run("kernels", func(t *testing.T) {
		for i, k := range list {
			t.Run(k.String(), func(t *testing.T) {
				t.Parallel()
				var sums [len(ways)]pessimism
				counts := map[solvers.Operator]int{}
				for _, n := range n {
					for _, illConditioned := range []bool{false, true} {
						selected := required.Subset(3, lambdas)
						if n == largest { // limit the time of the largest n
							if illConditioned != (i%2 == 0) || !*writeTable && i != 2 {
								continue
							}
							selected = []float64{lambdas[i%3], lambdas[3+i/2%3]}
						}
						s := newSystem(k, n, m, 3, illConditioned, illConditioned)
						for _, lambda := range selected {
							factor := s.factor(lambda)
							for _, intercept := range []bool{false, true} {
								s.compare(t, dev, lambda, intercept, factor, &sums)
							}
						}
						for o, count := range s.operators {
							counts[o] += count
						}
					}
				}
				rows[i] = row{k.String(), sums}
				_, _, bounded := kernels.Bounds(k, 3)
				for _, par := range operators {
					if counts[par.Operator] == 0 && (bounded || par.Operator != solvers.Fixed16) {
						t.Errorf("no solution with %v %s was compared", par.Method, par.Operator)
					}
				}
				t.Logf("solutions by operator: %v", counts)
			})
		}
	})
	total := row{kernel: "all"}
	for j := range total.ways {
		total.ways[j].ratios = map[int][]float64{}
		for _, r := range rows {
			total.ways[j].predictions += r.ways[j].predictions
			total.ways[j].violations += r.ways[j].violations
			for n, list := range r.ways[j].ratios {
				total.ways[j].ratios[n] = append(total.ways[j].ratios[n], list...)
			}
		}
	}
	if *writeTable {
		if err := write(append(rows, total), n); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range n {
		list := total.ways[0].sortedRatios(func(m int) bool { return m == n })
		t.Logf("%s of %d rows: the median of bound/error is %.3g", ways[0], n, median(list))
	}
	if predictions := total.ways[0].predictions; !testing.Short() && predictions < 1e5 {
		t.Errorf("%d predictions were compared, fewer than 100,000", predictions)
	}
	// docs/trust.md states the limit 200 for small fits. The corrected bound is about as large as the error.
	for j, limit := range map[int]float64{0: 200, 2: 2} {
		if list := total.ways[j].sortedRatios(anyRows); !(median(list) <= limit) {
			t.Errorf("%s: the median of bound/error is %g", ways[j], median(list))
		}
	}
}

func anyRows(int) bool { return true }

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

var writeTable = flag.Bool("write-table", false, "write the tables of TestRidgeBounds and TestPrimalBounds into docs/trust.md")

// A row is a row of the table: the ratios of bound to error of one kernel.
type row struct {
	kernel string
	ways   [len(ways)]pessimism
}

// write replaces two tables in docs/trust.md: the ratios for each kernel, and the ratios for each number of rows.
// The last element of rows is for all kernels together.
func write(rows []row, sizes []int) error {
	const head = "small fits: median | maximum | from float64: median | maximum | sharp: median | maximum | sharp without correction: median | maximum | from float64, iterative to 1e-4: median | maximum |\n"
	rule := strings.Repeat("---:|", 2*len(ways))
	cells := func(b *strings.Builder, r row, include func(n int) bool) {
		for j := range r.ways {
			list := r.ways[j].sortedRatios(include)
			fmt.Fprintf(b, " %.2g | %.2g |", median(list), list[len(list)-1])
		}
		b.WriteString("\n")
	}
	var byKernel, bySize strings.Builder
	byKernel.WriteString("| kernel | predictions | violations | " + head + "|---|---:|---:|" + rule + "\n")
	for _, r := range rows {
		violations := 0
		for _, results := range r.ways {
			violations += results.violations
		}
		fmt.Fprintf(&byKernel, "| `%s` | %d | %d |", r.kernel, r.ways[0].predictions, violations)
		cells(&byKernel, r, anyRows)
	}
	bySize.WriteString("| rows | " + head + "|---:|" + rule + "\n")
	for _, n := range sizes {
		fmt.Fprintf(&bySize, "| %d |", n)
		cells(&bySize, rows[len(rows)-1], func(m int) bool { return m == n })
	}
	for name, text := range map[string]string{"bounds": byKernel.String(), "bounds by rows": bySize.String()} {
		if err := page.Replace(trust, name, text); err != nil {
			return err
		}
	}
	return nil
}

// trust is the path of the page that contains the tables.
const trust = "../../docs/trust.md"

func BenchmarkKernel(b *testing.B) {
	x, z := make([]float64, 8), make([]float64, 8)
	for j := range x {
		x[j], z[j] = float64(j), math.Sqrt(float64(j))
	}
	for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 5}, kernels.Matern{Nu: 2.5, Sigma: 5}, kernels.Polynomial{Degree: 3, C: 1}} {
		b.Run(k.String(), func(b *testing.B) {
			e := verified.NewKernel(k)
			for b.Loop() {
				e.Eval(x, z)
			}
		})
	}
}

// BenchmarkFloat64 measures the bound from float64 residuals for 10,000 rows and for a prediction of one row.
func BenchmarkFloat64(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	const n, d = 10_000, 8
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range x.Data {
		x.Data[i] = random.NormFloat64()
	}
	for i := range y.Data {
		y.Data[i] = random.NormFloat64()
	}
	system := &verified.System{Y: y, Lambda: 1, Intercept: true}
	points, intercept := numeric.DensePoints(x), []float64{0}
	fit := func() (*verified.ErrorBound, *verified.Roundoff) {
		r := verified.NewRoundoff(kernels.Gaussian{Sigma: 3}, points, true)
		return system.Rounded(y, intercept, y, r), r
	}
	b.Run("fit", func(b *testing.B) {
		for b.Loop() {
			fit()
		}
	})
	b.Run("row", func(b *testing.B) {
		bound, r := fit()
		for b.Loop() {
			bound.Round(&verified.Expansion{Intercept: intercept}, r, points, y, 0)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
	})
}

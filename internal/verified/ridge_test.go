package verified_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// A system is a kernel ridge problem with all of its exact solutions.
type system struct {
	name string
	p    solvers.Problem
	at   backend.Host[float64] // where predictions are compared
	gram [][]*big.Float        // lower triangle
	rows [][]*big.Float        // k(x_j, at_i)
}

// newSystem makes n samples of 3 features: benign ones, or such that make K ill-conditioned: a third
// of the rows are equal to others, up to the last bit, and the others lie close together.
func newSystem(k kernels.Kernel, n, m, targets int, hard, weights bool) *system {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	_, histogram := k.(kernels.ChiSquared)
	draw := func() float64 {
		v := random.NormFloat64()
		if hard {
			v /= 8
		}
		if histogram {
			v = math.Abs(v)
		}
		return v
	}
	s := &system{name: k.String()}
	s.p = solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, 3), Y: backend.NewHost[float64](n, targets)}
	s.at = backend.NewHost[float64](m, 3)
	for i := range n {
		for j := range 3 {
			s.p.X.Row(i)[j] = draw()
		}
		if hard && i%3 == 2 {
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
			s.at.Row(i)[j] = draw()
		}
		if i%5 == 0 {
			copy(s.at.Row(i), s.p.X.Row(i%n))
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
			s.rows[i] = append(s.rows[i], bigKernel(program, s.p.X.Row(j), s.at.Row(i)))
		}
	}
	return s
}

// solve returns the exact α, n×t, and b, by a Cholesky factorization in 320 bits.
func (s *system) solve(lambda float64, intercept bool) (alpha [][]*big.Float, b []*big.Float) {
	n, t := s.p.X.Rows, s.p.Y.Cols
	l := make([][]*big.Float, n)
	product := zero()
	for i := range n {
		l[i] = make([]*big.Float, i+1)
		for j := range i + 1 {
			v := zero().Set(s.gram[i][j])
			if i == j {
				d := number(lambda)
				if s.p.Weights != nil {
					d = div(d, number(s.p.Weights[i]))
				}
				v.Add(v, d)
			}
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
	substitute := func(v []*big.Float) []*big.Float {
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
	column := func(at func(i int) float64) []*big.Float {
		v := make([]*big.Float, n)
		for i := range v {
			v[i] = number(at(i))
		}
		return substitute(v)
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

// pessimism is what one test compares: bounds divided by errors.
type pessimism struct {
	predictions int
	ratios      []float64 // for each solution, the largest bound over the largest error
}

// compare solves s by Mercer and exactly, and checks every bound, without correction and with it.
func (s *system) compare(t *testing.T, dev backend.Device, lambda float64, intercept bool, all *[2]pessimism) {
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
	alpha, b := s.solve(lambda, intercept)
	for i, solve := range []func(backend.Host[float64]) error{nil, func(r backend.Host[float64]) error { return factorAndSolve(p, r) }} {
		what := fmt.Sprintf("%s n=%d λ=%g intercept=%t weights=%t correction=%t", s.name, p.X.Rows, lambda, intercept, p.Weights != nil, i == 1)
		system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: lambda, Intercept: intercept, Solve: solve}
		bound, err := system.Bound(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		values, bounds, err := bound.Predict(ctx, f, s.at)
		if err != nil {
			t.Fatal(err)
		}
		for c := range p.Y.Cols {
			off := zero()
			for i, a := range alpha[c] {
				e := sub(a, number(r.Alpha.Row(i)[c]))
				off.Add(off, mul(e, e))
			}
			if norm, _ := bigSqrt(off).Float64(); !(norm <= bound.Targets[c].Alpha) {
				t.Errorf("%s, target %d: ‖α − α̂‖ is %g, the bound %g", what, c, norm, bound.Targets[c].Alpha)
			}
			worst, largest, self := 0.0, 0.0, 0.0
			for i := range s.at.Rows {
				exact := zero().Set(b[c])
				for j, k := range s.rows[i] {
					exact.Add(exact, mul(k, alpha[c][j]))
				}
				e, _ := zero().Abs(sub(exact, number(values.Row(i)[c]))).Float64()
				if !(e <= bounds.Row(i)[c]) {
					t.Errorf("%s, target %d: the error at point %d is %g, the bound %g", what, c, i, e, bounds.Row(i)[c])
				}
				worst, largest = max(worst, e), max(largest, bounds.Row(i)[c])
				self = max(self, kernels.Diag(p.Kernel, s.at.Row(i)))
			}
			// The uniform bound has no part for the rounding of a prediction.
			if uniform := bound.Uniform(c, self*(1+1e-12)); !(worst <= uniform+0x1p-52*s.size(values, c)) {
				t.Errorf("%s, target %d: the error is %g, the uniform bound %g", what, c, worst, uniform)
			}
			all[i].predictions += s.at.Rows
			if worst > 0x1p-150 { // otherwise the solution is exact
				all[i].ratios = append(all[i].ratios, largest/worst)
			}
		}
	}
}

// size is the largest prediction of target c.
func (s *system) size(values backend.Host[float64], c int) float64 {
	largest := 0.0
	for i := range values.Rows {
		largest = max(largest, math.Abs(values.Row(i)[c]))
	}
	return largest
}

// lambdas are the λ of the proof by test.
var lambdas = []float64{1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1}

// TestRidgeBounds compares the bounds of at least 10⁵ predictions with exact solutions, and their
// median with the errors.
func TestRidgeBounds(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	list, m, n := tested(), 30, []int{1, 2, 30, 60}
	if testing.Short() {
		list, m, n = []kernels.Kernel{kernels.Gaussian{Sigma: 1.3}, kernels.Polynomial{Degree: 3, C: 1}}, 10, []int{1, 40}
	}
	var predictions int
	var ratios [2][]float64
	var rows []row
	for i, k := range list {
		t.Run(k.String(), func(t *testing.T) {
			var sums [2]pessimism
			sizes := n
			if i == 2 {
				sizes = append(slices.Clone(n), 120)
			}
			for _, n := range sizes {
				for _, hard := range []bool{false, true} {
					s := newSystem(k, n, m, 3, hard, hard)
					for _, lambda := range lambdas {
						for _, intercept := range []bool{false, true} {
							s.compare(t, dev, lambda, intercept, &sums)
						}
					}
				}
			}
			rows = append(rows, row{k.String(), sums[0].predictions, [2][]float64{sums[0].ratios, sums[1].ratios}})
			for i := range ratios {
				ratios[i] = append(ratios[i], sums[i].ratios...)
			}
			predictions += sums[0].predictions
		})
	}
	rows = append(rows, row{"all", predictions, ratios})
	if *writeTable {
		if err := write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if !testing.Short() && predictions < 1e5 {
		t.Errorf("%d predictions were compared, fewer than 100,000", predictions)
	}
	// Those of a correction are narrow: most of the error is known.
	if slices.Sort(ratios[1]); ratios[1][len(ratios[1])/2] > 2 {
		t.Errorf("the median of bound/error with a correction is %g", ratios[1][len(ratios[1])/2])
	}
}

var writeTable = flag.Bool("write-table", false, "write the table of TestRidgeBounds into docs/trust.md")

// A row is a row of the table: bound/error of each solution without correction, and with it.
type row struct {
	kernel      string
	predictions int
	ratios      [2][]float64
}

// write replaces the table of docs/trust.md.
func write(rows []row) error {
	const page, begin, end = "../../docs/trust.md", "<!-- bounds -->\n", "<!-- /bounds -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return fmt.Errorf("%s has no place for the table", page)
	}
	var b strings.Builder
	b.WriteString(before + begin + "| kernel | predictions | violations | bound/error: median | maximum | without correction: median | maximum |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %d | 0 |", r.kernel, r.predictions)
		for _, list := range [][]float64{r.ratios[1], r.ratios[0]} {
			slices.Sort(list)
			fmt.Fprintf(&b, " %.3g | %.2g |", list[len(list)/2], list[len(list)-1])
		}
		b.WriteString("\n")
	}
	b.WriteString(end + after)
	return os.WriteFile(page, []byte(b.String()), 0o644)
}

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

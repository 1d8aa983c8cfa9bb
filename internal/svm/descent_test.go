package svm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// sparseRows returns rows with about perRow nonzeros, and the signs of a linear function with noise.
func sparseRows(r *rand.Rand, n, d, perRow int) (x backend.Host[float64], sign []float64) {
	x = backend.NewHost[float64](n, d)
	for i := range n {
		f := 0.5 * r.NormFloat64()
		for range perRow {
			c := int(float64(d) * math.Pow(r.Float64(), 2))
			x.Row(i)[c] = r.Float64() + 0.1
			f += x.Row(i)[c] * float64(c%3-1)
		}
		sign = append(sign, math.Copysign(1, f))
	}
	return x, sign
}

// classesOf returns the quadratic program of two classes.
func classesOf(x backend.Host[float64], sign []float64, c func(i int) float64) *Problem {
	n := x.Rows
	p := &Problem{Kernel: kernels.Linear{}, X: numeric.SparsePoints(x.CSR()), Sign: sign, P: slices.Repeat([]float64{-1}, n), Alpha: make([]float64, n)}
	for i := range n {
		p.C = append(p.C, c(i))
	}
	return p
}

// descentCases returns programs with the linear kernel, some with extreme solutions.
func descentCases() map[string]*Problem {
	cost := func(c float64) func(int) float64 { return func(int) float64 { return c } }
	cases := map[string]*Problem{}
	addCase := func(name string, x backend.Host[float64], sign []float64, c func(i int) float64) {
		cases[name] = classesOf(x, sign, c)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	x, sign := sparseRows(rng, 300, 60, 6)
	for _, c := range []float64{1e-8, 1e-3, 0.1, 1, 30} {
		addCase(fmt.Sprintf("C is %g", c), x, sign, cost(c))
	}
	addCase("weights", x, sign, func(i int) float64 { return float64(i%4) + 0.5 })
	addCase("classes of other weights", x, sign, func(i int) float64 { return 2 + 1.8*sign[i] })

	wide, signs := sparseRows(rng, 80, 400, 10)
	addCase("separable", wide, signs, cost(1e6))
	twice := backend.NewHost[float64](600, 60)
	for i := range 600 {
		copy(twice.Row(i), x.Row(i/2))
	}
	signOf := func(i int) float64 { return sign[i/2] }
	doubled := []float64{}
	for i := range 600 {
		doubled = append(doubled, signOf(i))
	}
	addCase("every row twice", twice, doubled, cost(1))
	contrary := slices.Clone(doubled)
	for i := 0; i < 600; i += 10 {
		contrary[i] = -contrary[i]
	}
	addCase("equal rows of both classes", twice, contrary, cost(1))

	signs1 := slices.Repeat([]float64{-1}, 300)
	signs1[7] = 1
	addCase("a class of one row", x, signs1, cost(1))
	empty := backend.NewHost[float64](300, 60)
	for i := 0; i < 300; i += 2 {
		copy(empty.Row(i), x.Row(i))
	}
	addCase("half of the rows empty", empty, sign, cost(1))
	addCase("all rows empty", backend.NewHost[float64](300, 60), sign, cost(1))
	addCase("two rows", x.View(0, 0, 2, 60), []float64{1, -1}, cost(10))
	long := backend.NewHost[float64](300, 60)
	for i := range long.Data {
		long.Data[i] = 1e4 * x.Data[i]
	}
	addCase("features of 1e4", long, sign, cost(1e-6))

	y, weights := backend.NewHost[float64](300, 1), slices.Repeat([]float64{1}, 300)
	for i := range y.Data {
		y.Data[i] = x.Row(i)[0] - 2*x.Row(i)[3] + 0.3*rng.NormFloat64()
		weights[i] = float64(1 + i%3)
	}
	points := numeric.SparsePoints(x.CSR())
	cases["regression"] = Regression(kernels.Linear{}, points, Tube{Y: y, Weights: weights, C: 1, Epsilon: 0.1, Scale: 1})
	cases["one class"] = OneClass(kernels.Linear{}, points, weights, 0.3)
	return cases
}

// TestDescentSolvesTheProgramOfSMO compares coordinate descent alone, and one pass of it followed by SMO, with SMO
// alone. For each solution it checks the optimality conditions.
func TestDescentSolvesTheProgramOfSMO(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const tol = 1e-6
	set, err := Params{Tol: tol}.WithDefaults(1000)
	if err != nil {
		t.Fatal(err)
	}
	for name, problem := range descentCases() {
		solved := func(work int) (*Problem, *Result) {
			t.Helper()
			p := *problem
			p.Alpha = slices.Clone(problem.Alpha)
			res, err := solve(t.Context(), dev.F64(), &p, set, func(float64) error { return nil }, work, func() {})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return &p, res
		}
		_, want := solved(0)
		for _, work := range []int{1, 1 << 30} {
			p, got := solved(work)
			description := fmt.Sprintf("%s, %d passes and %d rows of K", name, got.Passes, got.Rows)
			if work > 1 && got.Rows > 0 {
				t.Errorf("%s: coordinate descent did not solve it", description)
			}
			checkOptimal(t, description, p, problem.Alpha, got)
			// The distance of each objective from the maximum is at most its duality gap.
			bound := got.Duality + want.Duality + 1e-12*math.Abs(want.Objective)
			if math.Abs(got.Objective-want.Objective) > bound {
				t.Errorf("%s: the objective is %.15g, that of SMO %.15g; they may differ by %.3g", description, got.Objective, want.Objective, bound)
			}
			if got.Passes > 1 && got.Rows == 0 && got.Duality > 1e-3*got.Tol*math.Abs(got.Objective) {
				t.Errorf("%s: the duality gap is %g of %g", description, got.Duality, got.Objective)
			}
		}
	}
}

// checkOptimal checks the constraints, the slopes of the objective, and the duality gap computed from the primal.
func checkOptimal(t *testing.T, description string, p *Problem, start []float64, got *Result) {
	t.Helper()
	n := p.X.Rows
	w, sum, size := make([]float64, p.X.Cols), 0.0, 0.0
	for i, alpha := range p.Alpha {
		if !(alpha >= 0 && alpha <= p.C[i]) {
			t.Errorf("%s: α[%d] is %g, c %g", description, i, alpha, p.C[i])
		}
		sum += p.Sign[i] * (alpha - start[i])
		size += alpha + start[i]
		numeric.Axpy(p.Sign[i]*alpha, p.X.Point(i%n), w)
	}
	if math.Abs(sum) > 4*float64(n)*0x1p-52*size {
		t.Errorf("%s: Σ s α is off by %g", description, sum)
	}
	maxV, minV, square, primal := math.Inf(-1), math.Inf(1), numeric.Dot(w, w), 0.0
	primal = square / 2
	for i, alpha := range start { // add bκ for the initial κ = Σ s_i α_i
		primal += got.Intercept * p.Sign[i] * alpha
	}
	large := 0.0
	for i, alpha := range p.Alpha {
		f := numeric.Dot(w, p.X.Point(i%n))
		large = max(large, math.Abs(f))
		v := -f - p.Sign[i]*p.P[i]
		if up := p.Sign[i] > 0; up && alpha < p.C[i] || !up && alpha > 0 {
			maxV = max(maxV, v)
		}
		if up := p.Sign[i] > 0; up && alpha > 0 || !up && alpha < p.C[i] {
			minV = min(minV, v)
		}
		primal += p.C[i] * max(-p.Sign[i]*(f+got.Intercept)-p.P[i], 0)
	}
	// rounding bounds the error of f, a sum of n·60 terms whose partial sums are at most about 1 + large.
	rounding := float64(n) * 60 * 0x1p-52 * (1 + large)
	if maxV-minV > got.Tol+rounding {
		t.Errorf("%s: the conditions are violated by %g, not %g", description, maxV-minV, got.Tol)
	}
	if got.Duality < 0 || got.Objective+got.Duality > primal+1e-9*math.Abs(primal)+rounding*size {
		t.Errorf("%s: the objective is %g, the gap %g and the primal %g", description, got.Objective, got.Duality, primal)
	}
}

// TestDescentEnds checks that descend returns the error of a canceled context or of report, and that an overflow
// of values leads to the same error as in SMO.
func TestDescentEnds(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	set, err := Params{}.WithDefaults(1000)
	if err != nil {
		t.Fatal(err)
	}
	x, sign := sparseRows(rand.New(rand.NewPCG(2, 0)), 300, 60, 6)
	fresh := func() *Problem { return classesOf(x, sign, func(int) float64 { return 1 }) }
	noReport := func(float64) error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := solve(ctx, dev.F64(), fresh(), set, noReport, 1<<30, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: %v", err)
	}
	stop := errors.New("stop")
	if _, err := solve(t.Context(), dev.F64(), fresh(), set, func(float64) error { return stop }, 1<<30, func() {}); err != stop {
		t.Errorf("a report that stops: %v", err)
	}
	for _, scale := range []float64{1e155, 1e200} {
		p := fresh()
		for k := range p.X.Sparse.Data {
			p.X.Sparse.Data[k] *= scale
		}
		if _, err := solve(t.Context(), dev.F64(), p, set, noReport, 1<<30, func() {}); err == nil {
			t.Errorf("features of %g were solved", scale)
		}
	}
}

// TestDescentIsChosenByCost checks that only problems of many rows with few columns are solved without K.
func TestDescentIsChosenByCost(t *testing.T) {
	x, sign := sparseRows(rand.New(rand.NewPCG(3, 0)), 3000, 60, 6)
	one := func(int) float64 { return 1 }
	p := classesOf(x, sign, one)
	if descentWork(p.Kernel, p.X) == 0 {
		t.Error("3000 rows of 60 features: not by coordinate descent")
	}
	p.Kernel = kernels.Polynomial{Degree: 2}
	if descentWork(p.Kernel, p.X) != 0 {
		t.Error("another kernel: by coordinate descent")
	}
	p.Kernel, p.X = kernels.Linear{}, numeric.DensePoints(x)
	if descentWork(p.Kernel, p.X) != 0 {
		t.Error("dense samples: by coordinate descent")
	}
	if p := classesOf(x.View(0, 0, 60, 60), sign[:60], one); descentWork(p.Kernel, p.X) != 0 {
		t.Error("60 rows: by coordinate descent")
	}
}

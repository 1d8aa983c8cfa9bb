package learners_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	stringkernels "github.com/mercer-go/mercer/kernels/strings"
	"github.com/mercer-go/mercer/kernels/trees"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// rationalRidge returns the exact predictions of kernel ridge with k(x, z) = (xᵀz + 1)² at the rows
// of queries. It uses Gaussian elimination in rational numbers, and omits samples of weight 0.
func rationalRidge(x, y, queries *mat.Dense, weights []float64, lambda float64, intercept bool) []*big.Rat {
	return rationalPolynomial(x, y, queries, weights, lambda, intercept, 1, 2)
}

// rationalPolynomial is rationalRidge with k(x, z) = (xᵀz + c)^degree, for a degree of 1 or 2.
func rationalPolynomial(x, y, queries *mat.Dense, weights []float64, lambda float64, intercept bool, c float64, degree int) []*big.Rat {
	q := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	k := func(a, b []float64) *big.Rat {
		sum := q(c)
		for p, v := range a {
			sum.Add(sum, new(big.Rat).Mul(q(v), q(b[p])))
		}
		if degree == 1 {
			return sum
		}
		return sum.Mul(sum, sum)
	}
	var rows []int
	for i, w := range weights {
		if w > 0 {
			rows = append(rows, i)
		}
	}
	n := len(rows)
	m := make([][]*big.Rat, n+1) // the last row and column are for the intercept
	for i := range m {
		m[i] = make([]*big.Rat, n+2)
		for j := range m[i] {
			m[i][j] = new(big.Rat)
		}
	}
	for i, a := range rows {
		for j, b := range rows {
			m[i][j] = k(x.RawRowView(a), x.RawRowView(b))
		}
		m[i][i].Add(m[i][i], new(big.Rat).Quo(q(lambda), q(weights[a])))
		m[i][n+1] = q(y.At(a, 0))
		if intercept {
			m[i][n], m[n][i] = q(1), q(1)
		}
	}
	if !intercept {
		m[n][n] = q(1) // b = 0
	}
	for c := range m {
		pivot := c
		for m[pivot][c].Sign() == 0 {
			pivot++
		}
		m[c], m[pivot] = m[pivot], m[c]
		for i := range m {
			if i == c {
				continue
			}
			factor := new(big.Rat).Quo(m[i][c], m[c][c])
			for j := c; j < n+2; j++ {
				m[i][j].Sub(m[i][j], new(big.Rat).Mul(factor, m[c][j]))
			}
		}
	}
	solution := func(i int) *big.Rat { return new(big.Rat).Quo(m[i][n+1], m[i][i]) }
	points, _ := queries.Dims()
	f := make([]*big.Rat, points)
	for i := range f {
		f[i] = solution(n)
		for j, a := range rows {
			f[i].Add(f[i], new(big.Rat).Mul(solution(j), k(x.RawRowView(a), queries.RawRowView(i))))
		}
	}
	return f
}

// unit is the unit roundoff.
const unit = 0x1p-53

// A size holds norms and sums of the coefficients of a fit to n samples.
type size struct{ n, root, sum, alpha, intercept float64 }

func sizeOf(m learners.Model, queries mat.Matrix) (s size) {
	p := learners.PartsOf(m)
	points, _ := p.Points.Dims()
	s.n = float64(points)
	for _, x := range []mat.Matrix{p.Points, queries} {
		rows, _ := x.Dims()
		for i := range rows {
			s.root = max(s.root, math.Sqrt(kernels.Diag(p.Kernel, mat.Row(nil, i, x))))
		}
	}
	for i := range points {
		a := math.Abs(p.Coef.At(i, 0))
		s.alpha += a
		s.sum += a * math.Sqrt(kernels.Diag(p.Kernel, mat.Row(nil, i, p.Points)))
	}
	s.intercept = math.Abs(p.Intercept[0])
	return s
}

// roundings returns a bound on the rounding errors of a prediction: 8(d + 7)·unit·√(k(x, x)k(z, z)) for a kernel value
// (see verified.Roundoff), and n + 9 roundings of the sum.
func (s size) roundings(d int) float64 {
	return unit * ((8*float64(d+7)+s.n+9)*s.root*s.sum + (s.n+9)*s.intercept)
}

// limit returns the largest bound that a fit in float64 may report, by the formulas of docs/trust.md. The absolute
// values of the targets are at most y, and low and high are the smallest and the largest weight.
func (s size) limit(d int, y, lambda, low, high float64) float64 {
	residual := 2 * unit * ((8*float64(d+7)+s.n+33)*s.root*s.sum + 16*(3*y+2*s.intercept+lambda/low*s.alpha))
	kappa := math.Sqrt(s.root*s.root + lambda/low/s.n)
	return 1.01 * (residual*math.Sqrt(s.n*high/lambda)*s.root + residual + kappa*2*s.n*unit*s.alpha*(s.root+kappa) + s.roundings(d))
}

// sharpLimit returns the largest value that the sharp bound of a prediction v may have. It is the sum of the error
// diff, the rounding error of v, and a bound on the error of the correction of f. limit is the bound computed in
// float64, and high is the largest weight.
func (s size) sharpLimit(diff, v, limit, lambda, high float64) float64 {
	correction := 2 * (s.n + 2) * unit * s.root * s.root * s.n * high / lambda
	return math.Abs(diff) + 4*unit*(1+math.Abs(v)) + correction*limit
}

func TestKernelRidgeBound(t *testing.T) {
	const n = 12
	random := rand.New(rand.NewPCG(5, 6))
	x, y, queries := mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil), mat.NewDense(20, 2, nil)
	weights := make([]float64, n)
	for i := range n {
		x.SetRow(i, []float64{random.NormFloat64(), random.NormFloat64()})
		y.Set(i, 0, random.NormFloat64())
		weights[i] = []float64{1, 2, 0.3, 0}[i%4]
	}
	for i := range 20 {
		queries.SetRow(i, []float64{3 * random.NormFloat64(), random.NormFloat64()})
	}
	x.SetRow(5, x.RawRowView(4))
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, lambda := range required.Subset(1, []float64{1e-3, 1e-9, 10}) {
			for i := range 6 {
				intercept, sharp := i%2 == 1, i < 2
				l := learners.KernelRidge{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Lambda: lambda, NoIntercept: !intercept, Tol: 1e-3, Bound: sharp}
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights, Prove: i >= 4})
				if err != nil {
					t.Fatal(err)
				}
				fitted := sizeOf(m, queries)
				exact := rationalRidge(x, y, queries, weights, lambda, intercept)
				restored, err := learners.Restore(m.State())
				if err != nil {
					t.Fatal(err)
				}
				var previous *mat.Dense
				for _, m := range []learners.Bounded{m, restored.(learners.Bounded)} {
					if !m.HasBound() {
						t.Fatal("the bound was lost")
					}
					values, bounds, err := m.PredictBound(t.Context(), dev, queries)
					if err != nil {
						t.Fatal(err)
					}
					if previous != nil && !mat.Equal(previous, bounds) {
						t.Error("the bounds of the loaded model differ")
					}
					previous = bounds
					predicted, err := m.(learners.Model).Predict(t.Context(), dev, queries)
					if err != nil {
						t.Fatal(err)
					}
					for i, f := range exact {
						v := new(big.Rat).SetFloat64(values.At(i, 0))
						diff, _ := v.Sub(v, f).Float64()
						if bound := bounds.At(i, 0); !(math.Abs(diff) <= bound) {
							t.Errorf("λ = %g, intercept %t: the error at point %d is %g, the bound %g", lambda, intercept, i, diff, bound)
						}
						// The targets are standard normal numbers of absolute value at most 4.
						if sharp && !(bounds.At(i, 0) <= fitted.sharpLimit(diff, values.At(i, 0), fitted.limit(2, 4, lambda, 0.3, 2), lambda, 2)) {
							t.Errorf("λ = %g, intercept %t: the bound at point %d is %g, the error %g", lambda, intercept, i, bounds.At(i, 0), diff)
						}
						// Predict evaluates f in float64; PredictBound with the sharp bound evaluates f exactly.
						if d := math.Abs(predicted.At(i, 0) - values.At(i, 0)); !sharp && d != 0 || !(d <= fitted.roundings(2)) {
							t.Errorf("λ = %g, intercept %t: Predict and PredictBound differ by %g at point %d", lambda, intercept, d, i)
						}
					}
				}
			}
		}
	})
}

// TestBoundOfTreesAndStrings checks the bounds of fits with kernels of trees and strings, whose values are exact.
// The rows of features are the vectors φ with k(a, b) = φ(a)ᵀφ(b).
func TestBoundOfTreesAndStrings(t *testing.T) {
	words := []string{"ab", "ba", "aab", "abab"}
	for _, c := range []struct {
		kernel   objects.Kernel
		texts    []string
		features []float64
	}{
		// Each row holds the numbers of occurrences of S→A, S→A(a), S→A(b), S→A B, S→A(a) B, S→A(b)
		// B, S→A B(b), S→A(a) B(b), S→A(b) B(b), A→a, A→b and B→b.
		{trees.Subtree{Decay: 1, Raw: true}, []string{"(S (A a))", "(S (A b))", "(S (A a) (B b))", "(S (A b) (B b))"}, []float64{
			1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
			1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0,
			0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1,
			0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1,
		}},
		// Each row holds the numbers of occurrences of aa, ab and ba.
		{stringkernels.Spectrum{Length: 2, Raw: true}, words, []float64{
			0, 1, 0,
			0, 0, 1,
			1, 1, 0,
			0, 2, 1,
		}},
		// Each row holds Σ 2^(−span) over the occurrences of the subsequences aa, ab, ba and bb.
		{stringkernels.Subsequence{Length: 2, Decay: 0.5, Raw: true}, words, []float64{
			0, 0.25, 0, 0,
			0, 0, 0.25, 0,
			0.25, 0.375, 0, 0,
			0.125, 0.5625, 0.25, 0.125,
		}},
	} {
		t.Run(fmt.Sprint(c.kernel), func(t *testing.T) {
			boundOfObjects(t, c.kernel, c.texts, mat.NewDense(4, len(c.features)/4, c.features))
		})
	}
}

// boundOfObjects checks the bounds of fits to the Gram matrix of k for four texts, which equals xxᵀ.
func boundOfObjects(t *testing.T, k objects.Kernel, texts []string, x *mat.Dense) {
	gram, err := k.Gram(t.Context(), texts, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var products mat.Dense
	products.Mul(x, x.T())
	values := mat.NewDense(4, 4, gram.Data)
	if !mat.Equal(values, &products) {
		t.Fatalf("the kernel values are %v, the features give %v", mat.Formatted(values), mat.Formatted(&products))
	}
	y, weights := mat.NewDense(4, 1, []float64{1, -2, 0.3, 5}), []float64{1, 1, 1, 1}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, lambda := range []float64{1e-9, 0.1, 10} {
			m, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: lambda, Bound: true}.Fit(t.Context(), dev, values, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			v, bounds, err := m.PredictBound(t.Context(), dev, values)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range rationalPolynomial(x, y, x, weights, lambda, true, 0, 1) {
				f.Sub(f, new(big.Rat).SetFloat64(v.At(i, 0)))
				// The limit 1e-9 is far above the rounding errors, about 1e-16, and far below the targets.
				if diff, _ := f.Float64(); !(math.Abs(diff) <= bounds.At(i, 0)) || !(bounds.At(i, 0) <= 1e-9) {
					t.Errorf("λ = %g: the error of text %d is %g, the bound %g", lambda, i+1, diff, bounds.At(i, 0))
				}
			}
		}
	})
}

// TestBoundOfPrecomputedValues fits to precomputed values of the kernel (xᵀz + 1)² of integers, which have no rounding
// errors. It checks that the predictions differ from the exact predictions of rationalRidge by at most their bounds.
func TestBoundOfPrecomputedValues(t *testing.T) {
	const n = 12
	random := rand.New(rand.NewPCG(8, 3))
	integers := func(rows int) *mat.Dense {
		m := mat.NewDense(rows, 2, nil)
		m.Apply(func(int, int, float64) float64 { return float64(random.IntN(7) - 3) }, m)
		return m
	}
	values := func(a, b *mat.Dense) *mat.Dense {
		var k mat.Dense
		k.Mul(a, b.T())
		k.Apply(func(_, _ int, v float64) float64 { return (v + 1) * (v + 1) }, &k)
		return &k
	}
	x, queries, y := integers(n), integers(20), mat.NewDense(n, 1, nil)
	weights := make([]float64, n)
	for i := range n {
		y.Set(i, 0, random.NormFloat64())
		weights[i] = []float64{1, 2, 0.3, 0}[i%4]
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, lambda := range []float64{1e-9, 1e-3, 10} {
			for i := range 4 {
				intercept, proved := i%2 == 1, i < 2
				l := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: lambda, NoIntercept: !intercept, Tol: 1e-3, Bound: proved}
				m, err := l.Fit(t.Context(), dev, values(x, x), y, learners.Options{Weights: weights, Prove: !proved})
				if err != nil {
					t.Fatal(err)
				}
				restored, err := learners.Restore(m.State())
				if err != nil {
					t.Fatal(err)
				}
				v, bounds, err := restored.(learners.Bounded).PredictBound(t.Context(), dev, values(queries, x))
				if err != nil {
					t.Fatal(err)
				}
				s := sizeOf(m, learners.PartsOf(m).Points)
				for i := range 20 {
					s.root = max(s.root, 1+mat.Dot(queries.RowView(i), queries.RowView(i)))
				}
				// For precomputed values the limit is larger by the factor 8√n·s.root·√(2/λ).
				limit := s.limit(2, 4, lambda, 0.3, 2) * 8 * math.Sqrt(n) * s.root * math.Sqrt(2/lambda)
				for i, f := range rationalRidge(x, y, queries, weights, lambda, intercept) {
					f.Sub(f, new(big.Rat).SetFloat64(v.At(i, 0)))
					diff, _ := f.Float64()
					if bound := bounds.At(i, 0); !(math.Abs(diff) <= bound) || !(bound <= s.sharpLimit(diff, v.At(i, 0), limit, lambda, 4)) {
						t.Errorf("λ = %g, intercept %t: the error at point %d is %g, the bound %g", lambda, intercept, i, diff, bound)
					}
				}
			}
		}
		indefinite := mat.NewDense(2, 2, []float64{0, 1, 1, 0}) // eigenvalues −1 and 1
		for _, lambda := range []float64{1.5, 3} {
			_, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: lambda, NoIntercept: true, Solver: solvers.Dual, Bound: true}.Fit(t.Context(), dev, indefinite, mat.NewDense(2, 1, []float64{1, 2}), learners.Options{})
			if lambda < 2 && (err == nil || !strings.Contains(err.Error(), "not positive definite")) || lambda > 2 && err != nil {
				t.Errorf("an indefinite matrix and λ = %g: %v", lambda, err)
			}
			m, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: lambda, NoIntercept: true, Solver: solvers.Dual}.Fit(t.Context(), dev, indefinite, mat.NewDense(2, 1, []float64{1, 2}), learners.Options{Prove: true})
			if err != nil || m.HasBound() != (lambda > 2) {
				t.Errorf("an indefinite matrix and λ = %g: with Prove there is a bound: %t, %v", lambda, m.HasBound(), err)
			}
		}
	})
}

// TestGaussianProcessBound checks the bound of the mean of a Gaussian process against kernel ridge regression of y
// minus its mean.
func TestGaussianProcessBound(t *testing.T) {
	x, y, queries := mat.NewDense(9, 1, nil), mat.NewDense(9, 1, nil), mat.NewDense(7, 1, nil)
	weights := []float64{1, 2, 1, 0, 1, 3, 1, 1, 0.5}
	for i := range 9 {
		x.Set(i, 0, float64(i)/4)
		y.Set(i, 0, math.Sqrt(float64(i+1)))
	}
	for i := range 7 {
		queries.Set(i, 0, float64(i)/3-0.5)
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, sharp := range []bool{false, true} {
			gaussianProcessBound(t, dev, x, y, queries, weights, sharp)
		}
	})
}

func gaussianProcessBound(t *testing.T, dev backend.Device, x, y, queries *mat.Dense, weights []float64, sharp bool) {
	t.Helper()
	l := learners.GaussianProcess{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Lambda: 0.25, Fixed: true, Bound: sharp}
	m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	values, bounds, err := m.PredictBound(t.Context(), dev, queries)
	if err != nil {
		t.Fatal(err)
	}
	mean := m.Intercept()[0]
	centered := mat.DenseCopyOf(y)
	centered.Apply(func(_, _ int, v float64) float64 { return v - mean }, centered)
	// The kernel has degree 2 and one feature, y minus its mean is at most 3, and the weights are in [1/2, 3].
	fitted := sizeOf(m, queries)
	limit := fitted.limit(1, 3, 0.25, 0.5, 3)
	for i, f := range rationalRidge(x, centered, queries, weights, 0.25, false) {
		f.Add(f, new(big.Rat).SetFloat64(mean))
		diff, _ := f.Sub(f, new(big.Rat).SetFloat64(values.At(i, 0))).Float64()
		// The rounding of the targets changes f by less than 1e-14.
		bound, maxBound := bounds.At(i, 0), limit
		if sharp {
			maxBound = fitted.sharpLimit(diff, values.At(i, 0), limit, 0.25, 3) + 1e-14
		}
		if !(math.Abs(diff) <= bound+1e-14) || bound > maxBound {
			t.Errorf("the error at point %d is %g, the bound %g", i, diff, bound)
		}
	}
	restored, err := learners.Restore(m.State())
	if err != nil {
		t.Fatal(err)
	}
	_, restoredBounds, err := restored.(learners.Bounded).PredictBound(t.Context(), dev, queries)
	if err != nil || !mat.Equal(restoredBounds, bounds) {
		t.Errorf("the bounds of the loaded model differ: %v", err)
	}
}

// TestBoundOfEveryFit checks the bounds that fits with a positive semidefinite kernel compute from
// their float64 residuals: to dense and to sparse samples, with one λ and with a λ for each target.
func TestBoundOfEveryFit(t *testing.T) {
	const n = 9
	random := rand.New(rand.NewPCG(9, 1))
	x, y := mat.NewDense(n, 20, nil), mat.NewDense(n, 2, nil)
	for i := range n {
		for _, j := range random.Perm(20)[:4] {
			x.Set(i, j, random.NormFloat64())
		}
		y.SetRow(i, []float64{random.NormFloat64(), 1})
	}
	sparse := backend.CSR[float64]{Rows: n, Cols: 20, Indptr: []int{0}}
	for i := range n {
		for j, v := range x.RawRowView(i) {
			if v != 0 {
				sparse.Indices, sparse.Data = append(sparse.Indices, int32(j)), append(sparse.Data, v)
			}
		}
		sparse.Indptr = append(sparse.Indptr, len(sparse.Data))
	}
	weights := slices.Repeat([]float64{1}, n)
	exact := rationalRidge(x, y, x, weights, 0.5, true)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for trial := range 4 {
			samples, l := []mat.Matrix{x, sparse}[trial/2], learners.KernelRidge{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Lambda: 0.5}
			if trial%2 == 1 {
				l.Lambdas = []float64{0.5, 3}
			}
			m, err := l.Fit(t.Context(), dev, samples, y, learners.Options{Prove: true})
			if err != nil {
				t.Fatal(err)
			}
			values, bounds, err := m.PredictBound(t.Context(), dev, samples)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range exact {
				v := new(big.Rat).SetFloat64(values.At(i, 0))
				diff, _ := v.Sub(v, f).Float64()
				// The targets are standard normal numbers of absolute value at most 4.
				if bound := bounds.At(i, 0); !(math.Abs(diff) <= bound) || bound > sizeOf(m, x).limit(20, 4, 0.5, 1, 1) {
					t.Errorf("%T: the error at point %d is %g, the bound %g", samples, i, diff, bound)
				}
			}
		}
	})
}

// TestAccuracy checks that with the field Accuracy an iterative solver takes fewer iterations than
// with a small Tol, and that an accuracy that cannot be proven gives an error.
func TestAccuracy(t *testing.T) {
	const n = 100
	random := rand.New(rand.NewPCG(4, 2))
	x, y := mat.NewDense(n, 3, nil), mat.NewDense(n, 2, nil)
	for i := range n {
		for j := range 3 {
			x.Set(i, j, random.NormFloat64())
		}
		y.SetRow(i, []float64{10 + math.Sin(x.At(i, 0)), 3 * x.At(i, 1)})
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		fit := func(accuracy float64) (*learners.KernelRidgeModel, error) {
			return learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: solvers.CG, Preconditioner: "none", Accuracy: accuracy}.Fit(t.Context(), dev, x, y, learners.Options{})
		}
		exact, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: solvers.Dual}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := exact.PredictBound(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		iters := 0
		for _, accuracy := range []float64{0, 1e-4, 1e-2} {
			m, err := fit(accuracy)
			if err != nil {
				t.Fatal(err)
			}
			values, bounds, err := m.PredictBound(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			if accuracy > 0 {
				if n := m.Solved().Iters; !(n < iters) {
					t.Errorf("accuracy %g: %d iterations, %d with tol", accuracy, n, iters)
				}
				if notes := m.Solved().Notes; !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "proven to be at most") }) {
					t.Errorf("accuracy %g: the notes %q do not say what ended the solver", accuracy, notes)
				}
				for i := range n {
					for c := range 2 {
						// The term 1e-8 covers the error of the reference solution.
						diff := math.Abs(values.At(i, c) - want.At(i, c))
						if !(diff <= bounds.At(i, c)+1e-8) || bounds.At(i, c) > 1.01*accuracy {
							t.Fatalf("accuracy %g: prediction %d is off by %g, the bound is %g", accuracy, i, diff, bounds.At(i, c))
						}
					}
				}
			}
			iters = m.Solved().Iters
		}
		multi, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambdas: []float64{0.1, 2}, Solver: solvers.CG, Preconditioner: "none", Accuracy: 1e-3}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, bounds, err := multi.PredictBound(t.Context(), dev, x); err != nil || mat.Max(bounds) > 1.01e-3 {
			t.Errorf("with a λ for each target the largest bound is %g: %v", mat.Max(bounds), err)
		}
		if _, err := fit(1e-13); err == nil || !strings.Contains(err.Error(), "rounding") {
			t.Errorf("accuracy 1e-13: %v", err)
		}
		l := learners.KernelRidge{Kernel: kernels.Sigmoid{A: 1}, Lambda: 100, Accuracy: 1}
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "not positive semidefinite") {
			t.Errorf("a kernel that is not semidefinite: %v", err)
		}
	})
}

// TestBoundWithLittleMemory checks that the bound is larger, and a fact gives the reason, if the memory does not
// suffice for a second factorization.
func TestBoundWithLittleMemory(t *testing.T) {
	const n = 200
	x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		x.Set(i, 0, float64(i)/20)
		y.Set(i, 0, math.Sin(float64(i)/10))
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		proven := func(memory int64) (bound float64, warning bool) {
			l := learners.KernelRidge{Kernel: kernels.Laplacian{Sigma: 1}, Lambda: 0.01, Bound: true}
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Memory: memory})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.Facts() {
				if f.Name == "proven error" {
					bound = f.Value.(float64)
				}
				if memory == 0 && m.Solved().Bytes < 2*8*n*n {
					t.Errorf("the report has a memory of %d bytes, less than the two matrices", m.Solved().Bytes)
				}
				warning = warning || f.Name == "warning" && strings.Contains(f.Value.(string), "second factorization")
			}
			return bound, warning
		}
		uncorrected, uncorrectedWarned := proven(500_000) // enough for one matrix of 320,000 bytes
		corrected, correctedWarned := proven(0)
		if !uncorrectedWarned || correctedWarned || !(corrected < uncorrected) {
			t.Errorf("with little memory: %g, warned %t; with enough: %g, warned %t", uncorrected, uncorrectedWarned, corrected, correctedWarned)
		}
	})
}

// waveRidge returns the values of kernel ridge regression with the kernel k0/D Σ_j cos(ω_jᵀ(x − z)) of D frequencies
// ω_j at the rows of queries, and a bound on their rounding errors.
func waveRidge(omega []float64, k0 float64, x, y, queries *mat.Dense, weights []float64, lambda float64, intercept bool) (values []*big.Rat, slack float64) {
	k := func(a, b []float64) float64 {
		sum := 0.0
		for j := 0; j < len(omega); j += 2 {
			sum += math.Cos(omega[j]*(a[0]-b[0]) + omega[j+1]*(a[1]-b[1]))
		}
		return k0 * sum / float64(len(omega)/2)
	}
	var rows []int
	for i, w := range weights {
		if w > 0 {
			rows = append(rows, i)
		}
	}
	n := len(rows)
	a, right := mat.NewDense(n+1, n+1, nil), mat.NewVecDense(n+1, nil)
	a.Set(n, n, 1)
	for i, r := range rows {
		for j, s := range rows {
			a.Set(i, j, k(x.RawRowView(r), x.RawRowView(s)))
		}
		a.Set(i, i, a.At(i, i)+lambda/weights[r])
		right.SetVec(i, y.At(r, 0))
		if intercept {
			a.Set(i, n, 1)
			a.Set(n, i, 1)
			a.Set(n, n, 0)
		}
	}
	var inverse mat.Dense
	var z, residual mat.VecDense
	if inverse.Inverse(a) != nil || z.SolveVec(a, right) != nil {
		return nil, math.NaN()
	}
	residual.MulVec(a, &z)
	residual.SubVec(right, &residual)
	// solveError is a bound on the error of (α, b): the norm of the inverse times the norm of the residual, including
	// the rounding errors of the residual. A kernel value has about ten roundings of numbers up to k(0).
	const rounding = 40 * unit
	size := (k0 + 1 + lambda/0.3) * math.Sqrt(float64(n+1))
	solveError := 2 * mat.Norm(&inverse, 2) * (mat.Norm(&residual, 2) + rounding*float64(n+2)*(size*mat.Norm(&z, 2)+mat.Norm(right, 2)))
	points, _ := queries.Dims()
	for p := range points {
		v := z.AtVec(n)
		for i, r := range rows {
			v += k(queries.RawRowView(p), x.RawRowView(r)) * z.AtVec(i)
		}
		values = append(values, new(big.Rat).SetFloat64(v))
	}
	return values, size * (solveError + rounding*float64(n+2)*mat.Norm(&z, 2))
}

// TestBoundsOfFunctions compares the bounds with the errors of models. The oracles are kernel ridge with the
// kernel xᵀz for ridge, kernel ridge for Nyström ridge with all samples as centers, and waveRidge for Fourier
// ridge.
func TestBoundsOfFunctions(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 3))
	draw := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		m.Apply(func(int, int, float64) float64 { return random.NormFloat64() }, m)
		return m
	}
	x, y, queries, weights := draw(6, 2), draw(6, 2), draw(9, 2), []float64{1, 2, 0, 0.3, 1, 1}
	sparseOf := func(m *mat.Dense) backend.CSR[float64] {
		rows, cols := m.Dims()
		s := backend.CSR[float64]{Rows: rows, Cols: cols, Indptr: []int{0}}
		for i := range rows {
			for j, v := range m.RawRowView(i) {
				s.Indices, s.Data = append(s.Indices, int32(j)), append(s.Data, v)
			}
			s.Indptr = append(s.Indptr, len(s.Data))
		}
		return s
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, lambda := range []float64{1e-6, 1e-2, 10} {
			for trial := range 4 {
				intercept, proved := trial%2 == 0, trial < 2
				o := learners.Options{Weights: weights, Prove: !proved}
				fourier := []kernels.Kernel{kernels.Gaussian{Sigma: 1}, kernels.Scaled{Weight: 2, Kernel: kernels.Gaussian{Sigma: 1}}}[trial/2]
				linear := rationalPolynomial(x, y, queries, weights, lambda, intercept, 0, 1)
				slack := 0.0 // a bound on the error of the reference solution
				fit := map[string]func() (learners.Model, []*big.Rat, error){
					"ridge": func() (learners.Model, []*big.Rat, error) {
						m, err := learners.Ridge{Lambda: lambda, NoIntercept: !intercept, Bound: proved}.Fit(t.Context(), dev, x, y, o)
						return m, linear, err
					},
					"sparse ridge": func() (learners.Model, []*big.Rat, error) {
						m, err := learners.Ridge{Lambda: lambda, NoIntercept: !intercept, Bound: proved}.Fit(t.Context(), dev, sparseOf(x), y, o)
						return m, linear, err
					},
					"nystrom-ridge": func() (learners.Model, []*big.Rat, error) {
						l := learners.NystromRidge{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Lambda: lambda, NoIntercept: !intercept, Centers: 6, Bound: proved}
						m, err := l.Fit(t.Context(), dev, x, y, o)
						return m, rationalRidge(x, y, queries, weights, lambda, intercept), err
					},
					"fourier-ridge": func() (learners.Model, []*big.Rat, error) {
						l := learners.FourierRidge{Kernel: fourier, Lambda: lambda, NoIntercept: !intercept, Features: 4, Bound: proved}
						m, err := l.Fit(t.Context(), dev, x, y, o)
						if err != nil {
							return m, nil, err
						}
						var exact []*big.Rat
						exact, slack = waveRidge(m.State().Arrays["frequencies"].Data, kernels.Eval(fourier, []float64{0, 0}, []float64{0, 0}), x, y, queries, weights, lambda, intercept)
						return m, exact, nil
					},
				}
				for name, fit := range fit {
					slack = 0
					m, exact, err := fit()
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					restored, err := learners.Restore(m.State())
					if err != nil {
						t.Fatal(err)
					}
					values, bounds, err := restored.(learners.Bounded).PredictBound(t.Context(), dev, queries)
					if err != nil {
						t.Fatalf("%s, λ = %g: %v", name, lambda, err)
					}
					if name == "sparse ridge" {
						_, sparseBounds, err := m.(learners.Bounded).PredictBound(t.Context(), dev, sparseOf(queries))
						if err != nil || !mat.Equal(sparseBounds, bounds) {
							t.Errorf("the bounds at sparse points differ: %v", err)
						}
					}
					predicted, err := m.Predict(t.Context(), dev, queries)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.ContainsFunc(learners.FactsOf(m, message.Plain), func(f learners.Fact) bool { return f.Name == "proven error of w" || f.Name == "proven error of beta" }) {
						t.Errorf("%s: the facts have no proven error", name)
					}
					// Each product of a coefficient and a kernel value has at most 8(d + 7) + n + 9 roundings.
					size, maxKernel := 0.0, 1.0
					for _, array := range []string{"coef", "beta", "cosines", "sines", "intercept"} {
						for _, c := range m.State().Arrays[array].Data {
							size += math.Abs(c)
						}
					}
					for i := range 9 {
						maxKernel = max(maxKernel, math.Pow(1+mat.Norm(queries.RowView(i), 2)*mat.Norm(x, 2), 2))
					}
					rounding, maxError, maxValue, maxBound := (8*9+6+9)*unit*size*maxKernel, 0.0, 0.0, 0.0
					for i := range 9 {
						if d := math.Abs(predicted.At(i, 0) - values.At(i, 0)); !(d <= rounding) {
							t.Errorf("%s, λ = %g: Predict and PredictBound differ by %g", name, lambda, d)
						}
						diff, _ := new(big.Rat).Sub(exact[i], new(big.Rat).SetFloat64(values.At(i, 0))).Float64()
						if bound := bounds.At(i, 0); !(math.Abs(diff) <= bound+slack) {
							t.Errorf("%s, λ = %g, intercept %t: the error at point %d is %g, the bound %g", name, lambda, intercept, i, diff, bound)
						}
						maxError, maxValue, maxBound = max(maxError, math.Abs(diff)), max(maxValue, math.Abs(values.At(i, 0))), max(maxBound, bounds.At(i, 0))
					}
					// The bound may exceed the error of f and the rounding error of the value by a factor of 2.
					if !(maxBound <= 2*(maxError+slack+2*unit*(1+maxValue))) {
						t.Errorf("%s, λ = %g, intercept %t: the largest error is %g, the largest bound %g", name, lambda, intercept, maxError, maxBound)
					}
				}
			}
		}
		for want, fit := range map[string]func() error{
			"needs lambda > 0": func() error {
				_, err := learners.Ridge{Bound: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				return err
			},
			"use fewer centers": func() error { // the 6 functions span a space of only 3 dimensions
				_, err := learners.NystromRidge{Kernel: kernels.Polynomial{Degree: 1, C: 1}, Lambda: 1, Centers: 6, Bound: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				return err
			},
			"lambda is too small": func() error {
				if _, err := (learners.Ridge{Lambda: 1e-302}).Fit(t.Context(), dev, x, y, learners.Options{Prove: true}); err != nil {
					t.Errorf("without bound: %v", err)
				}
				_, err := learners.Ridge{Lambda: 1e-302, Bound: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				return err
			},
			"each target has its own lambda": func() error {
				_, err := learners.Ridge{Lambdas: []float64{1, 2}, Bound: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				return err
			},
			"sparse samples": func() error {
				_, err := learners.NystromRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, Centers: 6, Bound: true}.Fit(t.Context(), dev, sparseOf(x), y, learners.Options{})
				return err
			},
		} {
			if err := fit(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want … %s", err, want)
			}
		}
		m, err := learners.Ridge{Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.PredictBound(t.Context(), dev, queries); m.HasBound() || err == nil || !strings.Contains(err.Error(), "no bound") {
			t.Errorf("without a bound: %v", err)
		}
	})
}

// TestFloat64BoundsOfFunctions checks the bounds that are computed in float64. It compares small fits of ridge and of
// Nyström ridge with exact solutions in rational numbers, and large fits with the sharp bound.
func TestFloat64BoundsOfFunctions(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 1))
	draw := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		m.Apply(func(int, int, float64) float64 { return random.NormFloat64() }, m)
		return m
	}
	x, y, queries, weights := draw(6, 2), draw(6, 2), draw(9, 2), []float64{1, 2, 0, 0.3, 1, 1}
	sparse := backend.CSR[float64]{Rows: 6, Cols: 2, Indptr: []int{0}, Data: x.RawMatrix().Data}
	for i := range 6 {
		sparse.Indices, sparse.Indptr = append(sparse.Indices, 0, 1), append(sparse.Indptr, 2*i+2)
	}
	manyRows, targets := draw(2000, 2), draw(2000, 1)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		check := func(name string, values, bounds *mat.Dense, c int, exact []*big.Rat, limit float64) {
			for i, f := range exact {
				diff, _ := new(big.Rat).Sub(f, new(big.Rat).SetFloat64(values.At(i, c))).Float64()
				if bound := bounds.At(i, c); !(math.Abs(diff) <= bound) || !(bound <= limit) {
					t.Errorf("%s: the error at point %d is %g, the bound %g", name, i, diff, bound)
				}
			}
		}
		for _, intercept := range []bool{true, false} {
			o := learners.Options{Weights: weights, Prove: true}
			lambdas := []float64{0.1, 10}
			ridge, err := learners.Ridge{Lambdas: lambdas, NoIntercept: !intercept}.Fit(t.Context(), dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			values, bounds, err := ridge.PredictBound(t.Context(), dev, queries)
			if err != nil {
				t.Fatal(err)
			}
			for c, lambda := range lambdas {
				// The limit 1e-11 exceeds the rounding errors, about 2⁻⁵³(n + 9)(√k(x, x)/λ)‖y‖ = 1e-13.
				check("ridge", values, bounds, c, rationalPolynomial(x, y.Slice(0, 6, c, c+1).(*mat.Dense), queries, weights, lambda, intercept, 0, 1), 1e-11)
			}
			nystrom, err := learners.NystromRidge{Kernel: kernels.Polynomial{Degree: 2, C: 1}, Lambda: 0.1, NoIntercept: !intercept, Centers: 6}.Fit(t.Context(), dev, sparse, y, o)
			if err != nil {
				t.Fatal(err)
			}
			if values, bounds, err = nystrom.PredictBound(t.Context(), dev, queries); err != nil {
				t.Fatal(err)
			}
			// Kernel values are about 10, and eigenvalues of λ times the kernel matrix about 1e-6.
			check("sparse nystrom-ridge", values, bounds, 0, rationalRidge(x, y, queries, weights, 0.1, intercept), 1e-6)

			if !intercept {
				continue // the fits below take too long for this case
			}
			for name, fit := range map[string]func(sharp bool) (learners.Model, error){
				"nystrom-ridge": func(sharp bool) (learners.Model, error) {
					return learners.NystromRidge{Kernel: kernels.Laplacian{Sigma: 1}, Lambda: 0.1, Centers: 40, Bound: sharp}.Fit(t.Context(), dev, manyRows, targets, learners.Options{Prove: true})
				},
				"fourier-ridge": func(sharp bool) (learners.Model, error) {
					return learners.FourierRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Features: 40, Bound: sharp}.Fit(t.Context(), dev, manyRows, targets, learners.Options{Prove: true})
				},
				"fourier-ridge in passes": func(sharp bool) (learners.Model, error) {
					return learners.FourierRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Features: 40, Bound: sharp}.FitRows(t.Context(), dev, file{manyRows, targets}, learners.Options{Prove: true})
				},
				"nystrom-ridge in passes": func(sharp bool) (learners.Model, error) {
					return learners.NystromRidge{Kernel: kernels.Laplacian{Sigma: 1}, Lambda: 10, Centers: 40, Bound: sharp}.FitRows(t.Context(), dev, file{manyRows, targets}, learners.Options{Prove: true})
				},
			} {
				var v, e [2]*mat.Dense
				for i, sharp := range []bool{true, false} {
					m, err := fit(sharp)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					restored, err := learners.Restore(m.State())
					if err != nil {
						t.Fatal(err)
					}
					if v[i], e[i], err = restored.(learners.Bounded).PredictBound(t.Context(), dev, queries); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
				for i := range 9 {
					if diff, sum := math.Abs(v[0].At(i, 0)-v[1].At(i, 0)), e[0].At(i, 0)+e[1].At(i, 0); !(diff <= sum) || !(e[0].At(i, 0) < e[1].At(i, 0)) || !(sum < 1e-4) {
						t.Errorf("%s: the predictions at point %d differ by %g, and the bounds are %g and %g", name, i, diff, e[0].At(i, 0), e[1].At(i, 0))
					}
				}
			}
		}
	})
}

func TestBoundRefusals(t *testing.T) {
	x, y := mat.NewDense(3, 1, []float64{0, 1, 2}), mat.NewDense(3, 1, []float64{1, 0, 2})
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for want, l := range map[string]learners.KernelRidge{
			"sigmoid(a=1,c=0), which is not positive semidefinite": {Kernel: kernels.Sigmoid{A: 1}, Lambda: 10, Bound: true},
			"it needs lambda > 0": {Kernel: kernels.Gaussian{Sigma: 1}, Bound: true},
		} {
			if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want … %s", l.Kernel, err, want)
			}
		}
		for _, l := range []learners.KernelRidge{
			{Kernel: kernels.Sigmoid{A: 1}, Lambda: 10}, {Kernel: kernels.Gaussian{Sigma: 1}},
			{Kernel: kernels.ExpOf{Kernel: kernels.Linear{}}, Lambda: 1}, // this kernel has no upper bound on its values
		} {
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if m.HasBound() {
				t.Errorf("%v, λ = %g: there is a bound", l.Kernel, l.Lambda)
			}
			if _, _, err := m.PredictBound(t.Context(), dev, x); err == nil || !strings.Contains(err.Error(), "not known to be positive semidefinite") {
				t.Errorf("without a bound: got %v", err)
			}
		}
		var unfitted learners.KernelRidgeModel
		if _, _, err := unfitted.PredictBound(t.Context(), dev, x); err == nil {
			t.Error("an unfitted model predicts")
		}
	})
}

// BenchmarkPredictBound times the predictions of a model of a few samples for 20,000 rows, with and
// without proven bounds.
func BenchmarkPredictBound(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(rows, cols int) *mat.Dense {
		m := mat.NewDense(rows, cols, nil)
		m.Apply(func(int, int, float64) float64 { return random.NormFloat64() }, m)
		return m
	}
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, n := range []int{100, 400} {
		m, err := learners.KernelRidge{Lambda: 0.1}.Fit(b.Context(), dev, draw(n, 8), draw(n, 1), learners.Options{Prove: true})
		if err != nil {
			b.Fatal(err)
		}
		x := draw(20_000, 8)
		b.Run(fmt.Sprintf("%d rows", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Predict(b.Context(), dev, x); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d rows, bound", n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := m.PredictBound(b.Context(), dev, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

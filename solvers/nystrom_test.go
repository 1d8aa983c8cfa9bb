package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
)

// cut divides Rows into blocks. It takes the sizes of the blocks cyclically from a list.
type cut struct {
	inMemory
	sizes []int
}

// WithSamples returns p with the given number of samples for Falkon's preconditioner.
func (p StreamParams) WithSamples(n int) StreamParams {
	p.samples = n
	return p
}

func (c cut) Pass(ctx context.Context, _ bool, use func(b Block) error) error {
	for i, next := 0, 0; i < c.x.Rows; next++ {
		r := min(c.sizes[next%len(c.sizes)], c.x.Rows-i)
		b := Block{X: c.x.View(i, 0, r, c.x.Cols), Y: c.y.View(i, 0, r, c.y.Cols)}
		if c.weights != nil {
			b.Weights = c.weights[i : i+r]
		}
		if err := use(b); err != nil {
			return err
		}
		i += r
	}
	return nil
}

// targets returns two functions of x plus noise; the second has a large mean.
func targets(seed uint64, x backend.Host[float64]) backend.Host[float64] {
	r := rand.New(rand.NewPCG(seed, 1))
	y := backend.NewHost[float64](x.Rows, 2)
	for i := range x.Rows {
		s := 0.0
		for j, v := range x.Row(i) {
			s += v / float64(j+1)
		}
		y.Row(i)[0] = math.Sin(2*s) + 0.1*r.NormFloat64()
		y.Row(i)[1] = 5 + s + 0.1*r.NormFloat64()
	}
	return y
}

// head returns the first rows of h.
func head(h backend.Host[float64], rows int) backend.Host[float64] { return h.View(0, 0, rows, h.Cols) }

// denseFit computes the fit Φβ + b by a QR factorization for the least squares problem with the rows √w(Φ 1 | y) and
// √λ(Lᵀ 0 | 0), where LLᵀ is the penalty matrix.
func denseFit(t *testing.T, phi, penalty *mat.Dense, y backend.Host[float64], weights []float64, lambda float64, intercept bool) *mat.Dense {
	t.Helper()
	n, m := phi.Dims()
	columns := m
	if intercept {
		columns++
	}
	var chol mat.Cholesky
	s := mat.NewSymDense(m, nil)
	for i := range m {
		for j := range i + 1 {
			s.SetSym(i, j, penalty.At(i, j))
		}
	}
	if !chol.Factorize(s) {
		t.Fatal("the penalty of the test is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	a, rhs := mat.NewDense(n+m, columns, nil), mat.NewDense(n+m, y.Cols, nil)
	for i := range n {
		w := 1.0
		if weights != nil {
			w = math.Sqrt(weights[i])
		}
		for j := range m {
			a.Set(i, j, w*phi.At(i, j))
		}
		if intercept {
			a.Set(i, m, w)
		}
		for j, v := range y.Row(i) {
			rhs.Set(i, j, w*v)
		}
	}
	for i := range m {
		for j := i; j < m; j++ {
			a.Set(n+i, j, math.Sqrt(lambda)*l.At(j, i))
		}
	}
	var qr mat.QR
	qr.Factorize(a)
	var beta, fit mat.Dense
	if err := qr.SolveTo(&beta, false, rhs); err != nil {
		t.Logf("condition of the least-squares problem: %v", err)
	}
	fit.Mul(phi, beta.Slice(0, m, 0, y.Cols))
	if intercept {
		for i := range n {
			for j := range y.Cols {
				fit.Set(i, j, fit.At(i, j)+beta.At(m, j))
			}
		}
	}
	return &fit
}

// fitOf returns Φβ + b.
func fitOf(phi *mat.Dense, beta backend.Host[float64], bias []float64) *mat.Dense {
	var fit mat.Dense
	fit.Mul(phi, mat.NewDense(beta.Rows, beta.Cols, beta.Data))
	r, c := fit.Dims()
	for i := range r {
		for j := range c {
			fit.Set(i, j, fit.At(i, j)+bias[j])
		}
	}
	return &fit
}

func furthest(a, b *mat.Dense) float64 {
	var d mat.Dense
	d.Sub(a, b)
	return mat.Norm(&d, math.Inf(1))
}

// TestNystromDense compares both methods with least squares on the host, with and without weights and intercept.
func TestNystromDense(t *testing.T) {
	const seed, n, m = 11, 150, 25
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 3)
	y := targets(seed, x)
	centers := backendtest.Normal(seed+1, m, 3)
	k := kernels.Gaussian{Sigma: 1.2}
	phi, penalty := denseGram(k, x, centers), denseGram(k, centers, centers)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%4) / 2
	}
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, w := range [][]float64{nil, weights} {
			for _, intercept := range []bool{false, true} {
				want := denseFit(t, phi, penalty, y, w, 0.01, intercept)
				for _, method := range []Method{Normal, Falkon} {
					p := NystromProblem{Kernel: k, Data: InMemory(x, y, w, nil), Centers: centers, Lambda: 0.01, Intercept: intercept}
					const tol = 1e-11
					res, err := SolveNystrom(t.Context(), dev, p, StreamParams{Method: method, Tol: tol, samples: 100})
					if err != nil {
						t.Fatal(err)
					}
					// A residual r of the normal equations with the matrix H changes the fit by ΦH⁻¹r. If LLᵀ is the
					// penalty matrix, ‖ΦH⁻¹‖ ≤ ‖L⁻¹‖/(2√λ).
					var chol mat.Cholesky
					chol.Factorize(mat.NewSymDense(m, slices.Clone(penalty.RawMatrix().Data)))
					var z mat.Dense
					z.Mul(phi.T(), mat.NewDense(n, 2, y.Data))
					bound := math.Sqrt(chol.Cond()) / (2 * math.Sqrt(0.01)) * tol * 2 * mat.Norm(&z, 2)
					if d := furthest(fitOf(phi, res.Beta, res.Intercept), want); d > bound || d > 1e-6 {
						t.Errorf("%s, weights %v, intercept %v: the fit is off by %.3g, allowed %.3g", method, w != nil, intercept, d, bound)
					}
					if res.Residual > tol || res.Method != method || res.Iters == 0 {
						t.Errorf("%s: residual %.3g, method %s, %d iterations", method, res.Residual, res.Method, res.Iters)
					}
					if !intercept && (res.Intercept[0] != 0 || res.Intercept[1] != 0) {
						t.Errorf("intercept %v", res.Intercept)
					}
				}
			}
		}
	})
}

// TestNystromAllCenters checks that the solution with every sample as a center is that of kernel ridge regression.
func TestNystromAllCenters(t *testing.T) {
	const seed, n = 13, 120
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 4)
	y := targets(seed, x)
	k := kernels.Matern{Nu: 1.5, Sigma: 2}
	gram := denseGram(k, x, x)
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, intercept := range []bool{false, true} {
			exact, err := Solve(t.Context(), dev, Problem{Kernel: k, X: x, Y: y, Lambda: 0.5, Intercept: intercept}, Params{Method: Dual})
			if err != nil {
				t.Fatal(err)
			}
			want := fitOf(gram, exact.Alpha, exact.Intercept)
			for _, method := range []Method{Normal, Falkon} {
				res, err := SolveNystrom(t.Context(), dev, NystromProblem{
					Kernel: k, Data: InMemory(x, y, nil, nil), Choice: CenterChoice{Count: n}, Lambda: 0.5, Intercept: intercept,
				}, StreamParams{Method: method, Tol: 1e-12})
				if err != nil {
					t.Fatal(err)
				}
				if res.Centers.Rows != n {
					t.Fatalf("%d centers, want all %d samples", res.Centers.Rows, n)
				}
				phi := denseGram(k, x, res.Centers)
				// ‖KH⁻¹‖ ≤ √cond(K)/(2√λ), as in TestNystromDense. cond(K) is near 1e4.
				var z mat.Dense
				z.Mul(gram, mat.NewDense(n, 2, y.Data))
				bound := 1e-12 * 2 * mat.Norm(&z, 2) * math.Sqrt(mat.Cond(gram, 2)) / math.Sqrt(0.5)
				if d := furthest(fitOf(phi, res.Beta, res.Intercept), want); d > bound || d > 1e-7 {
					t.Errorf("%s, intercept %v: the fit is off by %.3g, allowed %.3g", method, intercept, d, bound)
				}
			}
		}
	})
}

// TestNystromSameBits checks that the solution has the same bits for each division into blocks and number of
// workers, and in a second run, but not for another seed.
func TestNystromSameBits(t *testing.T) {
	const seed, n = 17, 700
	x := backendtest.Normal(seed, n, 3)
	y := targets(seed, x)
	all := inMemory{x, y, nil, nil}
	for _, rule := range CenterRules() {
		for _, method := range []Method{Normal, Falkon} {
			var want *StreamResult
			for _, threads := range []int{1, 3} {
				dev, err := backend.Open("cpu", backend.Config{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				for _, data := range []Rows{all, all, cut{all, []int{1, 100, 17}}} {
					p := NystromProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: data, Choice: CenterChoice{Rule: rule, Count: 40, Seed: 3}, Lambda: 0.1, Intercept: true}
					res, err := SolveNystrom(t.Context(), dev, p, StreamParams{Method: method})
					if err != nil {
						t.Fatal(err)
					}
					if want == nil {
						want = res
						p.Choice.Seed = 4
						other, err := SolveNystrom(t.Context(), dev, p, StreamParams{Method: method})
						if err != nil {
							t.Fatal(err)
						}
						if slices.Equal(other.Centers.Data, res.Centers.Data) {
							t.Errorf("%s: another seed gives the same centers", rule)
						}
					}
					if !slices.Equal(res.Centers.Data, want.Centers.Data) || !slices.Equal(res.Beta.Data, want.Beta.Data) || res.Intercept[1] != want.Intercept[1] {
						t.Errorf("%s, %s: other bits with %d threads and data %T", rule, method, threads, data)
					}
				}
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestNystromMemory checks that the memory in use is at most the planned memory, and at least nine tenths of it.
func TestNystromMemory(t *testing.T) {
	const n, d = 3000, 6
	x := backendtest.Normal(1, n, d)
	y := targets(1, x)
	dev := backendtest.Device(t, "cpu")
	for _, rule := range CenterRules() {
		for _, par := range []StreamParams{{Method: Normal}, {Method: Falkon}, {Method: Normal, Posterior: true}} {
			method := par.Method
			for _, m := range []int{1, 30, 400} {
				p := NystromProblem{Kernel: kernels.Gaussian{Sigma: 2}, Data: InMemory(x, y, nil, nil), Choice: CenterChoice{Rule: rule, Count: m}, Lambda: 1}
				res, err := SolveNystrom(t.Context(), dev, p, par)
				if err != nil {
					t.Fatal(err)
				}
				if res.Centers.Rows != m {
					t.Errorf("%s: %d centers, want %d", rule, res.Centers.Rows, m)
				}
				if res.Bytes > res.Plan.Bytes || float64(res.Bytes) < 0.9*float64(res.Plan.Bytes) {
					t.Errorf("%s, %s, M = %d: %d bytes were taken, %d planned", rule, method, m, res.Bytes, res.Plan.Bytes)
				}
				par.Memory = res.Plan.Bytes - 1
				_, err = SolveNystrom(t.Context(), dev, p, par)
				par.Memory = 0
				var budget *BudgetError
				if !errors.As(err, &budget) || budget.Needed != res.Plan.Bytes {
					t.Errorf("one byte less gives %v", err)
				}
				if m > 1 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("use at most %d of the %d functions", m-1, m))) {
					t.Errorf("%s, %s: the advice is: %v", rule, method, err)
				}
			}
		}
	}
}

// TestCentersDiffer checks that a repeated sample is a center only once.
func TestCentersDiffer(t *testing.T) {
	const n = 400
	x := backendtest.Normal(2, n, 2)
	for i := range n {
		copy(x.Row(i), x.Row(i%50))
	}
	y := targets(2, x)
	dev := backendtest.Device(t, "ref")
	for _, rule := range CenterRules() {
		for _, m := range []int{20, 60, 0} {
			res, err := SolveNystrom(t.Context(), dev, NystromProblem{
				Kernel: kernels.Gaussian{Sigma: 1}, Data: InMemory(x, y, nil, nil), Choice: CenterChoice{Rule: rule, Count: m}, Lambda: 0.1,
			}, StreamParams{})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for i := range res.Centers.Rows {
				seen[fmt.Sprint(res.Centers.Row(i))] = true
			}
			if want := min(50, max(m, 0)); len(seen) != res.Centers.Rows || m > 0 && len(seen) != want {
				t.Errorf("%s: %d centers, %d of them different, %d asked for", rule, res.Centers.Rows, len(seen), m)
			}
		}
	}
}

// TestCenterRulesCover checks on clustered data that PivotCenters approximates K better than UniformCenters.
func TestCenterRulesCover(t *testing.T) {
	const n, m = 1000, 90 // the effective dimension is near 50
	x := backendtest.Normal(5, n, 2)
	for i := range n {
		if i%20 != 0 {
			for j := range x.Row(i) {
				x.Row(i)[j] *= 0.01
			}
		} else {
			for j := range x.Row(i) {
				x.Row(i)[j] *= 3
			}
		}
	}
	k := kernels.Gaussian{Sigma: 0.7}
	dev := backendtest.Device(t, "ref")
	residuals := map[CenterRule]float64{}
	for _, rule := range CenterRules() {
		p := NystromProblem{Kernel: k, Data: InMemory(x, targets(5, x), nil, nil), Choice: CenterChoice{Rule: rule, Count: m, pool: n}, Lambda: 0.1}
		res, err := SolveNystrom(t.Context(), dev, p, StreamParams{Method: Normal})
		if err != nil {
			t.Fatal(err)
		}
		residuals[rule] = nystromLeft(k, x, res.Centers)
	}
	t.Log(residuals)
	for rule, v := range residuals {
		if rule != UniformCenters && !(v < 0.7*residuals[UniformCenters]) {
			t.Errorf("%s leaves %.3g of the trace, uniform centers %.3g", rule, v, residuals[UniformCenters])
		}
	}
}

// nystromLeft returns tr(K − K_nM K_MM⁻¹ K_Mn), the error of the Nyström approximation.
func nystromLeft(k kernels.Kernel, x, c backend.Host[float64]) float64 {
	var svd mat.SVD
	kmm, kmn := denseGram(k, c, c), denseGram(k, c, x)
	svd.Factorize(kmm, mat.SVDThin)
	var solved mat.Dense
	svd.SolveTo(&solved, kmn, svd.Rank(1e-12))
	residual := 0.0
	for i := range x.Rows {
		residual += kernels.Diag(k, x.Row(i))
		for j := range c.Rows {
			residual -= kmn.At(j, i) * solved.At(j, i)
		}
	}
	return residual
}

func TestNystromRefused(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	x := backendtest.Normal(1, 30, 2)
	y := targets(1, x)
	valid := NystromProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: InMemory(x, y, nil, nil), Choice: CenterChoice{Count: 5}, Lambda: 1}
	nan := backend.NewHost[float64](30, 2)
	nan.Row(7)[1] = math.NaN()
	for want, change := range map[string]func(p *NystromProblem, par *StreamParams){
		"the samples are missing":            func(p *NystromProblem, _ *StreamParams) { p.Data = nil },
		"the kernel is missing":              func(p *NystromProblem, _ *StreamParams) { p.Kernel = nil },
		"lambda must be a finite number ≥ 0": func(p *NystromProblem, _ *StreamParams) { p.Lambda = -1 },
		"not positive semidefinite":          func(p *NystromProblem, _ *StreamParams) { p.Kernel = kernels.Sigmoid{A: 1} },
		"x: row 8, column 2 is NaN":          func(p *NystromProblem, _ *StreamParams) { p.Data = InMemory(nan, y, nil, nil) },
		"y: row 8, column 2 is NaN":          func(p *NystromProblem, _ *StreamParams) { p.Data = InMemory(x, nan, nil, nil) },
		"29 weights for 30 rows":             func(p *NystromProblem, _ *StreamParams) { p.Data = InMemory(x, y, make([]float64, 29), nil) },
		"no sample remains": func(p *NystromProblem, _ *StreamParams) {
			p.Data = cut{inMemory{x, y, make([]float64, 30), nil}, []int{7}}
		},
		"no rule for centers is called \"best\"":    func(p *NystromProblem, _ *StreamParams) { p.Choice.Rule = "best" },
		"must be ≥ 0, got -1 and 0":                 func(p *NystromProblem, _ *StreamParams) { p.Choice.Count = -1 },
		"centers: the shape 3×3":                    func(p *NystromProblem, _ *StreamParams) { p.Centers = backendtest.Normal(1, 3, 3) },
		"no method for samples read in passes":      func(_ *NystromProblem, par *StreamParams) { par.Method = Dual },
		"the tolerance must be ≥ 0 and below 1":     func(_ *NystromProblem, par *StreamParams) { par.Tol = 2 },
		"memory must be ≥ 0 bytes":                  func(_ *NystromProblem, par *StreamParams) { par.Memory = -1 },
		"the number of iterations must be ≥ 0":      func(_ *NystromProblem, par *StreamParams) { par.MaxIter = -1 },
		"B may be used":                             func(_ *NystromProblem, par *StreamParams) { par.Memory = 100 },
		"x: row 1: ":                                func(p *NystromProblem, _ *StreamParams) { p.Kernel = kernels.ChiSquared{Gamma: 1} },
		"the source announced 31 rows, but gave 30": func(p *NystromProblem, _ *StreamParams) { p.Data = wrongCount{InMemory(x, y, nil, nil)} },
		"above the tolerance 1e-15: no more iterations": func(_ *NystromProblem, par *StreamParams) {
			*par = StreamParams{Method: Falkon, MaxIter: 2, Tol: 1e-15, samples: 6}
		},
	} {
		p, par := valid, StreamParams{}
		change(&p, &par)
		_, err := SolveNystrom(t.Context(), dev, p, par)
		if err == nil || !strings.HasPrefix(err.Error(), "solvers: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
		if now, _ := dev.InUse(); now != 0 {
			t.Fatalf("%s: %d bytes are left", want, now)
		}
	}
	if _, err := SolveNystrom(t.Context(), nil, valid, StreamParams{}); err == nil {
		t.Error("no device was not refused")
	}
}

// wrongCount is a Rows that reports one row too many.
type wrongCount struct{ Rows }

func (w wrongCount) Dims() (n, d, t int) {
	n, d, t = w.Rows.Dims()
	return n + 1, d, t
}

// TestNystromInterrupted checks that SolveNystrom returns a read error or a cancellation from any block.
func TestNystromInterrupted(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	x := backendtest.Normal(1, 200, 2)
	y := targets(1, x)
	torn := errors.New("the file is torn")
	for method, least := range map[Method]int{Normal: 8, Falkon: 12} { // minimum number of blocks, 4 for each pass
		for stop := 1; ; stop++ {
			ctx, cancel := context.WithCancelCause(t.Context())
			data := &failing{cut: cut{inMemory{x, y, nil, nil}, []int{50}}, block: stop, fail: func() error {
				if stop%2 == 0 {
					cancel(torn)
					return nil
				}
				return torn
			}}
			_, err := SolveNystrom(ctx, dev, NystromProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: data, Choice: CenterChoice{Count: 10}, Lambda: 1}, StreamParams{Method: method})
			cancel(nil)
			if now, _ := dev.InUse(); now != 0 {
				t.Fatalf("%d bytes are left", now)
			}
			if data.count < stop {
				if err != nil || stop <= least-1 {
					t.Fatalf("%s: %d blocks were read: %v", method, data.count, err)
				}
				break
			}
			if !errors.Is(err, torn) {
				t.Fatalf("%s: block %d: %v", method, stop, err)
			}
		}
	}
}

// TestNormalReadsTheSamplesOnce checks that Normal computes the residual from its sums if their rounding errors are
// small enough, and that the residual computed from the samples is not larger.
func TestNormalReadsTheSamplesOnce(t *testing.T) {
	const seed, n, m, lambda = 5, 300, 40, 0.3
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 4)
	y, centers := targets(seed, x), backendtest.Normal(seed+1, m, 4)
	k := kernels.Gaussian{Sigma: 1.5}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%5) / 2
	}
	phi, penalty := denseGram(k, x, centers), denseGram(k, centers, centers)
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, intercept := range []bool{false, true} {
			for _, tol := range []float64{1e-6, 1e-13} {
				data := &failing{cut: cut{inMemory{x, y, weights, nil}, []int{100}}}
				res, err := SolveNystrom(t.Context(), dev, NystromProblem{Kernel: k, Data: data, Centers: centers, Lambda: lambda, Intercept: intercept}, StreamParams{Method: Normal, Tol: tol})
				if err != nil {
					t.Fatal(err)
				}
				once := data.count == 3
				if once != (tol > 1e-7) {
					t.Errorf("tolerance %g: %d blocks were read", tol, data.count)
				}
				total := 0.0
				for _, w := range weights {
					total += w
				}
				center := func(v func(i int) float64) float64 {
					if !intercept {
						return 0
					}
					sum := 0.0
					for i, w := range weights {
						sum += w * v(i)
					}
					return sum / total
				}
				largest := 0.0
				for j := range y.Cols {
					ybar := center(func(i int) float64 { return y.Row(i)[j] })
					residual, size := 0.0, 0.0
					for a := range m {
						mean := center(func(i int) float64 { return phi.At(i, a) })
						r, z := 0.0, 0.0
						for i, w := range weights {
							f := res.Intercept[j]
							for b := range m {
								f += phi.At(i, b) * res.Beta.Row(b)[j]
							}
							r += w * (phi.At(i, a) - mean) * (y.Row(i)[j] - f)
							z += w * (phi.At(i, a) - mean) * (y.Row(i)[j] - ybar)
						}
						for b := range m {
							r -= lambda * penalty.At(a, b) * res.Beta.Row(b)[j]
						}
						residual += r * r
						size += z * z
					}
					largest = max(largest, math.Sqrt(residual/size))
				}
				t.Logf("intercept %t, tolerance %g: residual %.3g, by sums %.3g", intercept, tol, res.Residual, largest)
				// The test's sums have n terms, up to 100 times as large as their sum.
				if res.Residual > tol || largest > res.Residual+100*n*0x1p-53 {
					t.Errorf("intercept %t, tolerance %g: residual %g, by sums %g", intercept, tol, res.Residual, largest)
				}
			}
		}
	})
}

// failing is a Rows that calls the function fail before the block of the given number, and returns its error.
type failing struct {
	cut
	count, block int
	fail         func() error
}

func (f *failing) Pass(ctx context.Context, keyed bool, use func(b Block) error) error {
	return f.cut.Pass(ctx, keyed, func(b Block) error {
		if f.count++; f.count == f.block {
			if err := f.fail(); err != nil {
				return err
			}
		}
		return use(b)
	})
}

// denseGram returns k(X, Z), computed element by element with kernels.Eval.
func denseGram(k kernels.Kernel, x, z backend.Host[float64]) *mat.Dense {
	g := backendtest.GramOf(k, x, z)
	return mat.NewDense(g.Rows, g.Cols, g.Data)
}

// TestSparseNystrom checks that sparse and dense samples with the same random keys give the same centers and
// function, and that the memory in use is at most the planned memory.
func TestSparseNystrom(t *testing.T) {
	const n, d, m = 400, 60, 40
	t.Log("seed 4")
	rng := rand.New(rand.NewPCG(4, 0))
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 2)
	weights, keys := make([]float64, n), make([]uint64, n)
	for i := range n {
		for range 5 {
			x.Row(i)[rng.IntN(d)] = rng.NormFloat64()
		}
		if i%50 == 7 {
			copy(x.Row(i), x.Row(i-1)) // equal samples with different keys
		}
		y.Row(i)[0], y.Row(i)[1] = math.Sin(x.Row(i)[0])+x.Row(i)[1], 3+rng.NormFloat64()
		weights[i], keys[i] = float64(rng.IntN(3)), uint64(i)
	}
	sparse := x.CSR()
	for _, name := range backendtest.Devices(t) {
		dev := backendtest.Device(t, name)
		for _, method := range []Method{Normal, Falkon} {
			for _, rule := range CenterRules() {
				what := fmt.Sprintf("%s, %s, %s", name, method, rule)
				p := NystromProblem{
					Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.5, Intercept: rule == UniformCenters,
					Data: InMemory(x, y, weights, keys), Choice: CenterChoice{Rule: rule, Count: m, Seed: 3},
				}
				par := StreamParams{Method: method, Tol: 1e-10}
				want, err := SolveNystrom(t.Context(), dev, p, par)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				p.Data, p.Sparse = RowNumbers(sparse, y, weights, keys), &sparse
				got, err := SolveNystrom(t.Context(), dev, p, par)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				centers := backend.NewHost[float64](got.Centers.Rows, d)
				p.Points(got.Centers).Sparse.DenseTo(centers)
				if got.Centers.Rows != m || !slices.Equal(centers.Data, want.Centers.Data) {
					t.Fatalf("%s: %d centers, which are not those of the dense samples", what, got.Centers.Rows)
				}
				if got.Bytes > got.Plan.Bytes {
					t.Errorf("%s: took %d bytes, planned %d", what, got.Bytes, got.Plan.Bytes)
				}
				// The functions f and f' of the two solutions differ by at most ‖f − f'‖ ≤ ‖r‖/(λ√σ). For the residual,
				// ‖r‖ ≤ 2e-10·‖ΦᵀWy‖ ≤ 2e-10·√m·2n·4. The smallest eigenvalue σ of k(c, c) is above 0.01.
				allowed := 2e-10 * math.Sqrt(m) * 8 * n / (p.Lambda * 0.1)
				for i := range n {
					for j := range 2 {
						f, g := got.Intercept[j], want.Intercept[j]
						for c := range m {
							k := kernels.Eval(p.Kernel, x.Row(i), centers.Row(c))
							f, g = f+got.Beta.Row(c)[j]*k, g+want.Beta.Row(c)[j]*k
						}
						if !(math.Abs(f-g) <= allowed) {
							t.Fatalf("%s: row %d, output %d: %v, of dense samples %v", what, i+1, j+1, f, g)
						}
					}
				}
				p.Data = InMemory(x, y, weights, nil)
				if _, err := SolveNystrom(t.Context(), dev, p, par); err == nil || !strings.Contains(err.Error(), "not 400×1") {
					t.Errorf("%s: features in place of row numbers: %v", what, err)
				}
			}
		}
	}
}

package solvers_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// titsias evaluates the lower bound of Titsias (2009), equation 9, for complex parameters. With Q = K_nm K_mm⁻¹ K_mn,
// the bound is log p(y) − Σ_i w_i (K − Q)_ii/2λ. The density p is normal with the covariance s²(Q + λW⁻¹), where s² is
// 1 or maximizes p. With an intercept, it is the density of n − 1 contrasts of y. theta is (ln weight, ln σ_1, ln σ_2,
// ln λ), and the kernel weight·exp(−Σ_p (x_p − z_p)²/2σ_p²).
func titsias(theta [4]complex128, x, c, y backend.Host[float64], weights []float64, intercept, unit bool) complex128 {
	weight, lambda := cmplx.Exp(theta[0]), cmplx.Exp(theta[3])
	k := func(a, b []float64) complex128 {
		sum := complex(0, 0)
		for p := range a {
			sum += complex((a[p]-b[p])*(a[p]-b[p]), 0) / (2 * cmplx.Exp(2*theta[1+p]))
		}
		return weight * cmplx.Exp(-sum)
	}
	n, m := x.Rows, c.Rows
	kmm, kmn := square(m), make([][]complex128, m)
	for i := range m {
		kmn[i] = make([]complex128, n)
		for j := range m {
			kmm[i][j] = k(c.Row(i), c.Row(j))
		}
		for j := range n {
			kmn[i][j] = k(c.Row(i), x.Row(j))
		}
	}
	solved, _ := eliminate(kmm, kmn)
	remaining, q := complex(0, 0), square(n)
	for i := range n {
		for j := range n {
			for l := range m {
				q[i][j] += kmn[l][i] * solved[l][j]
			}
		}
		remaining += complex(weights[i], 0) * (k(x.Row(i), x.Row(i)) - q[i][i])
	}
	return density(q, lambda, y, weights, intercept, unit) - complex(float64(y.Cols), 0)*remaining/(2*lambda)
}

// density returns the log density of y, which is normal with the covariance s²(q + λW⁻¹), as in titsias.
func density(q [][]complex128, lambda complex128, y backend.Host[float64], weights []float64, intercept, unit bool) (log complex128) {
	n, t := y.Rows, y.Cols
	count, logs := complex(0, 0), complex(0, 0)
	cov, rhs := square(n), make([][]complex128, n)
	for i := range n {
		w := complex(weights[i], 0)
		count += w
		copy(cov[i], q[i])
		cov[i][i] += lambda / w
		logs += (w-1)*cmplx.Log(lambda) + cmplx.Log(w)
		for j := range t {
			rhs[i] = append(rhs[i], complex(y.Row(i)[j], 0))
		}
		rhs[i] = append(rhs[i], 1)
	}
	alpha, determinant := eliminate(cov, rhs)
	logs += determinant
	information := complex(0, 0)
	for i := range n {
		information += alpha[i][t]
	}
	if intercept {
		count--
		logs += cmplx.Log(information)
	}
	for j := range t {
		quadratic, sum := complex(0, 0), complex(0, 0)
		for i := range n {
			quadratic += alpha[i][j] * rhs[i][j]
			sum += alpha[i][j]
		}
		if intercept {
			quadratic -= sum * sum / information
		}
		scale := quadratic / count
		if unit {
			scale = 1
		}
		log -= (quadratic/scale + count*cmplx.Log(2*math.Pi*scale) + logs) / 2
	}
	return log
}

func square(n int) [][]complex128 {
	a := make([][]complex128, n)
	for i := range a {
		a[i] = make([]complex128, n)
	}
	return a
}

// eliminate returns a⁻¹b and ln det a for a symmetric matrix a with a positive definite real part.
func eliminate(a, b [][]complex128) ([][]complex128, complex128) {
	n, logDet := len(a), complex(0, 0)
	u, z := square(n), make([][]complex128, n)
	for i := range n {
		copy(u[i], a[i])
		z[i] = append([]complex128(nil), b[i]...)
	}
	for k := range n {
		logDet += cmplx.Log(u[k][k])
		for i := k + 1; i < n; i++ {
			f := u[i][k] / u[k][k]
			for j := k; j < n; j++ {
				u[i][j] -= f * u[k][j]
			}
			for j := range z[i] {
				z[i][j] -= f * z[k][j]
			}
		}
	}
	for k := n - 1; k >= 0; k-- {
		for j := range z[k] {
			for i := k + 1; i < n; i++ {
				z[k][j] -= u[k][i] * z[i][j]
			}
			z[k][j] /= u[k][k]
		}
	}
	return z, logDet
}

// TestNystromGradient compares the gradient of the bound with complex steps (Squire and Trapp 1998): the imaginary part
// of the bound at θ + ih, divided by h = 10⁻²⁰⁰, for each parameter θ. With every sample as a center, it compares with
// the gradient of the evidence.
func TestNystromGradient(t *testing.T) {
	const n, m, h = 30, 7, 1e-200
	rng := rand.New(rand.NewPCG(8, 1))
	x, y, c, weights := gradientSamples(rng, n, m)
	values := [4]float64{math.Log(1.5), math.Log(0.8), math.Log(1.1), math.Log(0.3)}
	k := kernels.Scaled{Weight: 1.5, Kernel: kernels.Gaussian{Sigmas: []float64{0.8, 1.1}}}
	data := solvers.InMemory(x, y, weights, nil)
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, intercept := range []bool{false, true} {
			for _, unit := range []bool{false, true} {
				res, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: k, Data: data, Centers: c, Lambda: 0.3, Intercept: intercept},
					solvers.StreamParams{Posterior: true, Gradient: true, UnitScale: unit, Tol: 1e-12})
				if err != nil {
					t.Fatal(err)
				}
				if len(res.Gradient) != 4 {
					t.Fatalf("%d derivatives", len(res.Gradient))
				}
				// ‖K‖/λ ≤ 1.5·45/0.3, and the condition number of k(c, c) is below 1e3. Each sum has n terms below 30.
				const tol = 0x1p-53 * (1.5 * 45 / 0.3) * 1e3 * n * 30
				for i := range values {
					var theta [4]complex128
					for l, v := range values {
						theta[l] = complex(v, 0)
					}
					theta[i] += complex(0, h)
					bound := titsias(theta, x, c, y, weights, intercept, unit)
					if got, want := res.Gradient[i], imag(bound)/h; !(math.Abs(got-want) <= tol) {
						t.Errorf("intercept %v, unit %v: derivative %d is %.15g, want %.15g ± %.1g", intercept, unit, i, got, want, tol)
					}
					if got, want := res.Posterior.Bound, real(bound); !(math.Abs(got-want) <= tol) {
						t.Errorf("intercept %v, unit %v: the bound is %.15g, want %.15g", intercept, unit, got, want)
					}
				}
			}
		}
		// With σ = 0.3 and 0.4, the condition number of k(x, x) is below 1e6.
		p := solvers.Problem{Kernel: kernels.Gaussian{Sigmas: []float64{0.3, 0.4}}, X: x, Y: y, Weights: weights, Lambda: 0.3}
		want, err := solvers.LogEvidence(t.Context(), dev, p, solvers.EvidenceParams{FitScale: true, Gradient: true})
		if err != nil {
			t.Fatal(err)
		}
		res, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: p.Kernel, Data: data, Centers: x, Lambda: 0.3},
			solvers.StreamParams{Posterior: true, Gradient: true, Tol: 1e-10})
		if err != nil {
			t.Fatal(err)
		}
		const tol = 0x1p-53 * 1e6 * (45 / 0.3) * n * 30
		for i, v := range want.Gradient {
			if !(math.Abs(res.Gradient[i]-v) <= tol) {
				t.Errorf("derivative %d is %.15g, of the exact evidence %.15g", i, res.Gradient[i], v)
			}
		}
		if !(math.Abs(res.Posterior.Bound-want.Log) <= tol) {
			t.Errorf("the bound is %.15g, the exact evidence %.15g", res.Posterior.Bound, want.Log)
		}
		if _, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: p.Kernel, Data: data, Lambda: 0.3}, solvers.StreamParams{Gradient: true}); err == nil {
			t.Error("a gradient without a posterior was accepted")
		}
	})
}

// gradientSamples returns n weighted samples of two features with two outputs, and m other points.
func gradientSamples(rng *rand.Rand, n, m int) (x, y, c backend.Host[float64], weights []float64) {
	x, c, y = backend.NewHost[float64](n, 2), backend.NewHost[float64](m, 2), backend.NewHost[float64](n, 2)
	weights = make([]float64, n)
	for i := range x.Data {
		x.Data[i] = rng.NormFloat64()
	}
	for i := range c.Data {
		c.Data[i] = 1.5 * rng.NormFloat64()
	}
	for i := range n {
		y.Row(i)[0] = math.Sin(2*x.Row(i)[0]) + x.Row(i)[1] + 0.1*rng.NormFloat64()
		y.Row(i)[1] = 3 - x.Row(i)[0]*x.Row(i)[1]
		weights[i] = 1 + float64(i%3)/2
	}
	return x, y, c, weights
}

// TestFourierGradient compares the likelihood of the random feature model with the normal density of covariance s²(ΦΦᵀ
// + λW⁻¹), and the gradient with complex steps of this density (Squire and Trapp 1998).
func TestFourierGradient(t *testing.T) {
	const n, d, m, h = 30, 2, 12, 1e-200
	x, y, _, weights := gradientSamples(rand.New(rand.NewPCG(8, 2)), n, 1)
	data := solvers.InMemory(x, y, weights, nil)
	values := [4]float64{math.Log(1.5), math.Log(0.8), math.Log(1.1), math.Log(0.3)}
	p := solvers.FourierProblem{Kernel: kernels.Scaled{Weight: 1.5, Kernel: kernels.Gaussian{Sigmas: []float64{0.8, 1.1}}}, Data: data, Count: m, Seed: 5, Lambda: 0.3}
	omega, _, err := p.Basis(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	evidence := func(theta [4]complex128, intercept, unit bool) complex128 {
		q := square(n)
		for i := range n {
			for j := range n {
				for l := range omega.Rows {
					arg := complex(0, 0)
					for p, w := range omega.Row(l) {
						arg += complex(w*(x.Row(i)[p]-x.Row(j)[p]), 0) * cmplx.Exp(complex(values[1+p], 0)-theta[1+p])
					}
					q[i][j] += cmplx.Exp(theta[0]) * cmplx.Cos(arg) / complex(float64(omega.Rows), 0)
				}
			}
		}
		return density(q, cmplx.Exp(theta[3]), y, weights, intercept, unit)
	}
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, intercept := range []bool{false, true} {
			for _, unit := range []bool{false, true} {
				p.Intercept = intercept
				res, err := solvers.SolveFourier(t.Context(), dev, p, solvers.StreamParams{Posterior: true, Gradient: true, UnitScale: unit, Tol: 1e-12})
				if err != nil {
					t.Fatal(err)
				}
				if len(res.Gradient) != len(values) {
					t.Fatalf("%d derivatives", len(res.Gradient))
				}
				// ‖ΦΦᵀ‖/λ ≤ 1.5·45/0.3, and each angle is at most 30. Each sum has n terms below 30.
				const tol = 0x1p-53 * (1.5 * 45 / 0.3) * 30 * n * 30
				for i := range values {
					var theta [4]complex128
					for l, v := range values {
						theta[l] = complex(v, 0)
					}
					theta[i] += complex(0, h)
					want := evidence(theta, intercept, unit)
					if got, want := res.Gradient[i], imag(want)/h; !(math.Abs(got-want) <= tol) {
						t.Errorf("intercept %v, unit %v: derivative %d is %.15g, want %.15g ± %.1g", intercept, unit, i, got, want, tol)
					}
					if got, want := res.Posterior.Log, real(want); !(math.Abs(got-want) <= tol) {
						t.Errorf("intercept %v, unit %v: the likelihood is %.15g, want %.15g", intercept, unit, got, want)
					}
				}
			}
		}
	})
}

// TestFourierGradientOfKernels compares the gradient of the likelihood with finite differences.
func TestFourierGradientOfKernels(t *testing.T) {
	const n, m = 40, 20
	x, y, _, weights := gradientSamples(rand.New(rand.NewPCG(8, 3)), n, 1)
	solve := func(dev backend.Device, k kernels.Kernel, lambda float64) (*solvers.StreamResult, error) {
		return solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{Kernel: k, Data: solvers.InMemory(x, y, weights, nil), Count: m, Seed: 5, Lambda: lambda},
			solvers.StreamParams{Posterior: true, Gradient: true, Tol: 1e-12})
	}
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		for _, k := range []kernels.Kernel{
			kernels.Matern{Nu: 1.5, Sigma: 1.2},
			kernels.Product{kernels.Gaussian{Sigma: 1.5}, kernels.Laplacian{Sigma: 2}, kernels.Constant{Value: 2}},
			kernels.Product{kernels.Columns{Indices: []int{1}, Kernel: kernels.Gaussian{Sigma: 0.7}}, kernels.Matern{Nu: 0.5, Sigma: 3}},
			kernels.Scaled{Weight: 1.5, Kernel: kernels.Product{
				kernels.Constant{Value: 0.5}, kernels.Laplacian{Sigma: 2},
				kernels.Columns{Indices: []int{1, 0}, Kernel: kernels.Gaussian{Sigmas: []float64{0.7, 1.6}}},
			}},
			kernels.Product{kernels.Constant{Value: 0.5}, kernels.Gaussian{Sigmas: []float64{0.7, 1.6}}},
		} {
			res, err := solve(dev, k, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			params := kernels.Params(k)
			for i := range len(params) + 1 {
				value := func(step float64) float64 { // the likelihood after adding step to ln(parameter i)
					lambda := 0.5
					var values []float64
					for l, q := range params {
						if l == i {
							q.Value *= math.Exp(step)
						}
						values = append(values, q.Value)
					}
					if i == len(params) {
						lambda *= math.Exp(step)
					}
					moved, err := kernels.WithParams(k, values)
					if err != nil {
						t.Fatal(err)
					}
					res, err := solve(dev, moved, lambda)
					if err != nil {
						t.Fatal(err)
					}
					return res.Posterior.Log
				}
				// The difference fourth has an error of order h⁴: its error for h is a sixteenth of its error for 2h.
				fourth := func(h float64) float64 { return (8*(value(h)-value(-h)) - (value(2*h) - value(-2*h))) / (12 * h) }
				const h = 1.0 / 4096
				want := fourth(h)
				tol := math.Abs(fourth(2*h)-want) + 0x1p-53*(2*60/0.5)*30*n*30/h
				if got := res.Gradient[i]; !(math.Abs(got-want) <= tol) {
					t.Errorf("%v: derivative %d is %.12g, want %.12g", k, i, got, want)
				}
			}
		}
		for _, k := range []kernels.Kernel{
			kernels.RationalQuadratic{A: 1, Sigma: 1},
			kernels.Sum{kernels.Gaussian{Sigma: 1}, kernels.Laplacian{Sigma: 1}},
		} {
			if _, err := solve(dev, k, 0.5); err == nil || !strings.Contains(err.Error(), "not a differentiable function of its parameters") {
				t.Errorf("%v: %v", k, err)
			}
		}
	})
}

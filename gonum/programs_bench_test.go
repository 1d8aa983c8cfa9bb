package gonum_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	blasgonum "gonum.org/v1/gonum/blas/gonum"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/cpu"
)

// libraries lists the libraries that a test can register.
var libraries = []string{"mercer", "gonum"}

// useLibrary registers a library for the duration of a test.
func useLibrary(t testing.TB, library string) {
	register := func(library string) {
		if library == "mercer" {
			blas64.Use(cpu.BLAS{})
			lapack64.Use(cpu.LAPACK{})
		} else {
			blas64.Use(blasgonum.Implementation{})
			lapack64.Use(lapackgonum.Implementation{})
		}
	}
	register(library)
	t.Cleanup(func() { register("gonum") })
}

// A program is a computation with gonum alone. prepare makes the data and returns the function that does the work.
type program struct {
	name    string
	prepare func(n, d int) func(t testing.TB) []float64
	n, d    int // size in the benchmark
}

var programs = []program{
	{"stat.PC", principal, 5000, 200},
	{"mat.SVD", tallSVD, 4000, 400},
	{"least squares by mat.QR", leastSquares, 4000, 400},
	{"logistic regression by optimize.LBFGS", logistic, 20000, 200},
	{"Gaussian process by optimize.LBFGS", process, 600, 5},
	{"ridge by mat.Cholesky, 20 lambdas", ridges, 4000, 500},
}

// BenchmarkPrograms compares the times of programs that register Mercer's BLAS and LAPACK with the
// times of the same programs without them:
//
//	for i in $(seq 6); do go test -run '^$' -bench Programs -benchtime 1x ./gonum; done > programs.txt
//	benchstat -col /library programs.txt
func BenchmarkPrograms(b *testing.B) {
	for _, p := range programs {
		run := p.prepare(p.n, p.d)
		for _, library := range libraries {
			b.Run(fmt.Sprintf("program=%s/n=%d/d=%d/library=%s", p.name, p.n, p.d, library), func(b *testing.B) {
				useLibrary(b, library)
				for b.Loop() {
					run(b)
				}
			})
		}
	}
}

// TestPrograms checks that the programs have the same results with both libraries.
func TestPrograms(t *testing.T) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			run := p.prepare(max(p.n/40, 60), max(p.d/20, 3))
			var results [2][]float64
			for i, library := range libraries {
				useLibrary(t, library)
				results[i] = run(t)
			}
			for i, v := range results[0] {
				// The searches stop at a gradient of 1e-6. Their functions have values near 1 and a curvature above
				// 1e-3.
				if w := results[1][i]; !(math.Abs(v-w) <= 1e-5*(1+math.Abs(w))) {
					t.Errorf("result %d is %v with mercer, %v with gonum", i, v, w)
				}
			}
		})
	}
}

// table returns targets and n rows of d features, which vary mostly in a small number of directions.
func table(n, d int) (x *mat.Dense, y *mat.VecDense) {
	r := rand.New(rand.NewPCG(uint64(n), uint64(d)))
	x, y = mat.NewDense(n, d, nil), mat.NewVecDense(n, nil)
	for i := range n {
		common := r.NormFloat64()
		for j := range d {
			x.Set(i, j, r.NormFloat64()+common/float64(1+j))
		}
		y.SetVec(i, x.At(i, 0)-0.5*x.At(i, d-1)+0.3*r.NormFloat64())
	}
	return x, y
}

func principal(n, d int) func(testing.TB) []float64 {
	x, _ := table(n, d)
	return func(t testing.TB) []float64 {
		var pc stat.PC
		if !pc.PrincipalComponents(x, nil) {
			t.Fatal("no components")
		}
		return pc.VarsTo(nil)
	}
}

func tallSVD(n, d int) func(testing.TB) []float64 {
	x, _ := table(n, d)
	return func(t testing.TB) []float64 {
		var svd mat.SVD
		if !svd.Factorize(x, mat.SVDThin) {
			t.Fatal("no decomposition")
		}
		return svd.Values(nil)
	}
}

func leastSquares(n, d int) func(testing.TB) []float64 {
	x, y := table(n, d)
	return func(t testing.TB) []float64 {
		var qr mat.QR
		var w mat.VecDense
		qr.Factorize(x)
		if err := qr.SolveVecTo(&w, false, y); err != nil {
			t.Fatal(err)
		}
		return w.RawVector().Data
	}
}

func ridges(n, d int) func(testing.TB) []float64 {
	x, y := table(n, d)
	return func(t testing.TB) []float64 {
		var coefficients []float64
		var g mat.SymDense
		var xy, w mat.VecDense
		g.SymOuterK(1, x.T())
		xy.MulVec(x.T(), y)
		a := mat.NewSymDense(d, nil)
		for k := range 20 {
			a.CopySym(&g)
			for j := range d {
				a.SetSym(j, j, a.At(j, j)+math.Exp(float64(k-10)))
			}
			var c mat.Cholesky
			if !c.Factorize(a) {
				t.Fatal("not positive definite")
			}
			if err := c.SolveVecTo(&w, &xy); err != nil {
				t.Fatal(err)
			}
			coefficients = append(coefficients, w.AtVec(0))
		}
		return coefficients
	}
}

func minimize(t testing.TB, p optimize.Problem, start []float64) []float64 {
	result, err := optimize.Minimize(p, start, &optimize.Settings{GradientThreshold: 1e-6, MajorIterations: 60}, &optimize.LBFGS{})
	if err != nil {
		t.Fatal(err)
	}
	return []float64{result.F}
}

// logistic minimizes the mean logistic loss plus a penalty. Its work is matrix-vector products.
func logistic(n, d int) func(testing.TB) []float64 {
	x, y := table(n, d)
	sign := make([]float64, n)
	for i := range sign {
		sign[i] = math.Copysign(1, y.AtVec(i))
	}
	return func(t testing.TB) []float64 {
		margin, slope, grad := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(d, nil)
		margins := func(w []float64) { margin.MulVec(x, mat.NewVecDense(d, w)) }
		return minimize(t, optimize.Problem{
			Func: func(w []float64) float64 {
				margins(w)
				loss := 0.0
				for i, s := range sign {
					loss += math.Log1p(math.Exp(-s * margin.AtVec(i)))
				}
				v := mat.NewVecDense(d, w)
				return loss/float64(n) + 0.005*mat.Dot(v, v)
			},
			Grad: func(g, w []float64) {
				margins(w)
				for i, s := range sign {
					slope.SetVec(i, -s/(1+math.Exp(s*margin.AtVec(i)))/float64(n))
				}
				grad.MulVec(x.T(), slope)
				for j := range g {
					g[j] = grad.AtVec(j) + 0.01*w[j]
				}
			},
		}, make([]float64, d))
	}
}

// process maximizes the likelihood of a Gaussian process with respect to the length scale and the noise.
func process(n, d int) func(testing.TB) []float64 {
	x, y := table(n, d)
	square := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			sum := 0.0
			for p := range d {
				sum += (x.At(i, p) - x.At(j, p)) * (x.At(i, p) - x.At(j, p))
			}
			square.SetSym(i, j, sum)
		}
	}
	return func(t testing.TB) []float64 {
		var chol mat.Cholesky
		var alpha mat.VecDense
		k, dk := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
		factor := func(theta []float64) {
			s2, noise := math.Exp(2*theta[0]), math.Exp(theta[1])
			for i := range n {
				for j := range i + 1 {
					q := square.At(i, j)
					v := math.Exp(-q / 2 / s2)
					dk.SetSym(i, j, v*q/s2)
					if i == j {
						v += noise
					}
					k.SetSym(i, j, v)
				}
			}
			if !chol.Factorize(k) {
				t.Fatal("not positive definite")
			}
			if err := chol.SolveVecTo(&alpha, y); err != nil {
				t.Fatal(err)
			}
		}
		return minimize(t, optimize.Problem{
			Func: func(theta []float64) float64 {
				factor(theta)
				return (mat.Dot(y, &alpha) + chol.LogDet()) / 2 / float64(n)
			},
			Grad: func(g, theta []float64) {
				factor(theta)
				var inverse mat.SymDense
				if err := chol.InverseTo(&inverse); err != nil {
					t.Fatal(err)
				}
				g[0], g[1] = 0, 0
				for i := range n {
					for j := range n {
						m := alpha.AtVec(i)*alpha.AtVec(j) - inverse.At(i, j)
						g[0] -= m * dk.At(i, j) / 2 / float64(n)
						if i == j {
							g[1] -= m * math.Exp(theta[1]) / 2 / float64(n)
						}
					}
				}
			},
		}, []float64{0, -2})
	}
}

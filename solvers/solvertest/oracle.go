package solvertest

import (
	"fmt"
	"math"
	"math/big"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// precision is the number of bits in the oracle's mantissas.
const precision = 256

// epsilon is the distance from 1 to the next float64.
const epsilon = 0x1p-52

// An oracle holds the exact solution of the dual system for rounded kernel values, and norms for error bounds.
type oracle struct {
	p         solvers.Problem
	alpha     [][]*big.Float // n×t
	intercept []*big.Float
	a         float64               // ‖A‖ of A = K + λW⁻¹; all norms here are Frobenius norms
	inverse   backend.Host[float64] // A⁻¹
	z         backend.Host[float64] // A⁻¹1
	sum       float64               // 1ᵀA⁻¹1
	solutions []float64             // ‖A⁻¹y_j‖ + |b_j|‖A⁻¹1‖ for the intercept b_j, where α_j = A⁻¹y_j − b_jA⁻¹1
	y         []float64             // ‖y_j‖ + |b_j|√n
}

// oracles is a cache: every device solves the same problems.
var oracles sync.Map

// newOracle returns the oracle of p, which callers share and must not change.
func newOracle(p solvers.Problem) *oracle {
	key := fmt.Sprint(p.Kernel, p.X, p.Y, p.Weights, p.Lambda, p.Intercept)
	if o, ok := oracles.Load(key); ok {
		return o.(*oracle)
	}
	o := consult(p)
	oracles.Store(key, o)
	return o
}

func consult(p solvers.Problem) *oracle {
	n, t := p.X.Rows, p.Y.Cols
	o := &oracle{p: p}
	a := zeros(n, n)
	for i := range n {
		for j := range n {
			a[i][j].SetFloat64(kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)))
		}
		shift := real(p.Lambda)
		if p.Weights != nil {
			shift.Quo(shift, real(p.Weights[i]))
		}
		a[i][i].Add(a[i][i], shift)
	}
	o.a = norm(rounded(a))
	inverse := invert(a)
	o.inverse = rounded(inverse)

	ones := zeros(n, 1)
	for i := range n {
		ones[i][0].SetInt64(1)
	}
	z := multiply(inverse, ones)
	s := multiply(inverse, toBig(p.Y))
	o.z = rounded(z)
	o.sum, _ = sum(z, 0).Float64()
	exact := rounded(s)
	for j := range t {
		b := real(0)
		if p.Intercept {
			b.Quo(sum(s, j), sum(z, 0))
		}
		o.intercept = append(o.intercept, b)
		for i := range n {
			s[i][j].Sub(s[i][j], real(0).Mul(b, z[i][0]))
		}
		size, _ := b.Float64()
		o.y = append(o.y, norm(column(p.Y, j))+math.Abs(size)*math.Sqrt(float64(n)))
		o.solutions = append(o.solutions, norm(column(exact, j))+math.Abs(size)*norm(o.z))
	}
	o.alpha = s
	return o
}

// coefficients returns α rounded to float64.
func (o *oracle) coefficients() backend.Host[float64] { return rounded(o.alpha) }

// values returns f at the rows of z, rounded to float64.
func (o *oracle) values(z backend.Host[float64]) backend.Host[float64] {
	k := zeros(z.Rows, o.p.X.Rows)
	for i := range z.Rows {
		for j := range o.p.X.Rows {
			k[i][j].SetFloat64(kernels.Eval(o.p.Kernel, z.Row(i), o.p.X.Row(j)))
		}
	}
	f := multiply(k, o.alpha)
	for i := range f {
		for j, v := range f[i] {
			v.Add(v, o.intercept[j])
		}
	}
	return rounded(f)
}

// unit bounds the relative backward error of a method in float64: the solution is exact for a matrix A + δA with
// ‖δA‖ ≤ unit·‖A‖ (γ_{n+d}; Higham 2002, theorem 10.4). The factor 8 is a margin for the roundings of K and of the
// solve, and for other norms.
func (o *oracle) unit() float64 { return 8 * epsilon * float64(o.p.X.Rows+o.p.X.Cols) }

// alphaBound bounds the norm of the error of α for output j. A perturbation δA changes a solution s by −A⁻¹δA s,
// and an error of b changes α = A⁻¹y − b A⁻¹1, too.
func (o *oracle) alphaBound(j int) float64 {
	return norm(o.inverse)*o.unit()*o.a*o.solutions[j] + norm(o.z)*o.interceptBound(j)
}

// interceptBound bounds the error of b = 1ᵀA⁻¹y / 1ᵀA⁻¹1.
func (o *oracle) interceptBound(j int) float64 {
	if !o.p.Intercept {
		return 0
	}
	return norm(o.z) * o.unit() * o.a * o.solutions[j] / o.sum
}

// valueBound bounds the error of f(x) = k_xᵀα + b: a perturbation δA changes k_xᵀα by −(A⁻¹k_x)ᵀδA α, and the sum
// has rounding errors. The factor 8 in unit allows for the condition number of X, about 2, in the primal method.
func (o *oracle) valueBound(x []float64, j int) float64 {
	n := o.p.X.Rows
	k, s := backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1)
	for i := range n {
		k.Data[i] = kernels.Eval(o.p.Kernel, o.p.X.Row(i), x)
	}
	onB := 1.0 // factor by which an error of b changes f
	for i := range n {
		for q, v := range o.inverse.Row(i) {
			s.Data[i] += v * k.Data[q]
		}
		onB += math.Abs(k.Data[i] * o.z.Data[i])
	}
	return (norm(s)*o.a+norm(k))*o.unit()*o.solutions[j] + onB*o.interceptBound(j)
}

func real(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }

func zeros(rows, cols int) [][]*big.Float {
	m := make([][]*big.Float, rows)
	for i := range m {
		m[i] = make([]*big.Float, cols)
		for j := range m[i] {
			m[i][j] = real(0)
		}
	}
	return m
}

func rounded(m [][]*big.Float) backend.Host[float64] {
	h := backend.NewHost[float64](len(m), len(m[0]))
	for i, row := range m {
		for j, v := range row {
			h.Row(i)[j], _ = v.Float64()
		}
	}
	return h
}

func toBig(h backend.Host[float64]) [][]*big.Float {
	m := zeros(h.Rows, h.Cols)
	for i := range m {
		for j := range m[i] {
			m[i][j].SetFloat64(h.Row(i)[j])
		}
	}
	return m
}

func multiply(a, b [][]*big.Float) [][]*big.Float {
	c := zeros(len(a), len(b[0]))
	for i := range c {
		for j := range c[i] {
			for q := range b {
				c[i][j].Add(c[i][j], real(0).Mul(a[i][q], b[q][j]))
			}
		}
	}
	return c
}

// invert overwrites the positive definite matrix a and returns its inverse, by Gauss-Jordan elimination.
func invert(a [][]*big.Float) [][]*big.Float {
	n := len(a)
	inv := zeros(n, n)
	for i := range n {
		inv[i][i].SetInt64(1)
	}
	for p := range n {
		pivot := real(0).Copy(a[p][p])
		for j := range n {
			a[p][j].Quo(a[p][j], pivot)
			inv[p][j].Quo(inv[p][j], pivot)
		}
		for i := range n {
			if i == p {
				continue
			}
			factor := real(0).Copy(a[i][p])
			for j := range n {
				a[i][j].Sub(a[i][j], real(0).Mul(factor, a[p][j]))
				inv[i][j].Sub(inv[i][j], real(0).Mul(factor, inv[p][j]))
			}
		}
	}
	return inv
}

func sum(a [][]*big.Float, j int) *big.Float {
	s := real(0)
	for i := range a {
		s.Add(s, a[i][j])
	}
	return s
}

// norm returns the Frobenius norm.
func norm(h backend.Host[float64]) float64 {
	s := 0.0
	for i := range h.Rows {
		for _, v := range h.Row(i) {
			s += v * v
		}
	}
	return math.Sqrt(s)
}

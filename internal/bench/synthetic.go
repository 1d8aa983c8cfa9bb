package bench

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// synthetic is the data of the benchmarks of fits: X ~ N(0, I) with d features, and y = sin(Xw) + noise, where
// w ~ N(0, I/d) and the noise has standard deviation 0.1. The kernel is Gaussian with σ = √d.
type synthetic struct {
	x, y         backend.Host[float64] // samples, n×d, and targets, n×1
	testX, testY backend.Host[float64] // held-out rows; their targets have no noise
	kernel       kernels.Gaussian
	lambda       float64
}

const heldOut = 1000

// newSynthetic generates n samples of d features.
func newSynthetic(n, d int, lambda float64) *synthetic {
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, d)
	for i := range w {
		w[i] = rng.NormFloat64() / math.Sqrt(float64(d))
	}
	rows := func(rng *rand.Rand, n int, noise float64) (x, y backend.Host[float64]) {
		x, y = backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
		for i := range n {
			var s float64
			for j := range w {
				v := rng.NormFloat64()
				x.Data[i*d+j] = v
				s += v * w[j]
			}
			y.Data[i] = math.Sin(s) + noise*rng.NormFloat64()
		}
		return x, y
	}
	s := &synthetic{kernel: kernels.Gaussian{Sigma: math.Sqrt(float64(d))}, lambda: lambda}
	s.x, s.y = rows(rng, n, 0.1)
	s.testX, s.testY = rows(rand.New(rand.NewPCG(3, 4)), heldOut, 0)
	return s
}

func (s *synthetic) gamma() float64 { return 0.5 / (s.kernel.Sigma * s.kernel.Sigma) }

func toFloat32(h backend.Host[float64]) backend.Host[float32] {
	return backend.Host[float32]{Rows: h.Rows, Cols: h.Cols, Stride: h.Stride, Data: converted[float32](h.Data)}
}

func converted[D, S backend.Float](v []S) []D {
	out := make([]D, len(v))
	for i, x := range v {
		out[i] = D(x)
	}
	return out
}

// function is the result of a fit: f(x) = Σ_j coef_j k(points_j, x) + intercept, or a linear model for each column.
type function struct {
	points    backend.Host[float64]
	coef      []float64
	intercept float64
	linear    backend.Host[float64]
	values    []float64 // f at the samples, for fits of which only these values are checked
	tolerance float64
}

// A judge computes the residual and other errors of a function that an implementation has fitted. It computes
// products with k(X, Z) in float64 on a processor, without storing k(X, Z).
type judge struct {
	*synthetic
	q backend.Backend[float64]
}

// product returns k(a, b)v.
func (j judge) product(a, b backend.Host[float64], v []float64) ([]float64, error) {
	mem := placer[float64]{q: j.q}
	defer mem.free()
	column := func(v []float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: len(v), Cols: 1, Stride: 1, Data: v}
	}
	out := column(make([]float64, a.Rows))
	ma, mb, mv, mo := mem.place(a), mem.place(b), mem.place(column(v)), mem.place(out)
	if mem.err != nil {
		return nil, mem.err
	}
	j.q.GramMul(mo, j.kernel, ma, mb, mv)
	return out.Data, j.q.Download(out, mo)
}

func (j judge) residual(f function) (float64, error) {
	ka, err := j.product(j.x, j.x, f.coef)
	if err != nil {
		return 0, err
	}
	floats.AddScaled(ka, j.lambda, f.coef)
	return floats.Distance(ka, j.y.Data, 2) / floats.Norm(j.y.Data, 2), nil
}

// normalResidual returns ‖Φᵀ(y − Φβ) − λSβ‖ / ‖Φᵀy‖ with Φ = k(X, c) and S = k(c, c) for the centers c.
func (j judge) normalResidual(f function) (float64, error) {
	residual, err := j.product(j.x, f.points, f.coef)
	if err != nil {
		return 0, err
	}
	floats.SubTo(residual, j.y.Data, residual)
	a, err := j.product(f.points, j.x, residual)
	if err != nil {
		return 0, err
	}
	s, err := j.product(f.points, f.points, f.coef)
	if err != nil {
		return 0, err
	}
	b, err := j.product(f.points, j.x, j.y.Data)
	if err != nil {
		return 0, err
	}
	floats.AddScaled(a, -j.lambda, s)
	return floats.Norm(a, 2) / floats.Norm(b, 2), nil
}

func (j judge) idle(c, epsilon float64) (loss float64) {
	for _, y := range j.y.Data {
		loss += c * max(0, math.Abs(y)-epsilon)
	}
	return loss
}

// gap returns the duality gap of ε-support vector regression, relative to the objective of the function 0. The
// coefficients β of the samples must lie in [−C, C] and add up to 0.
//
//	primal  ½βᵀKβ + C Σ_i max(0, |y_i − f(x_i)| − ε)
//	dual    yᵀβ − ½βᵀKβ − ε Σ_i |β_i|
//
// The gap bounds the distance of both objectives from the optimum.
func (j judge) gap(f function, c, epsilon float64) (float64, error) {
	kb, err := j.product(j.x, j.x, f.coef)
	if err != nil {
		return 0, err
	}
	var quadratic, loss, linear float64
	for i, y := range j.y.Data {
		b := f.coef[i]
		quadratic += b * kb[i] / 2
		loss += c * max(0, math.Abs(y-kb[i]-f.intercept)-epsilon)
		linear += y*b - epsilon*math.Abs(b)
	}
	primal, dual := quadratic+loss, linear-quadratic
	return (primal - dual) / j.idle(c, epsilon), nil
}

func (j judge) rmse(f function) (float64, error) {
	p, err := j.product(j.testX, f.points, f.coef)
	if err != nil {
		return 0, err
	}
	floats.AddConst(f.intercept, p)
	return floats.Distance(p, j.testY.Data, 2) / math.Sqrt(heldOut), nil
}

// judge returns the judge for s, which uses the best processor.
func (l *setup) judge(s *synthetic) judge { return judge{s, l.judges.F64().With(l.ctx, nil)} }

package glm

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// A shortfall reports the residual at which Newton's method stopped before reaching the tolerance.
type shortfall struct {
	steps         int
	stalled       bool // whether rounding errors prevent further progress
	residual, tol float64
}

// text describes the shortfall, with advice in the format of package message.
func (e *shortfall) text() string {
	reason := "did not converge within " + count.Of(e.steps, "Newton step")
	if e.stalled {
		reason = "rounding ended Newton's method after " + count.Of(e.steps, "step")
	}
	return fmt.Sprintf("%s: the relative residual is %.2g, above the tolerance %.2g: {raise $lambda|raise $tol|raise $iterations}", reason, e.residual, e.tol)
}

// innerSteps is the maximum number of conjugate gradient steps in one Newton step.
const innerSteps = 1000

// minimize takes Newton steps until the residual is at most tol, or returns the reason why it stopped earlier.
func (m *kernelLogit) minimize(tol float64, maxIter int) (*shortfall, error) {
	b, n, c := m.t.B, m.f.Rows, m.f.Cols
	for _, a := range []struct {
		to   *backend.Matrix[float64]
		cols int
	}{{&m.gram, n}, {&m.in, c}, {&m.out, c}} {
		v, err := b.New(n, a.cols)
		if err != nil {
			return nil, err
		}
		defer v.Free()
		*a.to = v
	}
	err := run.Placed(b, m.x, backend.Host[float64]{}, func(x, _ backend.Matrix[float64]) error {
		b.Gram(m.gram, m.k, x, x)
		return b.Sync()
	})
	if err != nil {
		return nil, err
	}
	first, r, slow := m.residual(), m.residual(), 0
	m.t.Traced(run.Epoch{Loss: m.value})
	for iter := range maxIter {
		if r <= tol {
			return nil, nil
		}
		reached, moved, err := m.step(max(min(0.1, r), 0.3*tol/r))
		if err != nil {
			return nil, err
		}
		m.t.Traced(run.Epoch{Number: iter + 1, Loss: m.value})
		last := r
		r = m.residual()
		if err := m.t.Step("fit", min(max(elementary.Log(first/r)/elementary.Log(first/min(tol, first/2)), 0), 0.99)); err != nil {
			return nil, err
		}
		slow++
		if reached || r < last/2 {
			slow = 0
		}
		if r > tol && (!moved || slow == 3) {
			return &shortfall{m.steps, true, r, tol}, nil
		}
	}
	if r <= tol {
		return nil, nil
	}
	return &shortfall{m.steps, false, r, tol}, nil
}

// residual returns the larger of ‖λα − g‖/‖g‖ for g = w([y = c] − p), and, with an intercept, ‖Σ_i g_i‖/(√n ‖g‖).
func (m *kernelLogit) residual() float64 {
	difference, norm := 0.0, 0.0
	sums := make([]float64, m.f.Cols)
	for i := range m.f.Rows {
		for c, a := range m.alpha.Row(i) {
			g := m.weight(i) * m.g.Row(i)[c]
			difference, norm = math.Hypot(difference, m.lambda*a-g), math.Hypot(norm, g)
			sums[c] += g
		}
	}
	if m.intercept {
		difference = max(difference, numeric.Norm2(sums)/math.Sqrt(float64(m.f.Rows)))
	}
	if difference == 0 {
		return 0
	}
	return difference / norm
}

func (m *kernelLogit) product(to, v backend.Host[float64]) error {
	m.products++
	b := m.t.B
	if err := b.Upload(m.in, v); err != nil {
		return err
	}
	b.Symm(backend.Lower, 1, m.gram, m.in, 0, m.out)
	return b.Download(to, m.out)
}

// curved computes W(v + 1b) in the argument to, with the matrix W of KernelProblem, and returns its column sums.
func (m *kernelLogit) curved(to, v backend.Host[float64], b []float64) []float64 {
	c := len(b)
	p, shifted, sums := make([]float64, c), make([]float64, c), make([]float64, c)
	for i := range to.Rows {
		row, g, w := to.Row(i), m.g.Row(i), m.weight(i)
		floats.AddTo(shifted, v.Row(i), b)
		if c == 1 { // p(1−p) is |g|(1−|g|), both for g = 1−p and for g = −p
			q := math.Abs(g[0])
			row[0] = w * q * (1 - q) * shifted[0]
			sums[0] += row[0]
			continue
		}
		floats.SubTo(p, m.y.Row(i), g)
		for a := range row {
			sum := 0.0
			for b, q := range p {
				sum += q * (shifted[a] - shifted[b])
			}
			row[a] = w * p[a] * sum
		}
		floats.Add(sums, row)
	}
	return sums
}

// step takes one Newton step. The result reached reports whether the relative residual of the equations of the step
// reached eta, and the result moved whether the objective decreased.
func (m *kernelLogit) step(eta float64) (reached, moved bool, err error) {
	n, c := m.f.Rows, m.f.Cols
	host := func() backend.Host[float64] { return backend.NewHost[float64](n, c) }
	// (r, s) is the residual of the step (d, e), with kd = K d. (p, q) is the search direction, with kp = K p.
	r, kr, d, kd, kp, h := host(), host(), host(), host(), host(), host()
	s, e := make([]float64, c), make([]float64, c)
	bend := 0.0 // weight s of b in the metric: the mean of 1ᵀW1 over the classes
	for i := range n {
		for k, g := range m.g.Row(i) {
			w, a := m.weight(i), math.Abs(g)
			r.Row(i)[k] = w*g - m.lambda*m.alpha.Row(i)[k]
			bend += w * a * (1 - a) / float64(c)
			if m.intercept {
				s[k] += w * g
			}
		}
	}
	bend = max(bend, math.SmallestNonzeroFloat64)
	if err := m.product(kr, r); err != nil {
		return false, false, err
	}
	p, q := addScaled(r, 0, r), make([]float64, c)
	for k, v := range s {
		q[k] = v / bend
	}
	copy(kp.Data, kr.Data)
	size := func() float64 { return math.Hypot(numeric.Norm2(r.Data), numeric.Norm2(s)/math.Sqrt(float64(n))) }
	norm := func() (float64, error) { // squared norm of the residual in the metric
		v := dot(r, kr)
		if !m.k.IsPSD() && v < -1e-10*numeric.Norm2(r.Data)*numeric.Norm2(kr.Data) {
			return 0, errors.New("the matrix K + λI is not positive definite, as K has negative eigenvalues: use another kernel")
		}
		return v + numeric.Dot(s, s)/bend, nil
	}
	square, err := norm()
	if err != nil {
		return false, false, err
	}
	first := size()
	for range min(innerSteps, 10*n+100) {
		sums := m.curved(h, kp, q)
		floats.AddScaled(h.Data, m.lambda, p.Data)
		curve := dot(kp, h)
		if m.intercept {
			curve += numeric.Dot(q, sums)
		}
		if !(square > 0 && curve > 0) { // Kr and Kp are 0 up to rounding errors
			floats.AddScaled(d.Data, 1/m.lambda, r.Data)
			floats.AddScaled(kd.Data, 1/m.lambda, kr.Data)
			reached = true
			break
		}
		t := square / curve
		floats.AddScaled(d.Data, t, p.Data)
		floats.AddScaled(kd.Data, t, kp.Data)
		floats.AddScaled(r.Data, -t, h.Data)
		if m.intercept {
			floats.AddScaled(e, t, q)
			floats.AddScaled(s, -t, sums)
		}
		if err := m.product(kr, r); err != nil {
			return false, false, err
		}
		next, err := norm()
		if err != nil {
			return false, false, err
		}
		// Adding r/λ to the step d changes the residual r by −(WK + λI)r/λ, so that −WKr/λ remains.
		bent := m.curved(h, kr, make([]float64, c))
		left := numeric.Norm2(h.Data) / m.lambda
		if m.intercept {
			floats.AddScaledTo(bent, s, -1/m.lambda, bent)
			left = math.Hypot(left, numeric.Norm2(bent)/math.Sqrt(float64(n)))
		}
		if reached = left <= eta*first; reached {
			floats.AddScaled(d.Data, 1/m.lambda, r.Data)
			floats.AddScaled(kd.Data, 1/m.lambda, kr.Data)
			break
		}
		if reached = size() <= eta*first; reached {
			break
		}
		beta := next / square
		square = next
		for k := range p.Data {
			p.Data[k] = r.Data[k] + beta*p.Data[k]
			kp.Data[k] = kr.Data[k] + beta*kp.Data[k]
		}
		for k := range q {
			q[k] = s[k]/bend + beta*q[k]
		}
		if err := m.t.Stopped(); err != nil {
			return false, false, err
		}
	}
	m.steps++
	f := host()
	for t := 1.0; t > 1e-8; t /= 2 {
		alpha, b := addScaled(m.alpha, t, d), slices.Clone(m.b)
		floats.AddScaled(b, t, e)
		for i := range n {
			for k, v := range m.f.Row(i) {
				f.Row(i)[k] = v + t*(kd.Row(i)[k]+e[k])
			}
		}
		_, value := m.objective(f, alpha, b)
		// Allow for rounding errors of the value, which exceed the decrease near the minimum.
		if value <= m.value+64*epsilon*math.Abs(m.value) {
			// Recompute f from α: sums of steps accumulate rounding errors.
			if err := m.product(f, alpha); err != nil {
				return false, false, err
			}
			for i := range n {
				floats.Add(f.Row(i), b)
			}
			m.f, m.alpha, m.b = f, alpha, b
			m.g, m.value = m.objective(f, alpha, b)
			return reached, true, nil
		}
	}
	if m.value-m.value != 0 {
		return false, false, errors.New("the loss overflows: scale the features down")
	}
	return reached, false, nil // the point may be the minimum up to rounding errors: the caller checks the residual
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/bench/pypeer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// ridge makes the entries of (K + λI)α = y.
func (c *fitBench) ridge(precision string, n int) ([]Entry, error) {
	s := newSynthetic(n, c.Features, fitLambda)
	j := c.judge(s)
	limit := ridgeLimit(n, c.Features, precision, s.lambda)
	var x32, y32 backend.Host[float32]
	if precision == "float32" {
		x32, y32 = narrow(s.x), narrow(s.y)
	}
	var list []candidate
	for _, d := range c.devices {
		if precision == "float32" {
			list = append(list, directCandidate(c.ctx, d, s, x32, y32))
			continue
		}
		list = append(list,
			c.ownCandidate(d, s, ownName(d), solvers.Auto),
			c.ownCandidate(d, s, ownName(d)+directName, solvers.Dual))
	}
	for _, p := range c.peers {
		if p.name == "gonum" {
			list = append(list, c.gonumCandidate(p, s, precision))
			continue
		}
		tasks := map[string]string{p.name: "ridge"}
		names := []string{p.name}
		if p.name == sklearn {
			tasks[p.name+processGP] = "process"
			names = append(names, p.name+processGP)
		}
		var failure error
		if p.python != nil {
			if precision == "float32" {
				failure = putAll(p.python, x32, y32)
			} else {
				failure = putAll(p.python, s.x, s.y)
			}
		}
		for _, name := range names {
			w := pythonCandidate(name, p, tasks[name], s.parameters(), alphaOf(s))
			if failure != nil {
				w.reason = failure.Error()
			} else if p.python != nil && name != p.name && precision == "float32" {
				w.reason = "computes in float64, whatever it is given"
			}
			list = append(list, w)
		}
	}
	return c.entries(list, j, j.residual, limit), nil
}

// ridgeLimit is the residual that a direct solver can leave. An element of K is
// within (d + 8)u of what it should be, from the d products of its distance and
// from exp; the factor is that of a matrix within γ of it, γ = 10√n·u with a
// probability that leaves no room for chance (Higham and Mary 2019); that twice
// for the two solutions. So ‖ΔK‖ ≤ n·(2γ + (d + 8)u), and ‖α‖ ≤ ‖y‖/λ. In float32
// X itself is rounded, which moves the exponent by 2u‖x‖‖z‖/2σ² < 4u for almost
// every pair. More than a half is no solution in any precision.
func ridgeLimit(n, d int, precision string, lambda float64) float64 {
	unit := 0x1p-53
	if precision == "float32" {
		unit = 0x1p-24
	}
	bound := float64(n) * (20*math.Sqrt(float64(n)) + float64(d) + 12) * unit / lambda
	return min(max(bound, fitTol), 0.5)
}

// parameters are what peers.py is told.
func (s *synthetic) parameters() map[string]any {
	return map[string]any{"gamma": s.gamma(), "sigma": s.kernel.Sigma, "lambda": s.lambda}
}

// putAll gives a process X and y.
func putAll[T backend.Float](p *pypeer.Process, x, y backend.Host[T]) error {
	return errors.Join(pypeer.Put(p, "x", x.Rows, x.Cols, x.Data), pypeer.Put(p, "y", y.Rows, 0, y.Data))
}

// alphaOf takes the α that a process has found.
func alphaOf(s *synthetic) func(*pypeer.Process) (function, error) {
	return func(p *pypeer.Process) (function, error) {
		a, err := p.Get("alpha")
		if err == nil && len(a.Data) != s.x.Rows {
			err = fmt.Errorf("bench: fit: %d coefficients for %d rows", len(a.Data), s.x.Rows)
		}
		return function{points: s.x, coef: a.Data}, err
	}
}

// directCandidate is a device's own Cholesky in float32, without refinement: what
// other libraries do in that precision.
func directCandidate(ctx context.Context, d backend.Device, s *synthetic, x, y backend.Host[float32]) candidate {
	var alpha backend.Host[float32]
	return candidate{
		name: ownName(d) + directName, own: true,
		run: func() (err error) {
			alpha, err = direct(d.F32().With(ctx, nil), s.kernel, x, y, float32(s.lambda))
			return err
		},
		result: func() (function, error) {
			if alpha.Data == nil {
				return function{}, errNothing
			}
			return function{points: s.x, coef: widened(alpha.Data)}, nil
		},
	}
}

// direct solves (K + λI)α = y by Cholesky in one precision, in packed storage where
// the device has it.
func direct[T backend.Float](q backend.Backend[T], k kernels.Kernel, x, y backend.Host[T], lambda T) (alpha backend.Host[T], err error) {
	alpha = backend.NewHost[T](y.Rows, y.Cols)
	mx, err := backend.Place(q, x)
	if err != nil {
		return alpha, err
	}
	defer mx.Free()
	b, err := q.New(y.Rows, y.Cols)
	if err != nil {
		return alpha, err
	}
	defer b.Free()
	if err := q.Upload(b, y); err != nil {
		return alpha, err
	}
	if h, ok := q.(backend.PackedBackend[T]); ok {
		a, err := h.NewPacked(x.Rows)
		if err != nil {
			return alpha, err
		}
		defer a.Free()
		h.GramPacked(a, k, mx)
		h.AddDiagPacked([]T{lambda}, a)
		if err := h.PotrfPacked(a); err != nil {
			return alpha, err
		}
		h.TrsmPacked(backend.NoTrans, a, b)
		h.TrsmPacked(backend.Transpose, a, b)
		return alpha, q.Download(alpha, b)
	}
	a, err := q.New(x.Rows, x.Rows)
	if err != nil {
		return alpha, err
	}
	defer a.Free()
	q.Gram(a, k, mx, mx)
	q.AddDiag([]T{lambda}, a)
	if err := q.Potrf(backend.Lower, a); err != nil {
		return alpha, err
	}
	twoTriangles(q, a, b)
	return alpha, q.Download(alpha, b)
}

// gonumCandidate is what one would write with gonum/mat.
func (c *fitBench) gonumCandidate(p fitPeer, s *synthetic, precision string) candidate {
	w := candidate{name: p.name, reason: p.missing}
	if p.gonum == nil {
		return w
	}
	if precision == "float32" {
		w.reason = "gonum/mat has no float32"
		return w
	}
	n := s.x.Rows
	x := mat.NewDense(n, s.x.Cols, s.x.Data)
	y := mat.NewVecDense(n, s.y.Data)
	var alpha *mat.VecDense
	w.enter = func() func() { return p.gonum.Threads(c.Threads) }
	w.run = func() error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		k := mat.NewSymDense(n, nil)
		k.SymOuterK(1, x)
		norms := make([]float64, n)
		for i := range norms {
			norms[i] = k.At(i, i)
		}
		raw, gamma := k.RawSymmetric(), s.gamma()
		for i := range n {
			row := raw.Data[i*raw.Stride+i : i*raw.Stride+n]
			for j, v := range row {
				row[j] = math.Exp(-gamma * max(norms[i]+norms[i+j]-2*v, 0))
			}
			row[0] += s.lambda
		}
		var factor mat.Cholesky
		if !factor.Factorize(k) {
			return errors.New("bench: fit: gonum: the matrix is not positive definite")
		}
		alpha = mat.NewVecDense(n, nil)
		return factor.SolveVecTo(alpha, y)
	}
	w.result = func() (function, error) {
		if alpha == nil {
			return function{}, errNothing
		}
		return function{points: s.x, coef: alpha.RawVector().Data}, nil
	}
	return w
}

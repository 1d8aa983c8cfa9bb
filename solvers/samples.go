package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// samples holds the rows of a Problem with weight > 0. With an intercept, y is centered by its weighted mean, and
// for a linear kernel X is centered, too. The intercept of the centered problem is then 0. Without centering,
// features with an offset of 1e6 would lose 12 digits in XᵀX.
type samples struct {
	Problem
	x            numeric.Points // X
	n, d, t      int            // number of rows of weight > 0, of features, and of outputs
	rows         []int          // indices in X of the rows of weight > 0; nil means all rows
	weight       []float64      // weights of the rows of weight > 0; nil means all 1
	meanX, meanY numeric.Center // subtracted from X and Y; nil without centering
}

func newSamples(p Problem) *samples {
	x := p.points()
	part := numeric.PartOf(x.Rows, p.Weights)
	s := &samples{Problem: p, x: x, n: part.N, d: x.Cols, t: p.Y.Cols, rows: part.Rows, weight: part.Weight}
	if p.Intercept {
		s.meanY = s.mean(p.Y)
		if p.linear() {
			s.meanX = s.mean(p.X)
		}
	}
	return s
}

func countPositive(w []float64) (n int) {
	for _, v := range w {
		if v > 0 {
			n++
		}
	}
	return n
}

func isLinear(k kernels.Kernel) bool { _, ok := k.(kernels.Linear); return ok }

// bordered reports whether b is an unknown of the dual system.
func (s *samples) bordered() bool { return s.Intercept && s.meanX == nil }

// columns is the number of right-hand sides of the dual system.
func (s *samples) columns() int {
	if s.bordered() {
		return s.t + 1
	}
	return s.t
}

// row returns the index in X of the i-th row of weight > 0.
func (s *samples) row(i int) int { return s.part().Row(i) }

func (s *samples) weightOf(i int) float64 { return s.part().WeightOf(i) }

// shift returns the diagonal elements λ/w_i of λW⁻¹.
func (s *samples) shift() []float64 {
	if s.weight == nil {
		return []float64{s.Lambda}
	}
	d := make([]float64, s.n)
	for i, w := range s.weight {
		d[i] = s.Lambda / w
	}
	return d
}

// line returns the samples sorted by their only feature.
func (s *samples) line(ctx context.Context, m markov.Model) (*markov.Line, error) {
	x := backend.NewHost[float64](s.n, 1)
	s.fill(x, s.X, nil, 0, false)
	return markov.NewLine(ctx, m, x.Data)
}

// positivePoints returns the samples of weight > 0, without centering.
func (s *samples) positivePoints() numeric.Points {
	if s.rows == nil {
		return s.x
	}
	return s.x.Take(s.rows)
}

// part returns the indices and weights of the rows of weight > 0.
func (s *samples) part() numeric.Part { return numeric.Part{N: s.n, Rows: s.rows, Weight: s.weight} }

func (s *samples) mean(h backend.Host[float64]) numeric.Center {
	mean, _ := s.part().Mean(context.Background(), h) // the background context is never canceled
	return mean
}

// unchanged reports whether X is not centered and has no rows of weight 0 or, if scaled is set, of weight ≠ 1.
func (s *samples) unchanged(scaled bool) bool {
	return s.rows == nil && s.meanX == nil && !(scaled && s.weight != nil)
}

// nearlyCentered reports whether all rows of X have weight 1 and X is nearly centered: see numeric.Center.
func (s *samples) nearlyCentered() bool {
	return s.rows == nil && s.weight == nil && s.meanX != nil && s.meanX.NearlyCentered(s.X)
}

// fill sets dst to rows first, first+1, … of those rows of h that have weight > 0. It subtracts mean from each row,
// and multiplies row i by √w_i if scaled is true.
func (s *samples) fill(dst, h backend.Host[float64], mean numeric.Center, first int, scaled bool) {
	s.part().Fill(dst, h, mean, first, scaled)
}

// blockRows is the number of rows in a copied block of X: about 2 MiB, which fits in the caches of two cores.
func blockRows(n, d int) int {
	return min(n, max(256, 1<<18/d))
}

// placeX copies the samples of weight > 0 to the device, unless the device can use Problem.X itself.
func (w *call) placeX() (backend.Matrix[float64], error) {
	s := w.s
	if s.unchanged(false) || s.Sparse != nil {
		x, err := s.positivePoints().Place(w.B)
		if err != nil {
			return nil, err
		}
		w.Mem.Keep(x)
		return x, nil
	}
	x, err := w.Mem.New(s.n, s.d)
	if err != nil {
		return nil, err
	}
	r := blockRows(s.n, s.d)
	buffer := backend.NewHost[float64](r, s.d)
	for i := 0; i < s.n; i += r {
		h := buffer.View(0, 0, min(r, s.n-i), s.d)
		s.fill(h, s.X, s.meanX, i, false)
		if err := w.B.Upload(x.View(i, 0, h.Rows, s.d), h); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// checkShapes checks everything except the values of the samples.
func (p Problem) checkShapes() error {
	if p.Kernel == nil {
		return errors.New("solvers: the kernel is missing")
	}
	x := p.points()
	for _, m := range []struct {
		name string
		p    numeric.Points
	}{{"x", x}, {"y", numeric.DensePoints(p.Y)}} {
		h := m.p.Dense
		if m.p.Rows <= 0 || m.p.Cols <= 0 {
			return fmt.Errorf("solvers: %s is empty: %s, %s", m.name, count.Of(m.p.Rows, "row"), count.Of(m.p.Cols, "column"))
		}
		if m.p.Sparse != nil {
			if err := m.p.Sparse.Check(); err != nil {
				return fmt.Errorf("solvers: %s: %w", m.name, err)
			}
		} else if h.Stride < h.Cols || len(h.Data) < (h.Rows-1)*h.Stride+h.Cols {
			return fmt.Errorf("solvers: %s: a %d×%d matrix with stride %d does not fit in %s", m.name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
		}
	}
	if p.Sparse != nil && p.X.Rows > 0 {
		return errors.New("solvers: x is given as a dense and as a sparse matrix: give only one of the two")
	}
	n := x.Rows
	if p.Y.Rows != n {
		return fmt.Errorf("solvers: x has %s, y has %d", count.Of(n, "row"), p.Y.Rows)
	}
	if err := p.Kernel.Check(x.Cols); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	if !(p.Lambda >= 0) || math.IsInf(p.Lambda, 1) {
		return fmt.Errorf("solvers: lambda must be a finite number ≥ 0, got %v", p.Lambda)
	}
	if err := numeric.CheckWeights(p.Weights, n); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	for i, w := range p.Weights {
		if w > 0 && math.IsInf(p.Lambda/w, 1) {
			return fmt.Errorf("solvers: weights: row %d: %v is too small for lambda %v: use 0 to leave the sample out", i+1, w, p.Lambda)
		}
	}
	return nil
}

// checkValues is Problem.checkValues, but does not read a dense X if its column means are finite.
func (s *samples) checkValues() error {
	if s.meanX == nil || s.rows != nil || !numeric.Finite(s.meanX[0]) {
		return s.Problem.checkValues()
	}
	if err := numeric.DensePoints(s.Y).CheckFinite("y"); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	return nil
}

// checkValues returns an error for NaN, Inf and points outside the kernel's domain, even in samples of weight 0.
func (p Problem) checkValues() error {
	x := p.points()
	err := x.CheckFinite("x")
	if err == nil {
		err = x.CheckRule(p.Kernel, "x")
	}
	if err == nil {
		err = numeric.DensePoints(p.Y).CheckFinite("y")
	}
	if err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	return nil
}

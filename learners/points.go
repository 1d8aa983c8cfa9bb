package learners

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// sparseOf returns x if it is a backend.CSR or a pointer to a backend.CSR, and nil otherwise. It
// returns an error for a CSR that is empty or malformed.
func sparseOf(name string, x mat.Matrix) (*backend.CSR[float64], error) {
	var s *backend.CSR[float64]
	switch x := x.(type) {
	case backend.CSR[float64]:
		s = &x
	case *backend.CSR[float64]:
		s = x
	}
	if s == nil {
		return nil, nil
	}
	if s.Rows <= 0 || s.Cols <= 0 {
		return nil, fmt.Errorf("%s is empty: %s, %s", name, count.Of(s.Rows, "row"), count.Of(s.Cols, "column"))
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// pointsOf returns x as points, which are sparse if x is a backend.CSR.
func pointsOf(name string, x mat.Matrix) (numeric.Points, error) {
	if s, err := sparseOf(name, x); err != nil {
		return numeric.Points{}, err
	} else if s != nil {
		return numeric.SparsePoints(*s), nil
	}
	h, err := gonum.Host(name, x)
	return numeric.DensePoints(h), err
}

// denseSamples returns x as a dense matrix, for a learner that does not accept sparse samples. It
// returns an error if a dense copy does not fit into the memory.
func denseSamples(dev backend.Device, o Options, learner string, x mat.Matrix) (backend.Host[float64], error) {
	s, err := sparseOf("x", x)
	if err != nil {
		return backend.Host[float64]{}, err
	}
	if s == nil {
		return gonum.Host("x", x)
	}
	available, known := backend.HostMemory()
	if dev != nil && numeric.Wrapper(dev) != nil {
		available, known = run.Available(dev, o.Memory), true
	}
	if needed := numeric.Bytes(numeric.Elements(s.Rows, s.Cols)); known && needed > available {
		return backend.Host[float64]{}, &solvers.BudgetError{
			Method: solvers.Method(learner), Rows: s.Rows, Needed: needed, Available: available, Host: true,
			Advice: "the learner makes a dense copy of the sparse samples: {use a learner that takes sparse samples|$memory}",
		}
	}
	h := backend.Host[float64]{Rows: s.Rows, Cols: s.Cols, Stride: s.Cols, Data: pages.Zeros[float64](s.Rows * s.Cols)}
	s.DenseTo(h)
	return h, nil
}

// besideCopy returns ctx and o for work during which a dense copy of sparse samples exists: plans of memory
// include the copy, and o.Memory, if it limits the host's memory, is lowered by the size of the copy.
func besideCopy(ctx context.Context, dev backend.Device, o Options, points numeric.Points) (context.Context, Options) {
	bytes := points.CopyBytes(points.Rows)
	if o.Memory > 0 && numeric.Wrapper(dev) != nil {
		o.Memory = max(o.Memory-bytes, 1)
	}
	return run.Beside(ctx, bytes), o
}

// densePoints returns a copy of points as a dense matrix, or nil if there are none.
func densePoints(p numeric.Points) *mat.Dense {
	if p.Sparse == nil || p.Rows == 0 {
		return denseOf(p.Dense)
	}
	h := backend.NewHost[float64](p.Rows, p.Cols)
	p.Sparse.DenseTo(h)
	return mat.NewDense(h.Rows, h.Cols, h.Data)
}

// copyOfPoints returns a copy of points, a *mat.Dense or a backend.CSR, or nil if there are none.
func copyOfPoints(p numeric.Points) mat.Matrix {
	switch {
	case p.Rows == 0:
		return nil
	case p.Sparse != nil:
		return *p.Kept(nil).Sparse
	}
	return denseOf(p.Dense)
}

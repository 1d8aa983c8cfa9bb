package solvers

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
)

// Kalman is the Cholesky factor of K + λW⁻¹ in O(n) time and memory, as a Kalman filter, for one
// feature and a kernel whose Gaussian process is Markov: exponential, laplacian, matern32, matern52,
// constants, and their sums and multiples. It works in Go memory, in float64.
const Kalman Method = "kalman"

// kalmanRow is the seconds that a sample takes for each right-hand side, and in addition for each
// element of the square of the dimension of the state: on two cores of a Zen 4, 2026-11.
var kalmanRow = [2]float64{3e-7, 3e-8}

// kalmanFlops is the number of operations of one sample in one stage: those of a product of matrices
// with the dimension of the state.
func kalmanFlops(m markov.Model, n int) float64 {
	d := float64(m.Dim())
	return 4 * float64(n) * d * d
}

// markov returns the state space of the kernel, if p is a problem of one dense feature and has one.
func (p Problem) markov() (markov.Model, bool) {
	if p.Sparse != nil || p.X.Cols != 1 {
		return markov.Model{}, false
	}
	return markov.Of(p.Kernel)
}

func kalmanEstimate(z *sizes, _ Params) (estimate, error) {
	m, ok := z.p.markov()
	if !ok {
		return estimate{}, message.Errorf("solvers: kalman: needs one feature and a kernel such as exponential, matern32 or matern52, or a sum of them, got %s and %v: {use $solver=dual}", features(z.d), z.kernel)
	}
	flops := kalmanFlops(m, z.n)
	e := estimate{
		how:     kalmanChoice{m},
		stages:  []stage{{"gram", flops}, {"factor", flops}, {"solve", 4 * flops * float64(z.columns)}},
		bytesOf: z.refinedBytes,
	}
	e.cost = z.kalmanCost(m)
	return e, nil
}

// kalmanCost is the cost of Kalman.
func (z *sizes) kalmanCost(m markov.Model) float64 {
	d := float64(m.Dim())
	return float64(z.n) * (kalmanRow[0] + kalmanRow[1]*d*d) * float64(z.columns) * z.costs().small / smallSeconds
}

// kalmanChoice solves by a Kalman filter inside refinement.
type kalmanChoice struct{ model markov.Model }

func (choice kalmanChoice) run(w *work) error {
	return w.refine(nil, fallback{method: Kalman, make: func() (inner, error) { return w.newFilter(choice.model) }})
}

// filter is the inner solver by a Kalman filter.
type filter struct {
	w    *work
	line *markov.Line
}

func (w *work) newFilter(m markov.Model) (inner, error) {
	f := &filter{w: w}
	err := w.Timed("gram", &w.res.Seconds.Gram, func() (err error) {
		f.line, err = w.s.line(w.Ctx, m)
		w.Progress.Done(kalmanFlops(m, w.s.n))
		return err
	})
	if err == nil {
		err = w.Timed("factor", &w.res.Seconds.Factor, func() error {
			err := f.line.Filter(w.Ctx, w.s.shift())
			w.Progress.Done(kalmanFlops(m, w.s.n))
			return err
		})
	}
	var pivot *backend.PivotError
	switch {
	case errors.As(err, &pivot):
		return nil, w.kalmanPivot(pivot)
	case err != nil:
		return nil, w.fail(err)
	}
	return f, nil
}

// kalmanPivot explains a failed factorization of K + λW⁻¹.
func (w *work) kalmanPivot(pivot *backend.PivotError) error {
	row := w.s.row(pivot.Index) + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: kalman: K + λI is not finite at row %d: values of the kernel %v overflow: scale the features down", row, w.s.Kernel)
	}
	return numeric.ExplainPivot(pivot, "solvers: kalman: K + λI is not positive definite to working precision at row %d (pivot %.3g), which is too close to another: {raise $lambda}", row, pivot.Value)
}

func (f *filter) solve(r backend.Matrix[float64], _ []float64) error {
	rows, columns := r.Dims()
	h := backend.NewHost[float64](rows, columns)
	if err := f.w.B.Download(h, r); err != nil {
		return f.w.fail(err)
	}
	f.line.Solve(h)
	f.w.Progress.Done(kalmanFlops(f.line.Model, rows) * float64(columns))
	if err := f.w.B.Upload(r, h); err != nil {
		return f.w.fail(err)
	}
	return nil
}

// multiply is the product with K in Go memory.
func (f *filter) multiply(v backend.Host[float64]) {
	f.line.Multiply(v)
	f.w.Progress.Done(kalmanFlops(f.line.Model, v.Rows) * float64(v.Cols))
}

func (f *filter) product() numeric.Product { return nil }
func (f *filter) direct() bool             { return true }
func (f *filter) stopReason() string       { return "" }
func (f *filter) switchToCG() bool         { return false }
func (f *filter) gaveUp() bool             { return false }
func (f *filter) release()                 {}

// features formats a number of features.
func features(n int) string {
	if n == 1 {
		return "1 feature"
	}
	return fmt.Sprintf("%d features", n)
}

package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"weak"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// predictor holds the part of a prediction that differs between models. apply computes out ← f(x), without the
// intercept, from x and the matrices in fixed, which do not depend on x.
type predictor struct {
	learner       string
	features      int            // 0 if the model is not fitted
	kernel        kernels.Kernel // the kernel whose rule the points must satisfy; nil if every point is allowed
	fixed         []numeric.Points
	intercept     []float64
	sum           bool // whether apply computes out ← k(x, fixed[0]) fixed[1]
	needsDiagonal bool // whether the model also needs the values k(x, x)
	linear        bool // whether f(x) is xW + b, for which x may be sparse or dense
	apply         func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64])
}

// expansion returns the predictor of Σ_j k(x, x_j) V_j + b.
func expansion(learner string, k kernels.Kernel, points numeric.Points, v backend.Host[float64], b []float64) predictor {
	return predictor{
		learner: learner, features: points.Cols, intercept: b, kernel: k, sum: true,
		fixed: []numeric.Points{points, numeric.DensePoints(v)},
		apply: func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
			b.GramMul(out, k, x, fixed[0], fixed[1])
		},
	}
}

// affine returns the predictor of xW + b.
func affine(learner string, w backend.Host[float64], b []float64) predictor {
	return predictor{
		learner: learner, features: w.Rows, intercept: b, linear: true,
		fixed: []numeric.Points{numeric.DensePoints(w)},
		apply: func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
			b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, fixed[0], 0, out)
		},
	}
}

var (
	errNotFitted = errors.New("the model is not fitted")
	errNoDevice  = errors.New("no device was given")
)

// predict evaluates p at the rows of x in blocks, so that the memory on the device does not grow
// with the number of rows.
func (p predictor) predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := p.run(ctx, dev, x)
	if err != nil {
		return nil, predictError(p.learner, err)
	}
	return f, nil
}

// predictError adds the learner's name, unless it is empty, to the error of a prediction.
func predictError(learner string, err error) error {
	if learner == "" {
		return fmt.Errorf("learners: predict: %w", err)
	}
	return fmt.Errorf("learners: %s: predict: %w", learner, err)
}

func (p predictor) run(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	points, err := p.checkRows(dev, x)
	if err != nil {
		return nil, err
	}
	f, err := p.predictPoints(ctx, dev, points)
	if err != nil {
		return nil, err
	}
	return f, checkPredicted("prediction", dense(f), 0)
}

// roundings returns the maximum number of times that dev rounds a term of a prediction Σ_j k(x, x_j)v_j, or 0 if dev
// does not report this number. verified.ErrorBound.Round then assumes the number of terms.
func (p predictor) roundings(dev backend.Device) int {
	if s, ok := dev.F64().(backend.RoundingBackend[float64]); ok && p.sum && p.fixed[0].Sparse == nil {
		return s.GramMulRoundings(p.fixed[0].Rows, len(p.intercept))
	}
	return 0
}

// plan reports the memory of predictPoints: blocks of points and the fixed matrices on the device, and the copies of
// them that a device packs to evaluate a kernel.
func (p predictor) plan(ctx context.Context, dev backend.Device, points numeric.Points) {
	rows, t := p.blockRows(points), len(p.intercept)
	bytes := numeric.Total(points.PlacedBytes(dev.F64(), rows), numeric.Bytes(numeric.Elements(points.Rows+rows, t)))
	for _, f := range p.fixed {
		bytes = numeric.Total(bytes, f.PlacedBytes(dev.F64(), f.Rows))
	}
	if p.copies(points) {
		block := numeric.DensePoints(backend.Host[float64]{Rows: rows, Cols: points.Cols})
		ctx = run.Beside(ctx, numeric.Total(block.CopyBytes(rows), block.PlacedBytes(dev.F64(), rows)))
	}
	run.ReportPlan(p.packing(ctx, dev, points), dev, bytes)
}

// packing returns a ctx for work that evaluates the functions of p at blocks of the points. Plans
// that are reported through it include the memory of packed points.
func (p predictor) packing(ctx context.Context, dev backend.Device, points numeric.Points) context.Context {
	if p.linear || points.Sparse != nil && !p.copies(points) {
		return ctx
	}
	return run.Packing(ctx, dev, (p.blockRows(points)+p.fixed[0].Rows+1)/2, points.Cols)
}

func (p predictor) blockRows(x numeric.Points) int {
	width := x.Cols
	if x.Sparse != nil && !p.copies(x) {
		width = x.Sparse.NNZ()/x.Rows + 1
	}
	const minRows = 256 // large blocks, because the fixed points are packed anew for each block
	return min(x.Rows, max(minRows, 1<<22/(width+len(p.intercept))))
}

// predictPoints returns the predictions for points that check or checkRows has returned. A
// prediction may be NaN or infinite: the caller must call checkPredicted.
func (p predictor) predictPoints(ctx context.Context, dev backend.Device, points numeric.Points) (*mat.Dense, error) {
	if points.Sparse == nil || points.Cols == 1 {
		points = p.convert(points)
	}
	if m, ok := markov.Of(p.kernel); ok && p.sum && p.features == 1 && p.fixed[0].Sparse == nil && markov.Faster(p.fixed[0].Rows, points.Rows) {
		return p.predictMarkov(ctx, m, points)
	}
	p.plan(ctx, dev, points)
	fixed, err := numeric.PlaceAll(dev.F64(), p.fixed...)
	if err != nil {
		return nil, err
	}
	defer numeric.FreeAll(fixed)
	f := backend.NewHost[float64](points.Rows, len(p.intercept))
	err = p.inBlocks(ctx, points, func(ctx context.Context, first int, x numeric.Points) error {
		return p.blocks(ctx, dev, f.View(first, 0, x.Rows, f.Cols), x, fixed)
	})
	if err != nil {
		return nil, err
	}
	return mat.NewDense(f.Rows, f.Cols, f.Data), nil
}

// inBlocks calls use with the converted points and first = 0. If convert would make a dense copy, inBlocks calls
// use for each block of blockRows points, with a copy of the block and the index of its first point.
func (p predictor) inBlocks(ctx context.Context, points numeric.Points, use func(ctx context.Context, first int, x numeric.Points) error) error {
	if !p.copies(points) {
		return use(ctx, 0, p.convert(points))
	}
	rows := p.blockRows(points)
	ctx = run.Beside(ctx, numeric.DensePoints(backend.Host[float64]{Rows: rows, Cols: points.Cols}).CopyBytes(rows))
	buffer := acquireBuffer(rows * points.Cols)
	defer buffer.release()
	for first := 0; first < points.Rows; first += rows {
		block := points.Slice(first, min(rows, points.Rows-first))
		h := backend.Host[float64]{Rows: block.Rows, Cols: points.Cols, Stride: points.Cols, Data: buffer.data[:block.Rows*points.Cols]}
		block.Sparse.DenseTo(h)
		if err := use(ctx, first, numeric.DensePoints(h)); err != nil {
			return err
		}
	}
	return nil
}

type copyBuffer struct{ data []float64 }

// lastBuffer refers to the copyBuffer that was released last, unless the garbage collector has freed it. A second
// buffer, of hundreds of megabytes for wide points, could be allocated before the collector has freed the first.
var lastBuffer struct {
	sync.Mutex
	weak.Pointer[copyBuffer]
}

// acquireBuffer returns a buffer for the caller alone. It has at least size elements, which may have any values.
func acquireBuffer(size int) *copyBuffer {
	lastBuffer.Lock()
	b := lastBuffer.Value()
	lastBuffer.Pointer = weak.Pointer[copyBuffer]{}
	lastBuffer.Unlock()
	if b == nil || len(b.data) < size {
		b = &copyBuffer{pages.Zeros[float64](size)}
	}
	return b
}

// release lets the next call of acquireBuffer return b.
func (b *copyBuffer) release() {
	lastBuffer.Lock()
	lastBuffer.Pointer = weak.Make(b)
	lastBuffer.Unlock()
}

// appendRows appends the rows of h to m. If m is nil, the result shares the memory of h.
func appendRows(m *mat.Dense, h backend.Host[float64]) *mat.Dense {
	if m == nil {
		return mat.NewDense(h.Rows, h.Cols, h.Data)
	}
	raw := m.RawMatrix()
	return mat.NewDense(raw.Rows+h.Rows, h.Cols, append(raw.Data, h.Data...))
}

// predictMarkov returns the predictions of a kernel expansion with the Markov kernel m of one
// feature, in time linear in the number of points.
func (p predictor) predictMarkov(ctx context.Context, m markov.Model, points numeric.Points) (*mat.Dense, error) {
	l, err := markov.NewLine(ctx, m, numeric.First(p.fixed[0].Dense))
	if err != nil {
		return nil, err
	}
	f, err := l.Evaluate(ctx, p.fixed[1].Dense, numeric.First(points.Dense))
	if err != nil {
		return nil, err
	}
	p.addIntercept(f)
	return mat.NewDense(f.Rows, f.Cols, f.Data), nil
}

// blocks sets f to the predictions for the rows of x, which are a result of convert. fixed holds
// the matrices p.fixed on the device.
func (p predictor) blocks(ctx context.Context, dev backend.Device, f backend.Host[float64], x numeric.Points, fixed []backend.Matrix[float64]) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	base, b := dev.F64(), dev.F64().With(ctx, nil)
	rows := p.blockRows(x)
	out, err := b.New(rows, f.Cols)
	if err != nil {
		return err
	}
	defer out.Free()
	for i := 0; i < x.Rows; i += rows {
		r := min(rows, x.Rows-i)
		if err := p.block(base, b, f.View(i, 0, r, f.Cols), out.View(0, 0, r, f.Cols), x.Slice(i, r), fixed); err != nil {
			return err
		}
	}
	return nil
}

// check returns the rows of x as points that convert has converted, or an error if the model cannot
// be evaluated at them.
func (p predictor) check(dev backend.Device, x mat.Matrix) (numeric.Points, error) {
	points, err := p.checkRows(dev, x)
	if err != nil {
		return points, err
	}
	return p.convert(points), nil
}

// checkRows returns the rows of x as points, or an error if the model cannot be evaluated at them.
func (p predictor) checkRows(dev backend.Device, x mat.Matrix) (points numeric.Points, err error) {
	if p.features == 0 {
		return points, errNotFitted
	}
	if dev == nil {
		return points, errNoDevice
	}
	if points, err = pointsOf("x", x); err != nil {
		return points, err
	}
	points, hasDiagonal := numeric.OtherPoints(p.kernel, points, p.features)
	if !hasDiagonal && p.needsDiagonal {
		return points, errors.New("x lacks the kernel value of each row with itself, which the variances and distances need: give the points that gram.OtherPoints returns")
	}
	if points.Cols != p.features {
		return points, fmt.Errorf("x has %s, but the model was fitted to %s", count.Of(points.Cols, "column"), count.Of(p.features, "column"))
	}
	return points, p.checkValues(points)
}

// copies reports whether convert makes a dense copy of the points.
func (p predictor) copies(points numeric.Points) bool {
	return !p.linear && points.Sparse != nil && (len(p.fixed) == 0 || p.fixed[0].Sparse == nil)
}

// convert converts points to a sparse matrix if p.fixed[0] is sparse, and to a dense matrix
// otherwise. For a linear model it returns points unchanged.
func (p predictor) convert(points numeric.Points) numeric.Points {
	switch {
	case p.copies(points):
		return numeric.DensePoints(dense(densePoints(points)))
	case !p.linear && points.Sparse == nil && len(p.fixed) > 0 && p.fixed[0].Sparse != nil:
		return numeric.SparsePoints(points.Dense.CSR())
	}
	return points
}

// checkValues returns an error if a point is not finite or violates the rule of the kernel.
func (p predictor) checkValues(points numeric.Points) error {
	err := points.CheckFinite("x")
	if err == nil && p.kernel != nil {
		err = points.CheckRule(p.kernel, "x")
	}
	return err
}

// block sets f to the predictions for the rows of x, which form one block.
func (p predictor) block(base, b backend.Backend[float64], f backend.Host[float64], out backend.Matrix[float64], x numeric.Points, fixed []backend.Matrix[float64]) error {
	placed, err := x.Place(base)
	if err != nil {
		return err
	}
	defer placed.Free()
	p.apply(b, out, placed, fixed)
	if err := b.Download(f, out); err != nil {
		return err
	}
	p.addIntercept(f)
	return nil
}

func (p predictor) addIntercept(f backend.Host[float64]) {
	for i := range f.Rows {
		row := f.Row(i)
		for j, c := range p.intercept {
			row[j] += c
		}
	}
}

// otherUnits is the advice about a row whose prediction is not finite.
const otherUnits = ": compare the row with the training rows, which may have other units"

// checked returns the values f of a model for the rows of x, or an error if a value is not finite. The error calls a
// value `name`, for example "prediction".
func checked(learner, name string, f *mat.Dense, err error) (*mat.Dense, error) {
	if err != nil {
		return nil, err
	}
	if err := checkPredicted(name, dense(f), 0); err != nil {
		return nil, predictError(learner, err)
	}
	return f, nil
}

// checkPredicted returns an error if a value for a row of x is not finite. The error calls the value `name`, for
// example "prediction". The argument first is the index of the first row of f.
func checkPredicted(name string, f backend.Host[float64], first int) error {
	for i := range f.Rows {
		for _, v := range f.Row(i) {
			if math.IsNaN(v) {
				return fmt.Errorf("x: row %d: the %s is not a number, because kernel values of the row are undefined or out of range%s", first+i+1, name, otherUnits)
			}
			if math.IsInf(v, 0) {
				return fmt.Errorf("x: row %d: the %s is %v: the values of the row or of the model are too large%s", first+i+1, name, v, otherUnits)
			}
		}
	}
	return nil
}

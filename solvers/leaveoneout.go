package solvers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// LeaveOneOut computes leave-one-out fits from the solution of (K + λW⁻¹)α + b·1 = y for all samples. Let B be the
// inverse of K + λW⁻¹, bordered by ones if there is an intercept. The fit f₋ᵢ without sample i, and its error c_i at
// this sample, are
//
//	y_i − f₋ᵢ(x_i) = c_i = α_i/B_ii,    f₋ᵢ(x) = f(x) − c_i (B [k(X, x); 1])_i
//
// (Barber, Candès, Ramdas and Tibshirani 2021, Annals of Statistics 49, section 5). It takes as much memory as an
// Uncertainty. Several goroutines may call the methods at the same time.
type LeaveOneOut struct {
	u        *Uncertainty
	diagonal []float64 // B_ii
	ones     []float64 // (K + λW⁻¹)⁻¹1 if there is an intercept, otherwise nil
	sum      float64   // 1ᵀ(K + λW⁻¹)⁻¹1
}

var errNotMade = errors.New("solvers: leave-one-out: the LeaveOneOut was not made by NewLeaveOneOut")

// NewLeaveOneOut factors K + λW⁻¹ on dev and computes the diagonal of the inverse, each in n³/3 operations; a
// state-space model takes O(n) operations. It uses only the shape of p.Y. λ must be > 0. limit bounds the memory on
// dev in bytes; 0 means all its free memory.
func NewLeaveOneOut(ctx context.Context, dev backend.Device, p Problem, limit int64) (*LeaveOneOut, error) {
	intercept := p.Intercept
	p.Intercept = false // addBorder accounts for the intercept: the samples are not centered
	u, err := NewUncertainty(ctx, dev, p, limit)
	if err != nil {
		return nil, err
	}
	l := &LeaveOneOut{u: u}
	if err := l.invert(ctx, dev, limit, intercept); err != nil {
		return nil, fmt.Errorf("solvers: leave-one-out: %w", err)
	}
	return l, nil
}

// invert computes the fields diagonal, ones and sum of l.
func (l *LeaveOneOut) invert(ctx context.Context, dev backend.Device, limit int64, intercept bool) error {
	n := l.u.s.n
	if l.u.posterior != nil {
		l.diagonal = l.u.posterior.Line.Inverse()
		ones := unitColumn(n)
		l.u.posterior.Line.Solve(ones)
		return l.addBorder(ones, intercept)
	}
	width := min(n, evidenceBlock)
	f, err := l.u.placeOn(ctx, dev, "leave-one-out", func(n, _, _ int) int64 { return numeric.Elements(n, width) }, limit)
	if err != nil {
		return err
	}
	defer f.Mem.FreeAll()
	scratch, err := f.Mem.New(n, width)
	if err != nil {
		return err
	}
	if l.diagonal, err = numeric.InverseDiagonal(ctx, f.B, f.l, scratch); err != nil || !intercept {
		return err
	}
	ones := unitColumn(n)
	column := scratch.View(0, 0, n, 1)
	if err := f.B.Upload(column, ones); err != nil {
		return err
	}
	numeric.SolveCholesky(f.B, f.l, column)
	if err := f.B.Download(ones, column); err != nil {
		return err
	}
	return l.addBorder(ones, intercept)
}

func unitColumn(n int) backend.Host[float64] {
	ones := backend.NewHost[float64](n, 1)
	for i := range ones.Data {
		ones.Data[i] = 1
	}
	return ones
}

// addBorder computes the diagonal of B if there is an intercept. On entry l.diagonal and solved are the diagonal of
// A⁻¹ and A⁻¹1 for A without the border.
func (l *LeaveOneOut) addBorder(solved backend.Host[float64], intercept bool) error {
	if !intercept {
		return nil
	}
	l.ones = solved.Data
	for _, v := range l.ones {
		l.sum += v
	}
	if !(l.sum > 0) {
		return message.Errorf("1ᵀ(K + λW⁻¹)⁻¹1 is not positive: {raise $lambda}")
	}
	for i, v := range l.ones {
		l.diagonal[i] -= v * v / l.sum
	}
	return nil
}

// Errors returns the n×t leave-one-out errors c_ij of output j at sample i. alpha is the solution of the problem.
func (l *LeaveOneOut) Errors(alpha backend.Host[float64]) (backend.Host[float64], error) {
	if l == nil || l.u == nil {
		return alpha, errNotMade
	}
	if alpha.Rows != len(l.diagonal) {
		return alpha, fmt.Errorf("solvers: leave-one-out: alpha has %d rows, but the problem has %d samples of weight > 0", alpha.Rows, len(l.diagonal))
	}
	c := backend.NewHost[float64](alpha.Rows, alpha.Cols)
	for i, b := range l.diagonal {
		for j, a := range alpha.Row(i) {
			if a != 0 { // α_i = 0 means that the fit without sample i is the same, even if B_ii = 0
				a /= b
			}
			if a-a != 0 {
				return alpha, message.Errorf("solvers: leave-one-out: the fit without sample %d has no solution: {raise $lambda}", i+1)
			}
			c.Row(i)[j] = a
		}
	}
	return c, nil
}

// Influence calls visit for each block of at most 256 rows of points. b has a column for each row x of the block: the
// first n elements of B [k(X, x); 1] (see LeaveOneOut). visit may overwrite b. Influence takes 2n² operations for each
// point, or O(n) with a state-space model. limit has the meaning of NewLeaveOneOut.
func (l *LeaveOneOut) Influence(ctx context.Context, dev backend.Device, points backend.Points, limit int64, visit func(first int, b backend.Host[float64]) error) error {
	if l == nil || l.u == nil {
		return errNotMade
	}
	z, err := l.u.s.otherPoints(points)
	if err != nil {
		return err
	}
	rows, line := min(z.Rows, evidenceBlock), l.u.posterior
	if line != nil {
		rows = min(rows, max(1, pointValues/l.u.s.n))
	}
	f, err := l.u.placeOn(ctx, dev, "leave-one-out", func(n, d, _ int) int64 { return numeric.Elements(n+d, rows) }, limit)
	if err != nil {
		return fmt.Errorf("solvers: leave-one-out: %w", err)
	}
	defer f.Mem.FreeAll()
	err = f.cross(z, rows, func(first int, k backend.Matrix[float64]) error {
		if line == nil {
			numeric.SolveCholesky(f.B, f.l, k)
		}
		n, cols := k.Dims()
		b := backend.NewHost[float64](n, cols)
		if err := f.B.Download(b, k); err != nil {
			return err
		}
		if line != nil {
			line.Line.Solve(b)
		}
		l.border(b)
		return visit(first, b)
	})
	if err != nil {
		return fmt.Errorf("solvers: leave-one-out: %w", err)
	}
	return nil
}

// border overwrites each column A⁻¹k of b with the solution of the bordered system.
func (l *LeaveOneOut) border(b backend.Host[float64]) {
	if l.ones == nil {
		return
	}
	multiplier := make([]float64, b.Cols) // (1ᵀA⁻¹k − 1)/1ᵀA⁻¹1
	for i := range b.Rows {
		for j, v := range b.Row(i) {
			multiplier[j] += v
		}
	}
	for j := range multiplier {
		multiplier[j] = (multiplier[j] - 1) / l.sum
	}
	for i, u := range l.ones {
		row := b.Row(i)
		for j, s := range multiplier {
			row[j] -= u * s
		}
	}
}

// pointValues limits the number of kernel values that Influence computes at once with a state-space model.
const pointValues = 1 << 22

// placeOn places X and the factor, if there is one, on dev, and reserves memory for extraElements(n, d, t).
func (u *Uncertainty) placeOn(ctx context.Context, dev backend.Device, operation string, extraElements func(n, d, t int) int64, limit int64) (*covariance, error) {
	squares := 0
	if numeric.Wrapper(dev) == nil && u.posterior == nil {
		squares = 1
	}
	if err := reserveCovariance(ctx, dev, limit, operation, u.s, squares, extraElements); err != nil {
		return nil, err
	}
	f := &covariance{call: call{run.New(ctx, dev, nil), u.s}}
	var err error
	if f.x, err = f.placeX(); err == nil && u.posterior == nil {
		f.l, err = f.Mem.Place(u.factor)
	}
	if err != nil {
		f.Mem.FreeAll()
		return nil, err
	}
	return f, nil
}

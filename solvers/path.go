package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/band"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Path solves one Problem for many λ and scores each solution. It uses one decomposition for all λ,
// or one factor for each λ if NewPath estimates that the factors take less time.
//
//	pathband.go      K = QBQᵀ, B block tridiagonal (package band): every kernel
//	pathprimal.go    XᵀWX = QBQᵀ: kernels.Linear with fewer features than rows
//	pathcholesky.go  K + λW⁻¹ = LLᵀ for each λ
//	kalman.go        K + λW⁻¹ = LLᵀ for each λ in O(n): the kernels of Kalman
//
// With C = K + λW⁻¹ and G = C⁻¹, or with an intercept G = C⁻¹ − C⁻¹1 1ᵀC⁻¹ / 1ᵀC⁻¹1, the coefficients are α = Gy, and
//
//	e_i = α_i / G_ii            the error at sample i of a fit without it
//	GCV = n Σ α_i²/w_i / τ²     τ = Σ G_ii/w_i = tr(I − H)/λ
//
// where H maps y to the fitted values. GCV = n‖(I−H)y‖²/tr(I−H)² is the generalized cross-validation of Craven and
// Wahba (1979) and Golub, Heath and Wahba (1979).
type Path struct {
	// Method is the method in use, and Reason is the reason for its choice.
	Method Method
	Reason string

	mem      *run.Arena
	route    route
	progress *run.Progress
	planned  int64
}

// Band reduces K to a block tridiagonal matrix once, with which NewPath solves for many values of λ.
const Band Method = "band"

// PathParams are options of NewPath; the zero value suits most problems.
type PathParams struct {
	// Method is one of the following; Auto is the method with the lowest estimated cost.
	//
	//	Band    O(n³) once, O(n²) for each λ
	//	Primal  O(nd²) once, O(nd) for each λ; kernels.Linear only
	//	Dual    O(n³) for each λ
	//	Kalman  O(n) for each λ; only for one feature and the kernels of Kalman
	Method Method
	// Lambdas is the number of λ for which the caller will call At; 0 means 30. It influences the choice of the method.
	Lambdas int
	// LeaveOneOut requests the leave-one-out errors, which take more time than GCV.
	LeaveOneOut bool
	Memory      int64          // largest number of bytes to use on the device; 0 means all its free memory
	Progress    func(Progress) // nil, or reports the progress; called by one goroutine at a time
}

func (p PathParams) lambdas() int {
	if p.Lambdas > 0 {
		return p.Lambdas
	}
	return 30
}

// PathPoint is the solution for one λ. Row i of a matrix belongs to row i of Problem.X, and is 0 for weight 0.
type PathPoint struct {
	Lambda float64
	// Err is not nil if the solution for this λ has no correct digit. All other fields except Lambda are then empty.
	Err error
	// GCV is the generalized cross-validation score of each output. LOO is the weighted mean of the
	// squared leave-one-out errors of each output; it is nil unless PathParams.LeaveOneOut is set.
	GCV, LOO []float64
	// Errors are the leave-one-out errors y_i − f⁽⁻ⁱ⁾(x_i), n×t.
	Errors backend.Host[float64]
	// Evidence is the log marginal likelihood of type Evidence, with FitScale, or NaN with an intercept or λ = 0.
	Evidence float64
	// DegreesOfFreedom is tr H, the effective degrees of freedom; the intercept counts as one.
	DegreesOfFreedom float64
	Solution
}

// errNothingLeft is the error of a PathPoint whose fit has as many degrees of freedom as there are samples.
var errNothingLeft = message.Errorf("solvers: path: the fit has as many degrees of freedom as there are samples, so that it fits any targets exactly and has no score: {raise $lambda|add samples}")

// profile sets point.Evidence. With K̃ = W^½KW^½, squares holds ỹᵀ(K̃ + λI)⁻¹ỹ for each output, and logDet the
// logarithm of det (K̃ + λI).
func (s *samples) profile(point *PathPoint, squares []float64, logDet float64) {
	point.Evidence = math.NaN()
	if s.Intercept || point.Lambda == 0 {
		return
	}
	n := 0.0
	for i := range s.n {
		n += s.weightOf(i)
	}
	logDet += (n - float64(s.n)) * elementary.Log(point.Lambda)
	point.Evidence = 0
	for _, q := range squares {
		point.Evidence -= (n*(1+elementary.Log(2*math.Pi*q/n)) + logDet) / 2
	}
}

// Score is the mean over the outputs of LOO, or of GCV if LOO is nil. It is NaN if Err is set.
func (p PathPoint) Score() float64 {
	scores := p.LOO
	if scores == nil {
		scores = p.GCV
	}
	sum := 0.0
	for _, v := range scores {
		sum += v
	}
	return sum / float64(len(scores)) // if Err is set, scores is empty, and 0/0 is NaN
}

// A route is the implementation of a path by one method.
type route interface {
	begin() error
	group(ctx context.Context, lambdas []float64) ([]PathPoint, error)
}

// NewPath decomposes the matrix of p on dev and ignores p.Lambda. Errors and cancellation are those of Solve.
func NewPath(ctx context.Context, dev backend.Device, p Problem, par PathParams) (*Path, error) {
	if dev == nil {
		return nil, errors.New("solvers: no device was given")
	}
	if par.Memory < 0 || par.Lambdas < 0 {
		return nil, fmt.Errorf("solvers: path: memory and the number of lambdas must be ≥ 0, got %d and %d", par.Memory, par.Lambdas)
	}
	p.Lambda = 0
	if err := p.checkShapes(); err != nil {
		return nil, err
	}
	plan, err := planPath(dev, p, par)
	if err != nil {
		return nil, err
	}
	if err := plan.fits(p.points().Evaluating(ctx, dev), dev, par.Memory); err != nil {
		return nil, err
	}
	if err := p.checkValues(); err != nil {
		return nil, err
	}
	path := &Path{Method: plan.method, Reason: plan.reason, planned: plan.bytes, progress: run.NewProgress(notifier(par.Progress), map[string]float64{pathStage: 0.999}, plan.flops)}
	path.progress.Enter(pathStage)
	base := pathBase{call{run.New(ctx, dev, path.progress), newSamples(p)}, par.LeaveOneOut}
	path.mem = base.Mem
	switch plan.method {
	case Primal:
		path.route = &pathPrimal{pathBase: base}
	case Dual:
		path.route = &pathCholesky{pathBase: base}
	case Kalman:
		m, _ := p.markov()
		path.route = &pathKalman{pathBase: base, model: m}
	default:
		path.route = &pathBand{pathBase: base}
	}
	if err := path.route.begin(); err != nil {
		path.Close()
		return nil, fmt.Errorf("solvers: path: %w", err)
	}
	return path, nil
}

// pathStage is the only stage of a path's progress. Its fraction remains below 1, because At may be called again.
const pathStage = "path"

// At returns one point for each of lambdas, all ≥ 0, in the given order. If there is no solution for a λ, At sets
// the field Err of its point instead of returning an error.
func (p *Path) At(ctx context.Context, lambdas []float64) ([]PathPoint, error) {
	if p == nil || p.route == nil {
		return nil, fmt.Errorf("solvers: path: the path %w", ErrClosed)
	}
	for i, l := range lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return nil, fmt.Errorf("solvers: path: lambda %d must be a finite number ≥ 0, got %v", i+1, l)
		}
	}
	points := make([]PathPoint, 0, len(lambdas))
	for i := 0; i < len(lambdas); i += band.GroupSize {
		g, err := p.route.group(ctx, lambdas[i:min(i+band.GroupSize, len(lambdas))])
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("solvers: path: %w", err)
		}
		points = append(points, g...)
	}
	return points, nil
}

// PlannedBytes is the planned peak memory of matrices on the device, in bytes.
func (p *Path) PlannedBytes() int64 {
	if p == nil {
		return 0
	}
	return p.planned
}

// Bytes is the measured peak memory of the path on the device.
func (p *Path) Bytes() int64 {
	if p == nil || p.mem == nil {
		return 0
	}
	return p.mem.PeakBytes()
}

// Close frees the path's memory on the device. After Close, At returns ErrClosed.
func (p *Path) Close() {
	if p == nil || p.mem == nil {
		return
	}
	p.mem.FreeAll()
	p.route = nil
}

// SolvePath calls NewPath, At and Close in turn.
func SolvePath(ctx context.Context, dev backend.Device, p Problem, lambdas []float64, par PathParams) ([]PathPoint, error) {
	par.Lambdas = len(lambdas)
	path, err := NewPath(ctx, dev, p, par)
	if err != nil {
		return nil, err
	}
	defer path.Close()
	points, err := path.At(ctx, lambdas)
	if err == nil {
		path.progress.Finish()
	}
	return points, err
}

// Lambdas returns count numbers from low to high, both > 0, equally spaced on a logarithmic scale. The numbers
// between low and high are rounded to 12 digits.
func Lambdas(low, high float64, count int) []float64 {
	list := make([]float64, count)
	for i := range list {
		f := 0.0
		if count > 1 {
			f = float64(i) / float64(count-1)
		}
		v := elementary.Exp(elementary.Log(low)*(1-f) + elementary.Log(high)*f)
		list[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64) // the error is always nil for a formatted number
	}
	if count > 0 {
		list[0] = low
	}
	if count > 1 {
		list[count-1] = high
	}
	return list
}

type pathPlan struct {
	method Method
	reason string
	bytes  int64   // peak memory of matrices on the device
	flops  float64 // number of operations for PathParams.Lambdas values of λ

	rows    int
	bytesOf func(n int) int64
}

// fits returns a *BudgetError if the planned memory exceeds the free memory of the device or a limit > 0.
func (p pathPlan) fits(ctx context.Context, dev backend.Device, limit int64) error {
	return Reserve(ctx, dev, limit, "path, "+p.method, p.rows, p.bytesOf)
}

// planPath returns the plan of NewPath without doing any work.
func planPath(dev backend.Device, p Problem, par PathParams) (pathPlan, error) {
	x := p.points()
	n, d, t := x.Rows, p.width(), p.Y.Cols
	if p.Weights != nil {
		n = countPositive(p.Weights)
	}
	linear := p.linear()
	m, reason, err := choosePath(dev, p, n, par)
	if err != nil {
		return pathPlan{}, err
	}
	workers := pathWorkers(dev)
	wrapped := numeric.Wrapper(dev) != nil && n == x.Rows && !(p.Intercept && linear)
	columns := t
	if p.Intercept {
		columns++
	}
	plan := pathPlan{method: m, reason: reason, rows: n, flops: pathFlops(m, n, d, t, par.lambdas(), par.LeaveOneOut, linear)}
	if model, ok := p.markov(); ok && m == Kalman {
		z := newSizes(dev, p, Params{})
		plan.flops = kalmanFlops(model, n) * float64(2+2*z.columns) * float64(par.lambdas())
		plan.bytesOf = func(n int) int64 {
			return numeric.Bytes(z.kalmanPathElements(model, n, min(runtime.GOMAXPROCS(0), par.lambdas())))
		}
		plan.bytes = plan.bytesOf(n)
		return plan, nil
	}
	plan.bytesOf = func(n int) int64 {
		x := numeric.Elements(n, d)
		if wrapped || p.Sparse != nil { // sparse samples are counted in bytes below
			x = 0
		}
		var e int64
		switch m {
		case Primal:
			r := blockRows(n, d)
			e = numeric.Total(numeric.Elements(d, d), band.Params{Columns: t, Inverses: par.LeaveOneOut, Samples: r, Workers: workers}.Elements(d))
			e = numeric.Total(e, numeric.Total(numeric.Elements(r, t), numeric.Elements(r+2*d, band.GroupSize*t)))
			if numeric.Wrapper(dev) == nil {
				e = numeric.Total(e, numeric.Elements(r, d))
			}
			if par.LeaveOneOut {
				e = numeric.Total(e, numeric.Elements(d, r))
			}
		case Dual:
			e = numeric.Total(numeric.Total(x, numeric.Elements(n, n)), numeric.Elements(n, columns+t)) // L⁻¹ needs no memory of its own: it overwrites the lower triangle
			e = numeric.Total(e, numeric.Elements(n, min(n, inverseBlock)))
			if linear {
				e = numeric.Total(e, numeric.Elements(d, t))
			}
		default:
			e = numeric.Total(numeric.Total(x, numeric.Elements(n, n)), band.Params{Columns: columns, Inverses: par.LeaveOneOut, Samples: n, Workers: workers}.Elements(n))
			e = numeric.Total(e, numeric.Elements(2*n, band.GroupSize*t))
			if linear {
				e = numeric.Total(e, numeric.Elements(d, band.GroupSize*t))
			}
		}
		if p.Sparse != nil {
			return numeric.Total(numeric.Bytes(e), p.placedSparse(dev, n))
		}
		return numeric.Bytes(e)
	}
	plan.bytes = plan.bytesOf(n)
	return plan, nil
}

// pathFlops is roughly the number of operations of a path, for the reports of progress.
func pathFlops(m Method, n, d, t, lambdas int, loo, linear bool) float64 {
	order, l := float64(n), float64(lambdas)
	if m == Primal {
		order = float64(d)
	}
	cube := order * order * order
	if m == Dual {
		perLambda := flop.Gram(n, n, d, true) + cube*2/3 + flop.GramMul(n, n, d, t)
		return l * perLambda
	}
	width := float64(band.Width(loo))
	f := 4./3*cube + l*(14*width*width*order+8*order*width*float64(t)+4*order*order*float64(t))
	if m == Primal {
		f += flop.Syrk(d, n) + l*4*float64(n)*order*float64(t)
	} else {
		f += flop.Gram(n, n, d, true) + flop.GramMul(n, n, d, lambdas*t)
	}
	if loo {
		f += 4./3*cube + 4*l*width*order*float64(n)
	}
	return f
}

// choosePath returns the method for p and the reason. It compares numbers of operations, divided by their rate
// relative to large products: about 0.6 for products with a dimension of a few dozen.
func choosePath(dev backend.Device, p Problem, n int, par PathParams) (Method, string, error) {
	linear := p.linear()
	model, ordered := p.markov()
	d, t, l := p.width(), p.Y.Cols, par.lambdas()
	switch m := par.Method; {
	case m == Primal && p.Sparse != nil:
		return "", "", errors.New("solvers: path: primal takes no sparse samples: use the method band")
	case m == Primal && !linear:
		return "", "", fmt.Errorf("solvers: path: primal needs the kernel linear(), got %v: use the method band", p.Kernel)
	case m == Kalman && !ordered:
		return "", "", fmt.Errorf("solvers: path: kalman needs one feature and a kernel such as exponential, matern32 or matern52, or a sum of them, got %s and %v: use the method band", features(p.points().Cols), p.Kernel)
	case m == Band || m == Primal || m == Dual || m == Kalman:
		return m, "requested", nil
	case m != "":
		return "", "", fmt.Errorf("solvers: path: no method is called %q; the methods are %q, %q, %q and %q", m, Band, Primal, Dual, Kalman)
	case linear && d < n:
		return Primal, fmt.Sprintf("%d features are fewer than %s", d, count.Of(n, "sample")), nil
	}
	band := pathFlops(Band, n, d, t, l, par.LeaveOneOut, linear) / 0.6
	cholesky := pathFlops(Dual, n, d, t, l, par.LeaveOneOut, linear) / ratePotrf
	if ordered {
		if z := newSizes(dev, p, Params{}); z.kalmanPathCost(model, l) < min(band, cholesky) {
			return Kalman, fmt.Sprintf("O(n) time and memory for each of %s of λ, for %v of one feature", count.Of(l, "value"), p.Kernel), nil
		}
	}
	if cholesky < band {
		return Dual, fmt.Sprintf("%s of λ: a Cholesky factor for each costs %.3g operations, a decomposition %.3g", count.Of(l, "value"), cholesky, band), nil
	}
	return Band, fmt.Sprintf("%s of λ: a decomposition costs %.3g operations, a Cholesky factor for each %.3g", count.Of(l, "value"), band, cholesky), nil
}

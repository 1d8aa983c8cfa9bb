package learners

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const leastSquaresName = "least-squares"

func init() {
	register(Description{
		Name:    leastSquaresName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimise Σ w_i (y_i − wᵀx_i − b)²",
		Source:  "Björck (1996), Numerical methods for least squares problems",
		Outputs: true, classify: true,
		Parameters: []Parameter{
			truth("intercept", "true", "fit an intercept"),
		},
		fitter: func(v Values) Fitter {
			return fitterOf(LeastSquares{NoIntercept: !v.Bool("intercept")}.Fit)
		},
		restore: restoreLinear,
	})
}

// LeastSquares is linear regression: f(x) = wᵀx + b with the w and b that
// minimise Σ_i w_i (y_i − wᵀx_i − b)², the maximum likelihood under noise
// N(0, σ²/w_i). The columns of x (centred, with an intercept) must be linearly
// independent; otherwise Fit returns a *RankError and no numbers.
//
// The normal equations are formed and factored on the device, with a step of
// refinement: O(nd² + d³) operations, d² numbers. Where x is so nearly
// dependent that they do not tell (from a condition of about 10⁷ on), a QR
// factorisation of x, formed block by block on the host, decides and solves.
// With fewer samples than features use ridge.
type LeastSquares struct {
	NoIntercept bool // b = 0
}

// RankError says that the columns of x are not linearly independent.
type RankError struct {
	Rank, Columns int
	Dependent     []int // Columns − Rank columns, from 0, without which the others are independent
	rows          int
	centred       bool
}

func (e *RankError) Error() string {
	if n := e.rows; e.Rank == n || e.centred && e.Rank == n-1 {
		takes := "rows take"
		if n == 1 {
			takes = "row takes"
		}
		return fmt.Sprintf("x has rank %d of %s, because only %d %s part: add rows, leave columns out, or use ridge", e.Rank, count.Of(e.Columns, "column"), n, takes)
	}
	const most = 8
	var names []string
	for _, j := range e.Dependent[:min(most, len(e.Dependent))] {
		names = append(names, fmt.Sprint(j+1))
	}
	if len(e.Dependent) > most {
		names = append(names, "…")
	}
	columns, constant := "column %s is %sa combination", ""
	if len(e.Dependent) > 1 {
		columns = "columns %s are %scombinations"
	}
	if e.centred {
		constant = "constant or "
	}
	return fmt.Sprintf("x has rank %d of %d columns: "+columns+" of the others: leave out what depends, or use ridge",
		e.Rank, e.Columns, strings.Join(names, ", "), constant)
}

// Fit fits the n×d samples x to the n×t targets y, each output on its own.
func (l LeastSquares) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LinearModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	if err != nil {
		return nil, fmt.Errorf("learners: least-squares: %w", err)
	}
	return m, nil
}

func (l LeastSquares) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LinearModel, error) {
	hx, hy, err := checkedBoth(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	m := &LinearModel{learner: leastSquaresName, fitted: !l.NoIntercept, penalty: make([]float64, hy.Cols)}
	res, err := solvers.Solve(ctx, dev, solvers.Problem{
		Kernel:    kernels.Linear{},
		X:         hx,
		Y:         hy,
		Weights:   o.Weights,
		Intercept: !l.NoIntercept,
	}, solvers.Params{Method: solvers.Primal, Memory: o.Memory, Progress: o.Progress})
	if err == nil {
		m.coef, m.intercept = res.Coef, res.Intercept
		m.facts = []Fact{{"method", "Cholesky of the normal equations"}, {"relative residual", res.Residual}}
		return m, nil
	}
	if !errors.Is(err, backend.ErrNotPosDef) {
		return nil, err
	}
	c, err := newCentred(ctx, dev, x, y, o, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	coef, condition, err := c.qr(ctx, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	newMeter(o).tell("solve", 1)
	m.coef, m.intercept = coef, c.intercepts(coef)
	m.facts = []Fact{{"method", "QR"}, {"condition", condition}}
	return m, nil
}

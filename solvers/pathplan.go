package solvers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/band"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
)

// PathPlan says what a Path will do and take.
type PathPlan struct {
	Method PathMethod
	Reason string
	Bytes  int64   // peak that matrices will take on the device
	Flops  float64 // for as many λ as PathParams says

	rows    int
	bytesOf func(n int) int64
}

// fits returns a *BudgetError when the plan takes more than the limit (0: no
// limit of its own) or than the device has free.
func (p PathPlan) fits(ctx context.Context, dev backend.Device, limit int64) error {
	return Reserve(ctx, dev, limit, Method("path, "+string(p.Method)), p.rows, p.bytesOf)
}

// PlanPath returns the plan of NewPath without doing any work.
func PlanPath(dev backend.Device, p Problem, par PathParams) (PathPlan, error) {
	if dev == nil {
		return PathPlan{}, errors.New("solvers: no device was given")
	}
	p.Lambda = 0
	if err := p.checkShapes(); err != nil {
		return PathPlan{}, err
	}
	return planPath(dev, p, par)
}

func planPath(dev backend.Device, p Problem, par PathParams) (PathPlan, error) {
	n, d, t := p.X.Rows, p.X.Cols, p.Y.Cols
	if p.Weights != nil {
		n = countPositive(p.Weights)
	}
	linear := isLinear(p.Kernel)
	m, reason, err := choosePath(p, n, par)
	if err != nil {
		return PathPlan{}, err
	}
	workers := pathWorkers(dev)
	wrapped := numeric.Wrapper(dev) != nil && n == p.X.Rows && !(p.Intercept && linear)
	columns := t
	if p.Intercept {
		columns++
	}
	plan := PathPlan{Method: m, Reason: reason, rows: n, Flops: pathFlops(m, n, d, t, par.lambdas(), par.LeaveOneOut, linear)}
	plan.bytesOf = func(n int) int64 {
		x := numeric.Elements(n, d)
		if wrapped {
			x = 0
		}
		var e int64
		switch m {
		case PathPrimal:
			r := blockRows(n, d)
			e = numeric.Total(numeric.Elements(d, d), band.Params{Columns: t, Inverses: par.LeaveOneOut, Samples: r, Workers: workers}.Elements(d))
			e = numeric.Total(e, numeric.Total(numeric.Elements(r, d+t), numeric.Elements(r+2*d, band.GroupSize*t)))
			if par.LeaveOneOut {
				e = numeric.Total(e, numeric.Elements(d, r))
			}
		case PathCholesky:
			e = numeric.Total(numeric.Total(x, numeric.Elements(n, n)), numeric.Elements(n, columns+t)) // with L⁻¹ below
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
		return numeric.Bytes(e)
	}
	plan.Bytes = plan.bytesOf(n)
	return plan, nil
}

// pathFlops is roughly what a path costs; progress is measured against it.
func pathFlops(m PathMethod, n, d, t, lambdas int, loo, linear bool) float64 {
	order, l := float64(n), float64(lambdas)
	if m == PathPrimal {
		order = float64(d)
	}
	cube := order * order * order
	if m == PathCholesky {
		each := backend.GramFlops(n, n, d, true) + cube*2/3 + backend.GramMulFlops(n, n, d, t)
		return l * each
	}
	width := float64(band.Width(loo))
	f := 4./3*cube + l*(14*width*width*order+8*order*width*float64(t)+4*order*order*float64(t))
	if m == PathPrimal {
		f += backend.SyrkFlops(d, n) + l*4*float64(n)*order*float64(t)
	} else {
		f += backend.GramFlops(n, n, d, true) + backend.GramMulFlops(n, n, d, lambdas*t)
	}
	if loo {
		f += 4./3*cube + 4*l*width*order*float64(n)
	}
	return f
}

// choosePath returns the method for p and why. The rates are relative to a
// large product (see plan.go): products with a side of a few dozen run at
// about 0.6 of it.
func choosePath(p Problem, n int, par PathParams) (PathMethod, string, error) {
	linear := isLinear(p.Kernel)
	d, t, l := p.X.Cols, p.Y.Cols, par.lambdas()
	switch m := par.Method; {
	case m == PathPrimal && !linear:
		return "", "", fmt.Errorf("solvers: path: primal needs the kernel linear(), got %v: use the method band", p.Kernel)
	case m == PathBand || m == PathPrimal || m == PathCholesky:
		return m, "asked for", nil
	case m != PathAuto:
		return "", "", fmt.Errorf("solvers: path: no method is called %q: there are %q, %q and %q", m, PathBand, PathPrimal, PathCholesky)
	case linear && d < n:
		return PathPrimal, fmt.Sprintf("%d features are fewer than %s", d, count.Of(n, "sample")), nil
	}
	band := pathFlops(PathBand, n, d, t, l, par.LeaveOneOut, linear) / 0.6
	cholesky := pathFlops(PathCholesky, n, d, t, l, par.LeaveOneOut, linear) / ratePotrf
	if cholesky < band {
		return PathCholesky, fmt.Sprintf("%s of λ: a Cholesky factor for each costs %.3g operations, a decomposition %.3g", count.Of(l, "value"), cholesky, band), nil
	}
	return PathBand, fmt.Sprintf("%s of λ: a decomposition costs %.3g operations, a Cholesky factor for each %.3g", count.Of(l, "value"), band, cholesky), nil
}

package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Growth is a law of growth that was fitted to what was measured of an implementation:
//
//	quantity ≈ Constant · Π Over[i]^Exponents[i]
type Growth struct {
	Implementation string    `json:"entrant"`
	Case           Case      `json:"case"`     // what the cells share
	Quantity       string    `json:"quantity"` // "seconds", a stage's name and " seconds", or a metric
	Over           []string  `json:"over"`     // parameters of the case
	Constant       float64   `json:"constant"`
	Exponents      []float64 `json:"exponents"`
	Cells          int       `json:"cells"`  // that it was fitted to
	Deviation      float64   `json:"spread"` // the root mean square of ln(measured / fitted)
}

// String is the law as a formula: 1.2e-09·n^2.91·m^1.02.
func (g *Growth) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%.2g", g.Constant)
	for i, name := range g.Over {
		fmt.Fprintf(&b, "·%s^%.2f", name, g.Exponents[i])
	}
	return b.String()
}

// fitGrowth fits the law of an implementation's quantity over parameters of the case to
// the cells that keep lets in (nil: all in which it is), by least squares of the
// logarithm. It returns nil when there are not more cells than unknowns, when
// the cells do not tell the exponents apart, or when a quantity is not positive.
func (r *Result) fitGrowth(implementation string, shared Case, q quantity, over []string, keep func(*Cell) bool) *Growth {
	var rows, logs []float64
	for i := range r.Cells {
		c := &r.Cells[i]
		run := c.Run(implementation)
		if run == nil || !c.Case.Has(shared) || keep != nil && !keep(c) {
			continue
		}
		v, ok := q.Of(run)
		if !ok {
			continue
		}
		if !(v.Median > 0) {
			return nil
		}
		rows = append(rows, 1)
		for _, name := range over {
			x, err := strconv.ParseFloat(c.Case.Get(name), 64)
			if err != nil || x <= 0 {
				return nil
			}
			rows = append(rows, math.Log(x))
		}
		logs = append(logs, math.Log(v.Median))
	}
	unknowns := len(over) + 1
	if len(logs) <= unknowns {
		return nil
	}
	a, b := mat.NewDense(len(logs), unknowns, rows), mat.NewVecDense(len(logs), logs)
	var qr mat.QR
	qr.Factorize(a)
	var x mat.VecDense
	// A condition above this has no digits of an exponent left.
	if qr.Cond() > 1e6 || qr.SolveVecTo(&x, false, b) != nil {
		return nil
	}
	var left mat.VecDense
	left.MulVec(a, &x)
	left.SubVec(b, &left)
	return &Growth{
		Implementation: implementation, Case: shared, Quantity: q.Name, Over: slices.Clone(over),
		Constant: math.Exp(x.AtVec(0)), Exponents: slices.Clone(x.RawVector().Data[1:]),
		Cells: len(logs), Deviation: mat.Norm(&left, 2) / math.Sqrt(float64(len(logs))),
	}
}

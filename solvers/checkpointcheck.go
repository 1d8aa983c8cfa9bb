package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/krylov"
)

// A checkpoint may have been changed on its way, with a checksum that is right.
// Whatever it says, a Solve must end with an error or with a solution whose
// residual is what it reports: here every field is held to the range that its use
// relies on, and residuals are not in the file.

// maxIters is a number of iterations that no solve reaches; more can be added to
// it without overflow.
const maxIters = math.MaxInt >> 10

// stateField is a field of a state and whether it is in its range.
type stateField struct {
	name string
	ok   bool
}

// stateArray is an array of a state and the shape that it must have.
type stateArray struct {
	name       string
	h          backend.Host[float64]
	rows, cols int
}

func checkState(fields []stateField, arrays []stateArray) error {
	for _, f := range fields {
		if !f.ok {
			return fmt.Errorf("its field %s is out of range", f.name)
		}
	}
	for _, a := range arrays {
		if a.h.Rows != a.rows || a.h.Cols != a.cols {
			return fmt.Errorf("its array %s is %d×%d, not %d×%d", a.name, a.h.Rows, a.h.Cols, a.rows, a.cols)
		}
		if !finite(a.h.Data) {
			return fmt.Errorf("its array %s has a number that is not finite", a.name)
		}
	}
	return nil
}

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v-v != 0 })
}

// in reports whether v is a number from smallest to largest.
func in(v krylov.Number, smallest, largest float64) bool {
	return float64(v) >= smallest && float64(v) <= largest
}

// check holds the state of a refinement to the shapes of its problem.
func (s *state) check(w *work) error {
	n, t := w.s.n, w.s.t
	columns := t
	if w.s.bordered() && s.z.Rows == 0 {
		columns++
	}
	fields := []stateField{
		{"Attempt", s.Attempt >= 0},
		{"Round", s.Round >= 0 && s.Round < refineRounds},
		{"Iters", s.Iters >= 0 && s.Iters <= maxIters},
		{"Fallback", (s.Attempt > 0) == (s.Fallback != "") && len(s.Fallback) < 1000 && strings.IndexFunc(s.Fallback, unicode.IsControl) < 0},
		{"B", len(s.B) == t && finite(s.B)},
		{"Passes", s.Passes == nil},
	}
	arrays := []stateArray{{"alpha", s.alpha, n, t}, {"rhs", s.RHS, n, columns}}
	if s.best.Rows > 0 {
		fields = append(fields, stateField{"BestB", len(s.BestB) == t && finite(s.BestB)})
		arrays = append(arrays, stateArray{"best", s.best, n, t})
	} else { // nothing has been added to 0
		zero := func(list []float64) bool { return !slices.ContainsFunc(list, func(v float64) bool { return v != 0 }) }
		fields = append(fields, stateField{"B", zero(s.B)}, stateField{"alpha", zero(s.alpha.Data)})
	}
	if s.z.Rows > 0 {
		fields = append(fields, stateField{"z", w.s.Intercept})
		arrays = append(arrays, stateArray{"z", s.z, n, 1})
	}
	width := min(krylov.BlockWidth, columns-s.From)
	inf := math.Inf(1)
	fields = append(fields,
		stateField{"From", s.From >= 0 && s.From < columns && s.From%krylov.BlockWidth == 0},
		stateField{"Iter", s.Iter >= 0 && s.Iter <= maxIters},
		stateField{"Since", s.Since >= 0 && s.Since <= maxIters},
		stateField{"Lowest", in(s.Lowest, 0, inf)},
		stateField{"Truth", in(s.Truth, 0, inf)},
		stateField{"Kept", in(s.Kept, 0, math.MaxFloat64)},
		stateField{"Goal", len(s.Goal) == width && finite(s.Goal) && slices.Min(append(s.Goal, 0)) == 0},
		stateField{"p", s.P.Cols >= 1 && s.P.Cols <= width},
	)
	arrays = append(arrays, stateArray{"p", s.P, n, s.P.Cols})
	arrays = append(arrays, stateArray{"x", s.X, n, width}, stateArray{"least", s.Least, n, width}, stateArray{"r", s.R, n, width})
	return checkState(fields, arrays)
}

// checkPasses holds the state of samples in passes to m functions and t outputs.
func (s *state) checkPasses(m, t int) error {
	if s.Passes == nil {
		return checkState([]stateField{{"Passes", false}}, nil)
	}
	p := s.Passes
	fields := []stateField{
		{"Iters", s.Iters >= 0 && s.Iters <= maxIters},
		{"Began", p.Began >= 0 && p.Began <= s.Iters},
		{"Step", p.Step >= 0 && p.Step <= maxIters},
		{"Since", p.Since >= 0 && p.Since <= maxIters},
		{"Least", p.Least == -1 || in(p.Least, 0, math.MaxFloat64)},
		{"Before", len(p.Before) == t && finite(p.Before) && slices.Min(append(p.Before, 0)) == 0},
		{"Fallback", s.Fallback == ""},
	}
	arrays := []stateArray{{"x", s.X, m, t}, {"r", s.R, m, t}, {"p", s.P, m, t}}
	if s.best.Rows > 0 {
		arrays = append(arrays, stateArray{"best", s.best, m, t})
	}
	return checkState(fields, arrays)
}

package band

import "github.com/mercer-go/mercer/internal/numeric"

// maxGroupColumns is the maximum number of columns of a group of panels. A product with a hundred columns takes
// about as long as one with a few dozen.
const maxGroupColumns = 128

// groupColumns returns the largest multiple of width that is ≤ maxGroupColumns, but at least width.
func groupColumns(width int) int { return max(1, maxGroupColumns/width) * width }

// formElements returns the number of elements that a form of order n takes in addition to A.
func formElements(n, width int) int64 {
	return numeric.Total(2*numeric.Elements(width, width), numeric.Elements(groupColumns(width), groupColumns(width)), 3*numeric.Elements(n, groupColumns(width)))
}

// GroupSize is the number of λ in a group. Qᵀ is read only once for all λ of a group.
const GroupSize = 8

// Width returns the width of a block of B. Wider blocks make the reduction faster, and the products for each λ
// more expensive. The widths were measured on two cores of an AMD EPYC of family 25 in November 2026.
func Width(inverses bool) int {
	if inverses {
		return 32
	}
	return 64
}

// Elements returns the number of elements that a Solver takes in addition to a matrix of order m.
func (p Params) Elements(m int) int64 {
	width := Width(p.Inverses)
	e := numeric.Total(formElements(m, width), numeric.Elements(5*p.Workers, width*width), numeric.Elements(2*p.Workers, m*p.Columns),
		numeric.Elements(2*GroupSize, m*width), numeric.Elements(2*groupColumns(width)+2*m, GroupSize*p.Columns))
	if p.Inverses {
		e = numeric.Total(e, numeric.Elements(2*GroupSize*width, p.Samples))
	}
	return e
}

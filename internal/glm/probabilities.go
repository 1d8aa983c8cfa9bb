package glm

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/elementary"
)

// Probabilities returns the probabilities of the classes, n×C, from f. For two classes f is n×1 and holds the log
// odds of the second class. For more classes f is n×C and holds the logarithms of the probabilities up to a
// constant for each row.
func Probabilities(f *mat.Dense) *mat.Dense {
	n, cols := f.Dims()
	p := mat.NewDense(n, max(cols, 2), nil)
	for i := range n {
		row, from := p.RawRowView(i), f.RawRowView(i)
		if cols == 1 {
			e := elementary.Exp(-math.Abs(from[0]))
			row[0], row[1] = e/(1+e), 1/(1+e)
			if from[0] < 0 {
				row[0], row[1] = row[1], row[0]
			}
			continue
		}
		maxScore, sum := slices.Max(from), 0.0
		for c, v := range from {
			row[c] = elementary.Exp(v - maxScore)
			sum += row[c]
		}
		for c := range row {
			row[c] /= sum
		}
	}
	return p
}

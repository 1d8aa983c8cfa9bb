package dataset

import (
	"math"

	"github.com/mercer-go/mercer/internal/spread"
	"gonum.org/v1/gonum/mat"
)

// OutOfRangeFactor is the distance from the training range, in widths of the range, beyond which
// Encoder.OutOfRange reports a number.
const OutOfRangeFactor = 10

// OutOfRange describes a column of numbers in which some rows are far outside the training range.
type OutOfRange struct {
	Column    string
	Rows      int
	Example   float64 // the number that is farthest from the training range
	Low, High float64 // the training range
}

// OutOfRange counts, for each input, the rows of x whose number is below Low or above High by more than
// OutOfRangeFactor·(High − Low). x is a result of Features or Stream.Blocks. The argument list is nil or the result of
// an earlier call, to which OutOfRange adds the counts. The result has one entry for each input, also if its count Rows
// is 0.
//
// The difference High − Low counts as at least 1000·ε·max(|Low|, |High|), with ε = 2⁻⁵², so that rounding errors in a
// constant column are not reported. A column that was 0 in every training row is not reported.
func (e *Encoder) OutOfRange(list []OutOfRange, x mat.Matrix) []OutOfRange {
	rows, width := x.Dims()
	if list == nil {
		list = make([]OutOfRange, len(e.Inputs))
	}
	if e.Gram || e.Raw() != "" {
		return list
	}
	offset := 0
	for k, in := range e.Inputs {
		n, o, j := in.Number, &list[k], offset
		offset += in.width()
		o.Column = in.Name
		if n == nil || n.Low == 0 && n.High == 0 || offset > width {
			continue
		}
		o.Low, o.High = n.Low, n.High
		margin := OutOfRangeFactor * max(n.High-n.Low, spread.MaxRoundings*0x1p-52*max(math.Abs(n.Low), math.Abs(n.High)))
		low, high := (n.Low-margin-n.Mean)/n.Scale, (n.High+margin-n.Mean)/n.Scale
		for i := range rows {
			if v := x.At(i, j); v < low || v > high {
				if v = v*n.Scale + n.Mean; o.Rows == 0 || o.distance(v) > o.distance(o.Example) {
					o.Example = v
				}
				o.Rows++
			}
		}
	}
	return list
}

// distance returns the distance of v from the training range; it is ≤ 0 inside the range.
func (o *OutOfRange) distance(v float64) float64 { return max(o.Low-v, v-o.High) }

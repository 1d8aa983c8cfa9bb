package dataset

import (
	"math"

	"github.com/mercer-go/mercer/internal/spread"
	"gonum.org/v1/gonum/mat"
)

// FarOutside is the distance from the training range, in multiples of the range's width, beyond
// which Encoder.Outside reports a number.
const FarOutside = 10

// Outside describes a column of numbers with rows far outside the training range.
type Outside struct {
	Column    string
	Rows      int
	Example   float64 // the number that is farthest from the training range
	Low, High float64 // the training range
}

// Outside counts, for each input, the rows of x whose number is below Low or above High by more
// than FarOutside·(High − Low). x comes from Features or Stream.Blocks. Outside adds the counts to
// list, which is nil or the result of an earlier call. The result has one entry for each input; its
// Rows is 0 if no row is far outside.
//
// If High − Low is less than 1000·ε·max(|Low|, |High|), this bound replaces High − Low, so that in
// a column that was constant in training any other number is reported. A column that was 0 in every
// training row is not reported, because new values are common in such columns of sparse data.
func (e *Encoder) Outside(list []Outside, x mat.Matrix) []Outside {
	rows, width := x.Dims()
	if list == nil {
		list = make([]Outside, len(e.Inputs))
	}
	if e.Gram || e.Raw() != "" {
		return list
	}
	at := 0
	for k, in := range e.Inputs {
		n, o, j := in.Number, &list[k], at
		at += in.width()
		o.Column = in.Name
		if n == nil || n.Low == 0 && n.High == 0 || at > width {
			continue
		}
		o.Low, o.High = n.Low, n.High
		far := FarOutside * max(n.High-n.Low, spread.MaxRoundings*0x1p-52*max(math.Abs(n.Low), math.Abs(n.High)))
		low, high := (n.Low-far-n.Mean)/n.Scale, (n.High+far-n.Mean)/n.Scale
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

// distance returns the distance of v from the training range.
func (o *Outside) distance(v float64) float64 { return max(o.Low-v, v-o.High) }

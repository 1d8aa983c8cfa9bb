package report

import (
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks marks a logarithmic axis at 1, 2, … 9 times the powers of ten, and
// writes as many of them as tell the scale: the powers, where that are fewer than
// three also 2 and 5 times them, and where that are still too few all.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	var list []plot.Tick
	var first []int // 1 … 9, for each
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(low, high) {
		if t.Value < low || t.Value > high {
			continue
		}
		list, first = append(list, plot.Tick{Value: t.Value}), append(first, firstDigit(t.Value))
	}
	for _, wanted := range []func(int) bool{
		func(d int) bool { return d == 1 },
		func(d int) bool { return d == 1 || d == 2 || d == 5 },
		func(int) bool { return true },
	} {
		labels := 0
		for i := range list {
			if wanted(first[i]) {
				list[i].Label = strconv.FormatFloat(list[i].Value, 'g', 3, 64)
				labels++
			}
		}
		if labels >= 3 {
			break
		}
	}
	return list
}

// firstDigit is the first digit of v > 0, rounded to it.
func firstDigit(v float64) int { return int(strconv.FormatFloat(v, 'e', 0, 64)[0] - '0') }

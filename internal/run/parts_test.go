package run

import (
	"math"
	"sync"
	"testing"
)

// TestPartsReportTheMean checks that the progress is the mean of the largest progress of each part.
func TestPartsReportTheMean(t *testing.T) {
	var reported []float64
	report := Parts(4, func(fraction float64) { reported = append(reported, fraction) })
	report(1)(0.5)
	report(1)(0.25) // the part starts again
	report(3)(1)
	for i, want := range []float64{0.125, 0.125, 0.375} {
		if reported[i] != want {
			t.Errorf("report %d: %v, want %v", i+1, reported[i], want)
		}
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for k := range 101 {
				report(i)(float64(k) / 100)
			}
		})
	}
	group.Wait()
	last := 0.0
	for _, v := range reported {
		if v < last || v > 1 {
			t.Fatalf("%v after %v", v, last)
		}
		last = v
	}
	// The tolerance bounds the rounding errors of 400 sums of numbers below 4.
	if math.Abs(last-1) > 400*4*0x1p-53 {
		t.Errorf("the progress ends at %v", last)
	}
}

package run

import (
	"math"
	"testing"
)

// TestProgressIsMonotone checks that fractions never decrease and end with 1, for any number of operations.
func TestProgressIsMonotone(t *testing.T) {
	last, calls := 0.0, 0
	p := NewProgress(func(stage string, fraction float64) {
		if !(fraction >= last && fraction <= 1) {
			t.Errorf("%s: %v after %v", stage, fraction, last)
		}
		last = fraction
		calls++
	}, map[string]float64{"gram": 0.25, "solve": 0.75}, 100)
	p.Enter("gram")
	for range 50 {
		p.Done(1) // the stage has taken twice the planned operations
	}
	if last != 0.25 {
		t.Errorf("gram ends at %v, its share is 0.25", last)
	}
	p.Enter("solve")
	p.Done(15)
	if last != 0.4 { // 0.25 + 15/100
		t.Errorf("%v after 40 of 100 operations", last)
	}
	p.Report("solve", math.NaN())
	p.Report("solve", 0.1)
	if last != 0.4 {
		t.Errorf("%v after a report of 0.1", last)
	}
	p.Finish()
	if last != 1 || calls > 60 {
		t.Errorf("ends with %v after %d calls", last, calls)
	}
}

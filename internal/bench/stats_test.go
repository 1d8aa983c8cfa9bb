package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   Summary
	}{
		{[]float64{3}, Summary{Median: 3, Min: 3, Max: 3}},
		{[]float64{4, 1}, Summary{Median: 2.5, Min: 1, Max: 4}},
		{[]float64{9, 1, 5}, Summary{Median: 5, Min: 1, Max: 9}},
		// With fewer than five values there are no outliers, even if a value is far from the others.
		{[]float64{1, 1, 1, 100}, Summary{Median: 1, Min: 1, Max: 100}},
		// The quartiles are 2 and 4, so that the whiskers extend from −1 to 7.
		{[]float64{5, 4, 3, 2, 1}, Summary{Median: 3, Min: 1, Max: 5}},
		{[]float64{7, 4, 3, 2, 1}, Summary{Median: 3, Min: 1, Max: 7}},
		{[]float64{7.5, 4, 3, 2, -1.5}, Summary{Median: 3, Min: -1.5, Max: 7.5, Outliers: 2}},
	} {
		original := append([]float64(nil), test.values...)
		if d := cmp.Diff(test.want, Summarize(test.values)); d != "" {
			t.Errorf("%v (-want +got):\n%s", test.values, d)
		}
		if d := cmp.Diff(original, test.values); d != "" {
			t.Errorf("the values were moved:\n%s", d)
		}
	}
}

func TestRate(t *testing.T) {
	got := rate(100, Summary{Median: 4, Min: 2, Max: 5, Outliers: 1})
	if d := cmp.Diff(Summary{Median: 25, Min: 20, Max: 50, Outliers: 1}, got); d != "" {
		t.Error(d)
	}
}

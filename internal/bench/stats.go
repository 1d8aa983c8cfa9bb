package bench

import "slices"

// Summary summarizes repeated measurements.
type Summary struct {
	Median   float64 `json:"median"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Outliers int     `json:"outliers,omitempty"` // number of values beyond the whiskers of Tukey (1977)
}

// Summarize summarizes at least one value. The median of an even number of values is the mean of the middle two.
// An outlier lies more than 1.5 interquartile ranges below the first quartile or above the third quartile. Fewer
// than five values have no outliers.
func Summarize(values []float64) Summary {
	v := slices.Sorted(slices.Values(values))
	s := Summary{Median: quantile(v, 0.5), Min: v[0], Max: v[len(v)-1]}
	if len(v) < 5 {
		return s
	}
	low, high := quantile(v, 0.25), quantile(v, 0.75)
	whisker := 1.5 * (high - low)
	for _, x := range v {
		if x < low-whisker || x > high+whisker {
			s.Outliers++
		}
	}
	return s
}

// quantile interpolates between the order statistics of sorted values: definition 7 of Hyndman and Fan (1996).
func quantile(sorted []float64, q float64) float64 {
	position := q * float64(len(sorted)-1)
	i := int(position)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (position-float64(i))*(sorted[i+1]-sorted[i])
}

// rate converts a summary of times to a summary of rates, in units of work per second.
func rate(work float64, seconds Summary) Summary {
	return Summary{
		Median:   work / seconds.Median,
		Min:      work / seconds.Max,
		Max:      work / seconds.Min,
		Outliers: seconds.Outliers,
	}
}

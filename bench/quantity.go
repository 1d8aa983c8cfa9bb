package bench

// Quantity is what a table, a picture or a fit takes from a run.
type Quantity struct {
	Name string // "seconds", "GFLOP/s", "gram seconds", "residual"
	Unit string // as it is shown; "" for a bare number
	Log  bool   // shown on a logarithmic axis
	// Of returns the value; false when the run has none.
	Of func(*Run) (Spread, bool)
}

// Seconds is what a run took.
var Seconds = Quantity{Name: "seconds", Unit: "s", Log: true, Of: func(r *Run) (Spread, bool) {
	if !r.Timed() {
		return Spread{}, false
	}
	return r.Time, true
}}

// Rate is the rate at which a run did its work.
var Rate = Quantity{Name: "GFLOP/s", Unit: "GFLOP/s", Of: func(r *Run) (Spread, bool) {
	if !r.Timed() || r.Work == 0 {
		return Spread{}, false
	}
	return r.Rate, true
}}

// StageSeconds is what a stage of a run took.
func StageSeconds(stage string) Quantity {
	return Quantity{Name: stage + " seconds", Unit: "s", Log: true, Of: func(r *Run) (Spread, bool) {
		if !r.Timed() || r.Stage(stage) == nil {
			return Spread{}, false
		}
		return r.Stage(stage).Time, true
	}}
}

// StageRate is the rate at which a stage of a run did its work.
func StageRate(stage string) Quantity {
	return Quantity{Name: stage + " GFLOP/s", Unit: "GFLOP/s", Of: func(r *Run) (Spread, bool) {
		if !r.Timed() || r.Stage(stage) == nil || r.Stage(stage).Work == 0 {
			return Spread{}, false
		}
		s := r.Stage(stage)
		return rate(s.Work/1e9, s.Time), true
	}}
}

// Metric is one of a run's metrics.
func Metric(name, unit string) Quantity {
	return Quantity{Name: name, Unit: unit, Log: true, Of: func(r *Run) (Spread, bool) {
		if !r.Timed() {
			return Spread{}, false
		}
		v, ok := r.Metrics[name]
		return Spread{Median: v, Min: v, Max: v}, ok
	}}
}

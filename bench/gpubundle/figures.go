package main

import (
	"math"

	"github.com/mercer-go/mercer/bench"
)

// figure is something that there is a target for, on a card of the class of the
// H200. It is not taken where its size was not measured.
type figure struct {
	Name   string   `json:"name"`
	Target string   `json:"target"`
	Unit   string   `json:"unit,omitempty"`
	Value  *float64 `json:"value"` // null: not taken
	Met    bool     `json:"met,omitempty"`
}

const gpu = "mercer cuda/0"

// figures takes them from the steps. What ran on the simulated libraries, at the
// size tiny, tells nothing about a GPU.
func figures(size string, list []*step) []figure {
	find := func(name string) *step {
		for _, s := range list {
			if s.Name == name && s.Outcome == passed {
				return s
			}
		}
		return &step{}
	}
	seconds := func(step, entrant string, c bench.Case) float64 {
		if r := find(step).measured; r != nil {
			for i := range r.Cells {
				if run := r.Cells[i].Run(entrant); r.Cells[i].Case.Has(c) && run.Timed() {
					return run.Time.Median
				}
			}
		}
		return math.NaN()
	}
	operation := func(name, precision, n string) bench.Case {
		return bench.Case{{Name: "operation", Value: name}, {Name: "precision", Value: precision}, {Name: "n", Value: n}}
	}
	ridge := bench.Case{{Name: "fit", Value: "ridge"}, {Name: "precision", Value: "float64"}, {Name: "n", Value: "50000"}}

	var out []figure
	take := func(name, target, unit string, value float64, met bool) {
		f := figure{Name: name, Target: target, Unit: unit}
		if size != "tiny" && !math.IsNaN(value) && !math.IsInf(value, 0) {
			f.Value, f.Met = &value, met
		}
		out = append(out, f)
	}
	v := seconds("devices", gpu, operation("fit", "float64", "50000")) / seconds("devices", gpu, operation("factor", "float64", "50000"))
	take("exact fit beside its Cholesky, float64, n = 50,000", "≤ 1.15", "×", v, v <= 1.15)
	v = seconds("n = 100,000", gpu, operation("fit", "float64", "100000"))
	take("exact fit, float64, n = 100,000", "< 15", "s", v, v < 15)
	v = seconds("fit", gpu+" direct", ridge) / seconds("fit", gpu, ridge)
	take("chosen solver beside float64 direct, n = 50,000", "≥ 3", "×", v, v >= 3)
	v = 262144 * 262144 / seconds("K·v, d = 3", gpu, operation("mul", "float32", "262144"))
	take("Gaussian K·v, d = 3, float32", "≥ 3e12", "pairs/s", v, v >= 3e12)
	v = worstAgainst(find("devices").measured, "torch")
	take("fit beside torch, the worst n ≥ 2,000", "≥ 1", "×", v, v >= 1)
	value := func(step, name string) float64 {
		if v, ok := find(step).checked[name]; ok {
			return v
		}
		return math.NaN()
	}
	v = value("start-up", "seconds")
	take("start-up and a first fit", "< 1", "s", v, v < 1)
	v = value("2000 fits leave nothing", "bytes")
	take("bytes left by 2,000 fits", "0", "B", v, v == 0)
	return out
}

// worstAgainst is the least ratio of a library's time of a fit to the GPU's, for
// n ≥ 2000; NaN where there is none.
func worstAgainst(r *bench.Result, peer string) float64 {
	worst := math.NaN()
	if r == nil {
		return worst
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		own, other := c.Run(gpu), c.Run(peer)
		if c.Case.Get("operation") != "fit" || c.Case.Int("n") < 2000 || !own.Timed() || !other.Timed() {
			continue
		}
		if v := other.Time.Median / own.Time.Median; !(v >= worst) {
			worst = v
		}
	}
	return worst
}

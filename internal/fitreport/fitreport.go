// Package fitreport defines the report of a fit for the command, the C library and saved models.
package fitreport

import (
	"math"

	"github.com/mercer-go/mercer/learners"
)

// Report is the JSON report of a fit. It omits values that a restored model lacks, and numbers that
// are not finite, because JSON cannot represent them.
type Report struct {
	Learner     string         `json:"learner"`
	Outputs     int            `json:"outputs"`
	Classes     []string       `json:"classes,omitempty"`
	Solver      string         `json:"solver,omitempty"`
	Residual    *float64       `json:"residual,omitempty"`
	Reason      string         `json:"reason,omitempty"`     // why this solver was chosen
	Iterations  int            `json:"iterations,omitempty"` // number of iterations of an iterative solver
	Fallback    string         `json:"fallback,omitempty"`   // why the planned method failed
	Notes       []string       `json:"notes,omitempty"`      // notes, for example that the fit resumed from a checkpoint
	MemoryBytes int64          `json:"memory_bytes,omitempty"`
	Facts       map[string]any `json:"facts,omitempty"` // facts about the model; the keys are those of Fact.Key
}

// New returns the report of a model. Warnings among its facts may contain advice about a parameter.
// name(parameter) is the front end's name of this parameter, or "" to omit the advice.
func New(m learners.Model, name func(parameter string) string) Report {
	r := Report{Learner: m.Learner()}
	_, r.Outputs = m.Dims()
	if k, ok := m.(learners.Classifier); ok {
		r.Classes = k.Classes().Names
	}
	if k, ok := m.(learners.Solved); ok && k.Solved() != nil {
		s := k.Solved()
		r.Solver, r.Reason, r.Iterations, r.MemoryBytes = string(s.Method), s.Plan.Reason, s.Iters, s.Bytes
		r.Fallback, r.Notes = s.Fallback, s.Notes
		if isFinite(s.Residual) {
			r.Residual = &s.Residual
		}
	}
	if _, ok := m.(learners.Describer); ok {
		r.Facts = map[string]any{}
		for _, f := range learners.FactsOf(m, name) {
			if v, ok := f.Value.(float64); !ok || isFinite(v) {
				r.Facts[f.Key()] = f.Value
			}
		}
	}
	return r
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Evidence returns the lower bound of the log evidence if the facts of m contain it, and otherwise the log
// evidence. ok is false if the facts contain neither.
func Evidence(m learners.Model) (evidence float64, ok bool) {
	if d, isDescriber := m.(learners.Describer); isDescriber {
		for _, fact := range d.Facts() { // the bound follows the log evidence in the list
			if fact.Name == "log evidence" || fact.Name == "log evidence bound" {
				evidence, ok = fact.Value.(float64)
			}
		}
	}
	return evidence, ok
}

package kernels

import (
	"fmt"
	"math"
)

// A Rule is the set of valid values of a parameter: finite numbers from Min to Max, or integers if Integer is set.
type Rule struct {
	Min, Max float64 // ∓math.MaxFloat64 means no bound; if Min is the smallest positive float64, values must be > 0
	Integer  bool

	tooLarge string // advice that is appended to the error for a value above Max
}

// Rules that several parameters have in common.
var (
	anyNumber   = Rule{Min: -math.MaxFloat64, Max: math.MaxFloat64}
	nonNegative = Rule{Min: 0, Max: math.MaxFloat64}
	positive    = Rule{Min: math.SmallestNonzeroFloat64, Max: math.MaxFloat64}
	// lengthScale is the rule of σ. Its bounds keep 1/σ² from overflowing and from becoming subnormal.
	lengthScale = Rule{Min: 1e-150, Max: 1e153, tooLarge: ": scale the features down"}
)

// String returns the rule as text for a catalogue.
func (r Rule) String() string {
	bounded := r.Max < math.MaxFloat64
	switch {
	case bounded && r.Min > math.SmallestNonzeroFloat64:
		return fmt.Sprintf("from %v to %v", r.Min, r.Max)
	case bounded:
		return fmt.Sprintf("%s, ≤ %v", r.lower(), r.Max)
	case r.Integer:
		return r.lower()
	case r.Min < 0:
		return "finite"
	}
	return "finite, " + r.lower()
}

func (r Rule) lower() string {
	if r.Min == math.SmallestNonzeroFloat64 {
		return "> 0"
	}
	return fmt.Sprintf("≥ %v", r.Min)
}

// Check returns nil if v obeys the rule, otherwise an error that begins with name.
func (r Rule) Check(name string, v float64) error {
	switch kind := "a finite number"; {
	case r.Integer && !(v >= r.Min && v <= r.Max && v == math.Trunc(v)):
		if r.Max < math.MaxFloat64 {
			return fmt.Errorf("%s must be an integer %v, got %v", name, r, v)
		}
		return fmt.Errorf("%s must be an integer %s, got %v", name, r.lower(), v)
	case math.IsNaN(v) || math.IsInf(v, 0) || v < r.Min && v <= 0:
		switch {
		case r.Min >= 0 && r.Max == math.MaxFloat64:
			kind += " " + r.lower()
		case r.Min > 0: // the next cases give the error for a positive value outside the bounds
			kind += " > 0"
		}
		return fmt.Errorf("%s must be %s, got %v", name, kind, v)
	case v < r.Min:
		return fmt.Errorf("%s must be at least %v, got %v", name, r.Min, v)
	case v > r.Max:
		return fmt.Errorf("%s must be at most %v, got %v%s", name, r.Max, v, r.tooLarge)
	}
	return nil
}

// param returns a parameter that must satisfy the rule r.
func (r Rule) param(name string, v float64) Param {
	return Param{Name: name, Value: v, Log: r.Min >= 0, Rule: r}
}

// checkParams checks each parameter of k against its Rule.
func checkParams(kernel string, k Kernel) error {
	for _, p := range k.params() {
		if err := p.Check("kernels: "+kernel+": "+p.Name, p.Value); err != nil {
			return err
		}
	}
	return nil
}

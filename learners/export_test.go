package learners

import "maps"

// FitterOf returns the learner of the settings, in which all parameters are set to zero except
// those whose names keep maps to true.
func (s *Settings) FitterOf(keep map[string]bool) Fitter {
	v := maps.Clone(s.values)
	maps.DeleteFunc(v, func(name string, _ any) bool { return !keep[name] })
	fit, _ := s.d.fitter(v)
	return fit
}

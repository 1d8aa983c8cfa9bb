package learners

import "maps"

// FitterOf returns the learner of the settings, with zero values for parameters for which keep is false.
func (s *Settings) FitterOf(keep map[string]bool) Fitter {
	v := maps.Clone(s.values)
	maps.DeleteFunc(v, func(name string, _ any) bool { return !keep[name] })
	fit, _ := s.d.fitter(v)
	return fit
}

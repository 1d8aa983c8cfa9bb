package learners

// FitterOf returns the learner of a struct of parameters that is zero but for the values.
func (d Description) FitterOf(v Values) Fitter {
	fit, _ := d.fitter(v)
	return fit
}

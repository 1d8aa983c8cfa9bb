package driver

// Current returns the context of the calling thread, or 0 if there is none.
func (a *API) Current() (Context, error) {
	out := cell()
	err := a.invoke(cuCtxGetCurrent, address(&out[0]))
	return Context(out[0]), err
}

package handles

import (
	"sync"

	"github.com/mercer-go/mercer/learners"
)

// fewRows is the maximum number of rows for which a predictor with a copy of the model on the device is used.
// Making the copy takes as long as several tens of predictions.
const fewRows = 16

// ready holds the predictors of a model, one for each device, until the model is freed.
type ready struct {
	mu         sync.Mutex
	predictors map[*Device]*learners.Predictor
}

// predictor returns the model stored on a device, or nil if it does not fit in the device's memory.
func (r *ready) predictor(d *Device, m learners.Model) *learners.Predictor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.predictors[d]; p != nil {
		return p
	}
	p, err := learners.NewPredictor(d.dev, m)
	if err != nil {
		return nil // the caller then predicts without a copy, and reports any other error
	}
	if d.acquire() != nil { // the device was freed in the meantime
		p.Close()
		return nil
	}
	if r.predictors == nil {
		r.predictors = map[*Device]*learners.Predictor{}
	}
	r.predictors[d] = p
	return p
}

// close releases all memory; the model must no longer be in use.
func (r *ready) close() {
	for d, p := range r.predictors {
		p.Close()
		d.release()
	}
	r.predictors = nil
}

package handles

import (
	"sync"

	"github.com/mercer-go/mercer/learners"
)

// fewRows is the maximum of rows for which it pays to keep a model ready on the
// device: to put it there costs as much as some tens of predictions.
const fewRows = 16

// ready are the predictors of a model, one for each device that it was asked on
// for few rows. They keep their devices open until the model goes.
type ready struct {
	mu sync.Mutex
	on map[*Device]*learners.Predictor
}

// predictor returns the model made ready on a device that the caller has taken;
// nil where that does not fit into its memory.
func (r *ready) predictor(d *Device, m learners.Model) *learners.Predictor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.on[d]; p != nil {
		return p
	}
	p, err := learners.NewPredictor(d.dev, m)
	if err != nil {
		return nil // the model predicts without, and says what else is wrong
	}
	if d.acquire() != nil { // freed meanwhile
		p.Close()
		return nil
	}
	if r.on == nil {
		r.on = map[*Device]*learners.Predictor{}
	}
	r.on[d] = p
	return p
}

// close gives all memory back; nobody uses the model any more.
func (r *ready) close() {
	for d, p := range r.on {
		p.Close()
		d.release()
	}
	r.on = nil
}

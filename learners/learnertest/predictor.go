package learnertest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// testPredictor checks that a Predictor gives the predictions and the errors of its model, for matrices of many
// rows, for single rows and from several goroutines.
func testPredictor(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	want := c.predict(m, x)
	p, err := learners.NewPredictor(c.dev, m)
	if err != nil {
		c.Fatal(err)
	}
	defer p.Close()
	if p.Model() != m {
		c.Error("Model() is another model")
	}
	got, err := p.Predict(c.Context(), x)
	if err != nil {
		c.Fatal(err)
	}
	bound := c.rounding(m, x)
	if _, ok := m.(learners.Classifier); ok {
		bound = func(int, int) float64 { return 0 } // labels must be equal
	}
	c.checkClose("made ready", got, want, bound)

	features, outputs := p.Dims()
	var group sync.WaitGroup
	for start := range 3 {
		group.Go(func() {
			dst := make([]float64, outputs)
			for i := start; i < 30; i += 3 {
				if err := p.PredictRow(c.Context(), dst, x.RawRowView(i)); err != nil {
					c.Error(err)
					return
				}
				for j, v := range dst {
					if e := math.Abs(v - want.At(i, j)); !(e <= bound(i, j)) {
						c.Errorf("row %d, output %d: %v, want %v", i+1, j+1, v, want.At(i, j))
					}
				}
			}
		})
	}
	group.Wait()

	// checkRefused is like cell.checkRefused, but ignores the memory that p occupies on the device.
	checkRefused := func(err error, want string) {
		c.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), "learners: ") || !strings.Contains(err.Error(), want) {
			c.Errorf("got the error %v, want %q in it", err, want)
		}
	}
	dst := make([]float64, outputs)
	bad := []float64{1, math.NaN(), 1}
	checkRefused(p.PredictRow(c.Context(), dst, bad), "x: row 1, column 2 is NaN")
	checkRefused(p.PredictRow(c.Context(), dst, bad[:2]), "x has 2 features")
	if features != 3 {
		c.Errorf("Dims: %d features", features)
	}
	_, err = p.Predict(c.Context(), set(x, 4, 2, math.NaN()))
	checkRefused(err, "x: row 5, column 3 is NaN")
	ctx, cancel := context.WithCancelCause(c.Context())
	cause := errors.New("reason")
	cancel(cause)
	if _, err := p.Predict(ctx, x); !errors.Is(err, cause) {
		c.Errorf("with a context that is done: %v", err)
	}
	_, err = learners.NewPredictor(nil, m)
	checkRefused(err, "no device was given")
	_, err = learners.NewPredictor(c.dev, nil)
	checkRefused(err, "no model was given")

	p.Close()
	for name, p := range map[string]*learners.Predictor{"closed": p, "nil": nil, "zero": {}} {
		p.Close()
		if _, err := p.Predict(c.Context(), x); !errors.Is(err, solvers.ErrClosed) {
			c.Errorf("Predict of a %s predictor: %v", name, err)
		}
		if err := p.PredictRow(c.Context(), dst, x.RawRowView(0)); !errors.Is(err, solvers.ErrClosed) {
			c.Errorf("PredictRow of a %s predictor: %v", name, err)
		}
		p.Model()
		p.Dims()
	}
}

package modelfile

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
)

// everyModel returns the state of a model of each learner for each of its tasks, with default parameters, and for
// sparse samples.
func everyModel(f testing.TB, dev backend.Device) (names []string, states []learners.State) {
	f.Helper()
	const n = 24
	x, y, class := mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		a, b := float64(i*7%17)/8-1, float64(i*5%13)/6-1
		x.SetRow(i, []float64{a, b})
		y.Set(i, 0, a*b+b+0.1*float64(i%3))
		class.Set(i, 0, float64(i*5%13/5))
	}
	sparse := backend.Host[float64]{Rows: n, Cols: 2, Stride: 2, Data: x.RawMatrix().Data}.CSR()
	for _, d := range learners.Catalogue() {
		for _, task := range d.Tasks {
			fit, err := d.Make(task, nil)
			if err != nil {
				f.Fatal(err)
			}
			target, o := y, learners.Options{}
			if task == learners.Classification {
				target, o.Classes = class, []string{"low", "middle", "high"}
			} else if task == learners.Novelty {
				target = nil
			}
			var targets mat.Matrix
			if target != nil {
				targets = target
			}
			for _, samples := range []mat.Matrix{x, sparse} {
				if samples == mat.Matrix(x) || d.Sparse {
					m, err := fit(context.Background(), dev, samples, targets, o)
					if err != nil {
						f.Fatalf("%s, %s: %T: %v", d.Name, task, samples, err)
					}
					names = append(names, fmt.Sprintf("%s, %s, %T", d.Name, task, samples))
					states = append(states, m.State())
				}
			}
		}
	}
	return names, states
}

// forge changes one part of a state: an element, a shape or a parameter.
func forge(s learners.State, change, position uint16, value float64, text string) learners.State {
	out := learners.State{Learner: s.Learner, Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	var params, arrays []string
	for name, v := range s.Params {
		out.Params[name] = v
		params = append(params, name)
	}
	for name, a := range s.Arrays {
		c := backend.NewHost[float64](a.Rows, a.Cols)
		for i := range a.Rows {
			copy(c.Row(i), a.Row(i))
		}
		out.Arrays[name] = c
		arrays = append(arrays, name)
	}
	slices.Sort(params)
	slices.Sort(arrays)
	pos := int(position)
	pick := func(names []string) string { return names[pos%len(names)] }
	resized := func(name string, rows, cols int) {
		a, c := out.Arrays[name], backend.NewHost[float64](rows, cols)
		for i := range c.Data {
			if i < len(a.Data) {
				c.Data[i] = a.Data[i]
			}
		}
		out.Arrays[name] = c
	}
	switch {
	case change%8 == 0 && len(arrays) > 0: // change an element
		name := pick(arrays)
		if a := out.Arrays[name]; len(a.Data) > 0 {
			a.Data[pos/len(arrays)%len(a.Data)] = value
		}
	case change%8 == 1 && len(arrays) > 0:
		name := pick(arrays)
		resized(name, pos/len(arrays)%40, out.Arrays[name].Cols)
	case change%8 == 2 && len(arrays) > 0:
		name := pick(arrays)
		resized(name, out.Arrays[name].Rows, pos/len(arrays)%40)
	case change%8 == 3 && len(arrays) > 0:
		delete(out.Arrays, pick(arrays))
	case change%8 == 4 && len(arrays) > 0: // change all elements
		for i := range out.Arrays[pick(arrays)].Data {
			out.Arrays[pick(arrays)].Data[i] = value
		}
	case change%8 == 5 && len(params) > 0:
		out.Params[pick(params)] = value
	case change%8 == 6 && len(params) > 0:
		out.Params[pick(params)] = text
	case change%8 == 7 && len(params) > 0:
		delete(out.Params, pick(params))
	}
	return out
}

// FuzzLoadThenPredict changes a saved model of each learner and makes its checksum valid. The model must be
// refused, or Predict must return predictions or an error. If the numbers of the model are moderate, the
// predictions must be finite.
func FuzzLoadThenPredict(f *testing.F) {
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		f.Fatal(err)
	}
	names, states := everyModel(f, dev)
	for i := range states {
		for change := range uint16(8) {
			for position := range uint16(6) {
				f.Add(uint16(i), change, position*7+position/2, []float64{0, -1, math.NaN(), 1e300, 0.5, 1e6}[position], "gaussian(sigma=1e-300)")
			}
		}
	}
	x := mat.NewDense(3, 2, []float64{0, 0, 0.5, -1, 3, 2})
	sparse := backend.Host[float64]{Rows: 3, Cols: 2, Stride: 2, Data: x.RawMatrix().Data}.CSR()
	f.Fuzz(func(t *testing.T, learner, change, position uint16, value float64, text string) {
		i := int(learner) % len(states)
		s := forge(states[i], change, position, value, text)
		if change%8 == 5 && (math.IsNaN(value) || math.IsInf(value, 0)) {
			return // JSON cannot represent this number
		}
		model, err := json.Marshal(s.Params)
		if err != nil {
			t.Fatal(err)
		}
		data := file(map[string]string{"format": "mercer", "version": "1", "learner": s.Learner, "model": string(model)}, s.Arrays)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b, err := loadBytes(data)
		runtime.ReadMemStats(&after)
		// The bound allows several copies of the arrays, the buffers of the reader and the memory of the runtime.
		if allocated, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*len(data)+4<<20); allocated > limit {
			t.Errorf("%s: %d bytes of file took %d bytes of memory", names[i], len(data), allocated)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error has several lines: %q", names[i], err)
			}
			return
		}
		d, _ := b.Model.Dims()
		if d != 2 { // x has another number of features and must be refused
			if _, err := b.Model.Predict(context.Background(), dev, x); err == nil {
				t.Errorf("%s: a model of %d features takes 2", names[i], d)
			}
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		p, err := b.Model.Predict(ctx, dev, x)
		_, sparseErr := b.Model.Predict(ctx, dev, sparse)
		if sparseErr != nil && strings.Contains(sparseErr.Error(), "\n") {
			t.Errorf("%s: the error has several lines: %q", names[i], sparseErr)
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: three rows are not predicted in 20 s", names[i])
		}
		moderate := change%8 < 5 && (value == 0 || math.Abs(value) > 1e-6 && math.Abs(value) < 1e6)
		if err != nil || !moderate {
			return
		}
		for _, v := range p.RawMatrix().Data {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %v is predicted without an error", names[i], v)
			}
		}
	})
}

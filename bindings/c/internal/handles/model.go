package handles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Learner describes the model to fit.
type Learner struct {
	Name       string        // name of the learner, such as "kernel-ridge"
	Task       learners.Task // "" means the first task of the learner
	Parameters []string      // parameters in the form "name=value"
	Weights    []float64     // weights of the rows; nil means all 1
	Classes    []string      // names of the classes; y then holds indices into Classes, and without Classes it holds labels
	Features   []string      // names of the columns of x; nil means x1, x2, …
	Targets    []string      // names of the columns of y; nil means y, or y1, y2, …
	Centers    Matrix        // centers of nystrom-ridge; no rows means that the fit chooses them
	Memory     int64         // maximum number of bytes that the fit may take on the device; 0 means all free memory
}

// Model is a fitted model.
type Model struct {
	*refCount
	bundle  modelfile.Bundle
	gram    bool    // whether the model was fitted to a precomputed kernel
	encodes bool    // whether Predict applies the encoder
	device  string  // device of the fit; "" for a loaded model
	seconds float64 // duration of the fit in seconds
	ready   ready
}

// Fit fits the n×d matrix x to the n×t matrix y, which has no rows for learners of the task
// novelty. With the kernel precomputed() x is the n×n matrix of its values. progress may be nil.
func Fit(ctx context.Context, d *Device, l Learner, x, y Matrix, progress func(solvers.Progress)) (*Model, error) {
	var m *Model
	err := d.use(ctx, func(dev backend.Device) (err error) {
		m, err = fit(ctx, dev, l, x, y, progress)
		return err
	})
	return m, err
}

func fit(ctx context.Context, dev backend.Device, l Learner, x, y Matrix, progress func(solvers.Progress)) (*Model, error) {
	values, err := l.parameters()
	if err != nil {
		return nil, err
	}
	d, err := learners.Find(l.Name)
	if err != nil {
		return nil, err
	}
	learn, err := d.Make(l.Task, values)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	k, _ := kernels.Parse(values["kernel"]) // the error is nil, because Make has checked the text
	points, precomputed, err := x.points(k)
	if err != nil {
		return nil, err
	}
	features := points.Matrix()
	if points.Sparse == nil {
		features = denseOf(points.Dense)
	}
	var targets mat.Matrix
	if rows, _ := y.Dims(); rows > 0 {
		hy, err := y.host("y")
		if err != nil {
			return nil, err
		}
		targets = denseOf(hy)
	}
	o := learners.Options{Weights: slices.Clone(l.Weights), Classes: l.Classes, Memory: l.Memory, Progress: progress}
	if rows, _ := l.Centers.Dims(); rows > 0 {
		centers, err := l.Centers.host("centers")
		if err != nil {
			return nil, err
		}
		o.Centers = denseOf(centers)
	}
	fitted, err := learn(ctx, dev, features, targets, o)
	if err != nil {
		return nil, err
	}
	b := modelfile.Bundle{Model: fitted}
	if !precomputed { // the points of a precomputed kernel are not columns of a table
		b.Encoder = encoderOf(l, fitted, x.CSR.Rows > 0)
	}
	m := newModel(b)
	m.device, m.seconds = dev.Info().Device, time.Since(start).Seconds()
	return m, nil
}

func (l Learner) parameters() (map[string]string, error) {
	values := map[string]string{}
	for _, p := range l.Parameters {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("libmercer: fit: parameter %q is not of the form name=value", p)
		}
		if _, duplicate := values[name]; duplicate {
			return nil, fmt.Errorf("libmercer: fit: parameter %s is given twice", name)
		}
		values[name] = value
	}
	return values, nil
}

func newModel(b modelfile.Bundle) *Model {
	m := &Model{bundle: b, gram: b.Precomputed(), encodes: b.Encoder != nil && !isIdentity(b.Encoder)}
	m.refCount = newRefCount(m.ready.close)
	return m
}

// Free prevents further uses of the model. The copies of the model that Predict has stored on devices are freed
// when the last running call has ended.
func (m *Model) Free() error { return m.free() }

// Output selects the result of Predict.
type Output int

const (
	Values        Output = iota // targets, or the numbers of the predicted classes: n×t
	Decision                    // decision values: n×1 for two classes, n×K for K > 2 classes
	Probabilities               // n×K
	Deviations                  // standard deviations of new targets, including noise: n×t
)

// onPoints converts the rows of x to points for the result kind, and calls f with the device and the points. The
// model and the device stay open during the call.
func (m *Model) onPoints(ctx context.Context, d *Device, kind Output, x Matrix, f func(backend.Device, mat.Matrix) error) error {
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	return d.use(ctx, func(dev backend.Device) error {
		points, err := m.points(kind, x)
		if err != nil {
			return err
		}
		return f(dev, points)
	})
}

// Predict writes the result that kind selects, for the rows of x, to out. x has the columns to which the model was
// fitted: for a table, its raw numeric columns; for a precomputed kernel, the kernel values with all training objects.
func (m *Model) Predict(ctx context.Context, d *Device, kind Output, x Matrix, out []float64) error {
	return m.onPoints(ctx, d, kind, x, func(_ backend.Device, points mat.Matrix) error {
		if err := checkMemory("out", len(out), 1, 1); err != nil {
			return err
		}
		f, err := m.values(ctx, d, kind, points)
		if err != nil {
			return err
		}
		return store("predict", out, f)
	})
}

// Calibrate returns the model with split-conformal intervals, or sets of classes, from
// samples that were not used in the fit: see learners.Calibrate. m does not change.
func (m *Model) Calibrate(ctx context.Context, d *Device, x, y Matrix) (*Model, error) {
	var b modelfile.Bundle
	err := m.onPoints(ctx, d, Values, x, func(dev backend.Device, points mat.Matrix) error {
		b = m.bundle
		hy, err := y.host("y")
		if err != nil {
			return err
		}
		b.Calibration, err = learners.Calibrate(ctx, dev, b.Model, points, denseOf(hy))
		return err
	})
	if err != nil {
		return nil, err
	}
	calibrated := newModel(b)
	calibrated.device, calibrated.seconds = m.device, m.seconds
	return calibrated, nil
}

// Update returns the model after the samples x and y were appended, or removed: see learners.Append. m does not change.
func (m *Model) Update(ctx context.Context, d *Device, x, y Matrix, weights []float64, remove bool) (*Model, error) {
	return m.update(ctx, d, func(dev backend.Device) (learners.Model, error) {
		points, err := m.points(Deviations, x)
		if err != nil {
			return nil, err
		}
		hy, err := y.host("y")
		if err != nil {
			return nil, err
		}
		change := learners.Append[learners.Model]
		if remove {
			change = learners.Remove[learners.Model]
		}
		return change(ctx, dev, m.bundle.Model, points, denseOf(hy), learners.Options{Weights: weights})
	})
}

// Merge returns the model of the samples of m and other: see learners.Merge.
func (m *Model) Merge(ctx context.Context, d *Device, other *Model) (*Model, error) {
	if err := other.acquire(); err != nil {
		return nil, err
	}
	defer other.release()
	return m.update(ctx, d, func(dev backend.Device) (learners.Model, error) {
		return learners.Merge(ctx, dev, m.bundle.Model, other.bundle.Model)
	})
}

// update returns the model that the function change makes from m by adding or removing samples.
func (m *Model) update(ctx context.Context, d *Device, change func(backend.Device) (learners.Model, error)) (*Model, error) {
	if err := m.acquire(); err != nil {
		return nil, err
	}
	defer m.release()
	b := m.bundle
	if b.Calibration != nil {
		return nil, errors.New("libmercer: update: the calibrated intervals would not be those of the new model: update the model before it is calibrated")
	}
	b.Fit = nil
	start := time.Now()
	err := d.use(ctx, func(dev backend.Device) (err error) {
		b.Model, err = change(dev)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := newModel(b)
	c.device, c.seconds = d.dev.Info().Device, time.Since(start).Seconds()
	return c, nil
}

// Sample draws functions from the posterior and writes their values at the n rows of x to out, as a
// draws×n×t array: see learners.Sampler.
func (m *Model) Sample(ctx context.Context, d *Device, x Matrix, draws int, seed uint64, out []float64) error {
	return m.onPoints(ctx, d, Deviations, x, func(dev backend.Device, points mat.Matrix) error {
		s, ok := learners.As[learners.Sampler](m.bundle.Model)
		if !ok {
			return fmt.Errorf("libmercer: sample: a model of %s has no posterior to draw from; models of ridge, nystrom-ridge and fourier-ridge that were fitted with std=true have one", m.bundle.Model.Learner())
		}
		n, _ := points.Dims()
		_, t := s.Dims()
		if draws < 1 || draws > len(out) || len(out) != draws*n*t {
			return fmt.Errorf("libmercer: sample: out has %s, but the result has %d·%d·%d", count.Of(len(out), "element"), draws, n, t)
		}
		list, err := s.Sample(ctx, dev, points, draws, seed)
		if err != nil {
			return err
		}
		for i, draw := range list {
			if err := store("sample", out[i*n*t:(i+1)*n*t], draw); err != nil {
				return err
			}
		}
		return nil
	})
}

// Effects writes the marginal effects of the d columns of x to the slice rows (t×n×d), their means to the slice
// mean and the standard errors of the means to the slice deviations (t×d each): see learners.MarginalEffects. rows
// and deviations may be nil. Without standard errors, deviations is filled with NaN.
func (m *Model) Effects(ctx context.Context, d *Device, x Matrix, binary []int64, rows, mean, deviations []float64) error {
	return m.onPoints(ctx, d, Values, x, func(dev backend.Device, points mat.Matrix) error {
		p := learners.EffectParams{NoStdErr: deviations == nil}
		for _, column := range binary {
			p.Binary = append(p.Binary, int(column))
		}
		e, err := learners.MarginalEffects(ctx, dev, m.bundle.Model, points, p)
		if err != nil {
			return err
		}
		if m.encodes { // convert derivatives with respect to encoded columns to derivatives with respect to the columns of x
			for q, in := range m.bundle.Encoder.Inputs {
				if in.Number == nil {
					return errors.New("libmercer: effects: the features of the model are sparse")
				}
				if slices.Contains(p.Binary, q) {
					continue
				}
				for _, effects := range append(e.Rows, e.Mean, e.StdErr) {
					if effects != nil {
						column := mat.Col(nil, q, effects)
						floats.Scale(in.Number.Slope(), column)
						effects.SetCol(q, column)
					}
				}
			}
		}
		n, features := points.Dims()
		if rows != nil && len(rows) != len(e.Rows)*n*features {
			return fmt.Errorf("libmercer: effects: rows has %s, but the result has %d·%d·%d", count.Of(len(rows), "element"), len(e.Rows), n, features)
		}
		if e.StdErr == nil {
			e.StdErr = mat.DenseCopyOf(e.Mean)
			e.StdErr.Apply(func(_, _ int, _ float64) float64 { return math.NaN() }, e.StdErr)
		}
		for j := range e.Rows {
			if rows != nil {
				if err := store("rows", rows[j*n*features:(j+1)*n*features], e.Rows[j]); err != nil {
					return err
				}
			}
		}
		if deviations != nil {
			if err := store("deviations", deviations, e.StdErr); err != nil {
				return err
			}
		}
		return store("mean", mean, e.Mean)
	})
}

// PredictionSets computes the prediction sets of the rows of x for the given level, and writes them to out, n×K. An
// element is 1 if the set of the row contains the class, otherwise 0. m must be a result of Calibrate.
func (m *Model) PredictionSets(ctx context.Context, d *Device, level float64, x Matrix, out []float64) error {
	return m.onPoints(ctx, d, Values, x, func(dev backend.Device, points mat.Matrix) error {
		k, ok := m.bundle.Model.(learners.Classifier)
		if !ok {
			return fmt.Errorf("libmercer: sets: a model of %s predicts numbers, not classes", m.bundle.Model.Learner())
		}
		if m.bundle.Calibration == nil {
			return errors.New("libmercer: sets: the model has no prediction sets: calibrate it with samples that were not used in the fit")
		}
		sets, err := m.bundle.Calibration.PredictionSets(ctx, dev, k, points, level)
		if err != nil {
			return err
		}
		return store("sets", out, sets)
	})
}

// Intervals writes the bounds of the prediction intervals of a level at the rows of x to
// lower and upper, n×t each: see modelfile.Bundle.Intervals.
func (m *Model) Intervals(ctx context.Context, d *Device, level float64, x Matrix, lower, upper []float64) error {
	return m.onPoints(ctx, d, Values, x, func(dev backend.Device, points mat.Matrix) error {
		if !m.bundle.HasIntervals() {
			return fmt.Errorf("libmercer: intervals: %s", m.noIntervals())
		}
		low, high, err := m.bundle.Intervals(ctx, dev, points, level)
		if err != nil {
			return err
		}
		if err := store("intervals", lower, low); err != nil {
			return err
		}
		return store("intervals", upper, high)
	})
}

// Bounds writes the predictions at the rows of x, and upper bounds of their distances from the
// predictions of the exact solution, n×t each.
func (m *Model) Bounds(ctx context.Context, d *Device, x Matrix, values, bounds []float64) error {
	return m.onPoints(ctx, d, Values, x, func(dev backend.Device, points mat.Matrix) error {
		b, ok := m.bundle.Model.(learners.Bounded)
		if !ok {
			return fmt.Errorf("libmercer: bounds: a model of %s has no error bounds; models of kernel-ridge, gaussian-process, ridge, nystrom-ridge and fourier-ridge have them", m.bundle.Model.Learner())
		}
		v, e, err := b.PredictBound(ctx, dev, points)
		if err != nil {
			return err
		}
		if err := store("values", values, v); err != nil {
			return err
		}
		return store("bounds", bounds, e)
	})
}

// noIntervals returns the reason why the model has no intervals.
func (m *Model) noIntervals() string {
	switch m.bundle.Model.(type) {
	case learners.Classifier:
		return "a model of classes has no intervals"
	case *learners.RidgeModel:
		return "the model of ridge does not contain its samples: fit it with intervals=true or std=true, or calibrate it"
	case *learners.NystromRidgeModel, *learners.FourierRidgeModel:
		return "the model of " + m.bundle.Model.Learner() + " does not contain its posterior: fit it with std=true, or calibrate it"
	}
	return "a model of " + m.bundle.Model.Learner() + " has none: calibrate it with samples that were not used in the fit"
}

// points returns x in the form that the model accepts.
func (m *Model) points(kind Output, x Matrix) (mat.Matrix, error) {
	if x.CSR.Rows > 0 && m.bundle.Objects == nil && !m.gram && !m.encodes {
		return x.CSR, nil
	}
	h, err := x.host("x")
	switch {
	case err != nil:
		return nil, err
	case m.bundle.Objects != nil:
		return nil, fmt.Errorf("libmercer: predict: the model takes texts or trees, not numbers: use mercer predict")
	case m.gram:
		if features, _ := m.bundle.Model.Dims(); h.Cols != features-2 {
			return nil, fmt.Errorf("libmercer: predict: x has %s of kernel values, but the model was fitted to %s", count.Of(h.Cols, "column"), count.Of(features-2, "object"))
		}
		if kind == Deviations {
			return nil, fmt.Errorf("libmercer: predict: deviations need the kernel value of each point with itself, but x has only the values with the training objects")
		}
		return otherPoints(h)
	case m.encodes:
		return encoded(m.bundle.Encoder, h)
	}
	return denseOf(h), nil
}

// values returns the result that kind selects, computed by a Predictor if that is faster.
func (m *Model) values(ctx context.Context, d *Device, kind Output, x mat.Matrix) (*mat.Dense, error) {
	if rows, _ := x.Dims(); kind == Values && rows <= fewRows {
		if p := m.ready.predictor(d, m.bundle.Model); p != nil {
			return p.Predict(ctx, x)
		}
	}
	return m.apply(ctx, d.dev, kind, x)
}

func (m *Model) apply(ctx context.Context, dev backend.Device, kind Output, x mat.Matrix) (*mat.Dense, error) {
	lacks := func(property string) error {
		return fmt.Errorf("libmercer: predict: a model of %s has no %s", m.bundle.Model.Learner(), property)
	}
	switch model := m.bundle.Model; kind {
	case Values:
		return model.Predict(ctx, dev, x)
	case Decision:
		if k, ok := model.(learners.Classifier); ok {
			return k.Decision(ctx, dev, x)
		}
		return nil, lacks("decision values")
	case Probabilities:
		if k, ok := learners.As[learners.Prober](model); ok {
			return k.Proba(ctx, dev, x)
		}
		return nil, lacks("probabilities")
	case Deviations:
		k, ok := model.(learners.Uncertain)
		if !ok {
			return nil, lacks("standard deviations")
		}
		f, err := k.Variance(ctx, dev, x)
		if err == nil {
			f.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, f)
		}
		return f, err
	}
	return nil, fmt.Errorf("libmercer: predict: no kind of prediction has the number %d", kind)
}

// arraysOf returns the arrays of the state of a model. For a support vector machine that was fitted in this process it
// adds "support", the row numbers of the support vectors, and "steps", the number of steps for each binary problem.
func arraysOf(m learners.Model) map[string]backend.Host[float64] {
	arrays := m.State().Arrays
	if fitted, ok := m.(interface{ Trace() (support, steps []int) }); ok {
		support, steps := fitted.Trace()
		for name, list := range map[string][]int{"support": support, "steps": steps} {
			if len(list) == 0 {
				continue
			}
			h := backend.NewHost[float64](1, len(list))
			for j, v := range list {
				h.Data[j] = float64(v)
			}
			arrays[name] = h
		}
	}
	return arrays
}

// Array copies an array of arraysOf to out.
func (m *Model) Array(name string, out []float64) error {
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	h, ok := arraysOf(m.bundle.Model)[name]
	if !ok {
		return fmt.Errorf("libmercer: a model of %s has no array %q", m.bundle.Model.Learner(), name)
	}
	return store("array "+name, out, denseOf(h))
}

// Save writes the model to a file, as modelfile.Save does.
func (m *Model) Save(path string) error {
	if err := m.acquire(); err != nil {
		return err
	}
	defer m.release()
	return modelfile.Save(path, m.bundle)
}

// Load reads a file that Save or the command has written.
func Load(path string) (*Model, error) {
	b, err := modelfile.Load(path)
	if err != nil {
		return nil, err
	}
	return newModel(b), nil
}

// Bytes returns the bytes of the file that Save writes.
func (m *Model) Bytes() ([]byte, error) {
	if err := m.acquire(); err != nil {
		return nil, err
	}
	defer m.release()
	var b bytes.Buffer
	err := modelfile.Write(&b, m.bundle)
	return b.Bytes(), err
}

// FromBytes is like Load, for the result of Bytes. The model does not share memory with data.
func FromBytes(data []byte) (*Model, error) {
	b, err := modelfile.Read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return newModel(b), nil
}

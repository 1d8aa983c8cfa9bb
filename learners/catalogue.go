package learners

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// Task is a kind of learning problem.
type Task string

const (
	Regression     Task = "regression"     // y holds numbers
	Classification Task = "classification" // y has a class for each sample: see Classes
	Novelty        Task = "novelty"        // there is no y; the model finds samples that are unlike the training samples
)

// Fitter fits a model to n×d samples x and targets y. The Fit of any learner whose parameters are
// set can serve as a Fitter. For Novelty y is ignored and may be nil.
type Fitter func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (Model, error)

// Description describes a learner. The command derives its flags from the descriptions, Make makes learners from
// them, and Restore makes models.
type Description struct {
	Name       string      `json:"name"`
	Tasks      []Task      `json:"tasks"`      // the first task is the default if the targets suit several tasks
	Formula    string      `json:"formula"`    // the objective that the learner minimizes, or the rule by which it predicts
	Parameters []Parameter `json:"parameters"` // in display order
	Source     string      `json:"source"`
	Outputs    bool        `json:"outputs"`          // whether the learner accepts several targets
	Sparse     bool        `json:"sparse,omitempty"` // whether the learner accepts a backend.CSR without a dense copy
	// Grid is the default grid of mercer tune for one parameter, as NAME=V,W,…; V× means V times a scale that is
	// computed from the data. Grid is "" for a learner without a default grid.
	Grid string `json:"grid,omitempty"`

	// fitter returns the Fitter of the learner with the given values of its parameters, or an error
	// for values that contradict each other.
	fitter func(v parsed) (Fitter, *ParameterError)
	// rows returns the RowsFitter for samples that are read in passes; rows is nil if the learner
	// needs all samples in memory.
	rows func(v parsed) (RowsFitter, *ParameterError)
	// model returns an empty model of the type that saved the State. If nil, register sets it from the result type
	// of Fit.
	model func(State) (fielded, error)
	// classify is true if Make and Restore make the classifier by Classify from the regression learner.
	classify bool
	// checkpoints is true if a fit may write checkpoints and resume from them.
	checkpoints bool
	// traces is true if at least one solver of the learner calls Options.Trace.
	traces bool
	// classifier returns the Fitter for Classification. It is nil if fitter also handles classification.
	classifier func(v parsed) (Fitter, *ParameterError)
}

// catalogue is filled by the init functions of the learners' files.
var catalogue = map[string]*Description{}

// register adds a learner to the catalogue. The parameters of the learner are fields of the struct
// L, and fit is its method Fit.
func register[L any, M Model](d Description, parameters func(*L) []Parameter, fit func(L, context.Context, backend.Device, mat.Matrix, mat.Matrix, Options) (M, error)) {
	if catalogue[d.Name] != nil {
		panic("learners: two learners are called " + d.Name)
	}
	d.Parameters, d.fitter = parameters(new(L)), fitterOf(parameters, fit)
	for i := range d.Parameters {
		d.Parameters[i].Python = pythonName(d.Parameters[i].Name)
	}
	if d.model == nil {
		model := reflect.TypeFor[M]().Elem()
		d.model = func(State) (fielded, error) { return reflect.New(model).Interface().(fielded), nil }
	}
	catalogue[d.Name] = &d
}

// Catalogue describes every learner, in the order of the names.
func Catalogue() []Description {
	var list []Description
	for _, name := range names() {
		list = append(list, *catalogue[name])
	}
	return list
}

// Find returns the description of a learner. The error about an unknown name lists all names.
func Find(name string) (Description, error) {
	d := catalogue[name]
	if d == nil {
		return Description{}, fmt.Errorf("learners: no learner is called %q; the learners are: %s", name, strings.Join(names(), ", "))
	}
	return *d, nil
}

func names() []string { return slices.Sorted(maps.Keys(catalogue)) }

// Supports reports whether the learner supports the task t.
func (d Description) Supports(t Task) bool { return slices.Contains(d.Tasks, t) }

// Parameter returns the parameter with the given name.
func (d Description) Parameter(name string) (Parameter, bool) {
	for _, p := range d.Parameters {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}

// LinearByDefault reports whether the default kernel is linear().
func (d Description) LinearByDefault() bool {
	p, _ := d.Parameter("kernel")
	return strings.HasPrefix(p.Default, "linear()")
}

// Settings are the parsed parameters of a learner, from which fits, grids and reports are made.
type Settings struct {
	d      Description
	texts  map[string]string
	values parsed
}

// Text returns the given text or the default of a parameter, or "" and false if the parameter has no value.
func (s *Settings) Text(name string) (text string, ok bool) {
	if _, ok = s.values[name]; !ok {
		return "", false
	}
	if text, ok := s.texts[name]; ok {
		return text, true
	}
	p, _ := s.d.Parameter(name)
	return p.Default, true
}

// Number returns the value of a numeric parameter, or false if it has none.
func (s *Settings) Number(name string) (v float64, ok bool) {
	v, ok = s.values[name].(float64)
	return v, ok
}

// Effective reports whether p has an effect, that is, whether the other parameters meet the condition p.When.
func (s *Settings) Effective(p Parameter) bool { return p.When.met(s.values) }

// Make returns the learner. texts maps the names of parameters to their texts; all other parameters have their
// defaults. task is one of d.Tasks; an empty Task means the first. The error is a *ParameterError, or states that
// the learner does not support the task.
func (d Description) Make(task Task, texts map[string]string) (Fitter, error) {
	if err := d.checkTask(task); err != nil {
		return nil, err
	}
	s, err := d.Parse(texts)
	if err != nil {
		return nil, err
	}
	return s.Fitter(task)
}

func (d Description) checkTask(task Task) error {
	if task != "" && !d.Supports(task) {
		return fmt.Errorf("learners: %s does not support %s", d.Name, task)
	}
	return nil
}

// Fitter returns the learner for one of its tasks; an empty task means the first. The error is a
// *ParameterError, or states that the learner does not support the task.
func (s *Settings) Fitter(task Task) (Fitter, error) {
	if s == nil || s.d.fitter == nil {
		return nil, errors.New("learners: the description of the learner was not made by Find or Catalogue")
	}
	d, values := s.d, s.values
	if err := d.checkTask(task); err != nil {
		return nil, err
	}
	for _, p := range d.Parameters {
		_, isGiven := s.texts[p.Name]
		if isGiven && p.Task != "" && p.Task != cmp.Or(task, d.Tasks[0]) {
			return nil, &ParameterError{Learner: d.Name, Parameter: p.Name, Rule: fmt.Sprintf("works only for %s", p.Task)}
		}
		if isGiven && !s.Effective(p) {
			return nil, &ParameterError{Learner: d.Name, Parameter: p.Name, Rule: "works " + p.When.String(), When: p.When}
		}
	}
	fitter := d.fitter
	if task == Classification && d.classifier != nil {
		fitter = d.classifier
	}
	fit, paramErr := fitter(values)
	if paramErr != nil {
		paramErr.Learner = d.Name
		return nil, paramErr
	}
	if !d.Sparse && d.Name != fourierRidgeName { // fourier-ridge copies the samples only for Optimize, and adds the warning itself
		fit = remarkCopy(d.Name, fit)
	}
	if task == Classification && d.classify {
		fit = Classify(d.Name, fit)
	}
	return fit, nil
}

// remarkCopy returns a Fitter that calls fit and, for sparse samples, adds the fact "warning" to the model.
func remarkCopy(learner string, fit Fitter) Fitter {
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (Model, error) {
		m, err := fit(ctx, dev, x, y, o)
		if s, sparseErr := sparseOf("x", x); err == nil && sparseErr == nil && s != nil {
			if r, ok := m.(interface{ remark(text string) }); ok {
				r.remark(copyWarning(learner, s.Rows, s.Cols))
			}
		}
		return m, err
	}
}

// copyWarning returns the warning that a fit made a dense copy of sparse samples.
func copyWarning(learner string, rows, features int) string {
	return fmt.Sprintf("the samples are sparse: %s was fitted to a dense copy of %s × %s", learner, count.Of(rows, "row"), count.Of(features, "feature"))
}

// Parse returns the learner's parameters. texts maps names to texts; all other parameters have
// their defaults. The error is a *ParameterError.
func (d Description) Parse(texts map[string]string) (*Settings, error) {
	var allNames []string
	v := parsed{}
	for _, p := range d.Parameters {
		allNames = append(allNames, p.Name)
		text, isGiven := texts[p.Name]
		if !isGiven && (p.Default == "" || p.autoDefault) {
			continue
		}
		if !isGiven {
			text = p.Default
		}
		value, err := p.Parse(text)
		if err != nil {
			return nil, &ParameterError{Learner: d.Name, Parameter: p.Name, Rule: err.Error()}
		}
		v[p.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !slices.Contains(allNames, name) {
			list := "no parameters"
			if len(allNames) > 0 {
				list = strings.Join(allNames, ", ")
			}
			return nil, &ParameterError{Learner: d.Name, Parameter: name, Rule: fmt.Sprintf("is not a parameter of %s, which has %s", d.Name, list)}
		}
	}
	return &Settings{d, texts, v}, nil
}

// ParameterError is the error of Make and Parse for an invalid parameter.
type ParameterError struct {
	Learner, Parameter string
	Rule               string // such as "must be a finite number ≥ 0, got -1"
	When               *When  // the condition that is not met, if the rule is a condition
}

func (e *ParameterError) Error() string {
	return fmt.Sprintf("learners: %s: %s: %s", e.Learner, e.Parameter, e.Rule)
}

// fitterOf returns a function that makes, from the values of the parameters of L, the Fitter that calls fit.
func fitterOf[L any, M Model](parameters func(*L) []Parameter, fit func(L, context.Context, backend.Device, mat.Matrix, mat.Matrix, Options) (M, error)) func(parsed) (Fitter, *ParameterError) {
	return constructorOf(parameters, func(l L) Fitter {
		return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (Model, error) {
			m, err := asModel(fit(l, ctx, dev, x, y, o))
			return m, message.Within(err, adviceNames(parameters(&l)))
		}
	})
}

// constructorOf returns a function that sets the parameters of an L and passes the L to build.
func constructorOf[L, F any](parameters func(*L) []Parameter, build func(l L) F) func(parsed) (F, *ParameterError) {
	return func(v parsed) (F, *ParameterError) {
		var l L
		err := set(parameters(&l), v)
		return build(l), err
	}
}

// asModel converts the result of a Fit to a Model, or returns an error if the model contains numbers that are not
// finite.
func asModel[M Model](m M, err error) (Model, error) {
	if err == nil {
		err = diverged(m)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// diverged returns an error if m contains numbers that are not finite.
func diverged(m Model) error {
	s := m.State()
	for name, h := range s.Arrays {
		if checkFinite(name, h) != nil {
			return message.Errorf("learners: %s: the fit diverged: %s is not finite: {scale the features or y down|lower $rate}", m.Learner(), name)
		}
	}
	return nil
}

package mercer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu" // registers the devices "cpu/..."
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
	"github.com/mercer-go/mercer/solvers"
)

// Options are what every call takes besides its data; the zero value is right
// for most. A call refuses the options that it does not use.
type Options struct {
	// Device does the work. nil is the one that all such calls share: the best
	// there is, or what the environment variable MERCER_DEVICE names. Import
	// package cuda for its registration, and GPUs are among them.
	Device backend.Device
	// Objects is the kernel on the texts or trees of a column that FitTable's rules name as
	// the whole input.
	Objects objects.Kernel
	learners.Options
}

// shared is the device of all calls that name none.
var shared = sync.OnceValues(func() (backend.Device, error) { return backend.Open("", backend.Config{}) })

func (o Options) device() (backend.Device, error) {
	if o.Device != nil {
		return o.Device, nil
	}
	dev, err := shared()
	if err != nil {
		return nil, fmt.Errorf("mercer: %w", err)
	}
	return dev, nil
}

// only returns an error when an option is given that a call does not use.
func (o Options) only(call string, used ...string) error {
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"Objects", o.Objects != nil}, {"Weights", o.Weights != nil}, {"Classes", o.Classes != nil}, {"Keys", o.Keys != nil}, {"Memory", o.Memory != 0}, {"Progress", o.Progress != nil},
		{"Checkpoint", o.Checkpoint != solvers.Checkpoint{}},
	} {
		if option.given && !slices.Contains(used, option.name) {
			return fmt.Errorf("mercer: %s: Options.%s is not used here: leave it out", call, option.name)
		}
	}
	return nil
}

// Learner is a struct of package learners: learners.KernelRidge, learners.SVC, ….
type Learner[M learners.Model] interface {
	Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (M, error)
}

// Model is a fitted model that is ready to predict. It takes features; a model that was
// fitted to a table, by FitTable or by the command, makes features of rows of such a table
// by Encode. Its methods may be called by several goroutines at once, but for Calibrate.
// After Close, and for a Model that is nil or zero, each method that can fail returns
// ErrClosed.
type Model[M learners.Model] struct {
	// Fitted is the model itself: its coefficients, its solver's report.
	Fitted M

	predictor *learners.Predictor
	dev       backend.Device
	bundle    modelfile.Bundle
	life      context.Context // of the work that Close ends
	end       context.CancelCauseFunc
	factors   run.Kept[factored]
	use       sync.RWMutex // held for reading by the methods that need the device
	cleanup   runtime.Cleanup
}

// ErrClosed is that of a Model or Factor after Close, and of one that nothing has opened.
var ErrClosed = run.ErrClosed

// begin is called by the methods that need the device, and followed by m.use.RUnlock where
// it returns nil.
func (m *Model[M]) begin(call string) error {
	if m == nil || m.predictor == nil {
		return fmt.Errorf("mercer: %s: the model %w", call, ErrClosed)
	}
	m.use.RLock()
	if m.life.Err() != nil {
		m.use.RUnlock()
		return fmt.Errorf("mercer: %s: the model %w", call, ErrClosed)
	}
	return nil
}

// Fit fits a learner to n×d samples, a row each, and n×t targets. A *mat.Dense or
// *mat.VecDense is not copied, and x and y are not changed.
//
// The memory that the model takes on the device is given back when the model is
// collected, or by Close.
func Fit[M learners.Model](ctx context.Context, l Learner[M], x, y mat.Matrix, o Options) (*Model[M], error) {
	if l == nil {
		return nil, errors.New("mercer: fit: the learner is missing")
	}
	if o.Objects != nil {
		return nil, errors.New("mercer: fit: Options.Objects is not used here: leave it out, or call FitTable")
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	fitted, err := l.Fit(ctx, dev, x, y, o.Options)
	if err != nil {
		return nil, err
	}
	return newModel(dev, fitted, modelfile.Bundle{Model: fitted})
}

// FitTable fits a learner to a table: r names the target, or targets, the column of the
// weights and the columns to leave out, and says how the other columns become features,
// r.Labels for a classifier. The rules are kept with the
// model, which takes rows of such tables by Encode and is saved with them.
//
// Where the rules name a column of texts or trees as the whole input, Options.Objects is the
// kernel on it. There, and where the table is a Gram matrix, the learner's kernel must be
// kernels.Precomputed{}.
func FitTable[M learners.Model](ctx context.Context, l Learner[M], t *dataset.Table, r dataset.Rules, o Options) (*Model[M], error) {
	switch {
	case l == nil:
		return nil, errors.New("mercer: fit: the learner is missing")
	case t == nil:
		return nil, errors.New("mercer: fit: the table is missing")
	case (r.Text != "" || r.Tree != "") != (o.Objects != nil):
		return nil, errors.New("mercer: fit: rules.Text or rules.Tree names a column and Options.Objects is the kernel on it: give both or neither")
	case r.Text != "" && o.Objects.Input() != objects.Text, r.Tree != "" && o.Objects.Input() != objects.Tree:
		return nil, fmt.Errorf("mercer: fit: the kernel %v of Options.Objects is over %ss, the column of the rules is not", o.Objects, o.Objects.Input())
	case len(r.Targets) == 0:
		return nil, errors.New("mercer: fit: rules.Targets names no column")
	case r.Weight != "" && o.Weights != nil:
		return nil, errors.New("mercer: fit: Options.Weights is not used where rules.Weight names the column of the weights: leave one out")
	case o.Classes != nil:
		return nil, errors.New("mercer: fit: Options.Classes is not used here: the table names the classes")
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	t, weights, err := r.Weighted(t)
	if err != nil {
		return nil, err
	}
	if weights != nil {
		o.Weights = weights
	}
	e, err := dataset.Learn(t, r)
	if err != nil {
		return nil, err
	}
	x, trained, err := modelfile.TrainingFeatures(ctx, e, t, o.Objects, objects.Options{Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	y, err := e.Targets(t)
	if err != nil {
		return nil, err
	}
	if o.Keys == nil { // so that the centers are those of the command
		if o.Keys, err = e.Keys(t); err != nil {
			return nil, err
		}
	}
	o.Classes = e.Classes()
	fitted, err := l.Fit(ctx, dev, x, y, o.Options)
	if err != nil {
		return nil, err
	}
	if (r.Gram || trained != nil) && !(modelfile.Bundle{Model: fitted}).Precomputed() {
		return nil, errors.New("mercer: fit: the input is kernel values: the learner's kernel must be kernels.Precomputed{}")
	}
	return newModel(dev, fitted, modelfile.Bundle{Model: fitted, Encoder: e, Objects: trained})
}

func newModel[M learners.Model](dev backend.Device, fitted M, b modelfile.Bundle) (*Model[M], error) {
	p, err := learners.NewPredictor(dev, fitted)
	if err != nil {
		return nil, err
	}
	m := &Model[M]{predictor: p, Fitted: fitted, dev: dev, bundle: b}
	m.life, m.end = context.WithCancelCause(context.Background())
	m.factors.Life = m.life
	m.cleanup = runtime.AddCleanup(m, func(p *learners.Predictor) { p.Close() }, p)
	return m, nil
}

// Close ends the work of Prepare, waits for the methods under way and gives the memory on
// the device back.
func (m *Model[M]) Close() {
	if m == nil || m.predictor == nil {
		return
	}
	m.cleanup.Stop()
	m.end(ErrClosed)
	m.factors.Drop()
	m.use.Lock()
	defer m.use.Unlock()
	m.predictor.Close()
}

// Save writes the model to a file, which appears, or is replaced, as a whole, with the
// rules for the columns of a table if it has some; the command mercer and Load read it.
func (m *Model[M]) Save(path string) error {
	if err := m.begin("save"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	return modelfile.Save(path, m.bundle)
}

// Load reads a model that Save or the command mercer fit wrote. Of o only Device is
// used.
func Load(path string, o Options) (*Model[learners.Model], error) {
	if err := o.only("load"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	b, err := modelfile.Load(path)
	if err != nil {
		return nil, err
	}
	return newModel(dev, b.Model, b)
}

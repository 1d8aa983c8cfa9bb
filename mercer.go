package mercer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu" // registers the devices "cpu/..."
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/onnx"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Options holds the optional arguments of a call. The zero value is a useful default. A call
// returns an error for an option that it does not use.
type Options struct {
	// Device does the computation. nil selects the device that all calls without a Device share:
	// the device named by the environment variable MERCER_DEVICE, or else the best available
	// device. GPUs are available if the program imports package cuda.
	Device backend.Device
	// Objects is the kernel on texts or trees, if the rules of FitTable name a column of them as the whole input.
	Objects objects.Kernel
	learners.Options
}

// shared is the device of all calls whose Options.Device is nil.
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

// checkUnused returns an error if o sets an option that the list `used` lacks.
func (o Options) checkUnused(call string, used ...string) error {
	for _, option := range []struct {
		name  string
		isSet bool
	}{
		{"Objects", o.Objects != nil}, {"Centers", o.Centers != nil}, {"Weights", o.Weights != nil}, {"Classes", o.Classes != nil}, {"Keys", o.Keys != nil}, {"Memory", o.Memory != 0}, {"Progress", o.Progress != nil},
		{"Checkpoint", o.Checkpoint != solvers.Checkpoint{}},
	} {
		if option.isSet && !slices.Contains(used, option.name) {
			return fmt.Errorf("mercer: %s: Options.%s is not used here: leave it out", call, option.name)
		}
	}
	return nil
}

// Learner is a struct of package learners, such as learners.KernelRidge, or a LearnerFunc.
type Learner[M learners.Model] interface {
	Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (M, error)
}

// Model is a fitted model that is ready to predict. Its methods take features; if the model was fitted to a table,
// by FitTable or by the command, Encode converts rows of such a table to features. All methods except Calibrate are
// safe for concurrent use. After Close, and for a nil or zero Model, each method that can fail returns ErrClosed.
type Model[M learners.Model] struct {
	// Fitted is the model of package learners, with its coefficients and the report of its solver.
	Fitted M

	predictor *learners.Predictor
	dev       backend.Device
	bundle    modelfile.Bundle
	life      context.Context // context of the work that Close cancels
	end       context.CancelCauseFunc
	factors   run.Kept[factored]
	use       sync.RWMutex // held for reading by the methods that need the device
	cleanup   runtime.Cleanup
}

// ErrClosed is the error of a Model or Factor that is closed, nil or zero.
var ErrClosed = run.ErrClosed

// begin is called by the methods that need the device. If it returns nil, the caller must call m.use.RUnlock.
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

// Fit fits a learner to n×d samples, one per row, and n×t targets. A *mat.Dense or *mat.VecDense is
// not copied, and x and y are not changed. x may be a backend.CSR; learners whose
// learners.Description sets Sparse make no dense copy of it.
//
// If the learner's kernel is kernels.Precomputed, x may be the symmetric n×n Gram matrix of the samples. The methods of
// the model then take the m×n kernel values of m new rows with the samples. The method Neighbors, and the method Std of
// a Gaussian process, also need the kernel value of each new row with itself: pass the result of gram.OtherPoints.
//
// The device memory of the model is released by Close or when the model is garbage collected.
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

// FitTable fits a learner to a table. r names the target columns, the weight column and the columns to ignore, and
// specifies how the other columns become features. For a classifier set r.Labels. The rules are part of the model
// and are saved with it; Encode applies the rules to rows of such tables.
//
// If the rules name a column of texts or trees as the whole input, Options.Objects must be the kernel on it. In
// this case, and if the table is a Gram matrix, the learner's kernel must be kernels.Precomputed{}.
func FitTable[M learners.Model](ctx context.Context, l Learner[M], t *dataset.Table, r dataset.Rules, o Options) (*Model[M], error) {
	switch {
	case l == nil:
		return nil, errors.New("mercer: fit: the learner is missing")
	case t == nil:
		return nil, errors.New("mercer: fit: the table is missing")
	case (r.Text != "" || r.Tree != "") != (o.Objects != nil):
		return nil, errors.New("mercer: fit: rules.Text or rules.Tree names a column, and Options.Objects is the kernel for its cells: give both or neither")
	case r.Text != "" && o.Objects.Input() != objects.Text, r.Tree != "" && o.Objects.Input() != objects.Tree:
		return nil, fmt.Errorf("mercer: fit: Options.Objects is %v, a kernel for %ss, but the column that the rules name holds no %[2]ss", o.Objects, o.Objects.Input())
	case len(r.Targets) == 0:
		return nil, errors.New("mercer: fit: rules.Targets names no column")
	case r.Weight != "" && o.Weights != nil:
		return nil, errors.New("mercer: fit: Options.Weights is not used where rules.Weight names the column of the weights: give only one of the two")
	case o.Centers != nil:
		return nil, errors.New("mercer: fit: Options.Centers is not used here, because a table's cells are encoded as numbers by its rules: encode the table and call Fit")
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
	if o.Keys == nil { // so that the centers equal the centers that the command draws
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
		return nil, errors.New("mercer: fit: the features are kernel values: set the kernel of the learner to kernels.Precomputed{}")
	}
	return newModel(dev, fitted, modelfile.Bundle{Model: fitted, Encoder: e, Objects: trained})
}

// FitRows fits learners.NystromRidge, learners.FourierRidge or the result of MakeRows of a learners.Description to
// samples that need not fit into memory. It reads data in passes, a block of rows at a time. data is the program's
// own solvers.Rows, or a learners.Rows, which reads a file; the encoding rules of the file then become part of the
// model, as with FitTable. data includes the weights and keys of the samples. The options Device, Centers, Classes,
// Memory, Progress and Checkpoint of o are used.
func FitRows[M learners.Model](ctx context.Context, l interface {
	FitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o learners.Options) (M, error)
}, data solvers.Rows, o Options) (*Model[M], error) {
	if l == nil || data == nil {
		return nil, errors.New("mercer: fit rows: the learner or the samples are missing")
	}
	if err := o.checkUnused("fit rows", "Centers", "Classes", "Memory", "Progress", "Checkpoint"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	b := modelfile.Bundle{}
	if table, ok := data.(interface{ Encoder() *dataset.Encoder }); ok {
		if b.Encoder = table.Encoder(); o.Classes == nil {
			o.Classes = b.Encoder.Classes()
		}
	}
	fitted, err := l.FitRows(ctx, dev, data, o.Options)
	if err != nil {
		return nil, err
	}
	b.Model = fitted
	return newModel(dev, fitted, b)
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

// Close cancels the work of Prepare, waits for running methods, and releases the device memory.
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

// Save writes the model, including its encoding rules, to a file that the command mercer and Load can read. The
// file is created or replaced atomically.
func (m *Model[M]) Save(path string) error {
	if err := m.begin("save"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	return modelfile.Save(path, m.bundle)
}

// Write writes the model to w in the format of Save.
func (m *Model[M]) Write(w io.Writer) error {
	if err := m.begin("write"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	return modelfile.Write(w, m.bundle)
}

// WriteONNX writes the model in the format ONNX, with numbers of 64 or 32 bits. The input "x" of the graph has a
// row for each sample and a column for each entry of Encoder().FeatureNames. Numeric columns hold the numbers of
// the table, with NaN for a missing cell; the graph standardizes them. Columns of categories hold 0 or 1. For a
// model of a Gram matrix the columns are the kernel values with the training rows. The output of a regression model
// is "prediction", n×t. The outputs of a classifier are "label", n texts, "decision", in the form of
// learners.Classifier.Decision, and "probabilities", n×K, if the model has them. WriteONNX returns an error for a
// model of texts or trees. For a row that makes Predict return an error, the graph returns NaN or an infinity.
func (m *Model[M]) WriteONNX(w io.Writer, bits int) error {
	if err := m.begin("write ONNX"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	if bits != 64 && bits != 32 {
		return fmt.Errorf("mercer: write ONNX: the numbers must have 64 or 32 bits, got %d", bits)
	}
	if _, err := onnx.Write(w, m.bundle, bits == 32); err != nil {
		return fmt.Errorf("mercer: write %w", err)
	}
	return nil
}

// Load reads a model that Save or the command mercer fit wrote. Only o.Device is used.
func Load(path string, o Options) (*Model[learners.Model], error) {
	return load("load", o, func() (modelfile.Bundle, error) { return modelfile.Load(path) })
}

// Read reads a model like Load, but from r, whose first size bytes are the contents of a model file.
func Read(r io.ReaderAt, size int64, o Options) (*Model[learners.Model], error) {
	return load("read", o, func() (modelfile.Bundle, error) { return modelfile.Read(r, size) })
}

func load(operation string, o Options, read func() (modelfile.Bundle, error)) (*Model[learners.Model], error) {
	if err := o.checkUnused(operation); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	b, err := read()
	if err != nil {
		return nil, err
	}
	return newModel(dev, b.Model, b)
}

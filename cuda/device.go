package cuda

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/cuda/internal/ptx"
)

// device is a GPU that was opened.
type device struct {
	api    *driver.API
	props  properties
	name   string
	exec   *executor
	memory memory
	closed atomic.Bool

	// borrowed means that the device does not own its context, so that Close does not release it. The reference
	// `owner` prevents the garbage collection of the context's owner.
	borrowed bool
	owner    any

	f32 *engine[float32]
	f64 *engine[float64]

	// The following fields are used on the executor's thread only.
	stream     driver.Stream
	copies     driver.Stream   // stream for copies that run beside the queued work
	marks      [2]driver.Event // marks[i] occurs when the work before the last call of Mark(i) is done
	copiesDone driver.Event    // occurs at the end of the copies for which later work must wait
	module     driver.Module
	functions  map[string]driver.Function
	libraries  driver.Libraries
	args       *driver.Args
	staging    [2]stage
	nextStage  int // index of the staging buffer for the next part of an upload
	ring       ring
	spare      spare
	pool       pool
	window     window
	info       driver.DevicePtr // status of factorizations
	reduced    bool             // whether products of float32 currently use TF32
	noHalf     bool             // whether cuBLAS has refused products with factors in FP16

	mu       sync.Mutex // guards fatalErr, freeErr and stores
	fatalErr error      // the error that made the context unusable, or nil
	stores   []closer   // stores to close with the device
	freeErr  error      // the error of a Free, which Close returns
}

// engine is a device in one precision.
type engine[T backend.Float] struct {
	device *device
	suffix string // suffix of the device functions' names
}

// open opens a device by its number. On failure it releases everything that it has allocated.
func open(api *driver.API, ordinal int, c backend.Config) (*device, error) {
	p, err := probe(api, ordinal)
	if err != nil {
		return nil, unavailable(ordinal, err)
	}
	context, err := api.RetainPrimary(p.handle)
	if err != nil {
		return nil, unavailable(ordinal, err)
	}
	d, err := openIn(api, p, ordinal, context, c)
	if err != nil {
		api.ReleasePrimary(p.handle)
		return nil, unavailable(ordinal, err)
	}
	return d, nil
}

// openIn opens a device that works in the given context.
func openIn(api *driver.API, p properties, ordinal int, context driver.Context, c backend.Config) (*device, error) {
	d := &device{api: api, props: p, name: fmt.Sprintf("cuda/%d", ordinal), functions: map[string]driver.Function{}, args: driver.NewArgs()}
	d.f32 = &engine[float32]{d, "_f32"}
	d.f64 = &engine[float64]{d, "_f64"}
	var err error
	if d.exec, err = newExecutor(api, context); err != nil {
		return nil, err
	}
	d.exec.do(func() { err = d.start(c) })
	if err != nil {
		d.exec.do(func() { d.stop() })
		d.exec.close()
		return nil, err
	}
	return d, nil
}

// prepare checks that a new device computes correctly, and then sets its budget. The check comes first, because the
// libraries and the driver allocate memory on first use.
func (d *device) prepare(ordinal int, c backend.Config) error {
	err := d.check()
	if err == nil {
		d.exec.do(func() { err = errors.Join(d.emptyPool(), d.budget(c)) })
	}
	if err != nil {
		return errors.Join(unavailable(ordinal, err), d.Close())
	}
	return nil
}

func unavailable(ordinal int, err error) error {
	return fmt.Errorf("%w: cuda/%d: %w", backend.ErrUnavailable, ordinal, err)
}

// start creates the stream and loads the functions and the libraries.
func (d *device) start(c backend.Config) (err error) {
	for _, s := range []*driver.Stream{&d.stream, &d.copies} {
		if *s, err = d.api.NewStream(); err != nil {
			return err
		}
	}
	for _, e := range []*driver.Event{&d.marks[0], &d.marks[1], &d.copiesDone} {
		if *e, err = d.api.NewEvent(false); err != nil {
			return err
		}
	}
	if d.module, err = d.load(); err != nil {
		return err
	}
	version, err := d.api.Version()
	if err != nil {
		return err
	}
	d.libraries = driver.OpenLibraries(version)
	if b := d.libraries.Blas; b != nil {
		b.Failed = d.handleFailure
		if err := errors.Join(b.SetStream(d.stream), b.Deterministic()); err != nil {
			return err
		}
	}
	if s := d.libraries.Solver; s != nil {
		s.Failed = d.handleFailure
		if err := s.SetStream(d.stream); err != nil {
			return err
		}
	}
	for i := range d.staging {
		if err := d.staging[i].open(d.api); err != nil {
			return err
		}
	}
	if d.ring.memory, err = d.api.AllocHost(ringBytes); err != nil {
		return err
	}
	if err := d.window.open(d.api); err != nil {
		return err
	}
	if d.info, err = d.api.MemAlloc(infoBytes); err != nil {
		return err
	}
	return d.budget(c)
}

// envCode is an environment variable for developers: a file with device functions (GPU code or PTX) that are loaded
// instead of the embedded functions.
const envCode = "MERCER_CUDA_CODE"

// load loads the code compiled for the GPU, or PTX if there is no such code or the driver rejects it.
func (d *device) load() (driver.Module, error) {
	if path := os.Getenv(envCode); path != "" {
		image, err := os.ReadFile(path)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", envCode, err)
		}
		module, err := d.api.Load(image)
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", envCode, path, err)
		}
		return module, nil
	}
	code, err := ptx.Code(d.props.major, d.props.minor)
	if err != nil {
		return 0, err
	}
	if code != nil {
		module, err := d.api.Load(code)
		var e *driver.Error
		if !errors.As(err, &e) || driver.Result(e.Code) == driver.OutOfMemory || driver.Result(e.Code).Sticky() {
			return module, err
		}
	}
	text, err := ptx.For(d.props.major, d.props.minor)
	if err != nil {
		return 0, err
	}
	return d.api.Load(text)
}

// budget sets the number of bytes available to matrices: the larger of (free memory − leftFree) and
// 15/16 of the free memory. A positive c.Memory is an upper bound of this number.
func (d *device) budget(c backend.Config) error {
	free, _, err := d.api.MemInfo()
	if err != nil {
		return err
	}
	limit := free - min(free/16, leftFree)
	if c.Memory > 0 {
		limit = min(limit, c.Memory)
	}
	d.memory.setLimit(limit)
	return nil
}

// handleFailure handles a failed call of cuBLAS or cuSOLVER. If the driver reports an error, that error is the
// cause and is returned. If the library may have lacked memory and the pool holds memory, handleFailure returns the
// pooled memory to the driver, and retry = true.
func (d *device) handleFailure(e *driver.Error) (retry bool, err error) {
	if err := d.api.Wait(d.stream); err != nil {
		return false, fmt.Errorf("%w, after %w", err, e)
	}
	// These two codes may mean a lack of memory.
	ambiguous := strings.HasSuffix(e.Name, "EXECUTION_FAILED") || strings.HasSuffix(e.Name, "INTERNAL_ERROR")
	if d.pool.pooledBytes > 0 && (e.OutOfMemory() || ambiguous) {
		err := d.emptyPool()
		return err == nil, err
	}
	if e.OutOfMemory() {
		return false, fmt.Errorf("%w: %w", backend.ErrMemory, e)
	}
	return false, e
}

// leftFree is the number of bytes of a large card that matrices may not use: for the workspace of cuSOLVER, copies
// of factors in FP16, inverses of diagonal blocks, partial sums, and 256 MiB for cuBLAS and loaded code.
const leftFree = 1 << 30

func (d *device) stop() error {
	var errs []error
	collect := func(err error) { errs = append(errs, err) }
	for _, s := range []driver.Stream{d.copies, d.stream} {
		if s != 0 {
			collect(d.api.Wait(s))
		}
	}
	d.mu.Lock()
	stores := d.stores
	d.stores = nil
	d.mu.Unlock()
	for _, s := range stores {
		collect(s.close())
	}
	for _, p := range d.memory.clear() {
		collect(d.api.MemFree(p))
	}
	if d.info != 0 {
		collect(d.api.MemFree(d.info))
	}
	collect(d.spare.close(d))
	collect(d.emptyPool())
	if d.ring.memory != nil {
		collect(d.api.FreeHost(d.ring.memory))
	}
	collect(d.window.close(d.api))
	for i := range d.staging {
		collect(d.staging[i].close(d.api))
	}
	if s := d.libraries.Solver; s != nil {
		collect(s.Close())
	}
	if b := d.libraries.Blas; b != nil {
		collect(b.Close())
	}
	if d.module != 0 {
		collect(d.api.Unload(d.module))
	}
	for _, e := range []driver.Event{d.marks[0], d.marks[1], d.copiesDone} {
		if e != 0 {
			collect(d.api.DestroyEvent(e))
		}
	}
	for _, s := range []driver.Stream{d.copies, d.stream} {
		if s != 0 {
			collect(d.api.DestroyStream(s))
		}
	}
	return errors.Join(errs...)
}

func (d *device) function(name string) (driver.Function, error) {
	if f, ok := d.functions[name]; ok {
		return f, nil
	}
	f, err := d.api.Function(d.module, name)
	if err == nil {
		d.functions[name] = f
	}
	return f, err
}

// launch queues a device function whose arguments are in d.args.
func (d *device) launch(name string, g driver.Grid) error {
	f, err := d.function(name)
	if err != nil {
		return err
	}
	return d.api.Launch(f, g, d.stream, d.args)
}

func (d *device) Info() backend.Info {
	i := d.props.info(d.name, d.libraries)
	i.Memory = d.memory.limitBytes()
	return i
}

func (d *device) F32() backend.Backend[float32] { return &queue[float32]{engine: d.f32} }
func (d *device) F64() backend.Backend[float64] { return &queue[float64]{engine: d.f64} }

func (d *device) InUse() (current, peak int64) { return d.memory.inUse() }

// Sync waits for all work.
func (d *device) Sync() error {
	var err error
	if d.closed.Load() {
		return nil
	}
	d.exec.do(func() { err = d.api.Wait(d.stream) })
	return d.checked("sync", err)
}

// Close waits for all work, then releases everything.
func (d *device) Close() error {
	if !d.closed.CompareAndSwap(false, true) {
		return nil
	}
	var err error
	d.exec.do(func() { err = d.checked("close", d.stop()) })
	d.exec.close()
	d.mu.Lock()
	err = errors.Join(d.freeErr, err)
	d.mu.Unlock()
	if d.borrowed {
		d.owner = nil
		return err
	}
	return errors.Join(err, d.api.ReleasePrimary(d.props.handle))
}

// freed records the error of a Free, because Free cannot return it.
func (d *device) freed(err error) {
	if err = d.checked("free", err); err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.freeErr == nil {
			d.freeErr = err
		}
	}
}

// Error is a failed call of the driver, cuBLAS or cuSOLVER.
type Error = driver.Error

// ErrLost means that the CUDA context, which all devices and libraries of the process share, is no longer valid.
// The process must be restarted to use the GPU again. Test for it by errors.Is(err, ErrLost).
var ErrLost = errors.New("cuda: the device is lost")

// checked adds the name of the device to an error, and records an error that made the context unusable.
func (d *device) checked(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *driver.Error
	if errors.As(err, &e) && driver.Result(e.Code).Sticky() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fatalErr == nil {
			d.fatalErr = fmt.Errorf("%s: %s: %w: restart the program: %w", d.name, op, ErrLost, err)
		}
		return d.fatalErr
	}
	return fmt.Errorf("%s: %s: %w", d.name, op, err)
}

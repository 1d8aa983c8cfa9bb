// Package pypeer fits models with other libraries in Python processes, for comparison: scikit-learn (with LIBSVM
// in it), torch, cupy, gpytorch, R's glmnet, LIBLINEAR and LIBSVM. A library that is not installed is omitted.
//
// Each library runs in a process of its own, which measures the times itself. The times include transfers to a GPU
// and back, but not the start of the process, the imports or the communication.
package pypeer

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/mercer-go/mercer/backend"
)

//go:embed peers.py
var script string

// Names lists the libraries that Finder.Open can open.
func Names() []string {
	return []string{"scikit-learn", "torch", "cupy", "gpytorch", "glmnet", "liblinear", "libsvm"}
}

// ErrMissing is the error (errors.Is) of Finder.Open if no interpreter has the library.
var ErrMissing = errors.New("not found")

// Interpreters lists the default Python interpreters: the interpreter of the system, and the first interpreter in PATH.
func Interpreters() []string {
	list := []string{"/usr/bin/python3"}
	if path, err := exec.LookPath("python3"); err == nil && path != list[0] {
		list = append(list, path)
	}
	return list
}

// Finder finds, for each Python library, an interpreter that can import the library.
type Finder struct {
	pythonOf map[string]string // path of the interpreter for each library
	searched []string
	failures []string
}

// NewFinder runs the interpreters, in order, to find their libraries. nil selects Interpreters().
func NewFinder(ctx context.Context, interpreters []string) *Finder {
	if interpreters == nil {
		interpreters = Interpreters()
	}
	f := &Finder{pythonOf: map[string]string{}, searched: interpreters}
	for _, python := range interpreters {
		c := exec.CommandContext(ctx, python, "-c", script, "probe")
		var names []string
		out, err := c.Output()
		if err == nil {
			err = json.Unmarshal(out, &names)
		}
		if err != nil {
			f.failures = append(f.failures, fmt.Sprintf("%s: %v", python, err))
			continue
		}
		for _, name := range names {
			if f.pythonOf[name] == "" {
				f.pythonOf[name] = python
			}
		}
	}
	return f
}

// Open starts a process with the library and the given number of threads. It returns ErrMissing if the library is not
// installed. If the library cannot be used, such as cupy without a GPU, it returns an error with the library's message.
func (f *Finder) Open(ctx context.Context, library string, threads int) (*Process, error) {
	python := f.pythonOf[library]
	if python == "" {
		text := "looked in " + strings.Join(f.searched, ", ")
		if len(f.failures) > 0 {
			text += " (" + strings.Join(f.failures, "; ") + ")"
		}
		return nil, fmt.Errorf("%w: %s; %s", ErrMissing, library, text)
	}
	return start(ctx, python, library, threads)
}

// Process is a process that runs a library. Only one goroutine may use it.
type Process struct {
	Path   string // path of the interpreter
	Detail string // versions of the library, and the device that it computes on

	library string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  bytes.Buffer
	err     error
}

// coreType is the environment variable that overrides the processor type that OpenBLAS detects.
const coreType = "OPENBLAS_CORETYPE"

// environment returns variables for the process, with a core type: an old OpenBLAS does not detect AVX-512.
func environment(threads int) []string {
	list := []string{"PYTHONWARNINGS=ignore"}
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		list = append(list, fmt.Sprintf("%s=%d", name, threads))
	}
	x := &cpu.X86
	if runtime.GOARCH == "amd64" && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL && os.Getenv(coreType) == "" {
		list = append(list, coreType+"=SkylakeX")
	}
	return list
}

func start(ctx context.Context, python, library string, threads int) (*Process, error) {
	p := &Process{Path: python, library: library, cmd: exec.CommandContext(ctx, python, "-u", "-c", script)}
	p.cmd.Env = append(os.Environ(), environment(threads)...)
	p.cmd.Stderr = &p.errors
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<20)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("pypeer: %s: %w", library, err)
	}
	a, err := p.request(map[string]any{"do": "load", "library": library}, nil)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.Detail = a.Detail
	return p, nil
}

type answer struct {
	Error   string
	Detail  string
	Seconds float64
	Shape   []int
}

// request sends a command, followed by data, and returns the answer, or the reason why the process has ended.
func (p *Process) request(command map[string]any, data []byte) (answer, error) {
	var a answer
	if p.err != nil {
		return a, p.err
	}
	line, err := json.Marshal(command)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	if err == nil && len(data) > 0 {
		_, err = p.in.Write(data)
	}
	var text []byte
	if err == nil {
		text, err = p.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		p.err = fmt.Errorf("pypeer: %s: the process has ended: %w", p.library, p.exitError(err))
		return a, p.err
	}
	if a.Error != "" {
		return a, fmt.Errorf("pypeer: %s: %s", p.library, a.Error)
	}
	return a, nil
}

// exitError waits for the end of the process and returns an error with the last line of the standard error.
func (p *Process) exitError(err error) error {
	p.in.Close()
	if end := p.cmd.Wait(); end != nil {
		err = end
	}
	lines := strings.Split(strings.TrimSpace(p.errors.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// Put sends an array of rows × cols numbers to the process. If cols = 0, the array is a vector.
func Put[T backend.Float](p *Process, name string, rows, cols int, values []T) error {
	shape, size := []int{rows, cols}, int(unsafe.Sizeof(T(0)))
	if cols == 0 {
		shape, cols = shape[:1], 1
	}
	var data bytes.Buffer
	data.Grow(rows * cols * size)
	if err := binary.Write(&data, binary.LittleEndian, values[:rows*cols]); err != nil {
		return err
	}
	_, err := p.request(map[string]any{"do": "put", "name": name, "dtype": fmt.Sprintf("<f%d", size), "shape": shape}, data.Bytes())
	return err
}

// Run runs a task of peers.py in the library and returns its time.
func (p *Process) Run(task string, parameters map[string]any) (time.Duration, error) {
	command := map[string]any{"do": "run", "task": task}
	maps.Copy(command, parameters)
	a, err := p.request(command, nil)
	return time.Duration(a.Seconds * float64(time.Second)), err
}

// Get returns the array with the given name, in float64. A vector becomes one column.
func (p *Process) Get(name string) (backend.Host[float64], error) {
	a, err := p.request(map[string]any{"do": "get", "name": name}, nil)
	if err != nil {
		return backend.Host[float64]{}, err
	}
	rows, cols := 1, 1
	if len(a.Shape) > 0 {
		rows = a.Shape[0]
	}
	for _, size := range a.Shape[min(1, len(a.Shape)):] {
		cols *= size
	}
	h := backend.NewHost[float64](rows, cols)
	if err := binary.Read(p.out, binary.LittleEndian, h.Data); err != nil {
		p.err = fmt.Errorf("pypeer: %s: the process has ended: %w", p.library, p.exitError(err))
		return h, p.err
	}
	return h, nil
}

// Clear makes the process delete its arrays, including arrays on a GPU.
func (p *Process) Clear() error {
	_, err := p.request(map[string]any{"do": "clear"}, nil)
	return err
}

// Close ends the process.
func (p *Process) Close() {
	if p.err != nil {
		return // the process has ended
	}
	p.err = fmt.Errorf("pypeer: %s: the process has been closed", p.library)
	p.in.Close()
	_ = p.cmd.Wait() // ignore the exit status
}

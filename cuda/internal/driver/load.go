package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// EnvLibraries is the environment variable that names a folder that is searched for the libraries
// before any other folder.
const EnvLibraries = "MERCER_CUDA_LIBDIR"

// loader opens shared libraries; tests replace it.
type loader struct {
	open     func(path string) (uintptr, error)
	symbol   func(library uintptr, name string) (uintptr, error)
	call     func(function uintptr, args ...uintptr) uintptr
	env      func(string) string
	exists   func(path string) bool
	lookPath func(program string) (path string, err error)
	mapped   func(file string) (path string) // path of a library that was opened by its file name, or "" if unknown
}

var system = loader{open: openLibrary, symbol: findSymbol, call: callC, env: os.Getenv, exists: exists, lookPath: exec.LookPath, mapped: mapped}

// mapped returns the path where the system's loader found a library, with symbolic links resolved,
// so that the file name includes the version.
func mapped(file string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 {
			if path := strings.TrimSpace(line[i:]); strings.HasPrefix(filepath.Base(path), file) {
				return path
			}
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Open opens the driver's library and looks up its functions.
func Open() (*API, error) {
	if errSystem != nil {
		return nil, errSystem
	}
	return system.driver()
}

func (l loader) driver() (*API, error) {
	folders := []string{"", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"}
	handle, path, err := l.openFirst("libcuda.so.1", nil, folders)
	if err != nil {
		return nil, fmt.Errorf("the NVIDIA driver is not installed: %w", err)
	}
	symbols, err := l.bind(handle, path, driverTable)
	if err != nil {
		return nil, err
	}
	return &API{Call: l.caller(), Path: path, symbols: symbols}, nil
}

// caller returns a function that calls symbols and returns their 32-bit results.
func (l loader) caller() func(s *Symbol, args ...uintptr) int32 {
	return func(s *Symbol, args ...uintptr) int32 { return int32(l.call(s.addr, args...)) }
}

// openFirst tries to open the file in each folder, in order, until it succeeds. The folder "" means the system's
// loader. The folder of MERCER_CUDA_LIBDIR comes first. If the file cannot be opened, openFirst opens the
// dependencies, if possible from the same folder, and tries again. The error lists every path that was tried.
func (l loader) openFirst(file string, dependencies, folders []string) (handle uintptr, path string, err error) {
	if dir := l.env(EnvLibraries); dir != "" {
		folders = append([]string{dir}, folders...)
	}
	var errs []error
	for _, folder := range folders {
		path := file
		if folder != "" {
			path = filepath.Join(folder, file)
			if !l.exists(path) {
				errs = append(errs, fmt.Errorf("%s: does not exist", path))
				continue
			}
		}
		handle, err := l.open(path)
		if err != nil && len(dependencies) > 0 {
			for _, dependency := range dependencies {
				l.openFirst(dependency, nil, append([]string{folder}, folders...))
			}
			handle, err = l.open(path)
		}
		if err == nil {
			return handle, path, nil
		}
		errs = append(errs, err)
	}
	return 0, "", lines(errs)
}

// lines joins the messages of errors into one line.
func lines(errs []error) error {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return errors.New(strings.Join(texts, "; "))
}

func (l loader) bind(handle uintptr, path string, table []Symbol) ([]Symbol, error) {
	symbols := slices.Clone(table)
	for i := range symbols {
		s := &symbols[i]
		addr, err := l.symbol(handle, s.Name)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: the library is too old or is a different one", path, s.Name)
		}
		s.addr = addr
	}
	return symbols, nil
}

// toolkit lists the libraries of one CUDA release by their file names, dependencies first. cuSOLVER
// and cuBLAS must be of the same release.
type toolkit struct {
	major        int
	blasNeeds    []string
	blas         string
	solverNeeds  []string
	solver       string
	pythonFolder []string // folders below site-packages/nvidia
}

var toolkits = []toolkit{
	{13, []string{"libcublasLt.so.13"}, "libcublas.so.13", []string{"libnvJitLink.so.13", "libcusparse.so.12"}, "libcusolver.so.12", []string{"cu13/lib"}},
	{12, []string{"libcublasLt.so.12"}, "libcublas.so.12", []string{"libnvJitLink.so.12", "libcusparse.so.12"}, "libcusolver.so.11", []string{"cublas/lib", "cusolver/lib", "cusparse/lib", "nvjitlink/lib"}},
	{11, []string{"libcublasLt.so.11"}, "libcublas.so.11", []string{"libcusparse.so.11"}, "libcusolver.so.11", []string{"cublas/lib", "cusolver/lib", "cusparse/lib"}},
}

// Libraries holds the libraries found in addition to the driver. A library that was not found is
// nil, and its error lists the searched paths.
type Libraries struct {
	Blas      *Blas
	Solver    *Solver
	BlasErr   error
	SolverErr error
}

// OpenLibraries opens cuBLAS and cuSOLVER of the newest release that the driver supports.
// It must be called on a thread that has a context.
func OpenLibraries(driverVersion int) Libraries { return system.libraries(driverVersion, true) }

// ProbeLibraries finds the same libraries as OpenLibraries on a thread without a context. The libraries in the
// result cannot be called.
func ProbeLibraries(driverVersion int) Libraries { return system.libraries(driverVersion, false) }

// Used lists the files of the libraries that were found. Missing lists the missing libraries with
// their purpose and the searched paths, or returns "" if none is missing.
func (l Libraries) Used() string {
	used := "driver"
	if l.Blas != nil {
		used += ", " + filepath.Base(l.Blas.Path)
	}
	if l.Solver != nil {
		used += ", " + filepath.Base(l.Solver.Path)
	}
	return used
}

func (l Libraries) Missing() string {
	switch {
	case l.Blas == nil:
		return fmt.Sprintf("cuBLAS, for products and factorizations at the full rate, and cuSOLVER: %v", l.BlasErr)
	case l.Solver == nil:
		return fmt.Sprintf("cuSOLVER, for faster factorizations: %v", l.SolverErr)
	}
	return ""
}

func (l loader) libraries(driverVersion int, create bool) Libraries {
	var out Libraries
	var errs []error
	for _, t := range toolkits {
		if t.major > driverVersion/1000 {
			errs = append(errs, fmt.Errorf("%s: needs a newer driver than the installed one, which supports CUDA %d", t.blas, driverVersion/1000))
			continue
		}
		folders := append([]string{""}, l.folders(t)...)
		handle, path, err := l.openFirst(t.blas, t.blasNeeds, folders)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out.Blas, err = l.newBlas(handle, path, create)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// Prefer the cuSOLVER in the folder of cuBLAS.
		if path == t.blas {
			path = l.mapped(t.blas)
		}
		if path != "" {
			folders = append([]string{filepath.Dir(path)}, folders...)
		}
		if handle, path, err = l.openFirst(t.solver, t.solverNeeds, folders); err == nil {
			out.Solver, err = l.newSolver(handle, path, create)
		}
		out.SolverErr = err
		return out
	}
	out.BlasErr = lines(errs)
	out.SolverErr = errors.New("cuSOLVER needs cuBLAS")
	return out
}

// folders lists the folders where installers of the toolkit and Python packages put libraries.
func (l loader) folders(t toolkit) []string {
	list := []string{fmt.Sprintf("/usr/local/cuda-%d/lib64", t.major), "/usr/local/cuda/lib64"}
	if runtime.GOARCH == "amd64" {
		list = append(list, "/usr/lib/x86_64-linux-gnu")
	} else {
		list = append(list, "/usr/lib/aarch64-linux-gnu")
	}
	roots := []string{l.env("VIRTUAL_ENV"), l.env("CONDA_PREFIX")}
	// The python3 on the path may belong to an environment that is not activated. If python3 is a link, its
	// environment is the folder of the link.
	if python, err := l.lookPath("python3"); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(python)))
	}
	if conda := l.env("CONDA_PREFIX"); conda != "" {
		list = append(list, filepath.Join(conda, "lib"))
	}
	seen := map[string]bool{"": true}
	for _, root := range append(roots, "/usr/local", "/usr") {
		if seen[root] {
			continue
		}
		seen[root] = true
		for minor := 14; minor >= 8; minor-- {
			for _, packages := range []string{"site-packages", "dist-packages"} {
				base := filepath.Join(root, "lib", fmt.Sprintf("python3.%d", minor), packages, "nvidia")
				for _, folder := range t.pythonFolder {
					if path := filepath.Join(base, folder); l.exists(path) {
						list = append(list, path)
					}
				}
			}
		}
	}
	return list
}

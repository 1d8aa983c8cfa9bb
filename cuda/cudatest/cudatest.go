// Package cudatest builds simulations of NVIDIA's libraries: a driver, cuBLAS and cuSOLVER that compute on the CPU.
// The device functions of package ptx are compiled by the system's C++ compiler from the same source as for a GPU.
//
// As with a real driver, a call with a wrong thread, context or handle returns an error, and new memory is not
// zeroed. A guard page after each allocation ends the process if a device function accesses memory beyond the end.
package cudatest

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/mercer-go/mercer/cuda/internal/ptx"
)

//go:embed sim
var sim embed.FS

// Level selects the simulated libraries that are present in addition to the driver.
type Level int

const (
	DriverOnly Level = iota
	WithBlas
	WithSolver
)

// ErrNoCompiler is the error of Build if there is no C++ compiler.
var ErrNoCompiler = errors.New("cudatest: there is no C++ compiler (g++ or clang++)")

// Build puts the libraries of a level into folder, which can then be the value of MERCER_CUDA_LIBDIR. The objects
// are cached in the system's folder for temporary files, by the hash of their sources.
func Build(folder string, level Level) error {
	files := map[string]string{"libcuda.so.1": "driver", "libcublas.so.12": "blas", "libcusolver.so.11": "solver"}
	names := []string{"libcuda.so.1", "libcublas.so.12", "libcusolver.so.11"}[:level+1]
	cache, err := compiled()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Symlink(filepath.Join(cache, files[name], name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// compiled returns the folder of the compiled libraries. The first call builds them.
var compiled = sync.OnceValues(func() (string, error) {
	compiler := ""
	for _, name := range []string{"g++", "clang++"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return "", ErrNoCompiler
	}
	hash := sha256.New()
	sources := map[string]string{}
	err := fs.WalkDir(sim, "sim", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sim.ReadFile(path)
		sources[filepath.Base(path)] = string(text)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, name := range ptx.Names() {
		sources[name] = ptx.Sources()[name]
		fmt.Fprintf(hash, "%s\n%s", name, sources[name])
	}
	fmt.Fprintf(hash, "%s\n", compiler)
	cache := filepath.Join(os.TempDir(), fmt.Sprintf("mercer-cudatest-%d-%x", os.Getuid(), hash.Sum(nil)[:8]))
	if _, err := os.Stat(cache); err == nil {
		return cache, nil
	}
	work, err := os.MkdirTemp("", "mercer-cudatest-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	for _, l := range []struct {
		folder, name string
		args         []string
	}{
		{"driver", "libcuda.so.1", []string{"driver.cpp", "fibers.cpp", "kernels.cpp"}},
		{"blas", "libcublas.so.12", []string{"blas.cpp", "driver/libcuda.so.1"}},
		{"solver", "libcusolver.so.11", []string{"solver.cpp", "driver/libcuda.so.1"}},
	} {
		if err := os.Mkdir(filepath.Join(work, l.folder), 0o755); err != nil {
			return "", err
		}
		args := append([]string{"-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-Wl,-soname," + l.name, "-o", filepath.Join(l.folder, l.name)}, l.args...)
		cmd := exec.Command(compiler, args...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cudatest: %s: %w\n%s", l.name, err, out)
		}
	}
	// If Rename fails because another process has built the same libraries meanwhile, use those libraries.
	if err := os.Rename(work, cache); err != nil {
		if _, statErr := os.Stat(cache); statErr != nil {
			return "", err
		}
	}
	return cache, nil
})

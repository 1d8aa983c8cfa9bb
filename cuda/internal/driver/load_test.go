package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// folder returns a loader for which only the given files exist. Every function in these files returns 0.
func folder(env map[string]string, files ...string) loader {
	there := map[string]bool{}
	for _, f := range files {
		there[f] = true
	}
	return loader{
		env:    func(name string) string { return env[name] },
		exists: func(path string) bool { return there[path] || dirOf(there, path) },
		open: func(path string) (uintptr, error) {
			if !there[path] {
				return 0, fmt.Errorf("%s: cannot open shared object file", path)
			}
			return 1, nil
		},
		symbol:   func(uintptr, string) (uintptr, error) { return 1, nil },
		call:     func(uintptr, ...uintptr) uintptr { return 0 },
		lookPath: func(string) (string, error) { return "", errors.New("not on the path") },
		mapped:   func(string) string { return "" },
	}
}

func dirOf(files map[string]bool, path string) bool {
	for f := range files {
		if strings.HasPrefix(f, path+"/") {
			return true
		}
	}
	return false
}

// TestNoDriver checks that the error without a driver is one line with every path that was tried.
func TestNoDriver(t *testing.T) {
	_, err := folder(map[string]string{EnvLibraries: "/mine"}).driver()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"the NVIDIA driver is not installed", "/mine/libcuda.so.1: does not exist", "libcuda.so.1: cannot open", "/usr/lib/wsl/lib/libcuda.so.1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

// TestDriverPlaces checks that the folder of the environment variable is tried first, and then the system's loader.
func TestDriverPlaces(t *testing.T) {
	l := folder(map[string]string{EnvLibraries: "/mine"}, "/mine/libcuda.so.1", "libcuda.so.1")
	if a, err := l.driver(); err != nil || a.Path != "/mine/libcuda.so.1" {
		t.Errorf("got %+v, %v", a, err)
	}
	if a, err := folder(nil, "libcuda.so.1").driver(); err != nil || a.Path != "libcuda.so.1" {
		t.Errorf("got %+v, %v", a, err)
	}
	incomplete := folder(nil, "libcuda.so.1")
	incomplete.symbol = func(_ uintptr, name string) (uintptr, error) {
		if name == "cuMemcpy2DAsync_v2" {
			return 0, errors.New("undefined symbol")
		}
		return 1, nil
	}
	if _, err := incomplete.driver(); err == nil || !strings.Contains(err.Error(), "libcuda.so.1 has no cuMemcpy2DAsync_v2") {
		t.Errorf("got %v", err)
	}
}

// TestToolkits checks that the chosen release is never newer than the driver, that cuSOLVER is
// taken from the folder of cuBLAS, and that the next release is tried if a release cannot be used.
func TestToolkits(t *testing.T) {
	files := func(dir string, names ...string) (list []string) {
		for _, n := range names {
			list = append(list, filepath.Join(dir, n))
		}
		return list
	}
	paths := append(files("/usr/local/cuda-13/lib64", "libcublas.so.13", "libcusolver.so.12"),
		files("/usr/local/cuda-12/lib64", "libcublas.so.12", "libcusolver.so.11")...)
	if l := folder(nil, paths...).libraries(13000, true); l.Blas == nil || l.Blas.Path != "/usr/local/cuda-13/lib64/libcublas.so.13" || l.Solver == nil || l.Solver.Path != "/usr/local/cuda-13/lib64/libcusolver.so.12" {
		t.Errorf("driver 13: got %+v", l)
	}
	if l := folder(nil, paths...).libraries(12040, true); l.Blas == nil || l.Blas.Path != "/usr/local/cuda-12/lib64/libcublas.so.12" || l.Solver == nil {
		t.Errorf("driver 12.4: got %+v", l)
	}
	l := folder(nil, paths...).libraries(11080, true)
	if l.Blas != nil || l.Solver != nil || !strings.Contains(l.BlasErr.Error(), "libcublas.so.12: needs a newer driver than the installed one, which supports CUDA 11") {
		t.Errorf("driver 11.8: got %+v", l)
	}
	if l := folder(nil, files("/usr/local/cuda/lib64", "libcublas.so.12")...).libraries(12040, true); l.Blas == nil || l.Solver != nil || !strings.Contains(l.SolverErr.Error(), "libcusolver.so.11") {
		t.Errorf("without cuSOLVER: got %+v", l)
	}
	python := files("/venv/lib/python3.12/site-packages/nvidia/cu13/lib", "libcublas.so.13", "libcusolver.so.12")
	if l := folder(map[string]string{"VIRTUAL_ENV": "/venv"}, python...).libraries(13000, true); l.Blas == nil || l.Solver == nil {
		t.Errorf("Python's libraries: got %+v", l)
	}
}

// TestPythonOnPath checks that libraries are searched in the environment of the python3 on the path, and in the
// folder lib of an activated Conda environment.
func TestPythonOnPath(t *testing.T) {
	venv := []string{"/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13", "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcusolver.so.12"}
	l := folder(nil, venv...)
	l.lookPath = func(program string) (string, error) { return "/opt/torch/.venv/bin/" + program, nil }
	if out := l.libraries(13000, true); out.Blas == nil || out.Blas.Path != venv[0] || out.Solver == nil || out.Solver.Path != venv[1] {
		t.Errorf("python3 on the path: %+v", out)
	}
	conda := []string{"/conda/lib/libcublas.so.12", "/conda/lib/libcusolver.so.11"}
	if out := folder(map[string]string{"CONDA_PREFIX": "/conda"}, conda...).libraries(12040, true); out.Blas == nil || out.Solver == nil {
		t.Errorf("Conda: %+v", out)
	}
}

// TestLibrariesOfOneRelease simulates two releases of CUDA, where the system's loader finds cuSPARSE of CUDA 12
// first. cuSOLVER must be opened from the folder of cuBLAS, and its dependencies only if it does not find them.
func TestLibrariesOfOneRelease(t *testing.T) {
	const oldFolder, newFolder = "/usr/local/cuda-12/lib64/", "/usr/local/cuda-13/lib64/"
	for _, ownPath := range []bool{true, false} { // whether cuSOLVER finds libraries in its own folder
		var opened []string
		there := map[string]bool{}
		for _, name := range []string{"libcublas.so.12", "libcusparse.so.12", "libcusolver.so.11", "libnvJitLink.so.12"} {
			there[oldFolder+name] = true
		}
		for _, name := range []string{"libcublas.so.13", "libcusparse.so.12", "libcusolver.so.12", "libnvJitLink.so.13"} {
			there[newFolder+name] = true
		}
		l := folder(nil)
		l.exists = func(path string) bool { return there[path] }
		l.mapped = func(file string) string { return newFolder + file + ".0.1" }
		l.open = func(path string) (uintptr, error) {
			if !strings.Contains(path, "/") { // the system's loader prefers the old release
				if there[oldFolder+path] {
					path = oldFolder + path
				} else {
					path = newFolder + path
				}
			}
			if path == newFolder+"libcusolver.so.12" && !ownPath && !slices.Contains(opened, newFolder+"libcusparse.so.12") || !there[path] {
				return 0, errors.New(path + ": cannot open shared object file")
			}
			opened = append(opened, path)
			return 1, nil
		}
		out := l.libraries(13000, true)
		if out.Solver == nil || out.Solver.Path != newFolder+"libcusolver.so.12" {
			t.Errorf("cuSOLVER is %+v", out)
		}
		for _, path := range opened {
			if strings.HasPrefix(path, oldFolder) {
				t.Errorf("%s is of the other release: %v", path, opened)
			}
		}
		if needs := slices.Contains(opened, newFolder+"libcusparse.so.12"); needs == ownPath {
			t.Errorf("opened %v", opened)
		}
	}
}

// TestMapped checks that mapped finds the path of a library that this process has opened by its name.
func TestMapped(t *testing.T) {
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		required.SkipOrFail(t, "proc", err)
	}
	if path := mapped("libc.so"); path != "" && !strings.HasPrefix(path, "/") {
		t.Errorf("libc is at %q", path)
	}
	if path := mapped("libnothere.so.1"); path != "" {
		t.Errorf("a library that is not there is at %q", path)
	}
	executable, err := os.Executable()
	if err == nil {
		executable, err = filepath.EvalSymlinks(executable)
	}
	if err != nil {
		t.Fatal(err)
	}
	if path := mapped(filepath.Base(executable)); path != executable {
		t.Errorf("this program is at %q, not %q", path, executable)
	}
}

// TestArgs tests that arguments are aligned as in C.
func TestArgs(t *testing.T) {
	a := NewArgs().Int(-1).Ptr(0x1122334455667788).Float(1).Double(2).Int(7).Long(-2)
	if a.size != 4+4+8+4+4+8+4+4+8 {
		t.Errorf("the arguments take %d bytes", a.size)
	}
	want := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 0, 0x80, 0x3f}
	if string(a.buf[:len(want)]) != string(want) {
		t.Errorf("got % x", a.buf[:len(want)])
	}
	if a.Reset().size != 0 {
		t.Error("Reset keeps arguments")
	}
}

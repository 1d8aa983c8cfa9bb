package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// folder is a loader for which only some files exist. Every function of theirs
// returns 0, unless its name is in fails.
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
		symbol: func(uintptr, string) (uintptr, error) { return 1, nil },
		call:   func(uintptr, ...uintptr) uintptr { return 0 },
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

// TestNoDriver: the error is one line with every path that was tried.
func TestNoDriver(t *testing.T) {
	_, err := folder(map[string]string{EnvLibraries: "/mine"}).driver()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"the NVIDIA driver is not installed", "/mine/libcuda.so.1: is not there", "libcuda.so.1: cannot open", "/usr/lib/wsl/lib/libcuda.so.1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

// TestDriverPlaces: the folder of the environment variable comes first, then
// what the system's loader finds.
func TestDriverPlaces(t *testing.T) {
	l := folder(map[string]string{EnvLibraries: "/mine"}, "/mine/libcuda.so.1", "libcuda.so.1")
	if a, err := l.driver(); err != nil || a.Path != "/mine/libcuda.so.1" {
		t.Errorf("got %+v, %v", a, err)
	}
	if a, err := folder(nil, "libcuda.so.1").driver(); err != nil || a.Path != "libcuda.so.1" {
		t.Errorf("got %+v, %v", a, err)
	}
	old := folder(nil, "libcuda.so.1")
	old.symbol = func(_ uintptr, name string) (uintptr, error) {
		if name == "cuMemcpy2DAsync_v2" {
			return 0, errors.New("undefined symbol")
		}
		return 1, nil
	}
	if _, err := old.driver(); err == nil || !strings.Contains(err.Error(), "libcuda.so.1 has no cuMemcpy2DAsync_v2") {
		t.Errorf("got %v", err)
	}
}

// TestToolkits: never newer than the driver, cuSOLVER beside its cuBLAS, and
// the next release when one does not work.
func TestToolkits(t *testing.T) {
	files := func(dir string, names ...string) (list []string) {
		for _, n := range names {
			list = append(list, filepath.Join(dir, n))
		}
		return list
	}
	all := append(files("/usr/local/cuda-13/lib64", "libcublas.so.13", "libcusolver.so.12"),
		files("/usr/local/cuda-12/lib64", "libcublas.so.12", "libcusolver.so.11")...)
	if l := folder(nil, all...).libraries(13000, true); l.Blas == nil || l.Blas.Path != "/usr/local/cuda-13/lib64/libcublas.so.13" || l.Solver == nil || l.Solver.Path != "/usr/local/cuda-13/lib64/libcusolver.so.12" {
		t.Errorf("driver 13: got %+v", l)
	}
	if l := folder(nil, all...).libraries(12040, true); l.Blas == nil || l.Blas.Path != "/usr/local/cuda-12/lib64/libcublas.so.12" || l.Solver == nil {
		t.Errorf("driver 12.4: got %+v", l)
	}
	l := folder(nil, all...).libraries(11080, true)
	if l.Blas != nil || l.Solver != nil || !strings.Contains(l.BlasErr.Error(), "libcublas.so.12: needs a newer driver, this one serves CUDA 11") {
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

// TestArgs: C's alignment.
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

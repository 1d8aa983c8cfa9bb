//go:build !cuda

package cuctx_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/internal/required"
)

// toolkit is an environment variable that names a folder with include/cuda.h of CUDA 11.8 or newer and
// lib/stubs/libcuda.so.
const toolkit = "MERCER_CUDA_TOOLKIT"

// TestWithCUDA builds the tests of this package with the tag cuda, NVIDIA's headers and its stub. It runs them on
// the simulated driver, or on the real driver if MERCER_REQUIRE names cuda.
func TestWithCUDA(t *testing.T) {
	root := os.Getenv(toolkit)
	for _, folder := range []string{"/usr/local/cuda", "/usr"} {
		if _, err := os.Stat(filepath.Join(folder, "include", "cuda.h")); root == "" && err == nil {
			root = folder
		}
	}
	if root == "" {
		required.SkipOrFail(t, "cudatoolkit", toolkit+" names no folder with include/cuda.h")
	}
	required.Program(t, "gcc", "gcc")
	program := filepath.Join(t.TempDir(), "cuctx.test")
	build := exec.Command("go", "test", "-tags", "cuda", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-I"+filepath.Join(root, "include"))
	stubs := ""
	for _, folder := range []string{"lib/stubs", "lib64/stubs", "lib/x86_64-linux-gnu/stubs"} {
		stubs += " -L" + filepath.Join(root, folder)
	}
	build.Env = append(build.Env, "CGO_LDFLAGS="+stubs)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	run := exec.Command(program, "-test.v", "-test.run", "SharedMemory|OpenNil")
	run.Env = os.Environ()
	if !required.Names("cuda") {
		folder := t.TempDir()
		if err := cudatest.Build(folder, cudatest.WithBlas); errors.Is(err, cudatest.ErrNoCompiler) {
			required.SkipOrFail(t, "g++", "it links, and", err)
		} else if err != nil {
			t.Fatal(err)
		}
		run.Env = append(run.Env, "MERCER_CUDA_LIBDIR="+folder, "LD_LIBRARY_PATH="+folder)
	}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestSharedMemory") {
		t.Fatalf("%v: %v\n%s", run, err, out)
	}
}

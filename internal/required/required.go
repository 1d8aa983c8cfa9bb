// Package required skips tests whose requirements are missing, such as a compiler, a library to compare with, an
// instruction set, or data. The skipped test reports the reason. If the environment variable MERCER_REQUIRE, a
// comma-separated list, names the requirement, the test fails instead. On a machine that meets all requirements,
// this variable can ensure that no test is skipped.
//
// The names are: avx512, avx2, neon (tiers), cuda (a GPU), cudatoolkit and ptxas (of CUDA 11.8, in the folder
// MERCER_CUDA_TOOLKIT), g++ (simulated CUDA libraries), gcc, llvm (its assembler, for the tests of tools/asmgen),
// sklearn, pytest, libsvm, onnxruntime and duckdb (of Node.js), kernlab, openblas, blis, mkl, chromium, curl, bash
// (with the package bash-completion), zsh, fish, groff, promtool, buildah (run by root), data (the larger data, in
// shared/data beside the repository), modules (a module proxy can be reached), proc (processes are listed in
// /proc), unfused (the compiler does not fuse multiplications with additions), chroot (a program can be started in
// another root folder), tagged (git and a cache of all modules, to use a release from another module), cases
// (tests run with -short, but are not limited by FewCases).
package required

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Python is the interpreter for which the packages of a Linux distribution install scikit-learn.
const Python = "/usr/bin/python3"

// Names reports whether MERCER_REQUIRE names the given requirement.
func Names(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("MERCER_REQUIRE"), ","), name)
}

// SkipOrFail ends a test whose requirement is missing: it skips the test, or fails it if
// MERCER_REQUIRE names the requirement.
func SkipOrFail(t testing.TB, name string, reasons ...any) {
	t.Helper()
	if Names(name) {
		t.Fatal(append([]any{"MERCER_REQUIRE names " + name + ":"}, reasons...)...)
	}
	t.Skip(append([]any{"without " + name + ":"}, reasons...)...)
}

// FewCases reports whether a test may run fewer, smaller and shorter cases: whether the flag -short is set and
// MERCER_REQUIRE does not name "cases". The test must still run a case of every kind.
func FewCases() bool { return testing.Short() && !Names("cases") }

// Subset returns list if FewCases is false. Otherwise it returns at most n elements of list, at equal
// distances, including the first element.
func Subset[T any](n int, list []T) []T {
	if !FewCases() || len(list) <= n {
		return list
	}
	selected := make([]T, n)
	for i := range selected {
		selected[i] = list[i*len(list)/n]
	}
	return selected
}

// Slow skips a test under the flag -short, with the given reason, unless MERCER_REQUIRE contains name.
func Slow(t testing.TB, name, reason string) {
	t.Helper()
	if testing.Short() && !Names(name) {
		t.Skip("-short: " + reason)
	}
}

// Program returns the path of the named program, or calls SkipOrFail if it is not installed.
func Program(t testing.TB, what, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		SkipOrFail(t, what, err)
	}
	return path
}

// sklearnError returns the reason why scikit-learn cannot be imported, or "".
var sklearnError = sync.OnceValue(func() string {
	if out, err := exec.Command(Python, "-c", "import numpy, sklearn").CombinedOutput(); err != nil {
		return fmt.Sprint(err, " ", string(out))
	}
	return ""
})

// ONNXRuntime returns a command that runs a script of Node.js with the package onnxruntime-node,
// which npm has installed globally.
func ONNXRuntime(t testing.TB, script string) *exec.Cmd {
	t.Helper()
	return nodeJS(t, "onnxruntime", "onnxruntime-node", script)
}

// DuckDB is like ONNXRuntime for @duckdb/node-api, which reads and writes files and pipes.
func DuckDB(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	return nodeJS(t, "duckdb", "@duckdb/node-api", script, args...)
}

// DuckDBWasm is like ONNXRuntime for @duckdb/duckdb-wasm, which contains DuckDB and reads and writes Arrow.
func DuckDBWasm(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	return nodeJS(t, "duckdb", "@duckdb/duckdb-wasm", script, args...)
}

// nodeJS returns a command that runs a script with the npm package pack. It calls SkipOrFail if anything is missing.
func nodeJS(t testing.TB, requirement, pack, script string, args ...string) *exec.Cmd {
	t.Helper()
	node, npm := Program(t, requirement, "node"), Program(t, requirement, "npm")
	root, err := exec.Command(npm, "root", "--global").Output()
	if err != nil {
		SkipOrFail(t, requirement, err)
	}
	folder := strings.TrimSpace(string(root))
	if _, err := os.Stat(filepath.Join(folder, pack)); err != nil {
		SkipOrFail(t, requirement, err)
	}
	cmd := exec.Command(node, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+folder)
	return cmd
}

// SKLearn returns the path of the Python interpreter with NumPy and scikit-learn.
func SKLearn(t testing.TB) string {
	t.Helper()
	if message := sklearnError(); message != "" {
		SkipOrFail(t, "sklearn", message)
	}
	return Python
}

// Kernlab returns the path of Rscript if R has the package kernlab.
func Kernlab(t testing.TB) string {
	t.Helper()
	path := Program(t, "kernlab", "Rscript")
	if out, err := exec.Command(path, "-e", "library(kernlab)").CombinedOutput(); err != nil {
		SkipOrFail(t, "kernlab", err, string(out))
	}
	return path
}

// Data returns the path of a file in the folder shared/data, which is not in the repository.
func Data(t testing.TB, name string) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		path := filepath.Join(folder, "shared", "data", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	SkipOrFail(t, "data", "no folder above has shared/data/"+name)
	return ""
}

// Rows returns the rows of a CSV file in shared/data, without the header.
func Rows(t testing.TB, name string) [][]string {
	t.Helper()
	f, err := os.Open(Data(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	return rows[1:]
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// page reads a page of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands returns the commands in the indented block of a page that contains the given text.
func commands(t *testing.T, name, text string) string {
	t.Helper()
	for _, block := range regexp.MustCompile(`(?m)(^    .*\n)+`).FindAllString(page(t, name), -1) {
		if strings.Contains(block, text) {
			return strings.ReplaceAll("\n"+block, "\n    ", "\n")
		}
	}
	t.Fatalf("%s has no commands with %s", name, text)
	return ""
}

// shell runs commands in a folder and returns what they print.
func shell(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	sh.Dir = dir
	out, err := sh.CombinedOutput()
	return string(out), err
}

// TestPages checks that the commands on the pages work unchanged, with this test binary as mercer-beam.
func TestPages(t *testing.T) {
	required.Slow(t, "cases", "builds the command mercer")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	executed := map[string]bool{}
	for _, name := range []string{"docs/beam.md"} {
		script := commands(t, name, "./bin/mercer-beam --target target") + commands(t, name, "./bin/mercer-beam --std")
		if executed[script] {
			continue
		}
		executed[script] = true
		dir := t.TempDir()
		if err := os.Symlink(filepath.Join(root(t), "testdata"), filepath.Join(dir, "testdata")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		wrapper := fmt.Sprintf("#!/bin/sh\nMERCER_BEAM_TEST_COMMAND=1 exec %q \"$@\"\n", executable)
		if err := os.WriteFile(filepath.Join(dir, "bin", "mercer-beam"), []byte(wrapper), 0o755); err != nil {
			t.Fatal(err)
		}
		makeFunc := fmt.Sprintf("make() { [ \"$*\" = 'build beam' ]; (cd %q && go build -o \"$OLDPWD/bin/mercer\" ./cmd/mercer); }\n", root(t))
		out, err := shell(t, dir, makeFunc+script)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, want := range []string{"candidate gaussian(sigma=5), lambda 0.1: mse ", "442 rows, 10 features, 100 functions", "RMSE", "(logarithm, lower bound ", "\nprediction,std,"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, out)
			}
		}
	}
}

// TestPageNamesTheRunner checks that docs/beam.md names the version of Beam that the tests run.
func TestPageNamesTheRunner(t *testing.T) {
	version := regexp.MustCompile(`beam/sdks/v2 v([\d.]+)`).FindStringSubmatch(page(t, "beam/go.mod"))
	if version == nil {
		t.Fatal("beam/go.mod requires no version of Beam")
	}
	for _, want := range []string{"Prism of Beam " + version[1] + ",", "beam_go_sdk:" + version[1] + " "} {
		if !strings.Contains(page(t, "docs/beam.md"), want) {
			t.Errorf("docs/beam.md does not contain %q", want)
		}
	}
}

// TestPageErrors checks that the files that docs/beam.md describes lead to the two errors that the page shows.
func TestPageErrors(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, header, oddCell string) {
		text := header
		for i := range 60 {
			age := fmt.Sprint(20 + i%45)
			if i+2 == 17 {
				age = oddCell
			}
			text += fmt.Sprintf("%s,%d,%d\n", age, i*i%17, i)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.csv", "age,bmi,y\n", "abc")
	write("b.csv", "Age,bmi,y\n", "36")
	documented := strings.Split(strings.TrimSpace(commands(t, "docs/beam.md", "mercer-beam: pipeline: ")), "\n")
	for i, inputs := range []string{"a.csv b.csv", "a.csv"} {
		out, err := shell(t, dir, fmt.Sprintf("MERCER_BEAM_TEST_COMMAND=1 %q --target y --learner ridge --model m.st %s", executable, inputs))
		if err == nil || strings.TrimSpace(out) != documented[i] {
			t.Errorf("%s: %v\ngot  %s\nwant %s", inputs, err, out, documented[i])
		}
	}
}

// TestProgram builds and runs the program of docs/beam.md by the commands on that page, outside the repository.
func TestProgram(t *testing.T) {
	required.Slow(t, "cases", "builds a program")
	block := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindStringSubmatch(page(t, "docs/beam.md"))
	if block == nil {
		t.Fatal("docs/beam.md has no program")
	}
	dir := t.TempDir()
	here := strings.NewReplacer("../mercer", root(t))
	folder := filepath.Join(dir, "price")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(here.Replace(block[1])), 0o644); err != nil {
		t.Fatal(err)
	}
	// The shell function git replaces the clone, because the repository is already here.
	out, err := shell(t, dir, "git() { [ \"$1\" = clone ]; }\nexport GOFLAGS=\n"+here.Replace(commands(t, "docs/beam.md", "go mod edit -replace")))
	for _, offline := range []string{"dial tcp", "no such host", "module lookup disabled", "i/o timeout"} {
		if err != nil && strings.Contains(out, offline) {
			required.SkipOrFail(t, "modules", "modules cannot be asked for:", out)
		}
	}
	// Search the output, because Beam's worker may log lines after the last line of the program.
	if err != nil || !strings.Contains(out, "\n442 rows, gaussian(sigma=5), lambda 1, residual below 1e-6: true\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, "diabetes.safetensors")); err != nil {
		t.Error(err)
	}
}

package mercer_test

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadmeExample holds the program in the README to being the example that
// is compiled and run here.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md has no Go program")
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.NewReplacer("package mercer_test", "package main", "func Example()", "func main()").Replace(string(example))
	if d := cmp.Diff(program, string(block[1])); d != "" {
		t.Errorf("README.md differs from example_test.go (-want +got):\n%s", d)
	}
}

// TestGonumPrograms compiles the lines that a program on gonum gets, as the pages have
// them.
func TestGonumPrograms(t *testing.T) {
	for _, name := range []string{"README.md", "docs/gonum.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		block := regexp.MustCompile("(?s)```go\n(import [^`]*blas64.Use[^`]*)```").FindSubmatch(text)
		if block == nil {
			t.Errorf("%s has no program that calls blas64.Use", name)
			continue
		}
		file := path.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte("package main\n\n"+string(block[1])+"\nfunc main() {}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestReadmeTargets holds the README to naming only targets that the Makefile
// has.
func TestReadmeTargets(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`make ([a-z0-9-]+)").FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s names make %s, which is not there", name, m[1])
			}
		}
	}
}

// TestLinks holds the pages to linking to files that are there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "testdata/README.md", "docs/beam.md", "docs/benchmarks.md", "docs/cuda.md", "docs/gonum.md", "docs/results.md", "bindings/python/README.md", "bench/results/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target := path.Join(path.Dir(page), string(m[1]))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
			}
		}
	}
}

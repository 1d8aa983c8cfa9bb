package mercer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mercer-go/mercer"

// A layer is a folder of the module and what the packages in it may import:
// folders of the module and modules of others. Packages inside a folder
// may import each other. What is imported by tests is not held to this.
type layer struct {
	folder string
	ours   []string
	others []string
}

// layers is the import law, lowest first; the first that a package is inside of
// counts. An import not named here needs a reason in the commit that adds it.
var layers = []layer{
	{folder: "kernels/kerneltest", ours: []string{"kernels"}, others: []string{"gonum.org/v1/gonum"}},
	// Kernels over objects make Gram matrices, in the form that backend has.
	{folder: "kernels/objects", ours: []string{"kernels", "backend", "internal/count"}},
	{folder: "kernels/strings", ours: []string{"kernels", "backend"}},
	{folder: "kernels/trees", ours: []string{"kernels", "backend"}},
	{folder: "kernels/gram", ours: []string{"kernels", "backend", "internal/count"}, others: []string{"gonum.org/v1/gonum"}},
	{folder: "kernels", ours: []string{"internal/count"}, others: []string{"github.com/agnivade/levenshtein"}},
	{folder: "backend", ours: []string{"kernels"}},
	// cpu implements gonum's BLAS and LAPACK interfaces over gonum's own routines.
	{folder: "cpu", ours: []string{"backend", "kernels"}, others: []string{"golang.org/x/sys", "gonum.org/v1/gonum/blas", "gonum.org/v1/gonum/lapack"}},
	// cuda opens NVIDIA's libraries at run time.
	{folder: "cuda", ours: []string{"backend", "kernels"}, others: []string{"github.com/ebitengine/purego", "golang.org/x/sys"}},
	// gonum's matrices are the exchange type of the front ends.
	{folder: "gonum", ours: []string{"backend", "internal/count"}, others: []string{"gonum.org/v1/gonum"}},
	{folder: "adjoint", ours: []string{"backend", "kernels", "internal/count"}},
	{folder: "solvers", ours: []string{"backend", "kernels", "atomicfile", "internal/count"}},
	// klauspost/compress unpacks the pages of Parquet files.
	{folder: "dataset", ours: []string{"internal/count"}, others: []string{"gonum.org/v1/gonum", "github.com/agnivade/levenshtein", "github.com/klauspost/compress"}},
	{folder: "learners", ours: []string{"solvers", "backend", "kernels", "dataset", "gonum", "internal/count"}, others: []string{"gonum.org/v1/gonum"}},
	{folder: "tuning", ours: []string{"learners", "solvers", "backend", "kernels", "internal/count"}, others: []string{"gonum.org/v1/gonum"}},
	{folder: "atomicfile", others: []string{"github.com/google/renameio"}},
	{folder: "modelfile", ours: []string{"learners", "dataset", "backend", "kernels", "atomicfile", "internal/count"}},
	// libmercer is a program, the C shared library; it alone imports C.
	{folder: "libmercer", ours: []string{"backend", "cpu", "cuda", "dataset", "kernels", "learners", "modelfile", "solvers", "internal/count"}, others: []string{"gonum.org/v1/gonum"}},
	// count makes words of numbers for errors.
	{folder: "internal/count"},
	// required is for tests alone.
	{folder: "internal/required"},
	{folder: "testdata"},
	{folder: "cmd", ours: []string{"*"}, others: []string{"*"}},
	{folder: "bench", ours: []string{"*"}, others: []string{"*"}},
}

// listed is what `go list -json` tells of a package.
type listed struct {
	ImportPath, Doc, Name string
	GoFiles, CgoFiles     []string
	Imports               []string
	Module                *struct{ Path string }
	Standard              bool
}

// list returns every package of the module and all they depend on.
func list(t *testing.T, env string, flags ...string) map[string]listed {
	t.Helper()
	args := append([]string{"list", "-deps", "-json=ImportPath,Doc,Name,GoFiles,CgoFiles,Imports,Module,Standard"}, flags...)
	cmd := exec.Command("go", append(args, "./...", "./testdata")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", env)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	packages := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// inside tells whether path is the folder or below it.
func inside(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func TestImportArrows(t *testing.T) {
	for _, build := range []struct{ name, env, flag string }{
		{"amd64", "GOARCH=amd64", "-tags="},
		{"purego", "GOARCH=amd64", "-tags=purego"},
		{"arm64", "GOARCH=arm64", "-tags="},
	} {
		t.Run(build.name, func(t *testing.T) {
			packages := list(t, build.env, build.flag)
			for _, p := range packages {
				if inside(p.ImportPath, module) && p.ImportPath != module {
					checkImports(t, packages, p)
				}
			}
		})
	}
}

func checkImports(t *testing.T, packages map[string]listed, p listed) {
	own := strings.TrimPrefix(p.ImportPath, module+"/")
	i := slices.IndexFunc(layers, func(l layer) bool { return inside(own, l.folder) })
	if i < 0 {
		t.Errorf("package %s has no place in the import law: add its folder to layers", own)
		return
	}
	allowed := func(list []string, path string) bool {
		return slices.ContainsFunc(list, func(a string) bool { return a == "*" || inside(path, a) })
	}
	for _, imp := range p.Imports {
		switch target := packages[imp]; {
		case imp == "C":
			t.Errorf("%s imports C", own)
		case target.Standard || imp == "unsafe":
		case inside(imp, module):
			path := strings.TrimPrefix(imp, module+"/")
			if !inside(path, layers[i].folder) && !allowed(layers[i].ours, path) {
				t.Errorf("%s imports %s; it may import %v", own, path, layers[i].ours)
			}
		default:
			if !allowed(layers[i].others, imp) {
				t.Errorf("%s imports %s; of others it may import %v", own, imp, layers[i].others)
			}
		}
	}
}

// TestModulesLeftOut holds the default build free of what only a generator or
// an optional integration needs.
func TestModulesLeftOut(t *testing.T) {
	for path, p := range list(t, "GOARCH=amd64") {
		if p.Module == nil {
			continue
		}
		for _, m := range []string{"github.com/mmcloughlin/avo", "gorgonia.org"} {
			if inside(p.Module.Path, m) {
				t.Errorf("the main module's build contains %s", path)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	for path, p := range list(t, "GOARCH=amd64") {
		if inside(path, module) && len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("package %s has no package comment", path)
		}
	}
}

// TestNoCgo reads every Go file, whatever its build tags. Only the C shared
// library imports C: nothing can import it.
func TestNoCgo(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, imp := range f.Imports {
			if imp.Path.Value == `"C"` && filepath.Dir(path) != "libmercer" {
				t.Errorf("%s imports C", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", files)
}

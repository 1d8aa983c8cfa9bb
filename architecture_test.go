package mercer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const module = "github.com/mercer-go/mercer"

// A layer is a folder of the module. Its packages may import each other, the packages of the folders in internal, and
// the external modules in external. A folder inside a layer may be a layer of its own. Tests are not restricted.
type layer struct {
	folder   string
	internal []string
	external []string
}

// layers lists the allowed imports, beginning with the lowest layer. A package belongs to the first layer whose
// folder contains it. A new import needs a reason in the commit that adds it.
var layers = []layer{
	// Test suites call package required to select the cases of short tests.
	{folder: "kernels/kerneltest", internal: []string{"kernels", "internal/required"}, external: []string{"gonum.org/v1/gonum"}},
	// host defines the matrices that all packages exchange, and converts gonum's matrices.
	{folder: "host", external: []string{"gonum.org/v1/gonum/mat"}},
	{folder: "kernels/objects", internal: []string{"kernels", "host"}},
	{folder: "internal/pairwise", internal: []string{"kernels", "kernels/objects", "host", "internal/count"}},
	{folder: "kernels/strings", internal: []string{"kernels", "kernels/objects", "host", "internal/elementary", "internal/pairwise"}},
	{folder: "kernels/trees", internal: []string{"kernels", "kernels/objects", "host", "internal/pairwise"}},
	{folder: "kernels/gram", internal: []string{"kernels", "kernels/objects", "host", "gonum", "internal/count", "internal/pairwise"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "kernels", internal: []string{"internal/count", "internal/suggest", "internal/elementary"}},
	// backendtest uses the error bounds of kerneltest for kernel values.
	{folder: "backend/backendtest", internal: []string{"backend", "kernels", "kernels/kerneltest", "internal/flop", "internal/required"}},
	// check validates the arguments of backend methods. flop counts the operations of these methods.
	{folder: "internal/check", internal: []string{"backend", "kernels", "host"}},
	{folder: "internal/flop"},
	{folder: "internal/pages"},
	{folder: "backend", internal: []string{"kernels", "host", "internal/check", "internal/flop"}},
	// cpu implements gonum's BLAS and LAPACK interfaces over gonum's own routines.
	{folder: "cpu", internal: []string{"backend", "kernels", "internal/check", "internal/elementary", "internal/flop", "internal/pages"}, external: []string{"golang.org/x/sys", "gonum.org/v1/gonum/blas", "gonum.org/v1/gonum/lapack"}},
	// cuda opens NVIDIA's libraries at run time.
	{folder: "cuda", internal: []string{"backend", "kernels", "internal/check", "internal/flop"}, external: []string{"github.com/ebitengine/purego", "golang.org/x/sys"}},
	// The front ends take and return gonum's matrices.
	{folder: "gonum", internal: []string{"backend", "internal/count"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "solvers/solvertest", internal: []string{"solvers", "backend", "backend/backendtest", "internal/markov", "internal/required", "kernels"}},
	{folder: "internal/adjoint", internal: []string{"backend", "kernels", "internal/count", "internal/message", "internal/run"}},
	// numeric has small numeric functions for all solvers, with gonum's sums of slices and matrices.
	{folder: "internal/numeric", internal: []string{"backend", "kernels", "internal/count", "internal/message", "internal/run"}, external: []string{"gonum.org/v1/gonum/floats", "gonum.org/v1/gonum/mat"}},
	{folder: "internal/selection"},
	{folder: "internal/lowrank", internal: []string{"backend", "kernels", "internal/numeric", "internal/run", "internal/elementary"}},
	{folder: "internal/krylov", internal: []string{"backend", "kernels", "internal/count", "internal/message", "internal/numeric", "internal/run", "internal/elementary"}},
	{folder: "internal/stream", internal: []string{"backend", "kernels", "internal/krylov", "internal/message", "internal/numeric", "internal/rowkey", "internal/run", "internal/spread", "internal/elementary"}},
	{folder: "internal/verified", internal: []string{"backend", "internal/markov", "internal/numeric", "internal/run", "internal/stream", "kernels"}},
	{folder: "internal/markov", internal: []string{"backend", "internal/numeric", "internal/run", "internal/elementary", "kernels"}},
	// nufft uses gonum's Fourier transforms and its quadrature nodes.
	{folder: "internal/nufft", internal: []string{"host", "internal/run", "internal/elementary"}, external: []string{"gonum.org/v1/gonum/dsp/fourier", "gonum.org/v1/gonum/integrate/quad"}},
	// spectrum computes the Fourier coefficients of smooth functions with package nufft.
	{folder: "internal/spectrum", internal: []string{"internal/elementary", "internal/nufft", "internal/run", "kernels"}, external: []string{"gonum.org/v1/gonum/integrate/quad"}},
	{folder: "internal/band", internal: []string{"backend", "internal/numeric", "internal/run", "internal/elementary"}},
	// The learners, and the solvers of their optimization problems, use gonum's matrices and BLAS vectors.
	{folder: "internal/attempt", internal: []string{"solvers", "backend", "kernels", "internal/count"}},
	{folder: "internal/evidence", internal: []string{"solvers", "backend", "kernels", "internal/attempt", "internal/numeric", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/glm", internal: []string{"solvers", "backend", "kernels", "internal/count", "internal/lowrank", "internal/message", "internal/numeric", "internal/run", "internal/elementary", "internal/pages"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/lsq", internal: []string{"solvers", "backend", "kernels", "internal/count", "internal/message", "internal/numeric", "internal/run", "internal/spread", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/neighbors", internal: []string{"backend", "kernels", "internal/numeric", "internal/run", "internal/elementary"}},
	{folder: "internal/online", internal: []string{"backend", "kernels", "internal/count", "internal/numeric", "internal/run"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/sparse", internal: []string{"backend", "kernels", "internal/count", "internal/message", "internal/numeric", "internal/run", "internal/spread", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/svm", internal: []string{"solvers", "backend", "kernels", "internal/count", "internal/message", "internal/numeric", "internal/run", "internal/selection", "internal/elementary", "internal/pages"}, external: []string{"gonum.org/v1/gonum"}},
	// run handles cancellation and progress of long calls in solvers and learners.
	{folder: "internal/run", internal: []string{"backend", "internal/planned", "internal/elementary"}},
	{folder: "solvers", internal: []string{"backend", "kernels", "internal/atomicfile", "internal/band", "internal/count", "internal/flop", "internal/krylov", "internal/lowrank", "internal/markov", "internal/message", "internal/nufft", "internal/numeric", "internal/precision", "internal/rowkey", "internal/run", "internal/spectrum", "internal/stream", "internal/elementary"}},
	// The external modules unpack the pages of Parquet files (klauspost/compress and andybalholm/brotli), read JSON
	// (go-json-experiment/json), and read and write the metadata of Arrow files (flatbuffers).
	{folder: "dataset", internal: []string{"host", "internal/count", "internal/message", "internal/pages", "internal/rowkey", "internal/selection", "internal/spread", "internal/suggest", "internal/tfidf"}, external: []string{"gonum.org/v1/gonum", "github.com/klauspost/compress", "github.com/andybalholm/brotli", "github.com/go-json-experiment/json", "github.com/google/flatbuffers"}},
	{folder: "learners/learnertest", internal: []string{"learners", "learners/validate", "dataset", "solvers", "solvers/solvertest", "backend", "internal/required"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "learners/validate", internal: []string{"learners", "dataset", "solvers", "backend", "gonum", "internal/count", "internal/numeric", "internal/planned", "internal/pool", "internal/run", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "learners/tuning", internal: []string{"learners", "learners/validate", "solvers", "backend", "kernels", "internal/attempt", "internal/count", "internal/evidence", "internal/fitreport", "internal/markov", "internal/message", "internal/numeric", "internal/pool", "internal/run", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "internal/modelfile", internal: []string{"learners", "dataset", "backend", "kernels", "kernels/gram", "kernels/objects", "kernels/strings", "kernels/trees", "gonum", "internal/atomicfile", "internal/count", "internal/safetensors"}, external: []string{"gonum.org/v1/gonum"}},
	{folder: "learners", internal: []string{"solvers", "internal/evidence", "internal/glm", "internal/lsq", "internal/markov", "internal/neighbors", "internal/online", "internal/sparse", "internal/svm", "internal/verified", "backend", "kernels", "dataset", "gonum", "internal/adjoint", "internal/attempt", "internal/count", "internal/message", "internal/numeric", "internal/pages", "internal/run", "internal/spread", "internal/stream", "internal/elementary"}, external: []string{"gonum.org/v1/gonum"}},
	// The external package protowire encodes the protocol buffers of ONNX files.
	{folder: "internal/onnx", internal: []string{"learners", "dataset", "backend", "kernels", "gonum", "internal/modelfile", "internal/svm"}, external: []string{"gonum.org/v1/gonum/mat", "google.golang.org/protobuf/encoding/protowire"}},
	{folder: "internal/libsvm", internal: []string{"learners", "dataset", "backend", "kernels", "internal/elementary", "internal/modelfile", "internal/numeric", "internal/svm"}},
	// atomicfile locks temporary files with x/sys. A file without a lock is from a killed process.
	{folder: "internal/atomicfile", external: []string{"github.com/google/renameio", "golang.org/x/sys"}},
	// fitreport makes the report of a fit that the front ends write.
	{folder: "internal/fitreport", internal: []string{"learners"}},
	// bindings/c is the program of the C shared library. No other package imports C.
	{folder: "bindings/c", internal: []string{"backend", "cpu", "cuda", "dataset", "host", "kernels", "kernels/gram", "kernels/objects", "learners", "internal/fitreport", "internal/modelfile", "internal/lsq", "internal/neighbors", "solvers", "internal/count", "internal/message", "internal/numeric", "internal/run", "internal/tfidf"}, external: []string{"gonum.org/v1/gonum"}},
	// elementary has functions of one variable whose results have the same bits on all machines.
	{folder: "internal/elementary"},
	// count formats numbers with their nouns, such as "1 row", for messages.
	{folder: "internal/count"},
	{folder: "internal/spread"},
	{folder: "internal/tfidf", internal: []string{"internal/elementary"}},
	// pool divides work among devices.
	{folder: "internal/pool", internal: []string{"backend"}},
	// planned passes the planned memory of a fit to its caller.
	{folder: "internal/planned"},
	// message has errors with advice, and formats them as one line.
	{folder: "internal/message"},
	// rowkey selects the same random rows from a table, a file and a cluster.
	{folder: "internal/rowkey"},
	// safetensors is the container of model files.
	{folder: "internal/safetensors", internal: []string{"host"}},
	// suggest proposes names for misspelled ones, by the edit distances of package levenshtein.
	{folder: "internal/suggest", external: []string{"github.com/agnivade/levenshtein"}},
	// uniseg gives the width of a character on a terminal.
	{folder: "internal/texttable", internal: []string{"internal/message"}, external: []string{"github.com/rivo/uniseg"}},
	// process reads the time and memory that the running process has used, for reports.
	{folder: "internal/process"},
	// precision lets tests override the precision that a plan selects.
	{folder: "internal/precision"},
	// page and required are imported only by tests.
	{folder: "internal/page"},
	{folder: "internal/required"},
	// webpage makes the HTML pages of cmd/mercer and internal/bench.
	{folder: "internal/webpage"},
	// browser renders HTML pages for tests.
	{folder: "internal/browser", internal: []string{"internal/required"}},
	// serve is the HTTP handler of mercer serve, and uses package mercer.
	{folder: "internal/serve", internal: []string{module, "backend", "dataset", "learners", "internal/count"}, external: []string{"gonum.org/v1/gonum/mat"}},
	{folder: module, internal: []string{"*"}}, // package mercer, the entry point for Go programs
	{folder: "testdata"},
	{folder: "cmd", internal: []string{"*"}, external: []string{"*"}},
	{folder: "internal/bench", internal: []string{"*"}, external: []string{"*"}},
}

// listedPackage is the output of `go list -json` for a package.
type listedPackage struct {
	ImportPath, Doc, Name string
	GoFiles, CgoFiles     []string
	Imports               []string
	Module                *struct{ Path string }
	Standard              bool
}

// list returns every package of the module and all of their dependencies.
func list(t *testing.T, env string, flags ...string) map[string]listedPackage {
	t.Helper()
	args := append([]string{"list", "-deps", "-json=ImportPath,Doc,Name,GoFiles,CgoFiles,Imports,Module,Standard"}, flags...)
	cmd := exec.Command("go", append(args, "./...", "./testdata")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", env)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	packages := map[string]listedPackage{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// inside reports whether path is the folder or is below the folder.
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

// layerOf returns the index of the layer that a package of the module is in, or -1 if there is none.
func layerOf(path string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return inside(path, l.folder) })
}

func checkImports(t *testing.T, packages map[string]listedPackage, p listedPackage) {
	relative := strings.TrimPrefix(p.ImportPath, module+"/")
	i := layerOf(relative)
	if i < 0 {
		t.Errorf("package %s has no layer: add its folder to layers", relative)
		return
	}
	allowed := func(list []string, path string) bool {
		return slices.ContainsFunc(list, func(a string) bool { return a == "*" || a == path })
	}
	allowedOther := func(list []string, path string) bool {
		return slices.ContainsFunc(list, func(a string) bool { return a == "*" || inside(path, a) })
	}
	for _, imp := range p.Imports {
		switch target := packages[imp]; {
		case imp == "C":
			t.Errorf("%s imports C", relative)
		case target.Standard || imp == "unsafe":
		case inside(imp, module):
			path := strings.TrimPrefix(imp, module+"/")
			if suites.MatchString(path+"/") && !suites.MatchString(relative+"/") {
				t.Errorf("%s imports %s, which is for tests", relative, path)
			}
			if j := layerOf(path); j != i && (j < 0 || !allowed(layers[i].internal, layers[j].folder)) {
				t.Errorf("%s imports %s; it may import %v", relative, path, layers[i].internal)
			}
		default:
			if !allowedOther(layers[i].external, imp) {
				t.Errorf("%s imports %s; of others it may import %v", relative, imp, layers[i].external)
			}
		}
	}
}

// TestModulesLeftOut checks that the default build does not depend on modules that only a
// generator or an optional integration needs.
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

// withoutExample maps the folders whose packages need no example, because no program imports them, to the reasons.
var withoutExample = map[string]string{
	"backend/backendtest":   "for tests of backends",
	"kernels/kerneltest":    "for tests of kernels",
	"learners/learnertest":  "for tests of learners",
	"solvers/solvertest":    "for tests of solvers",
	"cuda/cudatest":         "for tests without a GPU",
	"internal/glm":          "what learners call, with the tasks of internal/run",
	"internal/lsq":          "what learners call, with the tasks of internal/run",
	"internal/online":       "what learners call, with the tasks of internal/run",
	"internal/sparse":       "what learners call, with the tasks of internal/run",
	"internal/svm":          "what learners call, with the tasks of internal/run",
	"internal/bench/peer":   "what bench compares with",
	"internal/bench/pypeer": "what bench compares with",
	"internal/bench/report": "what the command writes of bench",
}

// TestPackagesHaveExamples checks that every package that a program may import has an example with tested output.
func TestPackagesHaveExamples(t *testing.T) {
	for path, p := range list(t, "GOARCH=amd64") {
		relative := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		if !inside(path, module) || p.Name == "main" || relative == "testdata" || strings.Contains(path, "/internal/") {
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(withoutExample)), func(folder string) bool { return inside(relative, folder) }) {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(relative, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, name := range tests {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if !slices.ContainsFunc(doc.Examples(files...), func(e *doc.Example) bool { return e.Output != "" }) {
			t.Errorf("package %s has no example with an output", path)
		}
	}
}

// TestNoCgo checks that no Go file imports C, whatever its build tags, except the C shared library.
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
			if imp.Path.Value == `"C"` && filepath.Dir(path) != filepath.FromSlash("bindings/c") {
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

// TestPathOfAFit checks the list in CONTRIBUTING.md of the files that a call of `mercer fit` goes through. Each
// file must declare the functions in its row, and this file or an earlier one must use them. The variables that
// hold the data must have the listed names. The list may have at most 30 files and six names.
func TestPathOfAFit(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \[(\S+\.go)\]\((\S+)\) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 || len(rows) > 30 {
		t.Fatalf("%d files, want 1 to 30", len(rows))
	}
	var names []string
	previous := ""
	for i, row := range rows {
		source, err := os.ReadFile(row[2])
		if err != nil || row[1] != row[2] {
			t.Errorf("%s (%s): %v", row[1], row[2], err)
			continue
		}
		code := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(string(source), "")
		for _, name := range strings.Split(row[3], ", ") {
			declared := regexp.MustCompile(`(?m)^(func |func \(.*\) |type |\t)` + name + `(, \w+)*( func|[\[(]| struct)`)
			if !declared.MatchString(code) {
				t.Errorf("%s does not declare %s", row[1], name)
			}
			previous += declared.ReplaceAllString(code, "")
			if i > 0 && !regexp.MustCompile(`\b`+name+`\b`).MatchString(previous) {
				t.Errorf("%s of %s is used in none of the files down to it", name, row[1])
			}
		}
		for _, name := range strings.Split(row[4], ", ") {
			if name == "any" {
				continue
			}
			if !regexp.MustCompile(`(?i)\b[hmp]?` + name + `\b`).MatchString(code) {
				t.Errorf("%s: nothing is called %s", row[1], name)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 6 {
		t.Errorf("the data have %d names, want at most 6: %v", len(names), names)
	}
}

// TestSameSums checks that packages that fit or predict do not call the functions of gonum and of package math
// whose rounding errors depend on the architecture. Packages numeric and elementary replace them.
func TestSameSums(t *testing.T) {
	differs := regexp.MustCompile(`\bmath\.(Exp|Exp2|Gamma|Erfc?|Tanh|Sinh|Cosh|Pow)\b|\bfloats\.(Sum|Dot|CumSum|LogSumExp)\b|\bfloats\.(Norm|Distance)\(.*, [12]\)` +
		`|\bblas(64|32)\.(Dot|Nrm2|Asum|Gem|Sym|Syr|Tr|Ger)|gonum/(lapack|stat|optimize)\b|\bmat\.(Dot|Norm|Sum|Inner|Eigen|EigenSym|SVD|QR|LQ|Cholesky|LU|Det)\b|\.(MulVec|SolveTo|SolveVecTo)\(`)
	harmless := map[string]string{
		"internal/svm/rowcache.go": "floats.Sum", // its result is only compared with NaN and Inf
		"learners/tuning/bayes.go": "math.Erfc",  // its result only orders candidates
	}
	for _, dir := range []string{"dataset", "internal", "kernels", "learners", "solvers"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if slices.Contains([]string{"internal/bench", "internal/verified", "kernels/gram", "kernels/kerneltest", "learners/learnertest", "solvers/solvertest"}, path) {
					return fs.SkipDir
				}
				return err
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			source, err := os.ReadFile(path)
			for i, line := range strings.Split(string(source), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if call := differs.FindString(code); call != "" && harmless[path] != call {
					t.Errorf("%s:%d: %s has other rounding errors on arm64 than on amd64: call package numeric or package elementary", path, i+1, call)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestModuleVersions checks the go.mod files of the separate modules in this repository. Each must require a version of
// the main module that other programs can download: a tag or the pseudo-version of a commit. It must also replace the
// main module by its folder. Only .ci/run checks that the commit exists.
func TestModuleVersions(t *testing.T) {
	name := regexp.QuoteMeta(module)
	require := regexp.MustCompile(`(?m)^\s*(?:require )?` + name + ` (v\S+)`)
	replace := regexp.MustCompile(`(?m)^\s*(?:replace )?` + name + ` => \.\./?$`)
	tag := regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
	pseudo := regexp.MustCompile(`^v0\.0\.0-(\d{14})-[0-9a-f]{12}$`)
	for _, folder := range []string{"beam", "gorgonia"} {
		text, err := os.ReadFile(path.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !replace.Match(text) {
			t.Errorf("%s/go.mod does not replace %s by the folder above it", folder, module)
		}
		required := require.FindSubmatch(text)
		if required == nil {
			t.Errorf("%s/go.mod requires no version of %s", folder, module)
			continue
		}
		version := string(required[1])
		if tag.MatchString(version) {
			continue
		}
		parts := pseudo.FindStringSubmatch(version)
		if parts == nil {
			t.Errorf("%s/go.mod requires %s, which is neither a tag nor the pseudo-version of a commit", folder, version)
			continue
		}
		if committed, err := time.Parse("20060102150405", parts[1]); err != nil || committed.Year() < 2026 {
			t.Errorf("%s/go.mod requires %s, whose time of the commit cannot be: %v %v", folder, version, committed, err)
		}
	}
}

// TestEveryFunctionHasAnExample checks that each exported function and method of package mercer has an example that
// is named after it and whose output is checked.
func TestEveryFunctionHasAnExample(t *testing.T) {
	set := token.NewFileSet()
	files := func(tests bool) (list []*ast.File) {
		names, err := filepath.Glob("*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") != tests {
				continue
			}
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, f)
		}
		return list
	}
	hasExample := map[string]bool{}
	for _, e := range doc.Examples(files(true)...) {
		if e.Output == "" && !e.EmptyOutput {
			t.Errorf("Example%s has no output to check", e.Name)
		}
		name, suffix, _ := strings.Cut(e.Name, "_")
		if method, _, _ := strings.Cut(suffix, "_"); ast.IsExported(method) {
			name += "." + method
		}
		hasExample[name] = true
	}
	exported := 0
	for _, f := range files(false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				recv := fn.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				if index, ok := recv.(*ast.IndexExpr); ok {
					recv = index.X
				}
				receiver := recv.(*ast.Ident)
				if !receiver.IsExported() {
					continue
				}
				name = receiver.Name + "." + name
			}
			exported++
			if !hasExample[name] {
				t.Errorf("%s has no example: write Example%s", name, strings.Replace(name, ".", "_", 1))
			}
		}
	}
	if exported < 30 {
		t.Errorf("only %d exported functions and methods were found", exported)
	}
}

// shapeLimits are upper limits on the size of the code and on the number of its exported names. The commit message
// of a change that raises a limit says what users gain.
var shapeLimits = []struct {
	measure string
	limit   int
}{
	{"product lines", 124316},
	{"exported names", 520},
	{"exported fields", 657},
	{"exported functions of more than six parameters, without BLAS and LAPACK", 0},
	{"most files in a package of solvers", 25},
	{"test files in the root folder", 6},
}

// suites matches the folders of packages that only tests use. Their lines do not count as product lines.
var suites = regexp.MustCompile(`(^|/)(backendtest|solvertest|learnertest|kerneltest|cudatest|internal/required|internal/browser|ctest/advice)/`)

// shapeOf returns the measures of shapeLimits for the Go files under folder. Product lines are the physical lines
// of all files except tests, suites, tools and generated files. A line of a const or var block counts as one
// exported name.
func shapeOf(t *testing.T, folder string) map[string]int {
	t.Helper()
	count := map[string]int{}
	files := map[string]int{} // number of files of each package of solvers
	fset := token.NewFileSet()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != folder && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		name = filepath.ToSlash(name)
		if strings.HasSuffix(name, "_test.go") {
			if !strings.Contains(name, "/") {
				count["test files in the root folder"]++
			}
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) || suites.MatchString(name) || strings.HasPrefix(name, "tools/") {
			return nil
		}
		count["product lines"] += strings.Count(string(text), "\n")
		if strings.HasPrefix(name, "solvers/") {
			files[path.Dir(name)]++
		}
		if file.Name.Name != "main" && !strings.Contains("/"+name, "/internal/") {
			countSurface(count, fset, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count["most files in a package of solvers"] = slices.Max(slices.Collect(maps.Values(files)))
	return count
}

func countSurface(count map[string]int, fset *token.FileSet, file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() {
				continue
			}
			if d.Recv == nil {
				count["exported names"]++
			}
			parameters := 0
			for _, p := range d.Type.Params.List {
				parameters += max(1, len(p.Names))
			}
			if parameters > 6 && !isBLAS(d.Name.Name) {
				count["exported functions of more than six parameters, without BLAS and LAPACK"]++
			}
		case *ast.GenDecl:
			lines := map[int]bool{}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if !s.Name.IsExported() {
						continue
					}
					count["exported names"]++
					if structure, ok := s.Type.(*ast.StructType); ok {
						for _, f := range structure.Fields.List {
							for _, n := range f.Names {
								if n.IsExported() {
									count["exported fields"]++
								}
							}
						}
					}
				case *ast.ValueSpec:
					if line := fset.Position(s.Pos()).Line; s.Names[0].IsExported() && !lines[line] {
						lines[line] = true
						count["exported names"]++
					}
				}
			}
		}
	}
}

// isBLAS reports whether name is the name of a BLAS or LAPACK routine in gonum or in backend.Backend, whose
// parameters the standards prescribe.
func isBLAS(name string) bool {
	return regexp.MustCompile(`^([SD](ge|sy|tr|po)[a-z0-9]+|Gemm)$`).MatchString(name)
}

// TestShape fails if a measure exceeds its limit in shapeLimits. `make shape` prints the measures.
func TestShape(t *testing.T) {
	count := shapeOf(t, ".")
	for _, m := range shapeLimits {
		t.Logf("%s: %d", m.measure, count[m.measure])
		if count[m.measure] > m.limit {
			t.Errorf("%s: %d, more than the limit of %d in shapeLimits", m.measure, count[m.measure], m.limit)
		}
	}
}

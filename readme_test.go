package mercer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// TestReadmeExample checks that the program in the README is the example that is compiled and run here.
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

// TestReadmeFigures checks that every figure in the README's table of times and rates equals the figure in
// docs/results.md, rounded to the digits shown, and that every ratio is the ratio of these figures.
func TestReadmeFigures(t *testing.T) {
	text := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	results := text("docs/results.md")
	// cells maps the name of each column to its cell in a row of the table under a heading.
	cells := func(section, heading, row string) map[string]string {
		t.Helper()
		_, text, found := strings.Cut(results, "\n## "+section)
		if found {
			text, _, _ = strings.Cut(text, "\n## ")
			_, text, found = strings.Cut(text, "\n### "+heading+"\n")
		}
		if !found {
			t.Fatalf("docs/results.md has no %q under %q", heading, section)
		}
		split := func(line string) (list []string) {
			for _, cell := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
				list = append(list, strings.TrimSpace(cell))
			}
			return list
		}
		var heads []string
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "#") {
				break
			}
			switch list := split(line); {
			case !strings.HasPrefix(line, "|"):
			case heads == nil:
				heads = list
			case list[0] == row:
				cells := map[string]string{}
				for i := range min(len(list), len(heads)) {
					cells[heads[i]], _, _ = strings.Cut(list[i], " ")
				}
				return cells
			}
		}
		t.Fatalf("docs/results.md has no row %q of %q", row, heading)
		return nil
	}
	const time, rates = "time, s", "rate, GFLOP/s"
	const today = "fit-2026-11-28-epyc-zen5-"
	const largeRun = "kernel-ridge, cg, kernel = gaussian(sigma=7.0710678118654755), lambda = 0.1, n = 50000, d = 50, mercer cpu/avx512"
	readme := text("README.md")
	figure := regexp.MustCompile(`^(?:([A-Za-z-]+) )?([0-9.]+)(?: (s|GFLOP/s))?$`)
	for label, figures := range map[string]map[string]string{
		"kernel ridge, exact, n = 8,000, d = 50":           cells(today+"exact: ", "ridge, float64, 2 threads: "+time, "8000"),
		"kernel ridge, exact, n = 20,000, d = 50":          cells(today+"exact-large: ", "ridge, float64, 2 threads: "+time, "20000"),
		"kernel ridge, exact, n = 50,000, d = 50":          {"mercer cpu/avx512": cells("programs-2026-11-28-epyc-zen5-exact: ", "fit", largeRun)["s"]},
		"ridge, 20,000 × 500":                              cells(today+"linear: ", time, "linear, float64, 2 threads, n = 20000"),
		"lasso, path of 100 λ, 20,000 × 500":               cells(today+"linear: ", time, "lasso, float64, 2 threads, n = 20000"),
		"5 nearest of 20,000 rows for 20,000 rows, d = 20": cells(today+"neighbors: ", "neighbors, float64, 2 threads: "+time, "20000"),
		"svc, gaussian, 5,574 texts × 57,822":              cells("fit-2026-11-27-epyc-zen4-sparse-svc-gaussian: ", "svc-gaussian, float64, 2 threads: "+time, "5574"),
		"Dgemm, n = 4096":                                  cells("blas-2026-11-28-epyc-zen5-n4096: ", rates, "gemm, float64, 2 threads, n = 4096"),
		"Cholesky, float64, n = 4096":                      cells("blas-2026-11-28-epyc-zen5-n4096: ", rates, "potrf, float64, 2 threads, n = 4096"),
	} {
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(label) + ` \| (.*) \| (.*) \| (.*) \|$`).FindStringSubmatch(readme)
		if line == nil {
			t.Errorf("README.md has no row %q", label)
			continue
		}
		var values []float64
		unit := ""
		for i, cell := range strings.Split(line[1]+", "+line[2], ", ") {
			m := figure.FindStringSubmatch(cell)
			if m == nil {
				continue // the cell is a size in bytes or a text
			}
			name := strings.ToLower(m[1])
			if i == 0 {
				name, unit = "mercer cpu/avx512", m[3]
			}
			measured, err := strconv.ParseFloat(figures[name], 64)
			digits := len(m[2]) - strings.Index(m[2]+".", ".") - 1
			if rounded := strconv.FormatFloat(measured, 'f', max(digits, 0), 64); err != nil || rounded != m[2] {
				t.Errorf("README.md, %s: %q, and docs/results.md has %s of %s", label, cell, figures[name], name)
			}
			values = append(values, measured)
		}
		ratio := "–"
		switch {
		case len(values) > 1 && unit == "s":
			ratio = fmt.Sprintf("%.1f", values[1]/values[0])
		case len(values) > 1:
			ratio = fmt.Sprintf("%.1f", values[0]/values[1])
		}
		if len(values) == 0 || line[3] != ratio {
			t.Errorf("README.md, %s: the ratio is %q, and docs/results.md has %s", label, line[3], ratio)
		}
	}
}

// TestGonumProgram compiles the lines of docs/gonum.md that make gonum use Mercer.
func TestGonumProgram(t *testing.T) {
	text, err := os.ReadFile("docs/gonum.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(import [^`]*blas64.Use[^`]*)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/gonum.md has no program that calls blas64.Use")
	}
	file := path.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte("package main\n\n"+string(block[1])+"\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReadmeTargets checks that the README names only targets of the Makefile.
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

// TestLinks checks that the links of the pages lead to existing files.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	var pages []string
	for _, folder := range []string{"docs", "docs/guide"} {
		list, err := filepath.Glob(folder + "/*.md")
		if err != nil || len(list) < 10 {
			t.Fatalf("%d pages in %s, %v", len(list), folder, err)
		}
		pages = append(pages, list...)
	}
	pages = append(pages, "README.md", "CONTRIBUTING.md", "testdata/README.md", "bindings/python/README.md", "bench/results/README.md")
	for _, page := range pages {
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

// TestGuideListsItsPages checks that the index of the guide links to each of its pages.
func TestGuideListsItsPages(t *testing.T) {
	index, err := os.ReadFile("docs/guide/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/guide/README.md does not link to %s", name)
		}
	}
}

// TestGuidePrograms checks that each Go block of the guide, followed by its output, is the body of an example that
// is compiled and run here.
func TestGuidePrograms(t *testing.T) {
	var examples strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples.WriteString(strings.ReplaceAll(string(text), "\n\t", "\n"))
	}
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			if !strings.Contains(examples.String(), "() {\n"+m[1]+"}\n") {
				t.Errorf("%s has a program that is not the body of an example of this folder:\n%s", page, m[1])
			}
		}
	}
	if blocks < 3 {
		t.Errorf("the guide has %d Go programs", blocks)
	}
}

// TestGuideFigures checks that each time and memory in the table of docs/guide/large-n.md is in docs/results.md.
func TestGuideFigures(t *testing.T) {
	page, err := os.ReadFile("docs/guide/large-n.md")
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile("docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([a-z-]+), .* \| ([0-9,]+) \| ([0-9.]+) s \| ([0-9]+) MiB \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, m := range rows {
		pattern := `(?m)^\| ` + m[1] + `, .*n = ` + strings.ReplaceAll(m[2], ",", "") + `, .*\| ` + regexp.QuoteMeta(m[3]) + ` \(.*\| ` + m[4] + ` \|`
		if !regexp.MustCompile(pattern).Match(results) {
			t.Errorf("docs/results.md has no such measurement: %s", m[0])
		}
	}
}

// TestReadmeIsShort limits the length of the README.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, at most 150 are allowed: move some to docs", lines)
	}
}

// TestPagesListTheCatalogues checks that every learner and every kernel function is listed on its page, and that
// the table of the README names existing learners.
func TestPagesListTheCatalogues(t *testing.T) {
	names := map[string][]string{}
	for _, d := range learners.Catalogue() {
		names["docs/learners.md"] = append(names["docs/learners.md"], d.Name)
	}
	for _, d := range kernels.Catalogue() {
		names["docs/kernels.md"] = append(names["docs/kernels.md"], d.Name)
	}
	for page, list := range names {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range list {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s does not list %s", page, name)
			}
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "| `--learner` |\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("README.md has no table of learners")
	}
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(table, -1) {
		if _, err := learners.Find(m[1]); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}

// TestTaggedClone makes a release of the last commit in a clone by `make tag`, and uses it in another module as the
// README says, through a module proxy in a folder and the cache of this machine.
func TestTaggedClone(t *testing.T) {
	required.Slow(t, "tagged", "builds the command and a program with other flags")
	if _, err := os.Stat(".git"); err != nil {
		required.SkipOrFail(t, "tagged", "this copy has no history: ", err)
	}
	for _, program := range []string{"git", "make"} {
		required.Program(t, "tagged", program)
	}
	here := t.TempDir()
	clone := filepath.Join(here, "clone")
	run := func(folder string, env []string, program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	cache := "file://" + strings.TrimSpace(run(".", nil, "go", "env", "GOMODCACHE")) + "/cache/download"
	common := []string{"CGO_ENABLED=0", "GOWORK=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOPROXY=" + cache,
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@localhost"}
	withEnv := func(env ...string) []string { return append(append([]string(nil), common...), env...) }

	run(".", nil, "git", "clone", "--quiet", "--no-tags", ".", clone)
	changes, err := os.ReadFile(filepath.Join(clone, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## (v\S+)$`).FindSubmatch(changes)
	if heading == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	version := string(heading[1])
	served := filepath.Join(here, "served")
	// go get reads the go.mod files of all modules of the graph. The cache may lack some of them.
	for _, folder := range []string{"beam", "gorgonia"} {
		run(filepath.Join(clone, folder), nil, "go", "mod", "graph")
		run(filepath.Join(clone, folder), nil, "go", "list", "-deps", "./...")
	}
	fetch := withEnv("GOMODCACHE="+served, "GOFLAGS=-modcacherw")
	run(clone, fetch, "make", "tag", "VERSION="+version)

	// The files that the go command gets from git are copied to the proxy.
	git := append(fetch, "GONOPROXY="+module, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	run(here, git, "go", "mod", "download", module+"@"+version, module+"/beam@"+version, module+"/gorgonia@"+version)
	bin := filepath.Join(here, "bin")
	outsideEnv := withEnv("GOMODCACHE="+filepath.Join(here, "mod"), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOBIN="+bin,
		"GOPROXY=file://"+served+"/cache/download,"+cache)

	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{} // lines of the README for each go command: install, get
	for _, m := range regexp.MustCompile(`(?m)^    go (install|get) ([^#\n]*)`).FindAllStringSubmatch(string(readme), -1) {
		lines[m[1]] = append(lines[m[1]], m[2])
	}
	if len(lines["install"]) == 0 || len(lines["get"]) == 0 {
		t.Fatalf("README.md has no go install or no go get: %q", lines)
	}

	work := filepath.Join(here, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	program := "package main\n\nimport \"" + module + "/kernels\"\n\nfunc main() { println(kernels.Gaussian{Sigma: 2}.String()) }\n"
	if err := os.WriteFile(filepath.Join(work, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	run(work, outsideEnv, "go", "mod", "init", "example.org/program")
	for _, arguments := range lines["get"] {
		run(work, outsideEnv, "go", append([]string{"get"}, strings.Fields(arguments)...)...)
	}
	if out := run(work, outsideEnv, "go", "run", "."); out != "gaussian(sigma=2)\n" {
		t.Errorf("the program printed %q", out)
	}
	if out := run(work, outsideEnv, "go", "list", "-m", module); out != module+" "+version+"\n" {
		t.Errorf("the program has %s, want %s", out, version)
	}
	for _, arguments := range lines["install"] {
		run(here, outsideEnv, "go", append([]string{"install"}, strings.Fields(arguments)...)...)
		if out := run(here, nil, filepath.Join(bin, "mercer"), "version"); !strings.HasPrefix(out, "mercer "+version+" ") {
			t.Errorf("after go install %s: %q, want version %s", arguments, out, version)
		}
	}
	// go install refuses a module with a replace directive. Building these modules instead would take minutes.
	for _, folder := range []string{"beam", "gorgonia"} {
		text, err := os.ReadFile(filepath.Join(served, "cache", "download", filepath.FromSlash(module), folder, "@v", version+".mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "replace ") || !strings.Contains(string(text), "\t"+module+" "+version+"\n") {
			t.Errorf("%s replaces a module, or does not require Mercer %s:\n%s", folder, version, text)
		}
	}
}

// TestReleaseWithoutWheel runs `make wheel` and `make release` with a Python without pip, and with a Python without
// hatchling and without a package index. A fake go command records its arguments.
func TestReleaseWithoutWheel(t *testing.T) {
	for _, program := range []string{"make", "gcc", "git", "sha256sum"} {
		required.Program(t, "tagged", program)
	}
	here := t.TempDir()
	script := func(name, text string) string {
		t.Helper()
		file := filepath.Join(here, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o777); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// This fake go command writes an archive for `go run ./release DIST`, and a record for `go build`.
	golang := script("go", `case "$1 $2" in "run ./release") echo archive >"$3/mercer.tar.gz";; build*) touch "`+here+`/compiled";; esac`)
	for _, c := range []struct{ python, says string }{
		{script("nopip", "exit 1"), "has no pip"},
		{script("noindex", `case "$*" in *--version*) exit 0;; esac; exit 1`), "has no hatchling >= 1.12, and pip has no index"},
	} {
		runMake := func(args ...string) (string, error) {
			cmd := exec.Command("make", append(args, "GO="+golang, "PYTHON="+c.python)...)
			cmd.Env = append(os.Environ(), "MAKEFLAGS=")
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := runMake("wheel", "WHEELS="+here); err == nil || !strings.Contains(out, "wheel: "+c.python+" "+c.says) {
			t.Errorf("make wheel: %v\n%s", err, out)
		}
		if _, err := os.Stat(filepath.Join(here, "compiled")); err == nil {
			t.Error("make wheel compiles before it says what it needs")
		}
		dist := filepath.Join(here, "dist")
		if out, err := runMake("release", "DIST="+dist); err == nil || !strings.Contains(out, "release: "+dist+" has the archives and SHA256SUMS, and no wheel") {
			t.Errorf("make release: %v\n%s", err, out)
		}
		// The sha256sum of "archive\n", computed by Python's hashlib.
		const want = "371e16ce98051a3ea7af3eaef8b87d69033154fb5bb33da349d611f0fae061d6  mercer.tar.gz\n"
		if sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS")); err != nil || string(sums) != want {
			t.Errorf("SHA256SUMS: %v\n%s", err, sums)
		}
	}
}

package mercer_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
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

// TestReadmeFigures looks up each figure of the README's table of times and rates in
// docs/results.md, whose tables are written from the measurements, and holds the README to
// it as rounded to the digits that it shows.
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
	// cells are those of a row of a table under a heading, by the heads of their columns.
	cells := func(section, heading, row string) map[string]string {
		t.Helper()
		_, rest, found := strings.Cut(results, "\n## "+section)
		if found {
			rest, _, _ = strings.Cut(rest, "\n## ")
			_, rest, found = strings.Cut(rest, "\n### "+heading+"\n")
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
		for line := range strings.SplitSeq(rest, "\n") {
			if strings.HasPrefix(line, "#") {
				break
			}
			switch list := split(line); {
			case !strings.HasPrefix(line, "|"):
			case heads == nil:
				heads = list
			case list[0] == row:
				of := map[string]string{}
				for i := range min(len(list), len(heads)) {
					of[heads[i]], _, _ = strings.Cut(list[i], " ")
				}
				return of
			}
		}
		t.Fatalf("docs/results.md has no row %q of %q", row, heading)
		return nil
	}
	const seconds, rates = "ridge, float64, 2 threads: time, s", "rate, GFLOP/s"
	const large = "kernel-ridge, cg, kernel = gaussian(sigma=7.0710678118654755), lambda = 0.1, d = 50: time, s"
	readme := text("README.md")
	figure := regexp.MustCompile(`^(?:([A-Za-z-]+) )?([0-9.]+)(?: (?:s|GFLOP/s))?$`)
	for label, of := range map[string]map[string]string{
		"kernel ridge, exact, n = 10,000, d = 50": cells("fit-large: ", seconds, "10000"),
		"kernel ridge, exact, n = 20,000, d = 50": cells("fit-large: ", seconds, "20000"),
		"kernel ridge, exact, n = 50,000, d = 50": cells("programs: ", "fit, "+large, "50000"),
		"Dgemm, n = 4096":                         cells("blas", rates, "gemm, float64, 2 threads, n = 4096"),
		"Sgemm, n = 4096":                         cells("blas", rates, "gemm, float32, 2 threads, n = 4096"),
		"Cholesky, float64, n = 4096":             cells("blas", rates, "potrf, float64, 2 threads, n = 4096"),
	} {
		line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(label) + ` \| (.*) \| (.*) \|$`).FindStringSubmatch(readme)
		if line == nil {
			t.Errorf("README.md has no row %q", label)
			continue
		}
		compared := 0
		for i, part := range strings.Split(line[1]+", "+line[2], ", ") {
			m := figure.FindStringSubmatch(part)
			if m == nil {
				continue // memory, and words
			}
			name := strings.ToLower(m[1])
			if i == 0 {
				name = "mercer cpu/avx512"
			}
			measured, err := strconv.ParseFloat(of[name], 64)
			digits := len(m[2]) - strings.Index(m[2]+".", ".") - 1
			if shown := strconv.FormatFloat(measured, 'f', max(digits, 0), 64); err != nil || shown != m[2] {
				t.Errorf("README.md, %s: %q, and docs/results.md has %s of %s", label, part, of[name], name)
			}
			compared++
		}
		if compared == 0 {
			t.Errorf("README.md, %s: no figure could be compared", label)
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

// TestGuideListsItsPages: the index of the guide links to each of its pages.
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

// TestGuidePrograms holds each Go block of the guide to being the body of an example that is
// compiled and run here, with its output after it.
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

// TestGuideFigures looks up each time and memory of the table in docs/guide/large-n.md in
// docs/results.md, whose tables are written from the measurements.
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
		measured := `(?m)^\| ` + m[1] + `, .*n = ` + strings.ReplaceAll(m[2], ",", "") + `, .*\| ` + regexp.QuoteMeta(m[3]) + ` \(.*\| ` + m[4] + ` \|`
		if !regexp.MustCompile(measured).Match(results) {
			t.Errorf("docs/results.md has no such measurement: %s", m[0])
		}
	}
}

// TestReadmeIsShort: the README is what a visitor reads first; the rest is in docs.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, at most 150 are allowed: move some to docs", lines)
	}
}

// TestPagesListTheCatalogues: every learner and every kernel function stands on its page,
// and the table of the README names learners that there are.
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

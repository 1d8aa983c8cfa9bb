package markdown

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/bench"
)

const (
	root    = "../.."
	results = root + "/bench/results"
)

// TestDrift holds the pages to saying what the measurements say.
func TestDrift(t *testing.T) {
	files, err := Load(results)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(root + "/bench/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	directive := regexp.MustCompile(`(?m)^//go:generate go run ./markdown/fill results (.*)$`).FindSubmatch(source)
	if directive == nil {
		t.Fatal("bench/doc.go has no go:generate line for the pages")
	}
	for page := range strings.FieldsSeq(string(directive[1])) {
		page = strings.TrimPrefix(page, "../")
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(filepath.Dir(page), "bench/results")
		if err != nil {
			t.Fatal(err)
		}
		filled, err := Fill(string(text), folder, files)
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		if !block.MatchString(filled) {
			t.Errorf("%s has no block", page)
		}
		if d := cmp.Diff(filled, string(text)); d != "" {
			t.Errorf("%s differs from bench/results: run go generate ./bench (-want +got):\n%s", page, d)
		}
	}
}

// unit is a number that was measured, where none but blocks may have one: a time, a rate
// or a ratio of times. Amounts of memory and counts may follow from a formula.
var unit = regexp.MustCompile(`[0-9]( |\x{a0})?(µs|ms|s|seconds|minutes|hours|GFLOP/s|rows/s|×|times)([^\pL]|$)`)

// written is what of a page is written by others: blocks, programs and what they print,
// commands within a line.
var written = regexp.MustCompile("(?sm)<!-- bench .*?<!-- /bench -->|^```.*?^```|^    [^\\n]*|`[^`\\n]*`")

// TestMeasured finds times and ratios that somebody wrote by hand: in the README and the
// pages of docs they come from a file, by a block. It also finds blocks in pages that
// nobody fills.
func TestMeasured(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(root + "/bench/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, root+"/README.md", root+"/bindings/python/README.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.ToSlash(strings.TrimPrefix(page, root)); block.Match(text) && !strings.Contains(string(source), ".."+name) {
			t.Errorf("%s has blocks, and bench/doc.go does not name it in go:generate", name)
		}
		// What is taken away leaves its lines, so that those that are told are right.
		rest := written.ReplaceAllStringFunc(string(text), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		for i, line := range strings.Split(rest, "\n") {
			if unit.MatchString(line) {
				t.Errorf("%s:%d: a measured number by hand: %s", page, i+1, line)
			}
		}
	}
}

// cell is a measured case of two entrants.
func cell(c bench.Case, own, peer float64) bench.Cell {
	run := func(name string, s float64) bench.Run {
		return bench.Run{
			Entrant: name, Work: 1e9, Timings: []float64{s}, Time: bench.Spread{Median: s, Min: s, Max: s},
			Rate: bench.Spread{Median: 1 / s, Min: 1 / s, Max: 1 / s}, Ceiling: 50, Share: 1 / s / 50,
			Metrics: map[string]float64{bench.Residual: 2e-16},
		}
	}
	return bench.Cell{Case: c, Runs: []bench.Run{run("mercer cpu", own), run("mkl", peer)}}
}

func files() []File {
	blas := func(n string, own, peer float64) bench.Cell {
		return cell(bench.Case{{Name: "routine", Value: "gemm"}, {Name: "precision", Value: "float64"}, {Name: "threads", Value: "2"}, {Name: "n", Value: n}}, own, peer)
	}
	entrants := []bench.Entrant{{Name: "mercer cpu", Kind: bench.OwnKind}, {Name: "mkl", Kind: bench.PeerKind}}
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	old := &bench.Result{Kind: "blas", Started: day(1), Entrants: entrants, Cells: []bench.Cell{blas("8", 0.1, 0.5)}}
	late := &bench.Result{Kind: "blas", Started: day(2), Entrants: entrants, Cells: []bench.Cell{blas("8", 0.04, 0.03), blas("16", 0.025, 0.02)}}
	return []File{{"old.json", old}, {"late.json", late}}
}

func TestFill(t *testing.T) {
	page := `# A page

Gemm: <!-- bench blas kind=blas n=8 threads=2 --><!-- /bench -->
<!-- bench blas file=old.json -->
stale
<!-- /bench -->
At 16 beside 16: <!-- bench beside kind=blas of=gemm to=gemm precision=float64 threads=2 n=16 -->7 %<!-- /bench -->.
<!-- bench compared kind=blas -->
<!-- /bench -->
<!-- bench losses -->
<!-- /bench -->
<!-- bench growths kind=scale optional=yes -->
<!-- /bench -->
`
	want := `# A page

Gemm: <!-- bench blas kind=blas n=8 threads=2 -->
| GFLOP/s, 2 threads, n = 8 | Mercer | MKL | ceiling |
|---|---:|---:|---:|
| Dgemm | 25 (50 %) | 33 | 50 |
<!-- /bench -->
<!-- bench blas file=old.json -->
| GFLOP/s | Mercer | MKL | ceiling |
|---|---:|---:|---:|
| Dgemm, 2 threads, n = 8 | 10 (20 %) | 2.00 | 50 |
<!-- /bench -->
At 16 beside 16: <!-- bench beside kind=blas of=gemm to=gemm precision=float64 threads=2 n=16 -->100 %<!-- /bench -->.
<!-- bench compared kind=blas -->
|  | n | Mercer’s fastest | s | residual | × MKL |
|---|---:|---:|---:|---:|---:|
| gemm, float64, 2 threads | 16 | cpu | 0.0250 | 2e-16 | 0.80 |
<!-- /bench -->
<!-- bench losses -->
|  | who is faster | Mercer’s time × | measured in |
|---|---:|---:|---:|
| gemm, float64, 2 threads, n = 8 | MKL | 1.33 | [2026-01-02](results/late.json) |
| gemm, float64, 2 threads, n = 16 | MKL | 1.25 | [2026-01-02](results/late.json) |
<!-- /bench -->
<!-- bench growths kind=scale optional=yes -->
No measurement of this kind is kept yet.
<!-- /bench -->
`
	got, err := Fill(page, "results", files())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	again, err := Fill(got, "results", files())
	if d := cmp.Diff(got, again); d != "" || err != nil {
		t.Errorf("filled twice: %v\n%s", err, d)
	}
}

func TestFillFails(t *testing.T) {
	for head, want := range map[string]string{
		"weather":                 "markdown: there is no block \"weather\"",
		"blas file=none.json":     "markdown: blas: there is no measurement none.json",
		"blas kind=fit":           "markdown: blas: there is no measurement fit",
		"blas":                    "markdown: blas: it needs file= or kind=",
		"blas loud":               `markdown: blas: want key=value, got "loud"`,
		"blas kind=blas n=9":      "markdown: blas: no cell fits the arguments",
		"growths kind=blas":       "markdown: growths: no law was fitted",
		"crossover-map kind=blas": "markdown: crossover-map: no device and precision fit the arguments",
	} {
		page := "<!-- bench " + head + " -->\nkept\n<!-- /bench -->\n"
		got, err := Fill(page, "results", files())
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", head, err, want)
		}
		if got != page {
			t.Errorf("%s: the page became %q", head, got)
		}
	}
	if _, err := Fill("<!-- bench blas kind=blas -->", "", files()); err == nil {
		t.Error("a block without an end passes")
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder passes")
	}
}

package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/bench"
)

// imported are runs of programs, and Go benchmarks of two libraries.
func imported(t *testing.T) []File {
	t.Helper()
	runs, err := bench.ReadRuns(strings.NewReader(`
{"program": "fit", "learner": "kernel-ridge", "solver": "cg", "n": 100, "peak_bytes": 310400000, "residual": 2.3e-9, "seconds": {"read": 0.5, "solve": 1, "total": 1.25}}
{"program": "fit", "learner": "kernel-ridge", "solver": "dual", "n": 100, "seconds": 4}
{"program": "fit", "learner": "ridge", "n": 100000, "peak_bytes": 6394000000, "seconds": 585}
`), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	const line = "BenchmarkMat/operation=Mul/n="
	gonum, err := bench.ReadGoBench(strings.NewReader(line+"100/library=mercer-2 1 2000 ns/op\n"+line+"100/library=gonum-2 1 1900 ns/op\n"+
		line+"300/library=mercer-2 1 2000 ns/op\n"+line+"300/library=gonum-2 1 9200 ns/op\n"), "library", time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return []File{{"runs.json", runs}, {"mat.json", gonum}}
}

func TestFigure(t *testing.T) {
	files := imported(t)
	for head, want := range map[string]string{
		"kind=runs solver=cg":                             "1.2 s",
		"kind=runs solver=cg of=solve":                    "1.0 s",
		"kind=runs solver=cg of=residual":                 "2e-9",
		"kind=runs solver=cg of=peak_bytes":               "310 MB",
		"kind=runs n=100000":                              "9 min 45 s",
		"kind=runs of=peak_bytes pick=max":                "6.4 GB",
		"kind=runs n=100 pick=max":                        "4.0 s",
		"kind=go n=300":                                   "2.0 µs",
		"kind=go n=300 entrant=gonum":                     "9.2 µs",
		"kind=go n=300 of=gain":                           "4.60",
		"kind=go operation=Mul of=gain pick=min":          "0.95",
		"file=mat.json of=gain entrant=gonum pick=max":    "4.60",
		"kind=runs solver=dual entrant=mercer of=seconds": "4.0 s",
	} {
		page := "x <!-- bench figure " + head + " --><!-- /bench --> y"
		got, err := Fill(page, "", files)
		if err != nil || got != strings.Replace(page, "--><!--", "-->"+want+"<!--", 1) {
			t.Errorf("%s: got %s, %v, want %s", head, got, err, want)
		}
	}
	for head, want := range map[string]string{
		"kind=runs":                            "markdown: figure: 3 cells fit the arguments: name more of them, or pick=min or pick=max",
		"kind=runs n=7":                        "markdown: figure: no cell fits the arguments",
		"kind=runs solver=dual of=residual":    "markdown: figure: no cell has residual",
		"kind=runs solver=dual entrant=nobody": "markdown: figure: no cell has seconds",
		"kind=runs solver=dual pick=some":      "markdown: figure: pick=some: want min or max",
		"kind=runs solver=dual of=gain":        "markdown: figure: no cell has gain",
		"file=none.json":                       "markdown: figure: there is no measurement none.json",
	} {
		if _, err := Fill("<!-- bench figure "+head+" --><!-- /bench -->", "", files); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", head, err, want)
		}
	}
}

func TestRuns(t *testing.T) {
	want := `<!-- bench runs kind=runs show=learner,n -->
| learner | n | time | peak memory | residual |
|---|---:|---:|---:|---:|
| kernel-ridge | 100 | 1.2 s | 310 MB | 2e-9 |
| kernel-ridge | 100 | 4.0 s | – | – |
| ridge | 100000 | 9 min 45 s | 6.4 GB | – |
<!-- /bench -->`
	got, err := Fill("<!-- bench runs kind=runs show=learner,n -->\n<!-- /bench -->", "", imported(t))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	want = `<!-- bench runs kind=go show=n entrants=mercer,gonum -->
| n | mercer | gonum |
|---|---:|---:|
| 100 | 2.0 µs | 1.9 µs |
| 300 | 2.0 µs | 9.2 µs |
<!-- /bench -->`
	got, err = Fill("<!-- bench runs kind=go show=n entrants=mercer,gonum -->\n<!-- /bench -->", "", imported(t))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	want = "<!-- bench stamp kind=go short=yes -->[mat.json](r/mat.json): , 2 processors, 2026-01-03<!-- /bench -->"
	got, err = Fill("<!-- bench stamp kind=go short=yes --><!-- /bench -->", "r", imported(t))
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestNumbersInSentences: numbers are written as a sentence has them.
func TestNumbersInSentences(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{timeText(12.3e-6), "12 µs"}, {timeText(0.99951e-3), "1.0 ms"}, {timeText(1.53e-3), "1.5 ms"}, {timeText(0.9996), "1.0 s"},
		{timeText(68.06), "68 s"}, {timeText(119.4), "119 s"}, {timeText(119.6), "2 min 0 s"}, {timeText(3e-7), "0.30 µs"},
		{bytesText(999), "999 B"}, {bytesText(999.6), "1.0 kB"}, {bytesText(3.8e9), "3.8 GB"},
	} {
		if x.got != x.want {
			t.Errorf("got %s, want %s", x.got, x.want)
		}
	}
}

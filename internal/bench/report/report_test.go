package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/bench"
)

// sample returns a measurement of two routines by Mercer and two libraries, one of which lacks a routine.
func sample() *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Kind: "blas", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 12,
		Machine:  bench.Machine{Processor: `Abacus "2" <b>`, CPUs: 2, MaxProcs: 2, System: "linux/amd64", Go: "go1.26"},
		Settings: bench.Settings{Repeats: 5},
		Implementations: []bench.Implementation{
			{Name: "mercer cpu/fast", Kind: bench.OwnKind},
			{Name: "gonum", Kind: bench.PeerKind, Detail: "gonum v0"},
			{Name: "openblas", Kind: bench.PeerKind, Detail: "OpenBLAS & more", Path: "/lib/libopenblas.so.0"},
			{Name: "mkl", Kind: bench.PeerKind, Missing: "not found: libmkl_rt.so"},
			{Name: "ceiling cpu/fast", Kind: bench.CeilingKind},
		},
	}
	speeds := []float64{41.25, 5.125, 43.5, 0, 66.75}
	for _, routine := range []string{"gemm", "potrf"} {
		for i, n := range []string{"64", "512", "4096"} {
			c := bench.Cell{Case: bench.Case{{Name: "routine", Value: routine}, {Name: "precision", Value: "float32"}, {Name: "threads", Value: "1"}, {Name: "n", Value: n}}}
			for j, e := range r.Implementations {
				run := bench.Run{Implementation: e.Name, Reason: e.Missing}
				if e.Name == "gonum" && routine == "potrf" {
					run.Reason = "has no potrf in float32"
				}
				if run.Reason == "" {
					v := speeds[j] + float64(i)
					run.Timings = []float64{1, 1, 1, 1, 1}
					run.Work = v * 1e9
					run.Rate = bench.Summary{Median: v, Min: v - 3.5, Max: v + 1.5, Outliers: i % 2}
					run.Time = bench.Summary{Median: 1 / v, Min: 1 / v, Max: 1 / v}
					if e.Kind != bench.CeilingKind {
						run.Ceiling, run.Share = speeds[4], v/speeds[4]
					}
				}
				c.Runs = append(c.Runs, run)
			}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

func write(t *testing.T, r *bench.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is an element of a page that is read as XML.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []*element `xml:",any"`
}

func parse(t *testing.T, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page)) // a strict decoder: every tag must be closed, and every & must begin an entity
	root := new(element)
	if err := d.Decode(root); err != nil {
		t.Fatalf("the page is not well formed: %v", err)
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("after the page: %v", err)
	}
	return root
}

func (e *element) walk(f func(*element)) {
	f(e)
	for _, c := range e.Children {
		c.walk(f)
	}
}

func (e *element) find(name string) (list []*element) {
	e.walk(func(x *element) {
		if x.XMLName.Local == name {
			list = append(list, x)
		}
	})
	return list
}

// words returns the text of e with single spaces.
func (e *element) words() string {
	var b strings.Builder
	e.walk(func(x *element) { b.WriteString(" " + x.Text) })
	return strings.Join(strings.Fields(b.String()), " ")
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// TestPage checks that the page has every value of the measurement, in a table below its chart.
func TestPage(t *testing.T) {
	root := parse(t, write(t, sample()))
	if title := root.find("title")[0].words(); title != `Mercer’s BLAS on Abacus "2" <b>` {
		t.Errorf("the title is %s", title)
	}
	cards := root.find("figure")
	if len(cards) != 4 {
		t.Fatalf("%d tables, want the comparison, two routines and the implementations", len(cards))
	}
	for i, c := range cards[1:3] {
		if len(c.find("svg")) != 1+len(c.find("li")) || len(c.find("table")) != 1 {
			t.Fatalf("%d pictures and %d tables in a card", len(c.find("svg")), len(c.find("table")))
		}
		text := c.find("table")[0].words()
		want := []string{
			"n mercer cpu/fast gonum openblas ceiling cpu/fast",
			"64 41.2 37.8–42.8, 62 % 5.12 1.62–6.62, 8 % 43.5 40.0–45.0, 65 % 68.2",
			"512 42.2 38.8–43.8°, 63 %",
			"4096 43.2 39.8–44.8, 65 %",
		}
		if i == 1 {
			want = []string{"n mercer cpu/fast openblas ceiling cpu/fast", "64 41.2 37.8–42.8, 62 % 43.5 40.0–45.0, 65 % 68.2"}
			if !strings.Contains(c.words(), "gonum: has no potrf in float32") {
				t.Error("the reason of an absence is not given")
			}
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("there is no %q in %q", w, text)
			}
		}
	}
	text := root.words()
	for _, want := range []string{
		"At the largest size, Mercer is the fastest in 0 of 2 comparisons. It reaches 65 to 65 % of the ceiling.",
		"n Mercer GFLOP/s of ceiling × gonum × openblas",
		"gemm, float32, 1 thread 4096 cpu/fast 43.2 65 % 6.07 0.95",
		"potrf, float32, 1 thread 4096 cpu/fast 43.2 65 % – 0.95",
		"2026-03-04 05:06 UTC",
		"openblas OpenBLAS & more, /lib/libopenblas.so.0",
		"mkl missing: not found: libmkl_rt.so",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %q", want, text)
		}
	}
}

// TestPageIsSelfContained checks that the page loads no other file, and that its style has all rules.
func TestPageIsSelfContained(t *testing.T) {
	page := write(t, sample())
	root := parse(t, page)
	if n := len(root.find("script")); n != 1 {
		t.Errorf("the page has %d scripts", n)
	}
	for _, name := range []string{"link", "img", "iframe", "image", "use"} {
		if len(root.find(name)) > 0 {
			t.Errorf("the page has <%s>", name)
		}
	}
	root.walk(func(e *element) {
		for _, a := range e.Attrs {
			if a.Name.Local == "src" || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("<%s> has %s", e.XMLName.Local, a.Name.Local)
			}
		}
	})
	style := root.find("style")[0].Text
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style refers to something")
	}
	for _, want := range []string{"prefers-color-scheme: dark", "@media print", "max-width: 34rem"} {
		if !strings.Contains(style, want) {
			t.Errorf("the style knows no %q", want)
		}
	}
	// Each variable in use has three definitions: for light, for dark and for printing.
	for _, v := range regexp.MustCompile(`var\((--[a-z0-9]+)\)`).FindAllStringSubmatch(page, -1) {
		if n := strings.Count(style, v[1]+":"); n != 3 {
			t.Errorf("%s is defined %d times", v[1], n)
		}
	}
	if fixed := regexp.MustCompile(`(stroke|fill):#[0-9A-F]{6}`).FindString(page); fixed != "" {
		t.Errorf("a picture has a fixed color: %s", fixed)
	}
}

// TestPicture checks that there is a marker for each value, and that the ceiling is a dashed line.
func TestPicture(t *testing.T) {
	card := parse(t, write(t, sample())).find("figure")[1]
	pictures := card.find("svg")
	svg := pictures[len(pictures)-1] // skip the charts of the legend
	if svg.attr("role") != "img" || svg.attr("aria-label") != "gemm, float32, 1 thread: rate, GFLOP/s" {
		t.Errorf("the picture is announced as %q", svg.attr("aria-label"))
	}
	var view [4]float64
	for i, w := range strings.Fields(svg.attr("viewBox")) {
		view[i], _ = strconv.ParseFloat(w, 64)
	}
	if view != [4]float64{0, 0, float64(width), float64(height)} {
		t.Errorf("the view is %v", view)
	}
	text := svg.words()
	for _, want := range []string{"64", "512", "4096", "n", "GFLOP/s", "10"} {
		if !strings.Contains(" "+text+" ", " "+want+" ") {
			t.Errorf("there is no %q in the picture: %s", want, text)
		}
	}
	dashed := 0
	colors := map[string]bool{}
	for _, p := range svg.find("path") {
		style := p.attr("style")
		if strings.Contains(style, "stroke-dasharray") && strings.Contains(style, "var(--ink)") {
			dashed++
		}
		for _, c := range regexp.MustCompile(`var\((--look\d)\)`).FindAllStringSubmatch(style, -1) {
			colors[c[1]] = true
		}
	}
	if titles := svg.find("title"); len(titles) != 12 || titles[0].words() != "mercer cpu/fast n: 64 GFLOP/s: 41.25" {
		t.Errorf("%d points have their values, the first %q", len(titles), titles[0].words())
	}
	if dashed != 1 || len(colors) != 3 {
		t.Errorf("%d dashed lines, colors %v", dashed, colors)
	}
	if keys := card.find("li"); len(keys) != 4 || len(keys[0].find("svg")) != 1 {
		t.Errorf("%d keys in the legend, want 4 with their samples", len(keys))
	}
}

// TestEmpty checks, for every kind, that a page is written for a measurement without cells.
func TestEmpty(t *testing.T) {
	for _, kind := range []string{bench.BLASKind, bench.CrossoverKind, bench.FitKind, bench.ScaleKind, bench.DevicesKind, bench.GoKind, bench.RunsKind} {
		r := sample()
		r.Kind, r.Cells = kind, nil
		if text := parse(t, write(t, r)).words(); !strings.Contains(text, "Nothing was measured.") {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

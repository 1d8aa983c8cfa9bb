package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/bench"
	"github.com/mercer-go/mercer/internal/browser"
)

// TestBrowser checks the page of every kind of measurement in bench/results in a browser.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium := browser.Start(t)
	for name, r := range newestResults(t) {
		page := write(t, r)
		t.Run(name, func(t *testing.T) { chromium.Check(t, page, len(parse(t, page).find("figure"))) })
	}
}

// newestResults returns the newest measurement of each kind in bench/results that has charts.
func newestResults(t *testing.T) map[string]*bench.Result {
	t.Helper()
	newest := map[string]*bench.Result{}
	files, err := filepath.Glob("../../../bench/results/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := bench.Read(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o := newest[r.Kind]; (o == nil || r.Started.After(o.Started)) && strings.Contains(write(t, r), `role="img"`) {
			newest[r.Kind] = r
		}
	}
	return newest
}

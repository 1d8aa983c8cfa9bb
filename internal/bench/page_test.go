package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResultsPageIsCurrent checks that docs/results.md equals the page that go generate makes from bench/results.
func TestResultsPageIsCurrent(t *testing.T) {
	names, err := filepath.Glob("../../bench/results/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d measurements, %v", len(names), err)
	}
	var list []*Result
	var links []string
	for _, name := range names {
		r, err := ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list, links = append(list, r), append(links, "../bench/results/"+filepath.Base(name))
	}
	want, err := Page(list, links)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("run go generate ./internal/bench (-wanted +kept):\n%s", d)
	}
}

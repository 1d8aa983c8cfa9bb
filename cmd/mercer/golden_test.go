package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/learners"
)

var update = flag.Bool("update", false, "write testdata/learners.golden, or the pages and pictures of docs, anew")

// TestLearnersGolden compares the flags of mercer fit, their help for each learner, and the catalogue in JSON, with
// testdata/learners.golden. After an intended change: go test ./cmd/mercer -run Golden -update.
func TestLearnersGolden(t *testing.T) {
	common := help(t, "fit", "--help")
	shared := map[string]bool{}
	for line := range strings.Lines(common) {
		shared[line] = true
	}
	var got strings.Builder
	got.WriteString("# mercer fit --help\n" + common)
	for _, d := range learners.Catalogue() {
		name := d.Name
		got.WriteString("\n# mercer fit --learner " + name + " --help: the lines that the help of mercer fit has not\n")
		for line := range strings.Lines(help(t, "fit", "--learner", name, "--help")) {
			if !shared[line] {
				got.WriteString(line)
			}
		}
	}
	got.WriteString("\n# mercer learners --json\n" + help(t, "learners", "--json"))
	path := filepath.Join("testdata", "learners.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		if i >= len(wantLines) || i >= len(gotLines) || wantLines[i] != gotLines[i] {
			t.Fatalf("%s differs from line %d on:\n%s\nis now\n%s\nAn intended change is written by -update.", path, i+1,
				strings.Join(wantLines[min(i, len(wantLines)):min(i+3, len(wantLines))], "\n"), strings.Join(gotLines[min(i, len(gotLines)):min(i+3, len(gotLines))], "\n"))
		}
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrift checks that every checked-in file equals the file that the generator makes.
func TestDrift(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2*len(tiers) {
		t.Fatalf("%d files for %d tiers", len(files), len(tiers))
	}
	folder := filepath.Join("..", target)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from asmgen's output: run 'make generate'\n%s", name, firstDifference(got, want))
		}
	}
	// Every assembly file in the repository must be an output of the generator.
	checkedIn, err := filepath.Glob(filepath.Join(folder, "*.s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range checkedIn {
		if _, ok := files[filepath.Base(path)]; !ok {
			t.Errorf("%s is not made by asmgen", path)
		}
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "checked in: " + g[i] + "\ngenerated:  " + w[i]
		}
	}
	return "one is longer than the other"
}

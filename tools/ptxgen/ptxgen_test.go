package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrift checks that the PTX was compiled from the current sources.
func TestDrift(t *testing.T) {
	inTree := filepath.Join("..", folder)
	sources, err := read(inTree)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(inTree, hashFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := hash(sources); got != strings.TrimSpace(string(recorded)) {
		t.Fatalf("the sources have the hash %s, the PTX was made from %s: run go run ./ptxgen", got, recorded)
	}
	root := os.Getenv("MERCER_CUDA_TOOLKIT")
	if root == "" {
		t.Skip("MERCER_CUDA_TOOLKIT does not name a folder with the lib of CUDA 11.8: only the hash of the sources was compared")
	}
	files, err := generate(filepath.Join(root, "lib"), inTree)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(inTree, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from ptxgen's output (%v): run go run ./ptxgen", name, err)
		}
	}
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated checks that _parameters.py is the output of pygen for the current catalogue.
func TestGenerated(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := catalogue(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(list)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, written))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the catalogue: run 'make generate'", written)
	}
}

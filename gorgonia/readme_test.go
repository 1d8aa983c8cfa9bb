package gorgonia_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme holds the README's piece of a program to being part of the example
// that runs here.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	body := strings.ReplaceAll(string(example), "\n\t", "\n")
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		if !strings.Contains(block[1], "gorgonia.KernelRidge(") {
			continue
		}
		if !strings.Contains(body, block[1]) {
			t.Errorf("this is not in example_test.go:\n%s", block[1])
		}
		return
	}
	t.Error("README.md has no program with gorgonia.KernelRidge")
}

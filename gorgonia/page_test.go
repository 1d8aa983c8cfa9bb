package gorgonia_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage checks that the program in docs/gorgonia.md is the example that runs in this package.
func TestPage(t *testing.T) {
	readme, err := os.ReadFile("../docs/gorgonia.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.NewReplacer("package gorgonia_test", "package main", "func Example()", "func main()").Replace(string(example))
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		if strings.Contains(block[1], "gorgonia.KernelRidge(") {
			if block[1] != program {
				t.Errorf("the program in docs/gorgonia.md is not example_test.go with a main:\n%s", block[1])
			}
			return
		}
	}
	t.Error("docs/gorgonia.md has no program with gorgonia.KernelRidge")
}

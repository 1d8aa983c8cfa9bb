package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpExamples checks that the examples in the help of each command run, in their order, on a
// table with two columns and a target y of −1 and 1.
func TestHelpExamples(t *testing.T) {
	var table strings.Builder
	table.WriteString("a,b,y\n")
	for i := range 12 {
		a, b := 0.3*float64(i), float64(i*7%12)/8
		fmt.Fprintf(&table, "%g,%g,-1\n%g,%g,1\n", a, b, a+1, b+5)
	}
	examples := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		text := strings.ReplaceAll(c.Long, " \\\n", "")
		if !strings.Contains(text, "\n  mercer ") {
			return
		}
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"t.csv", "test.csv"} {
				if err := os.WriteFile(name, []byte(table.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for line := range strings.Lines(text) {
				line, isExample := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  mercer ")
				if !isExample {
					continue
				}
				examples++
				var args []string
				for i, part := range strings.Split(line, "'") {
					if i%2 == 1 {
						args = append(args, part)
					} else {
						args = append(args, strings.Fields(part)...)
					}
				}
				var out, errs strings.Builder
				if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
					t.Errorf("mercer %s: %d: %s", line, code, errs.String())
				}
			}
		})
	}
	walk((&app{}).root())
	if examples < 11 {
		t.Errorf("%d examples were found", examples)
	}
}

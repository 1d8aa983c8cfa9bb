package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// calls returns the words of the call of a command and of each of its subcommands.
func calls(c *cobra.Command, path ...string) [][]string {
	list := [][]string{path}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			list = append(list, calls(below, append(slices.Clip(path), below.Name())...)...)
		}
	}
	return list
}

// helped returns the command at path after it has prepared its help.
func helped(t *testing.T, path []string) *cobra.Command {
	t.Helper()
	root := new(app).root()
	root.SetOut(io.Discard)
	root.DisableAutoGenTag = true // omits the line that cobra adds
	c, _, err := root.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	c.HelpFunc()(c, nil)
	return c
}

// TestManPages writes the manual page of each command to the folder MERCER_MAN if this variable is
// set. `make man` and the release run the test for this purpose, so that the command itself needs
// no generator of pages. The pages must contain each word of the help: a word that is taken for
// markup would be missing.
func TestManPages(t *testing.T) {
	folder := os.Getenv("MERCER_MAN")
	if folder == "" {
		folder = t.TempDir()
	}
	pages := calls(new(app).root())
	if len(pages) < 30 {
		t.Errorf("there are only %d commands: %q", len(pages), pages)
	}
	roff := regexp.MustCompile(`(?m)^\.[A-Z]+ ?|\\f[A-Z]|\\&`)
	for _, path := range pages {
		c := helped(t, path)
		name := strings.Join(append([]string{"mercer"}, path...), "-")
		var page bytes.Buffer
		if err := doc.GenMan(c, &doc.GenManHeader{Source: "Mercer", Manual: "Mercer"}, &page); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".1"), page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`\-`, "-", `\\`, `\`).Replace(roff.ReplaceAllString(page.String(), ""))
		words := map[string]bool{}
		for _, w := range strings.Fields(text) {
			words[w] = true
		}
		check := func(what, help string) {
			for _, w := range strings.Fields(strings.ReplaceAll(help, "`", "")) {
				if !words[w] {
					t.Errorf("%s.1: %s has the word %q, the page has not", name, what, w)
				}
			}
		}
		check("the help", c.Long)
		check("the summary", c.Short)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if has := regexp.MustCompile(`(?m)--` + f.Name + `\b\[?=`).MatchString(text); has == f.Hidden {
				t.Errorf("%s.1 has --%s: %t", name, f.Name, has)
			}
			if !f.Hidden {
				check("--"+f.Name, f.Usage)
			}
		})
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/internal/required"
)

// calls returns the words of the call of a command and of each of its subcommands.
func calls(c *cobra.Command, path ...string) [][]string {
	list := [][]string{path}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			list = append(list, calls(sub, append(slices.Clip(path), sub.Name())...)...)
		}
	}
	return list
}

// commandWithHelp returns the command at path after it has prepared its help.
func commandWithHelp(t *testing.T, path []string) *cobra.Command {
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

// TestManPages writes the manual page of each command to the folder that MERCER_MAN names, if it is set, as `make
// man` and the release do. The pages must contain each word of the help. groff must render the pages without a
// warning, with the same words.
func TestManPages(t *testing.T) {
	folder := os.Getenv("MERCER_MAN")
	if folder == "" {
		folder = t.TempDir()
	}
	pages := calls(new(app).root())
	if len(pages) < 30 {
		t.Errorf("there are only %d commands: %q", len(pages), pages)
	}
	file := func(path []string) string {
		return filepath.Join(folder, strings.Join(append([]string{"mercer"}, path...), "-")+".1")
	}
	roff := regexp.MustCompile(`(?m)^\.[A-Za-z]+ ?|\\f[A-Z]|\\&`)
	for _, path := range pages {
		c := commandWithHelp(t, path)
		page := manPage(t, c)
		if err := os.WriteFile(file(path), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(`\-`, "-", `\\`, `\`).Replace(roff.ReplaceAllString(page, ""))
		text = regexp.MustCompile(`\\\[u[0-9A-F]+\]`).ReplaceAllStringFunc(text, func(escape string) string {
			r, _ := strconv.ParseUint(escape[3:len(escape)-1], 16, 32)
			return string(rune(r))
		})
		hasHelp(t, text, c)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if listed := strings.Contains(page, `\fB`+strings.ReplaceAll("--"+f.Name, "-", `\-`)+`\fP`); listed == f.Hidden {
				t.Errorf("%s: the page has an item for --%s: %t", c.CommandPath(), f.Name, listed)
			}
		})
	}
	t.Run("groff", func(t *testing.T) {
		groff := required.Program(t, "groff", "groff")
		for _, path := range pages {
			cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-rLL=78n", "-P-cbou", file(path)) // -cbou makes plain text without escape sequences or overstriking
			var text, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &text, &errs
			if err := cmd.Run(); err != nil || errs.Len() > 0 {
				t.Errorf("%v: %v\n%s", cmd, err, errs.String())
			}
			c := commandWithHelp(t, path)
			hasHelp(t, text.String(), c)
			for line := range strings.SplitSeq(c.Long, "\n") {
				if item, isItem := strings.CutPrefix(line, "  "); isItem && !strings.Contains(text.String(), item+"\n") {
					t.Errorf("%q: the page lacks the line %q of a list or a command", path, item)
				}
			}
			for line := range strings.Lines(text.String()) {
				if utf8.RuneCountInString(line) > 79 {
					t.Errorf("%q: the line is longer than 78 characters: %s", path, line)
				}
			}
		}
	})
}

// hasHelp checks that the text of a page has all words of the help of a command and of its flags.
func hasHelp(t *testing.T, text string, c *cobra.Command) {
	t.Helper()
	words := map[string]bool{}
	for _, w := range strings.Fields(text) {
		words[w] = true
	}
	check := func(source, help string) {
		for _, w := range strings.Fields(strings.ReplaceAll(help, "`", "")) {
			if !words[w] {
				t.Errorf("%s: %s has the word %q, the page has not", c.CommandPath(), source, w)
			}
		}
	}
	check("the help", c.Long)
	check("the summary", c.Short)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			check("--"+f.Name, "--"+f.Name+" "+f.Usage)
		}
	})
}

// manPage returns the manual page of a command, in ASCII. It changes the page that cobra generates: each flag becomes
// a hanging paragraph that begins with the flag as in --help, and the text has no hyphenation and no justification.
func manPage(t *testing.T, c *cobra.Command) string {
	t.Helper()
	c.Long = regexp.MustCompile(`(?m)^  `).ReplaceAllString(c.Long, "    ") // with four spaces, Markdown takes lists and commands for code
	var b bytes.Buffer
	if err := doc.GenMan(c, &doc.GenManHeader{Source: "Mercer", Manual: "Mercer"}, &b); err != nil {
		t.Fatal(err)
	}
	page := strings.TrimPrefix(b.String(), ".nh\n") // the request .TH turns hyphenation on again
	page = regexp.MustCompile(`(?m)^(\.TH .*)$`).ReplaceAllString(page, "$1\n.nh\n.ad l\n.ss 12 0")
	page = regexp.MustCompile(`\n{2,}`).ReplaceAllString(page, "\n")
	page = regexp.MustCompile(`(?s)\.EX\n(.*?)\.EE\n`).ReplaceAllStringFunc(page, func(code string) string {
		width := 0
		for line := range strings.Lines(code) {
			width = max(width, utf8.RuneCountInString(strings.ReplaceAll(line, `\\`, `\`))-1)
		}
		// A line has 78 columns, and text begins in column 7. The request .nh follows because .EE turns hyphenation on.
		return fmt.Sprintf(".sp\n.RS %d\n%s.RE\n.nh\n", min(2, 78-7-width), code)
	})
	option := regexp.MustCompile(`(?m)^(?:\.PP\n)?((?:\\fB-[a-z]\\fP, )?\\fB--([a-z-]+)\\fP)\[?=(.*?)\]?\n\t(.*)$`)
	page = option.ReplaceAllStringFunc(page, func(text string) string {
		m := option.FindStringSubmatch(text)
		tag, value, usage := m[1], m[3], strings.ReplaceAll(m[4], `\fB`, `\fI`)
		f := c.Flag(m[2])
		if name, _ := pflag.UnquoteUsage(f); name != "" {
			tag += ` \fI` + name + `\fP`
		}
		if !slices.Contains([]string{"", "0", "0s", `""`, "[", "false"}, value) {
			usage += " (default " + value + ")"
		}
		return ".TP\n" + tag + "\n" + usage
	})
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, ".") {
			lines[i] = strings.ReplaceAll(line, "-", `\-`)
		}
	}
	return regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAllStringFunc(strings.Join(lines, "\n"), func(text string) string {
		r, _ := utf8.DecodeRuneInString(text)
		return fmt.Sprintf(`\[u%04X]`, r)
	})
}

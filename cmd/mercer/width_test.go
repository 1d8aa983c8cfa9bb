package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFitsATerminal checks that no line of help, or of the lists of learners and kernels, exceeds a terminal.
func TestHelpFitsATerminal(t *testing.T) {
	commands := [][]string{
		{"--help"}, {"kernels"}, {"learners"}, {"learners", "svc"}, {"learners", "gaussian-process"},
		{"fit", "--learner", "svc", "--help"}, {"fit", "--learner", "gaussian-process", "--help"},
	}
	for _, name := range []string{"fit", "tables", "predict", "evaluate", "show", "serve", "gram", "tune", "cv", "compare", "bootstrap", "devices", "demo", "version"} {
		commands = append(commands, []string{name, "--help"})
	}
	for _, parent := range []string{"plot", "bench"} {
		commands = append(commands, []string{parent, "--help"})
		text := help(t, parent, "--help")
		_, list, found := strings.Cut(text, "Available Commands:\n")
		if !found {
			t.Fatalf("mercer %s --help lists no commands:\n%s", parent, text)
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			commands = append(commands, []string{parent, strings.Fields(line)[0], "--help"})
		}
	}
	for _, args := range commands {
		for line := range strings.Lines(help(t, args...)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminalWidth {
				t.Errorf("mercer %s: a line has %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

// help runs the command and returns its standard output.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("mercer %s: %s", strings.Join(args, " "), errs.String())
	}
	return out.String()
}

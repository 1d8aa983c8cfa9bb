// Package page reads and replaces sections of documentation pages, for tests that write tables of
// measurements.
package page

import (
	"fmt"
	"os"
	"strings"
)

// marks returns the lines that mark the beginning and the end of a section.
func marks(name string) (begin, end string) {
	return "<!-- " + name + " -->\n", "<!-- /" + name + " -->\n"
}

// Section returns the text between the lines <!-- name --> and <!-- /name --> of a file.
func Section(file, name string) (string, error) {
	_, text, _, err := parts(file, name)
	return text, err
}

// Replace replaces the text between the lines <!-- name --> and <!-- /name --> of a file.
func Replace(file, name, text string) error {
	before, _, after, err := parts(file, name)
	if err != nil {
		return err
	}
	begin, end := marks(name)
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}

func parts(file, name string) (before, text, after string, err error) {
	begin, end := marks(name)
	all, err := os.ReadFile(file)
	if err != nil {
		return "", "", "", err
	}
	before, rest, ok := strings.Cut(string(all), begin)
	text, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", "", "", fmt.Errorf("%s has no section %q: the lines %s and %s are missing", file, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before, text, after, nil
}

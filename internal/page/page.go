// Package page reads and replaces sections of documentation pages, for tests that write tables of measurements.
package page

import (
	"fmt"
	"os"
	"strings"
)

// markers returns the lines that mark the beginning and the end of a section.
func markers(name string) (begin, end string) {
	return "<!-- " + name + " -->\n", "<!-- /" + name + " -->\n"
}

// Section returns the text between the lines <!-- name --> and <!-- /name --> of a file.
func Section(file, name string) (string, error) {
	_, text, _, err := split(file, name)
	return text, err
}

// Replace replaces the text between the lines <!-- name --> and <!-- /name --> of a file.
func Replace(file, name, text string) error {
	before, _, after, err := split(file, name)
	if err != nil {
		return err
	}
	begin, end := markers(name)
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o644)
}

func split(file, name string) (before, text, after string, err error) {
	begin, end := markers(name)
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", "", err
	}
	before, remainder, ok := strings.Cut(string(content), begin)
	text, after, found := strings.Cut(remainder, end)
	if !ok || !found {
		return "", "", "", fmt.Errorf("%s has no section %q: the lines %s and %s are missing", file, name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before, text, after, nil
}

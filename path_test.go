package mercer_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPathOfAFit holds the list in CONTRIBUTING.md of the files between mercer fit and a
// micro-kernel to the code: each function is declared in its file and is used in one of
// the files down to there, the data have the names that are given, and there are at
// most 30 files and six names.
func TestPathOfAFit(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \[(\S+\.go)\]\((\S+)\) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 || len(rows) > 30 {
		t.Fatalf("%d files, want 1 to 30", len(rows))
	}
	var names []string
	above := ""
	for i, row := range rows {
		source, err := os.ReadFile(row[2])
		if err != nil || row[1] != row[2] {
			t.Errorf("%s (%s): %v", row[1], row[2], err)
			continue
		}
		code := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(string(source), "")
		for _, name := range strings.Split(row[3], ", ") {
			declared := regexp.MustCompile(`(?m)^(func |func \(.*\) |type |\t)` + name + `(, \w+)*( func|[\[(]| struct)`)
			if !declared.MatchString(code) {
				t.Errorf("%s does not declare %s", row[1], name)
			}
			above += declared.ReplaceAllString(code, "")
			if i > 0 && !regexp.MustCompile(`\b`+name+`\b`).MatchString(above) {
				t.Errorf("%s of %s is used in none of the files down to it", name, row[1])
			}
		}
		for _, name := range strings.Split(row[4], ", ") {
			if name == "any" {
				continue
			}
			if !regexp.MustCompile(`(?i)\b[hmp]?` + name + `\b`).MatchString(code) {
				t.Errorf("%s: nothing is called %s", row[1], name)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 6 {
		t.Errorf("the data have %d names, want at most 6: %v", len(names), names)
	}
}

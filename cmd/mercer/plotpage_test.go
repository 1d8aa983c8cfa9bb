package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pageCommand is a command on a page, as a reader would copy it.
var pageCommand = regexp.MustCompile("`mercer ([^`]*)`")

// words splits a command as a shell does, of which the page needs spaces and single quotes.
func words(t *testing.T, line string) (args []string) {
	t.Helper()
	for i, part := range strings.Split(line, "'") {
		if i%2 == 0 {
			args = append(args, strings.Fields(part)...)
		} else {
			args = append(args, part)
		}
	}
	if strings.ContainsAny(line, `"\$|&;<>*`) || strings.Count(line, "'")%2 != 0 || regexp.MustCompile(`\S'|'\S`).MatchString(regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, "")) {
		t.Fatalf("the test cannot split: %s", line)
	}
	return args
}

// TestCommandsOfPictures runs the commands under "Pictures" of docs/learners.md, as they stand
// there, in a folder with the tables of the repository: each picture of the page is drawn
// by one of them, with the words that the picture in the repository has, and there is no
// other picture.
func TestCommandsOfPictures(t *testing.T) {
	page, err := os.ReadFile("../../docs/learners.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Pictures\n")
	section, _, ok := strings.Cut(section, "\n## ")
	if !ok {
		t.Fatal("docs/learners.md has no section Pictures that another one follows")
	}
	pictures, err := filepath.Abs("../../docs/pictures")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"docs/pictures", "testdata"} {
		tables, err := filepath.Glob(filepath.Join("../..", name, "*.csv"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("no tables in %s: %v", name, err)
		}
		if err := os.MkdirAll(filepath.Join(folder, name), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			data, err := os.ReadFile(table)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name, filepath.Base(table)), data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(folder)
	for _, m := range pageCommand.FindAllStringSubmatch(section, -1) {
		var out, errs bytes.Buffer
		if code := run(words(t, m[1]), strings.NewReader(""), &out, &errs); code != 0 {
			t.Errorf("mercer %s: %d: %s", m[1], code, errs.String())
		}
	}
	var shown []string
	for _, m := range regexp.MustCompile(`\]\(pictures/([^)]*\.svg)\)`).FindAllStringSubmatch(section, -1) {
		shown = append(shown, m[1])
	}
	slices.Sort(shown)
	for what, pattern := range map[string]string{"drawn by the commands": "*.svg", "in docs/pictures": filepath.Join(pictures, "*.svg")} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i] = filepath.Base(list[i])
		}
		if slices.Sort(list); !slices.Equal(list, shown) {
			t.Errorf("%s: %v, on the page: %v", what, list, shown)
		}
	}
	for _, name := range shown {
		drawn, stored := wordsOf(t, name), wordsOf(t, filepath.Join(pictures, name))
		if !slices.Equal(drawn, stored) {
			t.Errorf("%s: the command draws %q, docs/pictures has %q: run make pictures", name, drawn, stored)
		}
	}
}

// wordsOf are the texts of an SVG picture but for numbers at ticks, which rounding may change.
func wordsOf(t *testing.T, name string) (texts []string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	for _, m := range regexp.MustCompile(`(?s)<text [^>]*>([^<]*)</text>`).FindAllSubmatch(data, -1) {
		if _, err := strconv.ParseFloat(string(m[1]), 64); err != nil {
			texts = append(texts, string(m[1]))
		}
	}
	return texts
}

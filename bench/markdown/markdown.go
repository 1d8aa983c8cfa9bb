// Package markdown puts figures from bench/results into pages, so that no page
// says what no file holds. What stands between
//
//	<!-- bench NAME key=value ... -->
//	<!-- /bench -->
//
// is written by the block NAME from a measurement: from file=FILE of the folder
// of results, or else from the newest of kind=KIND; with optional=yes the block says
// so when there is none. The marks may stand in a line
// of text too, with a sentence or a single number (figure) between them. Package fill is the command, which
// go generate ./bench runs; a test holds the pages to what it would write.
package markdown

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// File is a measurement with the name of its file.
type File struct {
	Name   string
	Result *bench.Result
}

// Load reads every measurement of a folder, the oldest first.
func Load(folder string) ([]File, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("markdown: there are no measurements in %s", folder)
	}
	var list []File
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r, err := bench.Read(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("markdown: %s: %w", name, err)
		}
		list = append(list, File{Name: filepath.Base(name), Result: r})
	}
	slices.SortStableFunc(list, func(a, b File) int { return a.Result.Started.Compare(b.Result.Started) })
	return list, nil
}

// block is the place of a page that is written: what opens it, its arguments,
// its text and what closes it.
var block = regexp.MustCompile(`(?s)(<!-- bench ([^>]*?) -->)(.*?)(<!-- /bench -->)`)

// args are the arguments of a block.
type args map[string]string

// call is a block at work.
type call struct {
	args
	folder string // of the results, as links name it
	file   File
	all    []File
}

// Fill returns the text of a page with every block written anew. folder is that
// of the results as the page's links name it.
func Fill(text, folder string, files []File) (string, error) {
	var failures []error
	filled := block.ReplaceAllStringFunc(text, func(found string) string {
		parts := block.FindStringSubmatch(found)
		inside, err := write(parts[2], folder, files)
		if err != nil {
			failures = append(failures, err)
			return found
		}
		if strings.Contains(parts[3], "\n") || strings.Contains(inside, "\n") {
			inside = "\n" + strings.Trim(inside, "\n") + "\n"
		}
		return parts[1] + inside + parts[4]
	})
	if opened, closed := strings.Count(text, "<!-- bench "), strings.Count(text, "<!-- /bench -->"); opened != closed {
		failures = append(failures, fmt.Errorf("markdown: %d blocks are opened and %d closed", opened, closed))
	}
	return filled, errors.Join(failures...)
}

// write writes what a block holds.
func write(head, folder string, files []File) (string, error) {
	words := strings.Fields(head)
	if len(words) == 0 {
		return "", errors.New("markdown: a block has no name")
	}
	c := call{args: args{}, folder: folder, all: files}
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return "", fmt.Errorf("markdown: %s: want key=value, got %q", words[0], w)
		}
		c.args[key] = value
	}
	make, ok := blocks[words[0]]
	if !ok {
		return "", fmt.Errorf("markdown: there is no block %q", words[0])
	}
	for _, f := range files { // the newest comes last
		if f.Name == c.args["file"] || c.args["file"] == "" && f.Result.Kind == c.args["kind"] {
			c.file = f
		}
	}
	if c.file.Result == nil && c.args["optional"] == "yes" {
		return "No measurement of this kind is kept yet.", nil
	}
	if c.file.Result == nil && (c.args["file"] != "" || c.args["kind"] != "") {
		return "", fmt.Errorf("markdown: %s: there is no measurement %s%s", words[0], c.args["file"], c.args["kind"])
	}
	if c.file.Result == nil && words[0] != "losses" {
		return "", fmt.Errorf("markdown: %s: it needs file= or kind=", words[0])
	}
	text, err := make(c)
	if err != nil {
		return "", fmt.Errorf("markdown: %s: %w", words[0], err)
	}
	return text, nil
}

// table lays rows out as a table of Markdown: the first column to the left, the
// others to the right.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|---:", len(row)-1) + "|\n")
		}
	}
	return b.String()
}

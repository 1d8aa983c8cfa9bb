package bench

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"
)

// ReadFile reads a Result from a file.
func ReadFile(name string) (*Result, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Page returns a page of Markdown with a section for each measurement. links[i] is the target of
// the page's link to the file of measurement i.
func Page(list []*Result, links []string) (string, error) {
	var b strings.Builder
	b.WriteString("# Measurements\n\n`mercer bench report` writes this page; do not edit it. Its tables are the tables of the HTML pages. " +
		"Values are medians. The brackets after a value have the range from the lowest to the highest timing (° marks an outlier) and the share of the ceiling.\n")
	for i, r := range list {
		p, err := r.Report()
		if err != nil {
			return "", fmt.Errorf("%s: %w", links[i], err)
		}
		file := path.Base(links[i])
		p.Title = strings.TrimSuffix(file, ".json") + ": " + p.Title
		p.Facts = append([]string{fmt.Sprintf("[%s](%s)", file, links[i])}, p.Facts...)
		b.WriteString("\n" + p.Markdown())
	}
	return b.String(), nil
}

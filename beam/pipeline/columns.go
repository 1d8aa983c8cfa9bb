package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// All pieces have the same columns, in any order. Formats that omit zeros are an exception: a part
// of a LIBSVM file ends with the highest feature that occurs in it, and higher features are 0 in
// all its rows.

// align adds to c the columns of a piece that c lacks, or returns an error if the pieces do not
// match. p is the piece with the given names, or the first of several merged pieces.
func (c *Census) align(p Piece, names []string, sparse bool) error {
	if slices.Equal(c.Names, names) {
		c.Sparse = c.Sparse && sparse
		return nil
	}
	missing, more := without(names, c.Names), without(c.Names, names)
	if len(missing) > 0 && !(c.Sparse && areFeatures(missing)) || len(more) > 0 && !(sparse && areFeatures(more)) {
		return otherColumns(c.First, c.Names, p, names)
	}
	c.widen(missing)
	c.Sparse = c.Sparse && sparse
	return nil
}

// without returns the names that are not among the others.
func without(names, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}

// feature returns k for the name xk, and −1 for any other name.
func feature(name string) int {
	k, err := strconv.Atoi(strings.TrimPrefix(name, "x"))
	if err != nil || k < 0 || name != "x"+strconv.Itoa(k) {
		return -1
	}
	return k
}

// areFeatures reports whether all names have the form xk or label, which formats without column
// names use.
func areFeatures(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return feature(name) < 0 })
}

// widen inserts features that are 0 in all rows so far, in order, before the label.
func (c *Census) widen(features []string) {
	if len(features) == 0 {
		return
	}
	features = slices.SortedFunc(slices.Values(features), func(a, b string) int { return cmp.Compare(feature(a), feature(b)) })
	for _, name := range features {
		column := newColumn()
		column.addZeros(c.Rows)
		c.Columns[name] = column
	}
	old := slices.Sorted(slices.Values(c.Names))
	at := len(c.Names)
	if i := slices.Index(c.Names, labelName); i >= 0 {
		at = i
	}
	c.Names = slices.Insert(slices.Clone(c.Names), at, features...)
	if features[0] == "x0" {
		c.Names = slices.Insert(slices.Delete(c.Names, at, at+1), 0, "x0")
	}
	names := slices.Sorted(slices.Values(c.Names))
	for i, row := range c.Sample {
		cells := make([]string, len(names))
		for j, name := range names {
			cells[j] = "0"
			if k, ok := slices.BinarySearch(old, name); ok {
				cells[j] = row.Cells[k]
			}
		}
		c.Sample[i].Cells = cells
	}
}

// labelName is the name of the label column in formats without column names.
const labelName = "label"

// otherColumns returns the error for pieces with different columns.
func otherColumns(a Piece, names []string, b Piece, others []string) error {
	if b.before(a) {
		a, names, b, others = b, others, a, names
	}
	var what []string
	if lacks := without(names, others); len(lacks) > 0 {
		what = append(what, "lacks "+some(lacks))
	}
	if more := without(others, names); len(more) > 0 {
		what = append(what, "has "+some(more)+" besides")
	}
	return fmt.Errorf("pipeline: %s %s, unlike %s: all files must have the same columns", b.Path, strings.Join(what, " and "), a.Path)
}

// some quotes the first names and counts the others.
func some(names []string) string {
	const few = 4
	var list []string
	for _, name := range names[:min(len(names), few)] {
		list = append(list, strconv.Quote(name))
	}
	text := strings.Join(list, ", ")
	if n := len(names) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

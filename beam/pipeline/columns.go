package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// All pieces must have the same columns, in any order. Only a part of a LIBSVM file may lack the columns above its
// highest feature.

// align returns an error if the given names of a file's columns do not match the columns of c.
func (c *census) align(source string, names []string, sparse bool) error {
	expected := c.Summary.AllNames()
	if c.Summary.Rows == 0 || slices.Equal(expected, names) {
		return nil
	}
	missing, extra := difference(names, expected), difference(expected, names)
	if len(missing) > 0 && !(c.Summary.Sparse && areFeatures(missing)) || len(extra) > 0 && !(sparse && areFeatures(extra)) {
		return otherColumns(c.Summary.Source, expected, source, names)
	}
	return nil
}

// widen adds zero cells to the sampled rows for columns that were found in later pieces. names lists all columns.
func (c *census) widen(names []string) {
	names = slices.Sorted(slices.Values(names))
	if slices.Equal(names, c.Cells) {
		return
	}
	for i, row := range c.Sample {
		cells := make([]string, len(names))
		for j, name := range names {
			cells[j] = "0"
			if k, ok := slices.BinarySearch(c.Cells, name); ok {
				cells[j] = row.Cells[k]
			}
		}
		c.Sample[i].Cells = cells
	}
	c.Cells = names
}

// difference returns the elements of names that are not in excluded.
func difference(names, excluded []string) []string {
	isExcluded := make(map[string]bool, len(excluded))
	for _, name := range excluded {
		isExcluded[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isExcluded[name] })
}

// feature returns k for the name xk, and −1 for any other name.
func feature(name string) int {
	k, err := strconv.Atoi(strings.TrimPrefix(name, "x"))
	if err != nil || k < 0 || name != "x"+strconv.Itoa(k) {
		return -1
	}
	return k
}

// areFeatures reports whether all names have the form xk or label, as in formats without column names.
func areFeatures(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return feature(name) < 0 })
}

// otherColumns returns the error for pieces with different columns.
func otherColumns(a string, names []string, b string, others []string) error {
	if b < a {
		a, names, b, others = b, others, a, names
	}
	var differences []string
	if lacks := difference(names, others); len(lacks) > 0 {
		differences = append(differences, "lacks "+quoteFirst(lacks))
	}
	if extra := difference(others, names); len(extra) > 0 {
		differences = append(differences, "has "+quoteFirst(extra)+" besides")
	}
	return fmt.Errorf("pipeline: %s %s, unlike %s: all files must have the same columns", b, strings.Join(differences, " and "), a)
}

// quoteFirst returns a text that quotes the first names and states the number of the other names.
func quoteFirst(names []string) string {
	const maxNames = 4
	var list []string
	for _, name := range names[:min(len(names), maxNames)] {
		list = append(list, strconv.Quote(name))
	}
	text := strings.Join(list, ", ")
	if n := len(names) - maxNames; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

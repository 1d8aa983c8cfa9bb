package dataset

import (
	"fmt"
	"strings"
	"sync"
)

// A Dialect describes how a CSV file is written. The zero value reads files as ReadCSV does.
type Dialect struct {
	// Delimiter is the character between cells, or "tab". A space stands for any number of spaces
	// and tabs. If Delimiter is "", it is detected as ReadCSV describes.
	Delimiter string

	// Comment is the character that begins a comment outside quotation marks, or "" for no
	// comments. A line that holds only a comment is skipped, even before the header.
	Comment string

	// Decimal is the decimal mark, "." or ",". If it is "", the mark is the comma if Thousands is ".", or if semicolons
	// separate the cells and the first numbers include decimal commas but no decimal points. Otherwise it is the point.
	Decimal string

	// Thousands separates groups of three digits: one of , . ' _ and the space. The apostrophe and
	// the no-break space are always accepted, and "" accepts no other separator.
	Thousands string

	// NAValues lists texts of missing cells, in columns of numbers and of texts. An empty cell is
	// always missing. Unless NoDefaultNA is set, these texts of pandas.read_csv are added: #N/A, #N/A
	// N/A, #NA, -1.#IND, -1.#QNAN, -NaN, -nan, 1.#IND, 1.#QNAN, <NA>, N/A, NA, NULL, NaN, None,
	// n/a, nan and null. A number in NAValues matches all spellings of this number.
	NAValues    []string
	NoDefaultNA bool
}

// Check returns an error that names the command-line flag of the first invalid field.
func (d Dialect) Check() error {
	if parameter, rule := d.violation(); parameter != "" {
		return fmt.Errorf("--%s: %s", strings.ReplaceAll(parameter, ", ", ", --"), rule)
	}
	if rule := newMarks(firstByte(d.Decimal), firstByte(d.Thousands)).check(); rule != "" {
		return fmt.Errorf("--decimal, --thousands: %s", rule)
	}
	return nil
}

// violation returns the first setting with more than one character and the rule that it violates, or two empty texts.
func (d Dialect) violation() (parameter, rule string) {
	switch {
	case d.Delimiter != "tab" && len(d.Delimiter) > 1:
		return "delimiter", fmt.Sprintf("want one character, such as ; or |, or tab, got %q", d.Delimiter)
	case len(d.Decimal) > 1 || len(d.Thousands) > 1:
		return "decimal, thousands", fmt.Sprintf("want one character each, got %q and %q", d.Decimal, d.Thousands)
	case len(d.Comment) > 1:
		return "comment", fmt.Sprintf("want one character, such as #, got %q", d.Comment)
	}
	return "", ""
}

func (d Dialect) delimiter() byte {
	if d.Delimiter == "tab" {
		return '\t'
	}
	return firstByte(d.Delimiter)
}

// defaultPoints returns the result of pointReading for the zero Dialect.
var defaultPoints = sync.OnceValue(func() *reading { return newReading(defaultNAValues(), pointMarks) })

// pointReading returns the rules by which tables made by Go programs are parsed, with decimal points. Do not modify
// the result.
func (d Dialect) pointReading() *reading {
	if len(d.NAValues) == 0 && !d.NoDefaultNA {
		return defaultPoints()
	}
	return newReading(d.reading().list, pointMarks)
}

// reading returns the rules by which cells of the file are parsed.
func (d Dialect) reading() *reading {
	list := d.NAValues
	if !d.NoDefaultNA {
		list = append(defaultNAValues(), list...)
	}
	r := newReading(list, newMarks(firstByte(d.Decimal), firstByte(d.Thousands)))
	r.specified = d.Decimal != "" || d.Thousands == "." || d.Thousands == ","
	return r
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

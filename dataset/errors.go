package dataset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/suggest"
)

// Error is a fault of the data. Its text is one line, such as
//
//	train.csv:17: column "age": "abc" is not a number
type Error struct {
	Source string // the file, as it was named; may be empty for a table made in Go
	Line   int    // line of the file, from 1; 0 when the fault is not on one line
	Row    int    // row, from 1, of a table made in Go or of a file without lines; 0 otherwise
	Offset int64  // byte of the file, before any compression, from 1; 0 when there is none to name
	Column string // name of the column; empty when the fault is not in one column
	Value  string // the cell; empty when there is none to show
	Rule   string // what is wrong, and what to do about it, for message.Expand
}

func (e *Error) Error() string { return e.Message(message.Plain) }

// Message is the text with a front end's names of parameters.
func (e *Error) Message(name func(parameter string) string) string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Source == "" {
		b.WriteString("dataset")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Offset > 0 {
		fmt.Fprintf(&b, ": byte %d", e.Offset)
	}
	if e.Row > 0 {
		fmt.Fprintf(&b, ": row %d", e.Row)
	}
	if e.Column != "" {
		b.WriteString(": column " + quote(e.Column))
	}
	b.WriteString(": ")
	if e.Value != "" {
		b.WriteString(quote(e.Value) + " ")
	}
	b.WriteString(e.rule(name))
	return b.String()
}

// rule is what is wrong, with a front end's names of parameters.
func (e *Error) rule(name func(parameter string) string) string {
	return message.Expand(e.Rule, func(parameter string) string {
		if parameter == "drop" {
			parameter += "=" + e.Column
		}
		return name(parameter)
	})
}

// quote is s on one line in quotation marks, shortened when it is long.
func quote(s string) string {
	const limit = 60
	if r := []rune(s[:min(len(s), 4*limit)]); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// list names at most eight of names.
func list(names []string) string {
	const limit = 8
	texts := make([]string, 0, limit+1)
	for i, n := range names {
		if i == limit {
			texts = append(texts, fmt.Sprintf("… (%d in all)", len(names)))
			break
		}
		texts = append(texts, quote(n))
	}
	return strings.Join(texts, ", ")
}

// nearest is "; did you mean ...?" when a name is near.
func nearest(name string, names []string) string {
	if best := suggest.Nearest(name, names); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}

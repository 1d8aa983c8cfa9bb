package dataset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/suggest"
)

// Error is an error in the data. Its text is one line, such as
//
//	train.csv:17: column "age": "abc" is not a number
type Error struct {
	Source string // name of the file as given by the caller; may be empty for a table made in Go
	Line   int    // line of the file, counted from 1; 0 if the error is not about one line
	Row    int    // row, counted from 1, of a table made in Go or of a file without lines; otherwise 0
	Offset int64  // byte offset in the uncompressed file, counted from 1; 0 if unknown
	Column string // name of the column; empty if the error is not about one column
	Value  string // text of the cell; empty if the error is not about one cell
	Rule   string // what is wrong and what to do, with marks that message.Expand replaces by names of parameters
}

func (e *Error) Error() string { return e.Message(message.Plain) }

// Message returns the text of the error. name maps a parameter to its name in a front end.
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

// rule returns Rule with the front end's names of parameters.
func (e *Error) rule(name func(parameter string) string) string {
	return message.Expand(e.Rule, func(parameter string) string {
		if parameter == "drop" || parameter == "tfidf" {
			parameter += "=" + e.Column
		}
		return name(parameter)
	})
}

// quote returns s in quotation marks, on one line and of limited length.
func quote(s string) string {
	const limit = 60
	if r := []rune(s[:min(len(s), 4*limit)]); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// list joins names by commas. Of more than eight names, it gives the first seven and the last.
func list(names []string) string {
	const limit = 8
	shown, suffix := names, ""
	if last := len(names) - 1; last >= limit {
		shown, suffix = names[:limit-1], fmt.Sprintf(", …, %s (%d in all)", quote(names[last]), len(names))
	}
	texts := make([]string, len(shown))
	for i, name := range shown {
		texts[i] = quote(name)
	}
	return strings.Join(texts, ", ") + suffix
}

// nearest returns "; did you mean …?" if one of the names is similar, and otherwise "".
func nearest(name string, names []string) string {
	if best := suggest.Nearest(name, names); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}

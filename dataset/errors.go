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
	Source string // the name of the file, as the caller gave it; may be empty for a table made in Go
	Line   int    // line of the file, counted from 1; 0 if the error is not on one line
	Row    int    // number of the row, from 1, in a table made in Go or a file without lines; otherwise 0
	Offset int64  // byte offset in the uncompressed file, counted from 1; 0 if unknown
	Column string // name of the column; empty if the error is not in one column
	Value  string // the cell; empty if the error is not in one cell
	Rule   string // what is wrong and what to do; message.Expand replaces the names of parameters in it
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

// rule returns Rule with the parameter names of a front end.
func (e *Error) rule(name func(parameter string) string) string {
	return message.Expand(e.Rule, func(parameter string) string {
		if parameter == "drop" || parameter == "tfidf" {
			parameter += "=" + e.Column
		}
		return name(parameter)
	})
}

// quote returns s on one line in quotation marks, shortened if it is long.
func quote(s string) string {
	const limit = 60
	if r := []rune(s[:min(len(s), 4*limit)]); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}

// list returns names joined by commas. If there are more than eight names, it returns the first
// seven and the last, which is often the target.
func list(names []string) string {
	const limit = 8
	shown, rest := names, ""
	if last := len(names) - 1; last >= limit {
		shown, rest = names[:limit-1], fmt.Sprintf(", …, %s (%d in all)", quote(names[last]), len(names))
	}
	texts := make([]string, len(shown))
	for i, name := range shown {
		texts[i] = quote(name)
	}
	return strings.Join(texts, ", ") + rest
}

// nearest returns "; did you mean …?" if some name is similar, otherwise "".
func nearest(name string, names []string) string {
	if best := suggest.Nearest(name, names); best != "" {
		return "; did you mean " + quote(best) + "?"
	}
	return ""
}

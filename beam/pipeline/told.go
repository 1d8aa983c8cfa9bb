package pipeline

import (
	"context"
	"errors"
	"strings"
)

// Runners wrap the error of a DoFn in their own, as text of many lines. What is
// between these marks is what the user is to read.
const (
	toldFrom = "⟦"
	toldTo   = "⟧"
)

// told is an error with the marks.
type told struct{ err error }

func (t told) Error() string { return toldFrom + t.err.Error() + toldTo }

func (t told) Unwrap() error { return t.err }

// tell marks the error that a DoFn is about to return.
func tell(err *error) {
	if *err != nil && !errors.Is(*err, context.Canceled) {
		*err = told{*err}
	}
}

// quoted is the error of a runner, whose text is what a DoFn said.
type quoted struct {
	text string
	err  error
}

func (q quoted) Error() string { return q.text }

func (q quoted) Unwrap() error { return q.err }

// said returns the error with the text that a DoFn marked in it, if there is one.
func said(err error) (error, bool) {
	_, text, found := strings.Cut(err.Error(), toldFrom)
	text, _, ended := strings.Cut(text, toldTo)
	if !found || !ended {
		return err, false
	}
	if !strings.HasPrefix(text, "pipeline: ") {
		text = "pipeline: " + text
	}
	return quoted{text, err}, true
}

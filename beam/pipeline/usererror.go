package pipeline

import (
	"context"
	"errors"
	"strings"
)

// Runners wrap the error of a DoFn in a text of many lines, in which these marks enclose the message for the user.
const (
	userErrorStart = "⟦"
	userErrorEnd   = "⟧"
)

// userError is an error whose text is enclosed in the marks.
type userError struct{ err error }

func (t userError) Error() string { return userErrorStart + t.err.Error() + userErrorEnd }

func (t userError) Unwrap() error { return t.err }

// markUserError marks the error that a DoFn is about to return.
func markUserError(err *error) {
	if *err != nil && !errors.Is(*err, context.Canceled) {
		*err = userError{*err}
	}
}

// runnerError wraps an error of a runner. Its text is the message that a DoFn marked.
type runnerError struct {
	text string
	err  error
}

func (q runnerError) Error() string { return q.text }

func (q runnerError) Unwrap() error { return q.err }

// extractUserError returns an error with the text that a DoFn marked in err, or err itself if its text has no marks.
func extractUserError(err error) (error, bool) {
	_, text, hasStart := strings.Cut(err.Error(), userErrorStart)
	text, _, hasEnd := strings.Cut(text, userErrorEnd)
	if !hasStart || !hasEnd {
		return err, false
	}
	if !strings.HasPrefix(text, "pipeline: ") {
		text = "pipeline: " + text
	}
	return runnerError{text, err}, true
}

package message_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mercer-go/mercer/internal/message"
)

// TestFrontEndsNameParameters has advice at every depth of an error, and texts of the
// user that look like it.
func TestFrontEndsNameParameters(t *testing.T) {
	cause := errors.New("lambda is {lambda}")
	advice := message.Errorf("after %d%%: raise {lambda}, {tol} or {iterations}: %w", 5, cause)
	name := func(parameter string) string { return "<" + parameter + ">" }
	for _, c := range []struct {
		err          error
		plain, named string
	}{
		{advice, "after 5%: raise lambda, tol or iterations: lambda is {lambda}", "after 5%: raise <lambda>, <tol> or <iterations>: lambda is {lambda}"},
		{fmt.Errorf("fold 2: %w", advice), "fold 2: after 5%: raise lambda, tol or iterations: lambda is {lambda}", "fold 2: after 5%: raise <lambda>, <tol> or <iterations>: lambda is {lambda}"},
		{errors.Join(cause, message.Errorf("{folds}, or use {solver=primal}")), "lambda is {lambda}; use fewer folds, or use the method primal", "lambda is {lambda}; <folds>, or use <solver=primal>"},
		{message.Errorf("{x} and {tol}: %v", "{tol}"), "{x} and tol: {tol}", "{x} and <tol>: {tol}"},
	} {
		if got := message.Flat(c.err); got != c.plain {
			t.Errorf("got %q, want %q", got, c.plain)
		}
		if got := message.Text(c.err, name); got != c.named {
			t.Errorf("got %q, want %q", got, c.named)
		}
	}
	if !errors.Is(fmt.Errorf("fold 2: %w", advice), cause) {
		t.Error("the cause is lost")
	}
}

package message_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/message"
)

func TestLine(t *testing.T) {
	a, b := errors.New("first"), errors.New("second")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.Join(a, b), "first; second"},
		{fmt.Errorf("at the end: %w", errors.Join(a, fmt.Errorf("in: %w", errors.Join(b, a)))), "at the end: first; in: second; first"},
		{fmt.Errorf("%w and %w", errors.Join(a, b), b), "first; second and second"},
		{errors.New("open a\nb\x1b[31m.csv: not there"), `open a\nb\x1b[31m.csv: not there`},
		{errors.New("\x80\u202e\u2028é λ\t"), `\x80\u202e\u2028é λ\t`},
	} {
		if got := message.Line(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestFit checks that Fit shortens only texts of more than Limit characters.
func TestFit(t *testing.T) {
	fits := strings.Repeat("é", message.Limit)
	if got := message.Fit(fits); got != fits {
		t.Errorf("a text of %d characters has become %q", message.Limit, got)
	}
	path := "/" + strings.Repeat("folder/", 600) + "file.csv"
	got := message.Fit("open " + path + ": no such file or directory")
	if !strings.HasPrefix(got, "open /folder/") || !strings.HasSuffix(got, "/file.csv: no such file or directory") || utf8.RuneCountInString(got) > 150 {
		t.Errorf("got %q", got)
	}
	for _, long := range []string{strings.Repeat("one two ", 1000), strings.Repeat("\x01", 1000), strings.Repeat("λ", 5000)} {
		got := message.Fit("begin " + long + " end")
		if n := utf8.RuneCountInString(got); n > message.Limit || !strings.HasPrefix(got, "begin ") || !strings.HasSuffix(got, " end") {
			t.Errorf("%d characters: %q", n, got)
		}
		if message.Fit(got) != got {
			t.Errorf("%q is changed a second time", got)
		}
	}
}

package message_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/internal/message"
)

// TestFrontEndsNameParameters checks that front ends can name the parameters in advice, also in wrapped errors.
func TestFrontEndsNameParameters(t *testing.T) {
	cause := errors.New("lambda is {lambda}")
	advice := message.Errorf("after %d%%: {raise $lambda|raise $tol|raise $iterations}: %w", 5, cause)
	name := func(parameter string) string { return "<" + parameter + ">" }
	for _, c := range []struct {
		err         error
		flat, named string
	}{
		{advice, "after 5%: raise lambda, tol or iterations: lambda is {lambda}", "after 5%: raise <lambda>, <tol> or <iterations>: lambda is {lambda}"},
		{fmt.Errorf("fold 2: %w", advice), "fold 2: after 5%: raise lambda, tol or iterations: lambda is {lambda}", "fold 2: after 5%: raise <lambda>, <tol> or <iterations>: lambda is {lambda}"},
		{errors.Join(cause, message.Errorf("{$folds|use $solver=primal}")), "lambda is {lambda}; use fewer folds or use the method primal", "lambda is {lambda}; <folds> or use <solver=primal>"},
		{message.Errorf("{x} and {lower $tol}: %v", "{$tol}"), "{x} and lower tol: {$tol}", "{x} and lower <tol>: {$tol}"},
	} {
		if got := message.Flat(c.err); got != c.flat {
			t.Errorf("got %q, want %q", got, c.flat)
		}
		if got := message.Text(c.err, name); got != c.named {
			t.Errorf("got %q, want %q", got, c.named)
		}
	}
	if !errors.Is(fmt.Errorf("fold 2: %w", advice), cause) {
		t.Error("the cause is lost")
	}
}

// TestAdviceLeavesOutWhatIsMissing checks that an error omits advice about parameters that do not exist.
func TestAdviceLeavesOutWhatIsMissing(t *testing.T) {
	namesOnly := func(names ...string) func(string) string {
		return func(parameter string) string {
			if slices.Contains(names, parameter) {
				return parameter
			}
			return ""
		}
	}
	all := namesOnly(message.Parameters()...)
	const steps = "no: {raise $lambda|raise $tol|raise $iterations|$standardize}"
	for _, c := range []struct {
		text string
		name func(string) string
		want string
	}{
		{steps, all, "no: raise lambda, tol or iterations, or standardize"},
		{steps, namesOnly("lambda", "tol"), "no: raise lambda or tol"},
		{steps, namesOnly("tol", "standardize"), "no: raise tol or standardize"},
		{steps, namesOnly("iterations"), "no: raise iterations"},
		{steps, namesOnly(), "no"},
		{"no; {or lower $rate}", namesOnly(), "no"},
		{"no, {raise $lambda}: a cause", namesOnly(), "no: a cause"},
		{"no: {scale x down|raise $lambda|take another $kernel}", namesOnly("kernel"), "no: scale x down or take another kernel"},
		{"no: {take care, please|raise $lambda}", all, "no: take care, please, or raise lambda"},
	} {
		if got := message.Expand(c.text, c.name); got != c.want {
			t.Errorf("%s: got %q, want %q", c.text, got, c.want)
		}
	}
	err := message.Errorf("slow: {raise $lambda|raise $tol|raise $iterations}")
	inner := fmt.Errorf("fit: %w", message.Within(err, namesOnly("lambda", "tol")))
	outer := fmt.Errorf("fold: %w", message.Within(inner, func(parameter string) string {
		return map[string]string{"lambda": "lambdas", "iterations": "iterations"}[parameter]
	}))
	if got := outer.Error(); got != "fold: fit: slow: raise lambdas" {
		t.Errorf("got %q", got)
	}
	if got := message.Text(outer, func(parameter string) string { return "--" + parameter }); got != "fold: fit: slow: raise --lambdas" {
		t.Errorf("got %q", got)
	}
	if !errors.Is(outer, err) || message.Within(nil, all) != nil {
		t.Error("Within loses its error, or makes one")
	}
}

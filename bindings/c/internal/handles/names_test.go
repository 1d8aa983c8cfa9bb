package handles

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/learners"
)

// TestNames checks that the caller's names replace the library's names, and that advice without a name is omitted.
func TestNames(t *testing.T) {
	names := ParseNames([]string{"lambda=alpha", "iterations=max_iter", "solver=solver", "standardize=standardize X", "C=cost"})
	for _, c := range []struct {
		err           error
		unnamed, want string
	}{
		{message.Errorf("no: {raise $lambda|raise $tol|raise $iterations}"), "no: raise lambda, tol or iterations", "no: raise alpha or max_iter"},
		{fmt.Errorf("fit: %w", message.Errorf("no; {raise $tol}")), "fit: no; raise tol", "fit: no"},
		{message.Errorf("no: {use $solver=primal|$standardize|$memory}"), "no: use the method primal, standardize x, or allow more memory", "no: use solver=primal or standardize X"},
		{message.Errorf("no: {$penalty}"), "no: lower C", "no: lower cost"},
		{message.Errorf("no: {$penalty=lambda}"), "no: raise lambda", "no: raise alpha"},
		{message.Errorf("no: {raise $fitted=lambda}"), "no: raise lambda of the fit", "no: raise alpha of the fit"},
		{message.Errorf("%v: {raise $lambda}", "{raise $tol}"), "{raise $tol}: raise lambda", "{raise $tol}: raise alpha"},
		{&learners.ParameterError{Learner: "l", Parameter: "iterations", Rule: "must be ≥ 1"}, "learners: l: iterations: must be ≥ 1", "learners: l: max_iter: must be ≥ 1"},
		{&learners.ParameterError{Learner: "l", Parameter: "iterations", Rule: "works only without lambda", When: &learners.When{Parameter: "lambda"}},
			"learners: l: iterations: works only without lambda", "learners: l: max_iter: works only without alpha"},
		{&learners.ParameterError{Learner: "l", Parameter: "rank", Rule: "must be ≥ 0"}, "learners: l: rank: must be ≥ 0", "learners: l: rank: must be ≥ 0"},
		{errors.New("lambda is {lambda}"), "lambda is {lambda}", "lambda is {lambda}"},
	} {
		if got := Names(nil).Text(c.err); got != c.unnamed {
			t.Errorf("got %q, want %q", got, c.unnamed)
		}
		if got := names.Text(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := ParseNames([]string{}).Text(message.Errorf("no: {raise $lambda}")); got != "no" {
		t.Errorf("without any name: %q", got)
	}
}

// TestWarningsHaveNames checks that the warning of a fit that ended early uses the caller's parameter names.
func TestWarningsHaveNames(t *testing.T) {
	d := open(t, "ref")
	x := float64s(backend.Host[float64]{Rows: 6, Cols: 2, Stride: 2, Data: []float64{1, 2, 2, 1, 3, 5, 4, 3, 5, 9, 6, 7}})
	y := float64s(backend.Host[float64]{Rows: 6, Cols: 1, Stride: 1, Data: []float64{1, 3, 2, 5, 4, 7}})
	m, err := Fit(t.Context(), d, Learner{Name: "lasso", Parameters: []string{"iterations=1", "lambda=1e-9", "tol=1e-15"}}, x, y, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names Names
		want  string
	}{
		{nil, "raise lambda, tol or iterations, or standardize x"},
		{Names{"lambda": "alpha", "iterations": "max_iter"}, "raise alpha or max_iter"},
	} {
		text, err := m.Describe(c.names)
		if err != nil || !strings.Contains(text, ": "+c.want+`"`) {
			t.Errorf("%v: %s", err, text)
		}
	}
}

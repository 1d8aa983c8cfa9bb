package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"gaussian", "laplacian", "matern32", "é", "rationalquadratic"}
	for typed, want := range map[string]string{
		"gausian":                 "gaussian",
		"GAUSSIAN":                "gaussian",
		"laplac":                  "laplacian",
		"quadratic":               "rationalquadratic", // the typed text is a substring of the name
		"rationalquadrat":         "rationalquadratic",
		"x":                       "", // every letter differs, so that no name is suggested
		"ä":                       "",
		"linear":                  "",
		"":                        "",
		strings.Repeat("ab", 100): "",
	} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", typed, got, want)
		}
	}
	if got := Nearest("gaussian", nil); got != "" {
		t.Errorf("without names: %q", got)
	}
}

package learners_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/mercer-go/mercer/learners"
)

// TestPythonNames checks that each parameter has a name in Python that is an identifier, unique within its learner
// except for lambda and lambdas, and that scikit-learn's names are used.
func TestPythonNames(t *testing.T) {
	identifier := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	want := map[string]string{ // names in scikit-learn's Ridge, Nystroem, SVR and GaussianProcessRegressor
		"lambda": "alpha", "intercept": "fit_intercept", "iterations": "max_iter", "seed": "random_state", "centers": "n_components",
		"cache": "cache_size", "restarts": "n_restarts_optimizer", "C": "C", "epsilon": "epsilon", "standardize-target": "standardize_target",
	}
	for _, d := range learners.Catalogue() {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var read struct {
			Parameters []struct{ Name, Python string }
		}
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		used := map[string]string{"alpha": "lambda"}
		for _, p := range read.Parameters {
			if !identifier.MatchString(p.Python) || want[p.Name] != "" && p.Python != want[p.Name] {
				t.Errorf("%s: %s is called %q in Python", d.Name, p.Name, p.Python)
			}
			if other := used[p.Python]; other != "" && other != "lambda" {
				t.Errorf("%s: both %s and %s are called %s in Python", d.Name, other, p.Name, p.Python)
			}
			used[p.Python] = p.Name
		}
	}
}

package learners_test

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
)

// TestClassify runs the suite of package learnertest on least-squares classification by ridge and by kernel ridge.
func TestClassify(t *testing.T) {
	for name, fit := range map[string]learners.Fitter{
		"ridge":        fitter(learners.Ridge{Lambda: 1}.Fit),
		"kernel-ridge": fitter(learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, NoIntercept: true}.Fit),
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: name,
				Task:    learners.Classification,
				Fit:     learners.Classify(name, fit),
				Terms: func(m learners.Model, x []float64, j int) (float64, int) {
					if name == "ridge" {
						return ridgeTerms(m.(*learners.ClassifyModel).Regression(), x, j)
					}
					return kernelTerms(m.(*learners.ClassifyModel).Regression(), x, j)
				},
				Unfitted:  []learners.Model{&learners.ClassifyModel{}},
				Condition: 1000, // as in TestRidge
			})
		})
	}
}

// TestCatalogue checks that every entry of the catalogue is complete, and that a learner can be
// made from its defaults.
func TestCatalogue(t *testing.T) {
	for _, d := range learners.Catalogue() {
		if d.Name == "" || len(d.Tasks) == 0 || d.Formula == "" || d.Source == "" {
			t.Errorf("%+v lacks a field", d)
		}
		for _, task := range append([]learners.Task{""}, d.Tasks...) {
			if fit, err := d.Make(task, nil); err != nil || fit == nil {
				t.Errorf("%s for %q: %v", d.Name, task, err)
			}
		}
		for _, p := range d.Parameters {
			if p.Name == "" || p.Type == "" || p.Rule == "" || p.Help == "" {
				t.Errorf("%s: %+v lacks a field", d.Name, p)
			}
			if _, err := d.Make("", map[string]string{p.Name: "no such value"}); err == nil || !strings.HasPrefix(err.Error(), "learners: "+d.Name+": "+p.Name+": ") {
				t.Errorf("%s: %s: %v", d.Name, p.Name, err)
			}
		}
		if _, err := d.Make("", map[string]string{"nothing": "1"}); err == nil || !strings.Contains(err.Error(), "is not a parameter of "+d.Name) {
			t.Errorf("%s: %v", d.Name, err)
		}
		if found, err := learners.Find(d.Name); err != nil || found.Name != d.Name {
			t.Errorf("%s is not found: %v", d.Name, err)
		}
	}
	if _, err := learners.Find("ridge regression"); err == nil || !strings.Contains(err.Error(), "the learners are: ") {
		t.Error(err)
	}
	d, err := learners.Find("ridge")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"-1":   "learners: ridge: lambda: must be a finite number ≥ 0, got -1",
		"NaN":  "learners: ridge: lambda: must be a finite number ≥ 0, got NaN",
		"much": `learners: ridge: lambda: want a number, got "much"`,
	} {
		if _, err := d.Make("", map[string]string{"lambda": text}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := d.Make(learners.Novelty, nil); err == nil || err.Error() != "learners: ridge does not support novelty" {
		t.Error(err)
	}
}

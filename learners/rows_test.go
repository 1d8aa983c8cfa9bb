package learners_test

import (
	"path/filepath"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// A model that is fitted to a file in passes is the one that is fitted to the
// same rows in memory, to the bit.
func TestRows(t *testing.T) {
	path := filepath.Join("..", "testdata", "diabetes.csv")
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"target"}, Standardize: true}
	if _, err := learners.Rows(s, &dataset.Encoder{}); err == nil {
		t.Error("an empty encoder is accepted")
	}
	x, y := table(t, true)
	e, err := s.Learn(t.Context(), rules)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := learners.Rows(s, e)
	if err != nil {
		t.Fatal(err)
	}
	if n, d, outs := rows.Dims(); n != 442 || d != 10 || outs != 1 {
		t.Fatalf("%d rows, %d features, %d outputs", n, d, outs)
	}
	l := learners.NystromRidge{Kernel: kernels.Gaussian{Sigma: 3}, Lambda: 0.1, Centers: 40}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		whole, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		passes, err := l.FitRows(t.Context(), dev, rows, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := whole.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		got, err := passes.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		if !mat.Equal(got, want) {
			t.Error("the predictions differ")
		}
	})
	fresh, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learners.Rows(fresh, e); err == nil {
		t.Error("rows whose number is not known are accepted")
	}
}

package learners_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestRows checks that a model fitted to a file, which is read in passes, gives predictions with
// the same bits as the model fitted to the same rows in memory.
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
	cells, err := dataset.ReadCSV(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := e.Keys(cells)
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
	l := learners.NystromRidge{Kernel: kernels.Gaussian{Sigma: 3}, Lambda: 0.1, Centers: 40, NoIntercept: true}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		inMemory, err := l.Fit(t.Context(), dev, x, y, learners.Options{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		passes, err := l.FitRows(t.Context(), dev, rows, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := inMemory.Predict(t.Context(), dev, x)
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
	unlearned, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learners.Rows(unlearned, e); err == nil {
		t.Error("an unknown number of rows is accepted")
	}
}

// TestMakeRows checks that a fit by MakeRows gives the bits of a fit in memory. For a learner that cannot read
// samples in passes, the error lists the learners that can.
func TestMakeRows(t *testing.T) {
	data := "a,b,kind\n1,2,x\n2,1,y\n3,5,x\n4,4,z\n5,3,y\n6,1,z\n0,2,x\n"
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"kind"}, Labels: true}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Learn(t.Context(), rules)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := learners.Rows(s, e)
	if err != nil {
		t.Fatal(err)
	}
	table, err := dataset.ReadCSV(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	y, err := e.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := e.Keys(table)
	if err != nil {
		t.Fatal(err)
	}
	o := learners.Options{Classes: e.Classes(), Keys: keys}
	settings := map[string]string{"kernel": "gaussian(sigma=2)", "lambda": "0.1"}
	count := 0
	for _, d := range learners.Catalogue() {
		if !d.ReadsRows() {
			if _, err := d.MakeRows("", nil); err == nil || !strings.Contains(err.Error(), "nystrom-ridge") {
				t.Errorf("%s: %v", d.Name, err)
			}
			continue
		}
		count++
		inMemory, err := d.Make(learners.Classification, settings)
		if err != nil {
			t.Fatal(err)
		}
		passes, err := d.MakeRows(learners.Classification, settings)
		if err != nil {
			t.Fatal(err)
		}
		eachFastDevice(t, func(t *testing.T, dev backend.Device) {
			a, err := inMemory(t.Context(), dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			b, err := passes(t.Context(), dev, rows, o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := a.(learners.Classifier).Decision(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.(learners.Classifier).Decision(t.Context(), dev, x)
			if err != nil || !mat.Equal(got, want) {
				t.Errorf("%s: the decisions differ; %v", d.Name, err)
			}
			for _, names := range [][]string{nil, {"x"}, {"x", "y"}} {
				if _, err := passes(t.Context(), dev, rows, learners.Options{Classes: names}); err == nil {
					t.Errorf("%s: classes %q are accepted for three", d.Name, names)
				}
			}
		})
		if _, err := d.MakeRows("", map[string]string{"lambda": "-1"}); err == nil {
			t.Errorf("%s: λ < 0 is accepted", d.Name)
		}
	}
	if count < 2 {
		t.Errorf("%d learners read rows", count)
	}
}

package dataset_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// TestIndicesFromZero checks that the columns are x0, x1, … wherever the index 0 occurs in the file, read at once
// and in passes.
func TestIndicesFromZero(t *testing.T) {
	const seed, n, d = 33, 60_000, 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	want := mat.NewDense(n, d, nil)
	for i := range n {
		b.WriteString("1")
		for j := range d {
			if j == 0 && i < n-3 { // the index 0 occurs only in the last of several parts of 1 MiB
				continue
			}
			v := float64(rng.IntN(1<<30)) / 64
			want.Set(i, j, v)
			if v != 0 {
				fmt.Fprintf(&b, " %d:%v", j, v)
			}
		}
		b.WriteString("\n")
	}
	f := dataset.File{Path: file(t, "zero.libsvm", []byte(b.String()))}
	checkStream(t, f, dataset.Rules{Targets: []string{"label"}, Standardize: true}, 5000)
	checkStream(t, f, dataset.Rules{Targets: []string{"x1"}}, 5000)
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"label"}})
	if names := e.FeatureNames(); !slices.Equal(names, []string{"x0", "x1", "x2", "x3", "x4"}) {
		t.Errorf("the features are %q", names)
	}
	if x := features(t, e, table); !mat.Equal(x, want) {
		t.Error("the features are not the values of the file")
	}
	if x := features(t, e, table.Select([]int{n - 1, 0})); !slices.Equal(x.RawRowView(0), want.RawRowView(n-1)) || !slices.Equal(x.RawRowView(1), want.RawRowView(0)) {
		t.Error("the features of two rows are not those of the file")
	}
}

// TestIndicesFromAnotherNumber checks that a table gives an error if its indices start at another number than in
// the training table.
func TestIndicesFromAnotherNumber(t *testing.T) {
	zero, one := "1 0:1 1:2 2:3\n2 0:4 1:5 2:6\n", "1 1:1 2:2 3:3\n2 1:4 2:5 3:6\n"
	const fromZero, fromOne = "has the index 0, so its indices start at 0, but the indices of the training table start at 1", "has one index more than the training table and no index 0"
	for _, c := range []struct{ train, test, wantErr string }{
		{zero, zero, ""},
		{one, one, ""},
		{one, zero, fromZero},
		{zero, one, fromOne},
		{one, "1 0:0 1:2\n", fromZero},
		{zero, "1 1:2\n2 2:1\n", ""},
		{zero, "1 1:2\n2 3:1\n", fromOne},
		{zero, "1 1:2\n2 0:0 3:1\n", ""},
		{one, "1 1:2\n2 4:1\n", ""},
	} {
		train, err := dataset.Read(file(t, "train.svm", []byte(c.train)), nil)
		if err != nil {
			t.Fatal(err)
		}
		e := learn(t, train, dataset.Rules{Targets: []string{"label"}})
		path := file(t, "test.svm", []byte(c.test))
		test, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Features(test)
		s, streamErr := dataset.Open(path)
		if streamErr == nil {
			streamErr = s.Blocks(context.Background(), e, 1, func(_, _ *mat.Dense) error { return nil })
		}
		for _, err := range []error{err, streamErr} {
			if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), "test.svm: "+c.wantErr)) {
				t.Errorf("learned from %q, applied to %q: %v, want %q", c.train, c.test, err, c.wantErr)
			}
		}
	}
	csv, err := dataset.Read(file(t, "named.csv", []byte("a,b\n1,2\n3,4\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	test, err := dataset.Read(file(t, "test.svm", []byte(zero)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learn(t, csv, dataset.Rules{}).Features(test); err == nil || !strings.Contains(err.Error(), `has no feature column "a"`) {
		t.Errorf("learned from named columns: %v", err)
	}
}

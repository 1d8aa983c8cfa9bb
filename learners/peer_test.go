package learners_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/required"
)

// scikit runs a script of Python with numpy as np and scikit-learn as sklearn.
// in becomes the dictionary a, lists as arrays; what the script puts into the
// dictionary out is decoded into the result. Without scikit-learn the test is
// skipped, or fails where MERCER_REQUIRE names sklearn.
func scikit(t *testing.T, in map[string]any, script string, out any) {
	t.Helper()
	required.Slow(t, "sklearn", "runs scikit-learn")
	python := required.SKLearn(t)
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const before = `
import json, sys, time, warnings
import numpy as np, sklearn
warnings.simplefilter("ignore")
a = {k: np.array(v) if isinstance(v, list) else v for k, v in json.load(sys.stdin).items()}
out = {}
`
	const after = `
json.dump({k: v.tolist() if hasattr(v, "tolist") else v for k, v in out.items()}, sys.stdout)
`
	cmd := exec.Command(python, "-c", before+script+after)
	cmd.Stdin = bytes.NewReader(data)
	var text, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &fault
	if err := cmd.Run(); err != nil {
		t.Fatalf("scikit-learn: %v\n%s", err, fault.String())
	}
	if err := json.Unmarshal(text.Bytes(), out); err != nil {
		t.Fatalf("scikit-learn: %v: %.200s", err, text.String())
	}
}

// rowsOf is a matrix as JSON has it.
func rowsOf(m mat.Matrix) [][]float64 {
	n, _ := m.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = mat.Row(nil, i, m)
	}
	return rows
}

// shared reads one of the project's larger data, which are not in the
// repository: the features of the rows, standardized by the first train rows,
// and the texts of the column target. The test is skipped without them.
func shared(t *testing.T, name string, train int) (x *mat.Dense, target []string) {
	t.Helper()
	f, err := os.Open(required.Data(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if text, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], "target")
	if at < 0 {
		t.Fatalf("%s has no column target", name)
	}
	x = mat.NewDense(len(rows)-1, len(rows[0])-1, nil)
	for i, row := range rows[1:] {
		target = append(target, row[at])
		for j, text := range slices.Delete(row, at, at+1) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: row %d: %v", name, i+1, err)
			}
			x.Set(i, j, v)
		}
	}
	standardize(x, train)
	return x, target
}

// standardize gives the columns of the first train rows mean 0 and deviation 1, those that
// are constant there 0.
func standardize(x *mat.Dense, train int) {
	n, d := x.Dims()
	for j := range d {
		var mean, square float64
		for i := range train {
			mean += x.At(i, j) / float64(train)
		}
		for i := range train {
			square += (x.At(i, j) - mean) * (x.At(i, j) - mean) / float64(train)
		}
		for i := range n {
			if square > 1e-24*mean*mean { // more than rounding of the mean
				x.Set(i, j, (x.At(i, j)-mean)/math.Sqrt(square))
			} else {
				x.Set(i, j, x.At(i, j)-mean)
			}
		}
	}
}

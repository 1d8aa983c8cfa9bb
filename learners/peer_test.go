package learners_test

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/required"
)

// interpreter is a Python process with scikit-learn that runs all scripts of the tests.
type interpreter struct {
	in  io.WriteCloser
	out *json.Decoder
	err error
}

var python = sync.OnceValue(func() *interpreter {
	cmd := exec.Command(required.Python, "-c", `
import json, sys, time, traceback, warnings
import numpy as np, sklearn
reply, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    script, a = json.loads(line)
    out = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = {k: np.array(v) if isinstance(v, list) else v for k, v in a.items()}
            exec(script, {"a": a, "out": out, "np": np, "sklearn": sklearn, "time": time, "warnings": warnings})
        out = [{k: v.tolist() if hasattr(v, "tolist") else v for k, v in out.items()}, ""]
    except Exception:
        out = [None, traceback.format_exc()]
    json.dump(out, reply)
    reply.flush()
`)
	cmd.Stderr = os.Stderr
	// On busy processors a second thread of OpenBLAS would delay each small product.
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
	p := &interpreter{}
	if p.in, p.err = cmd.StdinPipe(); p.err != nil {
		return p
	}
	out, err := cmd.StdoutPipe()
	p.out, p.err = json.NewDecoder(out), errors.Join(err, cmd.Start())
	return p // the process ends when its standard input is closed, at the end of the tests
})

// scikit runs a Python script in which np is numpy and sklearn is scikit-learn. The script reads the dictionary a,
// which is `in` with lists as arrays, and writes the dictionary `out`. Without scikit-learn the test is skipped, or
// fails if MERCER_REQUIRE names sklearn.
func scikit(t *testing.T, in map[string]any, script string, out any) {
	t.Helper()
	required.Slow(t, "sklearn", "runs scikit-learn")
	required.SKLearn(t)
	p := python()
	if p.err != nil {
		t.Fatal(p.err)
	}
	if err := json.NewEncoder(p.in).Encode([]any{script, in}); err != nil {
		t.Fatal(err)
	}
	var message string
	if err := p.out.Decode(&[2]any{out, &message}); err != nil {
		t.Fatalf("scikit-learn: %v", err)
	}
	if message != "" {
		t.Fatalf("scikit-learn: %s", message)
	}
}

// rowsOf returns a matrix as a list of rows, for JSON.
func rowsOf(m mat.Matrix) [][]float64 {
	n, _ := m.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = mat.Row(nil, i, m)
	}
	return rows
}

// shared reads one of the project's larger data sets. It returns the features, standardized by standardize, and
// the texts of the column `target`. If the data set is missing, the test is skipped.
func shared(t *testing.T, name string, train int) (x *mat.Dense, target []string) {
	t.Helper()
	path := filepath.Join("..", "testdata", name)
	if _, err := os.Stat(path); err != nil {
		path = required.Data(t, name)
	}
	f, err := os.Open(path)
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
	column := slices.Index(rows[0], "target")
	if column < 0 {
		t.Fatalf("%s has no column target", name)
	}
	x = mat.NewDense(len(rows)-1, len(rows[0])-1, nil)
	for i, row := range rows[1:] {
		target = append(target, row[column])
		for j, text := range slices.Delete(row, column, column+1) {
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

// standardize shifts and scales each column to mean 0 and standard deviation 1 in the first `train` rows.
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
			if square > 1e-24*mean*mean { // more than the rounding error of the mean
				x.Set(i, j, (x.At(i, j)-mean)/math.Sqrt(square))
			} else {
				x.Set(i, j, x.At(i, j)-mean)
			}
		}
	}
}

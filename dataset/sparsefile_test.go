package dataset_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// npzOf returns a zip file of arrays. A string becomes a scalar, and any other value a vector.
func npzOf(t testing.TB, method uint16, arrays map[string]any) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"indices", "indptr", "row", "col", "format", "shape", "data", "y"} {
		a, ok := arrays[name]
		if !ok {
			continue
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		switch a := a.(type) {
		case string:
			err = dataset.WriteNPY(w, []string{a})
		case []int64:
			err = dataset.WriteNPY(w, a, len(a))
		case []float64:
			err = dataset.WriteNPY(w, a, len(a))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// csrArrays returns the arrays of a file with the matrix whose rows are (1 0 2), (0 0 0) and (0 3 0).
func csrArrays() map[string]any {
	return map[string]any{"format": "csr", "shape": []int64{3, 3}, "indptr": []int64{0, 2, 2, 3}, "indices": []int64{0, 2, 1}, "data": []float64{1, 2, 3}}
}

var smallMatrix = mat.NewDense(3, 3, []float64{1, 0, 2, 0, 0, 0, 0, 3, 0})

// wantMatrix fails the test unless the features of a file are the given matrix.
func wantMatrix(t *testing.T, path string, want mat.Matrix) {
	t.Helper()
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Error(err)
		return
	}
	if !table.Sparse() {
		t.Errorf("%s: the table is not sparse", path)
	}
	if x := features(t, learn(t, table, dataset.Rules{}), table); !mat.Equal(x, want) {
		t.Errorf("%s: the features are\n%v\nwant\n%v", path, mat.Formatted(x), mat.Formatted(want))
	}
}

// TestMatrixMarket checks all fields and symmetries of the format, with entries in any order, zeros, comments and
// empty lines.
func TestMatrixMarket(t *testing.T) {
	for _, c := range []struct {
		text string
		want []float64
	}{
		{"%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 2 3\n1 1 0.5\n3 2 -1e3\n2 1 0\n", []float64{0.5, 0, 0, 0, 0, -1000}},
		{"%%matrixmarket MATRIX Coordinate Integer General\r\n3 2 3\r\n3 2 7\r\n1  2\t+4 \r\n1 1 2\r\n", []float64{2, 4, 0, 0, 0, 7}},
		{"%%MatrixMarket matrix coordinate pattern general\n2 3 2\n2 3\n% in between\n1 2", []float64{0, 1, 0, 0, 0, 1}},
		{"%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 3\n3 3 4\n", []float64{1, 2, 0, 2, 0, 3, 0, 3, 4}},
		{"%%MatrixMarket matrix coordinate real general\n2 2 0\n", []float64{0, 0, 0, 0}},
	} {
		var rows, cols, n int
		for _, line := range strings.Split(c.text, "\n") {
			if k, _ := fmt.Sscan(line, &rows, &cols, &n); k == 3 {
				break
			}
		}
		wantMatrix(t, file(t, "a.mtx", []byte(c.text)), mat.NewDense(rows, cols, c.want))
		wantMatrix(t, file(t, "a.mtx.gz", gzipped(t, c.text)), mat.NewDense(rows, cols, c.want))
		wantMatrix(t, file(t, "a.data", []byte(c.text)), mat.NewDense(rows, cols, c.want))
	}
}

// TestMatrixMarketInPieces compares a file of several pieces of 1 MiB, sorted by column, with the same matrix in
// LIBSVM format.
func TestMatrixMarketInPieces(t *testing.T) {
	text, x := sparseTable(11, 2000, 300, 0.2, 1)
	var b strings.Builder
	n := 0
	for j := range 300 {
		for i := range 2000 {
			if v := x.At(i, j); v != 0 {
				fmt.Fprintf(&b, "%d %d %v\n", i+1, j+1, v)
				n++
			}
		}
	}
	path := file(t, "a.mtx", []byte(fmt.Sprintf("%%%%MatrixMarket matrix coordinate real general\n2000 300 %d\n%s", n, b.String())))
	labels := file(t, "labels.csv", append([]byte("label\n"), labelsOf(text)...))
	table, err := dataset.File{Path: path, Labels: labels}.Read()
	if err != nil {
		t.Fatal(err)
	}
	libsvm, err := dataset.Read(file(t, "a.libsvm", text), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, libsvm, dataset.Rules{Targets: []string{"label"}, Standardize: true})
	if asJSON(t, e) != asJSON(t, learn(t, table, dataset.Rules{Targets: []string{"label"}, Standardize: true})) {
		t.Error("the encoders of the two formats differ")
	}
	a, errA := e.SparseFeatures(libsvm)
	c, errC := e.SparseFeatures(table)
	ya, faultA := e.Targets(libsvm)
	yc, faultC := e.Targets(table)
	if errA != nil || errC != nil || faultA != nil || faultC != nil || !mat.Equal(a, c) || !mat.Equal(ya, yc) {
		t.Error("the two formats differ", errA, errC, faultA, faultC)
	}
}

// labelsOf returns the labels of a LIBSVM file, one on each line.
func labelsOf(libsvm []byte) (labels []byte) {
	for line := range bytes.Lines(libsvm) {
		label, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		labels = append(append(labels, label...), '\n')
	}
	return labels
}

// TestSparseNPZ checks the formats CSR, CSC and COO, stored and deflated, with entries out of order and stored
// zeros.
func TestSparseNPZ(t *testing.T) {
	csc := map[string]any{"format": "csc", "shape": []int64{3, 3}, "indptr": []int64{0, 1, 2, 3}, "indices": []int64{0, 2, 0}, "data": []float64{1, 3, 2}}
	coo := map[string]any{"format": "coo", "shape": []int64{3, 3}, "row": []int64{2, 0, 0}, "col": []int64{1, 2, 0}, "data": []float64{3, 2, 1}}
	mixed := map[string]any{"format": "csr", "shape": []int64{3, 3}, "indptr": []int64{0, 3, 3, 4}, "indices": []int64{2, 1, 0, 1}, "data": []float64{2, 0, 1, 3}}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		for _, arrays := range []map[string]any{csrArrays(), csc, coo, mixed} {
			wantMatrix(t, file(t, "a.npz", npzOf(t, method, arrays)), smallMatrix)
		}
	}
	arrays := csrArrays()
	arrays["y"] = []float64{7, 8, 9}
	table, err := dataset.Read(file(t, "a.npz", npzOf(t, zip.Store, arrays)), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}})
	y, err := e.Targets(table)
	if err != nil || y.At(1, 0) != 8 || !mat.Equal(features(t, e, table), smallMatrix) {
		t.Errorf("targets beside a sparse matrix: %v", err)
	}
}

// TestSparseFileFaults checks the one-line error, with the position, for files that violate the rules of their
// format. No memory may be allocated for sizes that exceed the file.
func TestSparseFileFaults(t *testing.T) {
	const realHeader = "%%MatrixMarket matrix coordinate real general\n"
	withArray := func(name string, value any) []byte {
		a := csrArrays()
		a[name] = value
		return npzOf(t, zip.Deflate, a)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"a.mtx", []byte("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"), `:1: "%%MatrixMarket matrix array real general" has the format "array": only coordinate is supported; save a dense matrix as an NPY or CSV file`},
		{"a.mtx", []byte("%%MatrixMarket matrix coordinate complex general\n"), `:1: "%%MatrixMarket matrix coordinate complex general" has the field "complex"; real, integer and pattern are supported`},
		{"a.mtx", []byte("%%MatrixMarket matrix coordinate real hermitian\n"), `:1: "%%MatrixMarket matrix coordinate real hermitian" has the symmetry "hermitian"; general and symmetric are supported`},
		{"a.mtx", []byte("1 1 1\n"), `: has the name of a Matrix Market file but not the signature`},
		{"a.mtx", []byte(realHeader), `: has no size line: rows columns entries`},
		{"a.mtx", []byte(realHeader + "2 2\n"), `:2: "2 2" is not the size line: rows columns entries`},
		{"a.mtx", []byte(realHeader + "2 -2 1\n"), `:2: "2 -2 1" is not the size line: rows columns entries`},
		{"a.mtx", []byte(realHeader + "2 2 2\n1 1 1\n"), `: is truncated: its size line names 2 entries, it has 1`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 1 1\n1 2 1\n"), `: has more than the 1 entry that its size line names`},
		{"a.mtx", []byte(realHeader + "2 2 1\n3 1 1\n"), `:3: "3 1 1" is not an entry of a 2×2 matrix whose indices start at 1: row column value`},
		{"a.mtx", []byte(realHeader + "2 2 1\n0 1 1\n"), `:3: "0 1 1" is not an entry of a 2×2 matrix whose indices start at 1: row column value`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 99999999999999999999 1\n"), `:3: "1 99999999999999999999 1" is not an entry of a 2×2 matrix whose indices start at 1: row column value`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 1 nan\n"), `:3: "1 1 nan" has a value that is not a finite number`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 1 1e999\n"), `:3: "1 1 1e999" has a value that is outside the range of float64`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 1\n"), `:3: "1 1" has a value that is not a number`},
		{"a.mtx", []byte(realHeader + "2 2 1\n1 1 2 3\n"), `:3: "1 1 2 3" has a value that is not a number`},
		{"a.mtx", []byte(realHeader + "2 2 2\n2 1 1\n2 1 4\n"), `: row 2: column "x1": occurs twice in the row; sum the duplicates first, as sum_duplicates does in SciPy`},
		{"a.mtx", []byte("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n"), `:3: "1 2 1" is above the diagonal: a symmetric file lists only entries on or below the diagonal`},
		{"a.mtx", []byte("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n"), `:2: "2 3 1" has 2 rows and 3 columns, but a symmetric matrix must be square`},
		{"a.mtx", []byte(realHeader + "2000000000 2 1\n1 1 1\n"), `: claims 2000000000 rows, but has only 1 entry: drop the empty rows`},
		{"a.mtx", []byte(realHeader + "2 2000000000 1\n1 1 1\n"), `:2: "2 2000000000 1" has 2000000000 columns; at most 16777216 can be read`},
		{"a.mtx", []byte(realHeader + "2 2 9000000000000000000000\n1 1 1\n"), `: is truncated: its size line names 9007199254740992 entries, it has 1`},
		{"a.npz", withArray("format", "bsr"), `: holds a sparse matrix of the format "bsr"; csr, csc and coo are supported: save a.tocsr()`},
		{"a.npz", withArray("shape", []int64{3}), `: array "shape": has 1 element, not 2`},
		{"a.npz", withArray("shape", []int64{3, 1 << 40}), `: has 1099511627776 columns; at most 16777216 can be read`},
		{"a.npz", withArray("shape", []int64{1 << 40, 3}), `: has 1099511627776 rows; at most 2147483647 can be read`},
		{"a.npz", withArray("shape", []int64{2_000_000_000, 3}), `: array "indptr": has 4 elements, not 2000000001`},
		{"a.npz", withArray("shape", []int64{-3, 3}), `: array "shape": row 1: "-3" must be from 0 to 9223372036854775807`},
		{"a.npz", withArray("shape", []int64{3, 2}), `: array "indices": row 2: "2" must be from 0 to 1`},
		{"a.npz", withArray("indices", []int64{0, -2, 1}), `: array "indices": row 2: "-2" must be from 0 to 2`},
		{"a.npz", withArray("indices", []float64{0, 2, 1}), `: array "indices": must be integers in one dimension`},
		{"a.npz", withArray("indices", []int64{0, 2}), `: array "indices": has 2 elements, not 3`},
		{"a.npz", withArray("indices", []int64{2, 2, 1}), `: row 1: column "x3": occurs twice in the row; sum the duplicates first, as sum_duplicates does in SciPy`},
		{"a.npz", withArray("indptr", []int64{0, 2, 1, 3}), `: array "indptr": must rise from 0 to 3, the number of values`},
		{"a.npz", withArray("indptr", []int64{1, 2, 2, 3}), `: array "indptr": must rise from 0 to 3, the number of values`},
		{"a.npz", withArray("indptr", []int64{0, 2, 2, 2}), `: array "indptr": must rise from 0 to 3, the number of values`},
		{"a.npz", withArray("y", []float64{1}), `: the matrix has 3 rows, array "y" has 1`},
	} {
		path := file(t, c.name, c.data)
		_, err := dataset.File{Path: path, Memory: 1 << 26}.Read()
		wantError(t, err, path+c.want)
	}
	nan := file(t, "a.npz", withArray("data", []float64{1, 2, zeroOver(0)}))
	_, err := dataset.Read(nan, nil)
	wantError(t, err, nan+`: row 3: column "x2": "NaN" is not a number; a sparse table has no missing cells`)
	valid := file(t, "a.mtx", []byte(realHeader+"2 2 1\n1 1 1\n"))
	labels := file(t, "l.csv", []byte("label\n1\n2\n3\n"))
	_, err = dataset.File{Path: valid, Labels: labels}.Read()
	wantError(t, err, labels+": has 3 rows of labels, but the features have 2")
	_, err = dataset.Open(valid)
	wantError(t, err, valid+": holds a sparse matrix in a format that cannot be read in blocks: read the whole file, or save it in LIBSVM format")
}

func zeroOver(v float64) float64 { return v / v }

// TestSparseWrittenByScipy checks that files of SciPy give the original matrices, for all types of indices and
// values, and that SciPy reads the arrays of TestSparseNPZ.
func TestSparseWrittenByScipy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python: skipped by -short")
	}
	npzFile := file(t, "ours.npz", npzOf(t, zip.Deflate, csrArrays()))
	dir, out := python(t, fmt.Sprintf(`
import json, numpy as np, scipy.sparse as sp, scipy.io as io
rng = np.random.default_rng(3)
x = rng.integers(-9, 10, (40, 30)) * (rng.random((40, 30)) < 0.1)
for layout in ['csr', 'csc', 'coo']:
    for data in ['f4', 'f8', 'i4', 'i8']:
        for index in ['i4', 'i8']:
            m = sp.coo_matrix(x.astype(data)).asformat(layout)
            for name in ['row', 'col'] if layout == 'coo' else ['indices', 'indptr']:
                setattr(m, name, getattr(m, name).astype(index))
            for compressed in [True, False]:
                sp.save_npz(f'{layout}-{data}-{index}-{compressed}.npz', m, compressed=compressed)
io.mmwrite('real.mtx', sp.coo_matrix(x.astype(float)))
io.mmwrite('integer.mtx', sp.coo_matrix(x))
io.mmwrite('csc.mtx', sp.csc_matrix(x.astype(float)))
assert (sp.load_npz(%q).toarray() == [[1, 0, 2], [0, 0, 0], [0, 3, 0]]).all()
print(json.dumps(x.tolist()))
`, npzFile))
	var rows [][]float64
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	want := mat.NewDense(40, 30, nil)
	for i, row := range rows {
		want.SetRow(i, row)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil || len(paths) != 3*4*2*2+3 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		wantMatrix(t, path, want)
	}
}

// FuzzSparseFiles reads arbitrary bytes as a file of each sparse format. Every error must be one line, and a table
// that is read must be encodable.
func FuzzSparseFiles(f *testing.F) {
	f.Add([]byte("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 3\n3 3 4\n"))
	f.Add([]byte("%%MatrixMarket matrix coordinate pattern general\n% c\n3 3 1\n1 1\n"))
	f.Add([]byte("1 1:0.5 3:2\n-1 qid:3 2:1e400 # x\n"))
	f.Add(npzOf(f, zip.Store, csrArrays()))
	f.Add(npzOf(f, zip.Deflate, csrArrays()))
	a := csrArrays()
	a["format"] = "csc"
	a["y"] = []float64{1, 2, 3}
	f.Add(npzOf(f, zip.Store, a))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, fmt.Sprint(os.Getpid()))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := dataset.File{Path: path, Memory: 1 << 26}.Read()
		if err != nil {
			oneLine(t, err)
			return
		}
		if !table.Sparse() {
			return
		}
		e, err := dataset.Learn(table, dataset.Rules{Standardize: true})
		if err != nil {
			oneLine(t, err)
			return
		}
		if !e.Sparse() {
			return
		}
		x, err := e.SparseFeatures(table)
		if err != nil {
			oneLine(t, err)
		} else if err := x.Check(); err != nil || x.Rows != table.Rows() || x.Cols != e.Width() {
			t.Fatalf("the features of %d rows are %d × %d: %v", table.Rows(), x.Rows, x.Cols, err)
		}
	})
}

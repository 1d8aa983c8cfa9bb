package dataset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// sparseTable returns a LIBSVM file of rows × cols, and its dense matrix. density is the fraction of nonzero
// values.
func sparseTable(seed uint64, rows, cols int, density float64, first int) ([]byte, *mat.Dense) {
	rng := rand.New(rand.NewPCG(seed, 0))
	x := mat.NewDense(rows, cols, nil)
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, "%d", rng.IntN(3))
		for j := range cols {
			if rng.Float64() < density || i == 0 && j == cols-1 || i == 1 && j == 0 {
				v := rng.NormFloat64() * math.Ldexp(1, j%40-20)
				x.Set(i, j, v)
				fmt.Fprintf(&b, " %d:%v", j+first, v)
			}
		}
		b.WriteString("\n")
	}
	return b.Bytes(), x
}

// TestSparseFeatures checks that a sparse table and subsets of its rows are encoded as the original numbers, with
// sparse and dense features, at once and in passes, and with indices from 0 and from 1.
func TestSparseFeatures(t *testing.T) {
	const seed, rows, cols = 5, 3000, 80
	t.Logf("seed %d", seed)
	for first := range 2 {
		text, want := sparseTable(seed, rows, cols, 0.1, first)
		path := file(t, "a.libsvm", text)
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := learn(t, table, dataset.Rules{Targets: []string{"label"}})
		if !e.Sparse() || e.Width() != cols || len(e.FeatureNames()) != cols || e.FeatureNames()[0] != fmt.Sprint("x", first) || len(e.Inputs) != 1 || e.OnlyScaled() {
			t.Fatalf("the encoder is %+v", e.Inputs)
		}
		x, err := e.SparseFeatures(table)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		if !mat.Equal(x, want) || !mat.Equal(features(t, e, table), want) {
			t.Fatal("the features are not the numbers of the file")
		}
		selection := []int{rows - 1, 0, 7, 7}
		selected := table.Select(selection)
		if x, err = e.SparseFeatures(selected); err != nil || x.Check() != nil {
			t.Fatal(err, x.Check())
		}
		for i, r := range selection {
			for j := range cols {
				if x.At(i, j) != want.At(r, j) {
					t.Fatalf("row %d, column %d of a selection: %v, want %v", r, j, x.At(i, j), want.At(r, j))
				}
			}
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		index := 0
		if err := s.Blocks(context.Background(), e, 700, func(x, _ *mat.Dense) error {
			n, _ := x.Dims()
			if !mat.Equal(x, want.Slice(index, index+n, 0, cols)) {
				return fmt.Errorf("rows from %d differ", index)
			}
			index += n
			return nil
		}); err != nil || index != rows {
			t.Fatal(index, err)
		}
	}
}

// TestSparseLabelAsFeature checks that the label of a sparse file without targets becomes a feature after the
// sparse features.
func TestSparseLabelAsFeature(t *testing.T) {
	const rows, cols = 3000, 80
	text, _ := sparseTable(5, rows, cols, 0.1, 1)
	path := file(t, "a.libsvm", text)
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := s.Learn(t.Context(), dataset.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if e := learn(t, table, dataset.Rules{}); len(e.Inputs) != 2 || asJSON(t, e) != asJSON(t, streamed) {
		t.Errorf("the encoder is\n%s\nin memory and\n%s\nof the stream", asJSON(t, e), asJSON(t, streamed))
	}
}

// TestSparseStandardize checks that standardizing a sparse table only divides each column by its population
// standard deviation, as StandardScaler(with_mean=False) does, also in passes, and that a weight w has the effect
// of w copies of a row.
func TestSparseStandardize(t *testing.T) {
	const seed, rows, cols = 6, 400, 70
	t.Logf("seed %d", seed)
	text, want := sparseTable(seed, rows, cols, 0.2, 1)
	path := file(t, "a.libsvm", text)
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := dataset.Rules{Targets: []string{"label"}, Standardize: true}
	e := learn(t, table, rules)
	if !e.OnlyScaled() {
		t.Fatal("the encoder does not say that it only scales")
	}
	x, err := e.SparseFeatures(table)
	if err != nil {
		t.Fatal(err)
	}
	for j := range cols {
		mean, square := 0.0, 0.0
		for i := range rows {
			mean += want.At(i, j) / rows
		}
		for i := range rows {
			d := want.At(i, j) - mean
			square += d * d / rows
		}
		// Each of the two sums of n = rows terms has a relative error below n·ε.
		if sd := math.Sqrt(square); math.Abs(e.Inputs[0].Sparse.Scale[j]-sd) > 4*rows*0x1p-52*sd {
			t.Errorf("column %d: the scale is %v, want %v", j, e.Inputs[0].Sparse.Scale[j], sd)
		}
		for i := range rows {
			if v := want.At(i, j) / e.Inputs[0].Sparse.Scale[j]; x.At(i, j) != v {
				t.Fatalf("row %d, column %d: %v, want %v", i, j, x.At(i, j), v)
			}
		}
	}
	if !mat.Equal(features(t, e, table), x) {
		t.Error("the dense features differ from the sparse ones")
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	streamed, err := s.Learn(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := asJSON(t, e), asJSON(t, streamed); a != b {
		t.Errorf("a pass learned\n%s\nwant\n%s", b, a)
	}
	var decoded dataset.Encoder
	if err := json.Unmarshal([]byte(asJSON(t, e)), &decoded); err != nil || decoded.Check() != nil || asJSON(t, &decoded) != asJSON(t, e) {
		t.Error("the encoder does not survive JSON", err, decoded.Check())
	}
	firstHalf := table.Select([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	part, err := e.LearnPart(firstHalf, rules)
	if err != nil || part.Width() != cols || !part.Sparse() {
		t.Errorf("a part of the rows: %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSparseConstant checks that a constant nonzero column is divided by 1.
func TestSparseConstant(t *testing.T) {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "1 1:0.3 %d:%d\n", 2+i, i+1)
	}
	b.WriteString("1 1:0.3 90:1\n")
	table, err := dataset.Read(file(t, "a.libsvm", []byte(b.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"label"}, Standardize: true})
	if s := e.Inputs[0].Sparse; s == nil || s.Scale[0] != 1 || s.Scale[50] != 1 || s.Scale[1] == 1 {
		t.Errorf("the scales are %v", s)
	}
}

// TestDenseOrNarrowTablesAreDense checks that a LIBSVM table is encoded column by column if at least a third of the
// values are nonzero, the table is narrow, or a feature is the target.
func TestDenseOrNarrowTablesAreDense(t *testing.T) {
	for _, c := range []struct {
		cols    int
		density float64
		target  string
		sparse  bool
	}{{80, 0.1, "label", true}, {80, 0.5, "label", false}, {10, 0.1, "label", false}, {80, 0.1, "x3", false}} {
		text, _ := sparseTable(7, 200, c.cols, c.density, 1)
		path := file(t, "a.libsvm", text)
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		rules := dataset.Rules{Targets: []string{c.target}}
		e := learn(t, table, rules)
		streamed, err := s.Learn(context.Background(), rules)
		if err != nil {
			t.Fatal(err)
		}
		if e.Sparse() != c.sparse || asJSON(t, e) != asJSON(t, streamed) {
			t.Errorf("%+v: sparse %v, in passes %v", c, e.Sparse(), streamed.Sparse())
		}
	}
}

// TestWideSparseTable checks that a table with only some values in 1.5 million columns is read and encoded without
// a dense matrix. A call for a dense matrix must give an error.
func TestWideSparseTable(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%d", i%2)
		for k := range 8 {
			fmt.Fprintf(&b, " %d:1", 1+5*i+k*180_000)
		}
		b.WriteString("\n")
	}
	b.WriteString("1 1500000:2\n")
	table, err := dataset.Read(file(t, "wide.libsvm", []byte(b.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, dataset.Rules{Targets: []string{"label"}, Labels: true, Standardize: true})
	x, err := e.SparseFeatures(table)
	if err != nil {
		t.Fatal(err)
	}
	if x.Rows != 301 || x.Cols != 1_500_000 || x.NNZ() != 2401 {
		t.Errorf("%d × %d with %d values", x.Rows, x.Cols, x.NNZ())
	}
	_, err = e.Features(table)
	wantError(t, err, table.Source+": 301 rows of 1500000 features, zeros included, are too many for a dense matrix")
	_, err = dataset.Learn(table, dataset.Rules{Targets: []string{"x7"}})
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 can be used only if") {
		t.Error(err)
	}
}

// TestSparseTablesOfOtherRows encodes other tables than the training table. It checks that indices beyond the last
// feature are ignored, absent columns are 0, and columns of a dense table are found by their names.
func TestSparseTablesOfOtherRows(t *testing.T) {
	text, _ := sparseTable(8, 100, 70, 0.1, 1)
	train, err := dataset.Read(file(t, "a.libsvm", text), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, train, dataset.Rules{Targets: []string{"label"}})
	otherTable, err := dataset.Read(file(t, "b.libsvm", []byte("1 2:5 70:6 71:7\n2 3:8\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.SparseFeatures(otherTable)
	if err != nil {
		t.Fatal(err)
	}
	if x.Check() != nil || x.Cols != 70 || x.NNZ() != 3 || x.At(0, 1) != 5 || x.At(0, 69) != 6 || x.At(1, 2) != 8 {
		t.Errorf("the features are %v", x)
	}
	var csv strings.Builder
	for j := range 70 {
		fmt.Fprintf(&csv, "x%d,", 70-j)
	}
	csv.WriteString("z\n")
	for j := range 70 {
		fmt.Fprintf(&csv, "%d,", (70-j)%2*j)
	}
	csv.WriteString("1\n")
	dense, err := dataset.Read(file(t, "c.csv", []byte(csv.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = e.SparseFeatures(dense); err != nil || x.Check() != nil {
		t.Fatal(err, x.Check())
	}
	for j := range 70 {
		if want := float64((j + 1) % 2 * (69 - j)); x.At(0, j) != want {
			t.Errorf("feature %d of a CSV file is %v, want %v", j, x.At(0, j), want)
		}
	}
	keys, err := e.Keys(dense)
	if err != nil {
		t.Fatal(err)
	}
	var row strings.Builder
	row.WriteString("1")
	for j := range 70 {
		if v := x.At(0, j); v != 0 {
			fmt.Fprintf(&row, " %d:%v", j+1, v)
		}
	}
	equalRow, err := dataset.Read(file(t, "d.libsvm", []byte(row.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if denseKeys, err := e.Keys(equalRow); err != nil || !slices.Equal(keys, denseKeys) {
		t.Errorf("equal rows of two formats have the keys %x and %x, %v", keys, denseKeys, err)
	}
	narrow, err := dataset.Read(file(t, "e.csv", []byte("x1,x2\n1,2\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = e.SparseFeatures(narrow); err == nil || !strings.Contains(err.Error(), `has no feature column "x3"`) {
		t.Error(err)
	}
}

// TestLIBSVMSpellings checks that lines with several spaces, tabs, comments, query numbers (qid:7), CR LF or long
// numbers are read like plain lines.
func TestLIBSVMSpellings(t *testing.T) {
	libsvm := "1 1:0.5 3:2\n-2.5 2:1e-3 4:4\n3\n4 1:1\n"
	for _, text := range []string{
		"1  1:0.5\t3:2\r\n-2.5\t2:0.001   4:4.000 \r\n3\r\n4 1:1",
		"# head\n\n1 qid:7 1:0.5 2:0 3:2 # a: 3:9\n  -2.5 2:1e-3 4:4e0\n3#\n4 1:1\n\n",
		"+1 1:0.5 3:+2\n-2.50 2:0.00100000000000000000000000000000000000 4:4\n3.0 1:0\n4 1:1\r\n",
		"1 01:0.5 3:2 4:0\n-2.5 2:.001 4:4.\n3  \n4 1:1",
	} {
		a, err := dataset.Read(file(t, "a.libsvm", []byte(libsvm)), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := dataset.Read(file(t, "b.libsvm", []byte(text)), nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		e := learn(t, a, dataset.Rules{Targets: []string{"label"}})
		ya, faultA := e.Targets(a)
		yb, faultB := e.Targets(b)
		if faultA != nil || faultB != nil || !mat.Equal(features(t, e, a), features(t, e, b)) || !mat.Equal(ya, yb) {
			t.Errorf("%q: the table differs from that of %q", text, libsvm)
		}
	}
}

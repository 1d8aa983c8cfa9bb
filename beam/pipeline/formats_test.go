package pipeline

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
)

// width is the number of features of sparseRows.
const width = 5

// sparseRows returns rows of five features, many of them 0, followed by a target. In the first third of the rows
// the fourth and fifth features are 0.
func sparseRows(seed uint64, n int) [][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	rows := make([][]float64, n)
	for i := range rows {
		row := make([]float64, width+1)
		row[0], row[1] = r.NormFloat64(), 3+r.NormFloat64()
		if r.IntN(2) == 0 {
			row[2] = r.NormFloat64()
		}
		if i >= n/3 {
			if r.IntN(4) == 0 {
				row[3] = float64(r.IntN(5))
			}
			if r.IntN(20) == 0 {
				row[4] = r.Float64()
			}
		}
		row[width] = math.Sin(row[0]) + row[1]*row[2] - row[3] + 0.1*r.NormFloat64()
		rows[i] = row
	}
	return rows
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// asCSV returns rows as a CSV table whose target has the given name.
func asCSV(rows [][]float64, target string) []byte {
	var b bytes.Buffer
	for j := range width {
		fmt.Fprintf(&b, "x%d,", j+1)
	}
	b.WriteString(target + "\n")
	for _, row := range rows {
		for j, v := range row {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(number(v))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// asLIBSVM returns rows in LIBSVM format without zeros, with comments and empty lines.
func asLIBSVM(rows [][]float64) []byte {
	var b bytes.Buffer
	for i, row := range rows {
		b.WriteString(number(row[width]))
		for j, v := range row[:width] {
			if v != 0 {
				fmt.Fprintf(&b, " %d:%s", j+1, number(v))
			}
		}
		if i%100 == 0 {
			b.WriteString(" # a comment\n")
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat("\n# the end\n", 50))
	return b.Bytes()
}

// asNPY returns the columns rows[:][from:to] as an NPY array; a single column becomes a vector.
func asNPY(rows [][]float64, from, to int) []byte {
	shape := fmt.Sprintf("(%d,)", len(rows))
	if to-from > 1 {
		shape = fmt.Sprintf("(%d, %d)", len(rows), to-from)
	}
	head := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': %s, }", shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	b = append(b, head...)
	for _, row := range rows {
		for _, v := range row[from:to] {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

// asNPZ returns an NPZ file with the arrays X and y.
func asNPZ(t *testing.T, rows [][]float64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, array := range map[string][]byte{"X.npy": asNPY(rows, 0, width), "y.npy": asNPY(rows, width, width+1)} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(array); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sequentialFS is the local file system, except that files can only be read sequentially from their beginning.
type sequentialFS struct{ filesystem.Interface }

func init() {
	filesystem.Register("far", func(ctx context.Context) filesystem.Interface { return sequentialFS{local.New(ctx)} })
}

func (f sequentialFS) List(ctx context.Context, glob string) ([]string, error) {
	list, err := f.Interface.List(ctx, strings.TrimPrefix(glob, "far://"))
	for i := range list {
		list[i] = "far://" + list[i]
	}
	return list, err
}

func (f sequentialFS) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	in, err := f.Interface.OpenRead(ctx, strings.TrimPrefix(name, "far://"))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{in, in}, nil
}

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFormats checks that the same rows give the same model in every format, compressed, and split into parts. The
// model of a single CSV file must agree with the model of one machine to 1e-10.
func TestFormats(t *testing.T) {
	const seed, n = 20261130, 1500
	t.Logf("seed %d", seed)
	rows := sparseRows(seed, n)
	first, second, third := rows[:n/3], rows[n/3:n/2], rows[n/2:]
	layouts := []struct {
		name, target string
		globs        []string
		files        files
		bytes        int64
	}{
		{"one CSV", "label", []string{"*.csv"}, files{"a.csv": asCSV(rows, "label")}, 0},
		{"CSV compressed by gzip", "label", []string{"*.csv.gz"}, files{"a.csv.gz": gzipped(t, asCSV(first, "label")), "b.csv.gz": gzipped(t, asCSV(rows[n/3:], "label"))}, 1024},
		{"gzip by another name", "label", []string{"*.csv"}, files{"a.csv": gzipped(t, asCSV(rows, "label"))}, 1024},
		{"text by another name", "label", []string{"*.txt", "part-*"}, files{"a.txt": asCSV(first, "label"), "part-00000": asLIBSVM(rows[n/3:])}, 1024},
		{"LIBSVM", "label", []string{"*.libsvm"}, files{"a.libsvm": asLIBSVM(rows)}, 0},
		{"LIBSVM in parts, files of different widths", "label", []string{"*.svm*"}, files{"a.svm": asLIBSVM(first), "b.svm": asLIBSVM(second), "c.svm.gz": gzipped(t, asLIBSVM(third))}, 2000},
		{"several globs of several formats, empty files among them", "label", []string{"*.csv", "*.svm", "*.gz"}, files{
			"b.csv": asCSV(second, "label"), "a.svm": asLIBSVM(first), "c.csv.gz": gzipped(t, asCSV(third, "label")),
			"header.csv": []byte("x2,label,x1,x3,x4,x5\n"), "empty.svm": nil,
		}, 5000},
		{"NPY", "x6", []string{"*.npy"}, files{"a.npy": asNPY(rows, 0, width+1)}, 0},
		{"NPZ", "y", []string{"*.npz"}, files{"a.npz": asNPZ(t, first), "b.npz": asNPZ(t, rows[n/3:])}, 0},
		{"NPZ and CSV far away", "y", []string{"far://*"}, files{"a.npz": asNPZ(t, first), "b.csv": asCSV(second, "y"), "c.csv.gz": gzipped(t, asCSV(third, "y"))}, 1024},
		{"LIBSVM far away", "label", []string{"far://*"}, files{"a.svm": asLIBSVM(rows)}, 1024},
		{"NPZ and CSV", "y", []string{"*"}, files{"a.npz": asNPZ(t, first), "b.csv": asCSV(rows[n/3:], "y")}, 3000},
	}
	for _, p := range []Params{
		{Learner: "ridge", Lambdas: []float64{3}, Intercept: true},
		{Learner: "nystrom-ridge", Kernels: []string{"gaussian(sigma=0.5)"}, Functions: 40, Lambdas: []float64{1}},
	} {
		p.Seed, p.Passes, p.Tol = 5, 1, 1e-9
		var first map[string]backend.Host[float64]
		for i, l := range layouts {
			if p.Learner == "ridge" && i > 0 && len(l.globs) < 3 { // two layouts suffice for ridge, which has no centers
				continue
			}
			dir := folder(t, l.files)
			p.Inputs = nil
			for _, glob := range l.globs {
				if name, ok := strings.CutPrefix(glob, "far://"); ok {
					p.Inputs = append(p.Inputs, "far://"+filepath.Join(dir, name))
				} else {
					p.Inputs = append(p.Inputs, filepath.Join(dir, glob))
				}
			}
			p.Targets, p.PieceBytes = []string{l.target}, l.bytes
			b, result := fit(t, p)
			name := p.Learner + ", " + l.name
			if result.Report.Rows != n || result.Report.Features != width {
				t.Errorf("%s: %d rows of %d features", name, result.Report.Rows, result.Report.Features)
				continue
			}
			if first == nil {
				first = arrays(b.Model)
				file := filepath.Join(dir, "a.csv")
				want, enc := fitLocally(t, p, file, b)
				checkNear(t, name+", the single machine's", first, arrays(want), 1e-10)
				checkNear(t, name+", encoder", numbersOf(b.Encoder), numbersOf(enc), 1e-13)
			}
			checkNear(t, name, arrays(b.Model), first, 1e-10)
		}
	}
}

// TestSparseTables checks that the features of a sparse table are divided by their standard deviations and not
// shifted, in memory, in passes, and in a pipeline. The models agree with those of one machine to 1e-10.
func TestSparseTables(t *testing.T) {
	path := filepath.Join("..", "..", "dataset", "testdata", "encoders", "sparse.libsvm")
	for _, p := range []Params{
		{Learner: "ridge", Lambdas: []float64{3}, Intercept: true},
		{Learner: "nystrom-ridge", Kernels: []string{"gaussian(sigma=20)"}, Functions: 20, Lambdas: []float64{1}, Seed: 5},
	} {
		p.Inputs, p.Targets, p.PieceBytes, p.Passes, p.Tol = []string{path}, []string{"label"}, 1024, 1, 1e-9
		b, result := fit(t, p)
		want, enc := fitLocally(t, p, path, b)
		checkNear(t, p.Learner, arrays(b.Model), arrays(want), 1e-10)
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := s.Learn(t.Context(), dataset.Rules{Targets: p.Targets, Standardize: true})
		if err != nil {
			t.Fatal(err)
		}
		scales := func(e *dataset.Encoder) map[string]backend.Host[float64] {
			if !e.OnlyScaled() || len(e.Inputs) != 1 || e.Inputs[0].Sparse.Columns != 90 {
				t.Fatalf("the inputs are %+v", e.Inputs)
			}
			list := e.Inputs[0].Sparse.Scale
			return map[string]backend.Host[float64]{"scales": {Rows: 1, Cols: len(list), Stride: len(list), Data: list}}
		}
		checkNear(t, "in passes", scales(streamed), scales(enc), 0)
		checkNear(t, "by a pipeline", scales(b.Encoder), scales(enc), 1e-13)
		if result.Report.Rows != 240 || result.Report.Features != 90 {
			t.Errorf("the report is %+v", result.Report)
		}
	}
}

// TestIndicesFromZero checks that indices that count from 0 give the features x0, x1, … in any file.
func TestIndicesFromZero(t *testing.T) {
	for _, text := range []files{
		{"a.svm": []byte("1 1:1 2:3\n2 1:2\n"), "b.svm": []byte("3 0:5 2:1\n1 1:1 3:2\n")},
		{"a.svm": []byte("3 0:5 2:1\n1 1:1 3:2\n"), "b.svm": []byte("1 1:1 2:3\n2 1:2\n")},
	} {
		p := Params{Learner: "ridge", Targets: []string{"label"}, Lambdas: []float64{1}, Inputs: []string{filepath.Join(folder(t, text), "*")}}
		b, _ := fit(t, p)
		if names := b.Encoder.FeatureNames(); !slices.Equal(names, []string{"x0", "x1", "x2", "x3"}) {
			t.Errorf("the features are %q", names)
		}
		// The mean of x0 is 1.25, because x0 is 5 in one row of four and 0 in the others.
		if in := b.Encoder.Inputs[0].Number; in == nil || math.Abs(in.Mean-1.25) > 4*0x1p-52 {
			t.Errorf("x0 is %+v, want a mean of 1.25", in)
		}
	}
}

// TestDialect checks that the settings of CSV files also apply to files that are split into parts, against the same
// table in plain CSV and the encoder of package dataset.
func TestDialect(t *testing.T) {
	const seed, n = 34, 400
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	odd, plain := []byte("# head\n\n#\na;kind;y # names\n"), []byte("a,kind,y\n")
	for i := range n {
		v, kind, y := strconv.Itoa(r.IntN(100)), []string{"NA", "red", "blue"}[r.IntN(3)], r.IntN(50)
		odd, plain = fmt.Appendf(odd, "%s;%s;%d\n", v, kind, y), fmt.Appendf(plain, "%s,%s,%d\n", v, strings.Replace(kind, "NA", "none", 1), y)
		switch i % 40 {
		case 7: // a number and a text that mark a missing cell, and a comment
			odd, plain = fmt.Appendf(odd, "-999.0;red;%d # why\n", y), fmt.Appendf(plain, ",red,%d\n", y)
		case 9:
			odd, plain = fmt.Appendf(odd, "# a line\n%s;gone;%d\n", v, y), fmt.Appendf(plain, "%s,,%d\n", v, y)
		}
	}
	dir := folder(t, files{"odd.csv": odd, "plain.csv": plain})
	for _, p := range []Params{
		{Learner: "ridge", Targets: []string{"y"}, Lambdas: []float64{3}, Intercept: true},
		{Learner: "ridge", Targets: []string{"kind"}, Classify: true, Lambdas: []float64{3}, Intercept: true},
		{Learner: "nystrom-ridge", Targets: []string{"y"}, Kernels: []string{"gaussian(sigma=2)"}, Functions: 1000, Lambdas: []float64{1}},
	} {
		if p.Classify { // a target must not have missing cells
			unusual, plain := bytes.ReplaceAll(odd, []byte("gone"), []byte("red")), bytes.ReplaceAll(plain, []byte(",,"), []byte(",red,"))
			dir = folder(t, files{"odd.csv": unusual, "plain.csv": plain})
		}
		p.Tol, p.PieceBytes, p.Inputs = 1e-9, 1024, []string{filepath.Join(dir, "plain.csv")}
		want, _ := fit(t, p)
		p.Inputs = []string{filepath.Join(dir, "odd.csv")}
		p.Dialect = dataset.Dialect{Delimiter: ";", Comment: "#", NAValues: []string{"-999", "gone"}, NoDefaultNA: true}
		got, result := fit(t, p)
		if result.Report.Rows != n+20 {
			t.Errorf("%d rows of %d", result.Report.Rows, n+20)
		}
		if p.Learner == "ridge" && !p.Classify { // the categories have different orders: "NA" comes before "blue", but its replacement "none" after "blue"
			a, b := arrays(got.Model)["coef"], arrays(want.Model)["coef"]
			for i, j := range []int{0, 2, 1, 3} {
				if math.Abs(a.Data[i]-b.Data[j]) > 1e-10 {
					t.Errorf("coefficient %d is %v, of plain CSV %v", i, a.Data[i], b.Data[j])
				}
			}
		}
		table, err := dataset.File{Path: p.Inputs[0], Dialect: p.Dialect}.Read()
		if err != nil {
			t.Fatal(err)
		}
		enc, err := dataset.Learn(table, dataset.Rules{Targets: p.Targets, Labels: p.Classify, Standardize: true})
		if err != nil {
			t.Fatal(err)
		}
		checkNear(t, "encoder", numbersOf(got.Encoder), numbersOf(enc), 1e-13)
		if !slices.Equal(got.Encoder.FeatureNames(), enc.FeatureNames()) || !slices.Equal(got.Encoder.Labels, enc.Labels) || !slices.Equal(got.Encoder.NAValues, enc.NAValues) {
			t.Errorf("the encoder is %+v, want %+v", got.Encoder, enc)
		}
	}
}

// TestDialectsAreFound checks that files in the dialects that dataset detects give the same table as the plain
// file, also if they are cut into pieces.
func TestDialectsAreFound(t *testing.T) {
	const seed, n = 35, 400
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	lines := []string{"a,kind,y"}
	for range n {
		lines = append(lines, fmt.Sprintf("%.2f,%s,%d", 10*r.NormFloat64(), []string{"red", "blue"}[r.IntN(2)], r.IntN(50)))
	}
	write := func(prefix, comma, decimal, end string) string {
		var b strings.Builder
		for _, line := range lines {
			line = strings.ReplaceAll(strings.ReplaceAll(line, ".", decimal), ",", "\x00")
			b.WriteString(prefix + strings.ReplaceAll(strings.ReplaceAll(line, "\x00", comma), "\x01", ",") + end)
		}
		return b.String()
	}
	numbered := strings.Split(write("", ";", ".", "\n"), "\n")
	for i := range numbered[1 : n+1] {
		numbered[i+1] = fmt.Sprintf("%d;", i+1) + numbered[i+1]
	}
	utf16Text := []byte{0xff, 0xfe}
	for _, c := range write("", ",", ".", "\r\n") {
		utf16Text = append(utf16Text, byte(c), 0)
	}
	dialects := map[string][]byte{
		"decimal commas":          []byte(write("", ";", "\x01", "\n")),
		"delimiters at the end":   []byte(write("", ",", ".", ",\n")),
		"spaces":                  []byte(write("  ", "   ", ".", " \n")),
		"sep":                     []byte("sep=:\r\n" + write("", ":", ".", "\r\n")),
		"white lines":             []byte(" \n" + write("", ",", ".", "\n   \n")),
		"spaces before the cells": []byte(strings.ReplaceAll(write("", ", ", ".", "\n"), "red", "\"red\"")),
		"CR":                      []byte(write("", ",", ".", "\r")),
		"UTF-16":                  utf16Text,
		"row names":               []byte(strings.Join(numbered, "\n")),
	}
	p := Params{Learner: "ridge", Targets: []string{"y"}, Lambdas: []float64{3}, Intercept: true, Tol: 1e-9, PieceBytes: 1024}
	dir := folder(t, files{"plain.csv": []byte(write("", ",", ".", "\n"))})
	p.Inputs = []string{filepath.Join(dir, "plain.csv")}
	want, _ := fit(t, p)
	for name, text := range dialects {
		p.Inputs = []string{filepath.Join(folder(t, files{"odd.csv": text}), "odd.csv")}
		got, result := fit(t, p)
		if result.Report.Rows != n {
			t.Errorf("%s: %d rows of %d", name, result.Report.Rows, n)
		}
		checkNear(t, name, numbersOf(got.Encoder), numbersOf(want.Encoder), 0)
		if !slices.Equal(got.Encoder.FeatureNames(), want.Encoder.FeatureNames()) {
			t.Errorf("%s: features %q", name, got.Encoder.FeatureNames())
		}
	}
	// A line with one cell too many must be an error, even if the line is a piece by itself.
	invalid := append([]byte(write("", ",", ".", "\n")), "x,1.5,red,2\n"...)
	p.Inputs = []string{filepath.Join(folder(t, files{"odd.csv": invalid}), "odd.csv")}
	p.Model = filepath.Join(t.TempDir(), "m.safetensors")
	if _, err := Run(t.Context(), "prism", p, 1); err == nil || !strings.Contains(err.Error(), "has 4 cells where the header has 3") {
		t.Errorf("a cell too many: %v", err)
	}
}

// files maps the names of a folder's files to their contents.
type files = map[string][]byte

// TestIDX checks that IDX files of images and labels give the same table as a CSV file.
func TestIDX(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	const n, d = 200, 4
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 2}, []byte{0, 0, 8, 1, 0, 0, 0, n}
	csv := []byte("x1,x2,x3,x4,label\n")
	for range n {
		sum := 0
		for range d {
			v := r.IntN(200)
			images, sum = append(images, byte(v)), sum+v
			csv = fmt.Appendf(csv, "%d,", v)
		}
		class := sum / 201 // a class from 0 to 3
		labels = append(labels, byte(class))
		csv = fmt.Appendf(csv, "%d\n", class)
	}
	dir := folder(t, map[string][]byte{"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels, "t.csv": csv})
	p := Params{Learner: "nystrom-ridge", Targets: []string{"label"}, Classify: true, Kernels: []string{"gaussian(sigma=1)"}, Functions: 20, Lambdas: []float64{1}, Tol: 1e-9}
	p.Inputs = []string{filepath.Join(dir, "*images*")}
	got, result := fit(t, p)
	p.Inputs = []string{filepath.Join(dir, "*.csv")}
	want, _ := fit(t, p)
	if len(result.Report.Classes) != 4 {
		t.Errorf("classes %q", result.Report.Classes)
	}
	checkNear(t, "IDX", arrays(got.Model), arrays(want.Model), 1e-10)
}

// TestEmptyColumn checks that a column that is empty in one whole file is filled with a value from the other files.
func TestEmptyColumn(t *testing.T) {
	dir := folder(t, map[string][]byte{"a.csv": []byte("a,b,y\n1,,2\n3,,4\n"), "b.csv": []byte("a,b,y\n1,5,2\n3,6,4\n7,6,9\n")})
	p := Params{Learner: "ridge", Targets: []string{"y"}, Inputs: []string{filepath.Join(dir, "*")}}
	b, _ := fit(t, p)
	if in := b.Encoder.Inputs[1].Number; in == nil || in.Fill != 6 {
		t.Errorf("column b is %+v, want a fill of 6", in)
	}
}

// TestParquet checks that Parquet files of several writers, codecs and kinds of pages give the same model as CSV.
func TestParquet(t *testing.T) {
	const from = "../../dataset/testdata/parquet"
	globs := []string{filepath.Join(from, "arrow-zstd*.parquet"), filepath.Join(from, "go-gzip-v1-split.parquet"), filepath.Join(from, "arrow-none-v1.parquet")}
	table, err := dataset.Read(filepath.Join(from, "arrow-none-v1.parquet"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns [][]string
	for _, name := range table.Names() {
		cells, err := table.Texts(name)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, cells)
	}
	var rows []string
	for i := range table.Rows() {
		row := make([]string, len(columns))
		for j, cells := range columns {
			row[j] = cells[i]
		}
		rows = append(rows, strings.Join(row, ","))
	}
	rows = slices.Concat(rows, rows, rows) // the three Parquet files hold the same rows
	csv := write(t, strings.Join(table.Names(), ","), rows)
	for _, p := range []Params{
		{Learner: "ridge", Targets: []string{"f32"}, Lambdas: []float64{1}, Intercept: true},
		{Learner: "fourier-ridge", Targets: []string{"bool"}, Classify: true, Kernels: []string{"gaussian(sigma=3)"}, Functions: 30, Lambdas: []float64{1}, Seed: 2},
	} {
		p.Passes, p.Tol, p.Inputs = 1, 1e-9, globs
		got, result := fit(t, p)
		p.Inputs = []string{csv}
		want, _ := fit(t, p)
		if result.Report.Rows != int64(len(rows)) {
			t.Errorf("%s: %d rows, want %d", p.Learner, result.Report.Rows, len(rows))
		}
		checkNear(t, p.Learner+", CSV's", arrays(got.Model), arrays(want.Model), 1e-10)
		checkNear(t, p.Learner+", encoder", numbersOf(got.Encoder), numbersOf(want.Encoder), 1e-13)
		machine, _ := fitLocally(t, p, strings.ReplaceAll(csv, "*", "part-000"), got)
		checkNear(t, p.Learner+", the single machine's", arrays(got.Model), arrays(machine), 1e-10)
	}
}

// TestFileFaults checks the one-line error, with the file, for files that do not match the others or cannot be
// read.
func TestFileFaults(t *testing.T) {
	rows := sparseRows(1, 60)
	valid := asCSV(rows, "y")
	for _, c := range []struct {
		name  string
		files files
		globs []string
		want  string // %s represents the folder
	}{
		{"a glob without a file beside one with", files{"a.csv": valid}, []string{"*.csv", "*.parquet"}, "pipeline: %s/*.parquet: there is no such file"},
		{"a file of no bytes", files{"a.csv": valid, "b.csv": nil}, []string{"*.csv"}, "%s/b.csv: is empty; a header line with the names of the columns is needed"},
		{"headers only", files{"a.csv": []byte("a,y\n"), "b.csv": []byte("a,y\n")}, []string{"*.csv"}, "pipeline: there is no row in %s/*.csv"},
		{"another header", files{"a.csv": valid, "b.csv": bytes.Replace(valid, []byte("x2"), []byte("z"), 1)}, []string{"*.csv"}, `pipeline: %s/b.csv lacks "x2" and has "z" besides, unlike %s/a.csv: all files must have the same columns`},
		{"a column less", files{"a.csv": valid, "b.csv": []byte("x1,x2,x3,x4,y\n1,2,3,4,5\n")}, []string{"*.csv"}, `pipeline: %s/b.csv lacks "x5", unlike %s/a.csv: all files must have the same columns`},
		{"LIBSVM with more features than a table", files{"a.csv": []byte("x1,label\n1,2\n"), "b.svm": []byte("1 3:1\n")}, []string{"*"}, `pipeline: %s/b.svm has "x2", "x3" besides, unlike %s/a.csv: all files must have the same columns`},
		{"half of a compressed file", files{"a.csv.gz": gzipped(t, valid)[:200]}, []string{"*"}, "%s/a.csv.gz: the gzip data is cut short"},
		{"no Parquet", files{"a.parquet": valid}, []string{"*"}, "%s/a.parquet: has the name of a Parquet file but not the signature"},
		{"an array without targets", files{"a.npy": asNPY(rows, 0, 3)}, []string{"*"}, `%s/*: has no target column "y"; it has "x1", "x2", "x3"`},
	} {
		dir := folder(t, c.files)
		p := Params{Targets: []string{"y"}, Learner: "ridge", Model: filepath.Join(t.TempDir(), "m")}
		if _, ok := c.files["b.svm"]; ok {
			p.Targets = []string{"label"}
		}
		for _, glob := range c.globs {
			p.Inputs = append(p.Inputs, filepath.Join(dir, glob))
		}
		// Prism may report an error of the step after the failed step. Run then makes another attempt.
		_, err := Run(t.Context(), "prism", p, 5)
		want := strings.ReplaceAll(c.want, "%s", dir)
		if text := fmt.Sprint(err); text != want && text != "pipeline: "+want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, text, want)
		}
		if remaining, err := os.ReadDir(filepath.Dir(p.Model)); err != nil || len(remaining) > 0 {
			t.Errorf("%s: a run that failed has left %v, %v", c.name, remaining, err)
		}
	}
}

// TestPartFaults checks that a fault in a part of a file names the line of the file.
func TestPartFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		text []byte
		bad  string
	}{
		{"a.csv", asCSV(sparseRows(2, 200), "label"), "1,2,3\n"},
		{"a.svm", asLIBSVM(sparseRows(2, 200)), "1 2:x\n"},
	} {
		pos := bytes.IndexByte(c.text[len(c.text)/2:], '\n') + len(c.text)/2 + 1
		text := slices.Concat(c.text[:pos], []byte(c.bad), c.text[pos:])
		dir := folder(t, map[string][]byte{c.name: text})
		p, err := Params{Inputs: []string{filepath.Join(dir, c.name)}, Targets: []string{"label"}, Model: "m", PieceBytes: 1024}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		var faults []string
		err = pieces(t.Context(), p, func(piece filePiece) {
			if _, err := censusOf(t.Context(), p, piece); err != nil {
				faults = append(faults, err.Error())
			}
		})
		if err != nil || len(faults) != 1 {
			t.Fatalf("%s: %v, faults %q", c.name, err, faults)
		}
		var line int
		if _, err := fmt.Sscanf(strings.TrimPrefix(faults[0], filepath.Join(dir, c.name)), ":%d:", &line); err != nil {
			t.Fatalf("%s: %q: %v", c.name, faults[0], err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		if lines[line-1] != c.bad {
			t.Errorf("%s: %q names the line %q", c.name, faults[0], lines[line-1])
		}
	}
}

// TestBadCells checks that the error for a column with unusable cells names the file and the line of the first such
// cell.
func TestBadCells(t *testing.T) {
	const n, badRow = 3000, 1234 // badRow is the index, counted from 0, of the row with the bad cell; the header is line 1 of the file
	table := func(target, feature string) []byte {
		var b bytes.Buffer
		b.WriteString("a,b,y\n")
		for i := range n {
			a, y := fmt.Sprint(i), fmt.Sprint(2*i)
			if i == badRow || i == badRow+700 {
				if target != "-" {
					y = target
				}
				if feature != "-" {
					a = feature
				}
			}
			fmt.Fprintf(&b, "%s,%d,%s\n", a, i%7, y)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name            string
		target, feature string
		refuse          bool
		want            string
	}{
		{"a target that is no number", "abc", "-", false, `column "y": "abc" is not a number, as a target must be`},
		{"a missing target", "", "-", false, `column "y": the cell is empty`},
		{"a marker among many numbers", "-", "oops", false, `column "a": "oops" is not a number; correct it, or name it as a marker of missing values`},
		{"a missing feature that is refused", "-", "", true, `column "a": the cell is empty`},
	} {
		valid := table("-", "-")
		dir := folder(t, map[string][]byte{"a.csv": valid, "b.csv": table(c.target, c.feature), "c.csv": table(c.target, c.feature)})
		for _, size := range []int64{0, 4096} {
			p := Params{Inputs: []string{filepath.Join(dir, "*.csv")}, Targets: []string{"y"}, Learner: "ridge", RefuseMissing: c.refuse, PieceBytes: size, Model: filepath.Join(t.TempDir(), "m")}
			_, err := Run(t.Context(), "prism", p, 5)
			want := fmt.Sprintf("%s:%d: %s", filepath.Join(dir, "b.csv"), badRow+2, c.want)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, pieces of %d bytes:\ngot  %v\nwant %s", c.name, size, err, want)
			}
		}
	}
}

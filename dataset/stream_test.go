package dataset_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/dataset"
)

// stream learns an encoder from a file in one pass, and reads the file in blocks of the given number of rows in
// another.
func stream(t testing.TB, f dataset.File, r dataset.Rules, rows int) (e *dataset.Encoder, x, y *mat.Dense) {
	t.Helper()
	s, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	if e, err = s.Learn(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	x, y = blocks(t, s, e, rows)
	return e, x, y
}

func blocks(t testing.TB, s *dataset.Stream, e *dataset.Encoder, rows int) (x, y *mat.Dense) {
	t.Helper()
	width := len(e.FeatureNames())
	var xs, ys []float64
	rowsRead := 0
	err := s.Blocks(t.Context(), e, rows, func(x, y *mat.Dense) error {
		n, d := x.Dims()
		if n != min(rows, s.Rows()-rowsRead) || d != width {
			return fmt.Errorf("a block of %d×%d after %d of %d rows", n, d, rowsRead, s.Rows())
		}
		rowsRead += n
		xs = append(xs, x.RawMatrix().Data...)
		if y != nil {
			ys = append(ys, y.RawMatrix().Data...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rowsRead != s.Rows() {
		t.Fatalf("%d rows in blocks, %d in all", rowsRead, s.Rows())
	}
	x = mat.NewDense(rowsRead, width, xs)
	if ys != nil {
		y = mat.NewDense(rowsRead, len(ys)/rowsRead, ys)
	}
	return x, y
}

// checkStream fails the test unless a file read at once and as a stream gives the same bits.
func checkStream(t *testing.T, f dataset.File, r dataset.Rules, rows int) {
	t.Helper()
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	want := learn(t, table, r)
	e, x, y := stream(t, f, r, rows)
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("%s: the encoder differs:\n%.2000s", f.Path, diff)
	}
	if !mat.Equal(x, features(t, want, table)) {
		t.Errorf("%s: the features differ", f.Path)
	}
	if len(r.Targets) > 0 {
		wantY, err := want.Targets(table)
		if err != nil || !mat.Equal(y, wantY) {
			t.Errorf("%s: the targets differ; %v", f.Path, err)
		}
	}
}

// TestStreamFormats checks that a file of any format gives the same samples in blocks and at once.
func TestStreamFormats(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const n, d = 3000, 4
	var csv, quoted, libsvm strings.Builder
	csv.WriteString("b,x1,x2,color,x3,y\n")
	quoted.WriteString("\ufeffb,\"x1\",x2,color,x3,y\r\n")
	var rows, columns []float64
	var bytesOf []byte
	ys, labels := make([]int16, n), make([]byte, n)
	for i := range n {
		row := []float64{float64(rng.IntN(2)), rng.NormFloat64(), math.Round(1e4*rng.NormFloat64()) / 1e3, float64(rng.IntN(5))}
		rows = append(rows, row...)
		ys[i], labels[i] = int16(i), byte(rng.IntN(10))
		for range d {
			bytesOf = append(bytesOf, byte(rng.IntN(256)))
		}
		color := []string{"red", "", "light blue", "7"}[rng.IntN(4)]
		x1 := fmt.Sprint(row[1])
		if rng.IntN(50) == 0 {
			x1 = []string{"", "NA", " 5 ", "null", "1e-300", "0.1234567890123456789"}[rng.IntN(6)]
		}
		fmt.Fprintf(&csv, "%v,%s,%v,%s,%v,%d\n", row[0], x1, row[2], color, row[3], ys[i])
		fmt.Fprintf(&quoted, "%v,%s,\"%v\",\"%s\n%s\",%v,%d\r\n", row[0], x1, row[2], color, color, row[3], ys[i])
		if rng.IntN(20) == 0 {
			csv.WriteString("\n")
			quoted.WriteString("\r\n")
		}
		fmt.Fprintf(&libsvm, "%+d", int(labels[i])%2*2-1)
		for j, v := range row {
			if v != 0 {
				fmt.Fprintf(&libsvm, " %d:%v", j+1+i/1000, v)
			}
		}
		libsvm.WriteString(" # comment\n")
	}
	for j := range d {
		for i := range n {
			columns = append(columns, rows[i*d+j])
		}
	}
	shape := fmt.Sprintf("%d, %d", n, d)
	c, fortran := npyOf("<f8", "False", shape, rows...), npyOf(">f8", "True", shape, columns...)
	y, text := npyOf("<i2", "False", fmt.Sprintf("%d,", n), ys...), npyOf("|S1", "False", fmt.Sprintf("%d,", n), []byte(strings.Repeat("abc", n/3))...)
	regression := dataset.Rules{Targets: []string{"y"}, Standardize: true}
	classes := dataset.Rules{Targets: []string{"y"}, Labels: true}
	label := dataset.Rules{Targets: []string{"label"}, Labels: true}
	for _, c := range []struct {
		name  string
		data  []byte
		rules dataset.Rules
	}{
		{"a.csv", []byte(csv.String()), regression},
		{"crlf.csv", []byte(strings.ReplaceAll(csv.String(), "\n", "\r\n")), regression},
		{"quoted.csv", []byte(quoted.String()), regression},
		{"a.csv.gz", gzipped(t, csv.String()), regression},
		{"text.csv", []byte(csv.String()), dataset.Rules{Targets: []string{"b"}, Labels: true}},
		{"no target.csv", []byte(csv.String()), dataset.Rules{}},
		{"a.libsvm", []byte(libsvm.String()), label},
		{"a.libsvm.gz", gzipped(t, libsvm.String()), dataset.Rules{Targets: []string{"label"}, Standardize: true}},
		{"c.npy", c, dataset.Rules{Targets: []string{"x4"}, Labels: true}},
		{"c.npy.gz", gzipped(t, string(c)), dataset.Rules{Standardize: true}},
		{"f.npy", fortran, dataset.Rules{Targets: []string{"x1", "x3"}}},
		{"f.npy.gz", gzipped(t, string(fortran)), dataset.Rules{Targets: []string{"x1", "x3"}}},
		{"stored.npz", npz(t, zip.Store, "X.npy", fortran, "y.npy", y), regression},
		{"deflated.npz", npz(t, zip.Deflate, "X.npy", c, "y.npy", y), regression},
		{"text.npz", npz(t, zip.Deflate, "X.npy", c, "y.npy", text), classes},
		{"a.idx", idx(8, bytesOf, n, 2, 2), dataset.Rules{Standardize: true}},
		{"t-images-idx3-ubyte", idx(8, bytesOf, n, 2, 2), label},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.name, c.data)
			if strings.HasPrefix(c.name, "t-images") {
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), "t-labels-idx1-ubyte.gz"), gzipped(t, string(idx(8, labels, n))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, rows := range []int{1, 7, 1000, n, n + 1} {
				checkStream(t, dataset.File{Path: path}, c.rules, rows)
			}
		})
	}
}

// TestStreamLong checks the stream of a file in whose middle columns change between numbers and texts.
func TestStreamLong(t *testing.T) {
	if testing.Short() {
		t.Skip("reads files of several MiB: skipped by -short")
	}
	var b strings.Builder
	b.WriteString("few,many,late,text,y\n")
	const n = 60_000
	for i := range n {
		lateClass := i % 10
		if i > n/2 {
			lateClass = i
		}
		cell := ""
		if i%1000 != 17 {
			cell = fmt.Sprint(i)
		}
		fmt.Fprintf(&b, "%d,%s.5,%d,class number %d,%d\n", i%7, cell, lateClass, i%3, i%26)
	}
	text := strings.ReplaceAll(b.String(), ",.5", ",")
	for _, data := range [][]byte{[]byte(text), []byte(strings.ReplaceAll(text, "class number 1", `"class, number"`))} {
		checkStream(t, dataset.File{Path: file(t, "long.csv", data)}, dataset.Rules{Targets: []string{"y"}, Labels: true, Standardize: true}, 4096)
	}
}

// TestStreamWidening checks the stream of a LIBSVM file of many pieces, in which later lines have more features.
func TestStreamWidening(t *testing.T) {
	const seed = 8
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "%d", rng.IntN(3))
		for j := range 12 {
			if rng.IntN(3) == 0 && j < 4+i/8000 {
				fmt.Fprintf(&b, " %d:%.6f", j+1, rng.NormFloat64())
			}
		}
		if i%50_000 == 49_999 {
			b.WriteString(" 40:0")
		}
		b.WriteString("\n")
	}
	f := dataset.File{Path: file(t, "wide.libsvm", []byte(b.String()))}
	for _, r := range []dataset.Rules{
		{Targets: []string{"label"}, Labels: true, Standardize: true}, {Targets: []string{"x3"}}, {Standardize: true},
	} {
		checkStream(t, f, r, 5000)
	}
}

// TestStreamSample checks that in files longer than the sample, means and standard deviations have only rounding
// errors and a median has the error of a random sample.
func TestStreamSample(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200,000 rows: skipped by -short")
	}
	const seed, n = 5, 200_000
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	frequent, rare := make([]float64, n), make([]float64, n)
	var b bytes.Buffer
	b.WriteString("many,few\n")
	for i := range frequent {
		frequent[i] = 1e4 + math.Exp(rng.NormFloat64()) + float64(i)/n
		rare[i] = float64(rng.IntN(100)) / 4
		if rng.IntN(10) > 0 {
			fmt.Fprintf(&b, "%v,%v\n", frequent[i], rare[i])
			continue
		}
		fmt.Fprintf(&b, ",%v\n", rare[i])
		frequent[i] = math.NaN()
	}
	e, _, _ := stream(t, dataset.File{Path: file(t, "a.csv", b.Bytes())}, dataset.Rules{Standardize: true}, 5000)
	repeated, _, _ := stream(t, dataset.File{Path: file(t, "a.csv", b.Bytes())}, dataset.Rules{Standardize: true}, 5000)
	if diff := cmp.Diff(e, repeated); diff != "" {
		t.Errorf("learned again, the encoder differs:\n%s", diff)
	}
	present := slices.DeleteFunc(slices.Clone(frequent), math.IsNaN)
	slices.Sort(present)
	fill := e.Inputs[0].Number.Fill
	// The sample has 65,536 rows, nine tenths of which have a value. Five standard deviations of the rank are
	// allowed.
	rank, _ := slices.BinarySearch(present, fill)
	if deviation, bound := math.Abs(float64(rank)/float64(len(present))-0.5), 5*0.5/math.Sqrt(0.9*65536); deviation > bound {
		t.Errorf("the median has the rank %.4f, allowed 0.5 ± %.4f", 0.5+deviation, bound)
	}
	for i, v := range frequent {
		if math.IsNaN(v) {
			frequent[i] = fill
		}
	}
	slices.Sort(rare)
	if want := rare[n/2]; e.Inputs[1].Number.Fill != want { // both middle values equal rare[n/2]
		t.Errorf("the median of few is %v, want %v", e.Inputs[1].Number.Fill, want)
	}
	for i, values := range [][]float64{frequent, rare} {
		mean, sd := stat.PopMeanStdDev(values, nil)
		got := e.Inputs[i].Number
		// A sum of n terms of the same sign has a relative error of at most n·ε.
		if tol := n * 0x1p-52 * mean; math.Abs(got.Mean-mean) > tol || math.Abs(got.Scale-sd) > tol {
			t.Errorf("%s: mean %v ± %v, want %v ± %v", e.Inputs[i].Name, got.Mean, got.Scale, mean, sd)
		}
	}
}

// TestStreamShared checks that public data sets give the same result when they are read at once and as streams.
func TestStreamShared(t *testing.T) {
	if testing.Short() {
		t.Skip("reads large files: skipped by -short")
	}
	for name, r := range map[string]dataset.Rules{
		"penguins_mixed.csv":              {Targets: []string{"target"}, Standardize: true},
		"california_housing.csv":          {Targets: []string{"target"}, Standardize: true},
		"letter.csv":                      {Targets: []string{"target"}, Labels: true},
		"kin40k.csv.gz":                   {Targets: []string{"target"}},
		"digits.csv":                      {Targets: []string{"target"}, Labels: true, Standardize: true},
		"mnist-t10k-labels-idx1-ubyte.gz": {},
	} {
		t.Run(name, func(t *testing.T) { checkStream(t, dataset.File{Path: shared(t, name)}, r, 1000) })
	}
}

// TestStreamFaults checks that a pass returns the error for the first fault in the file, as Read and Features do.
func TestStreamFaults(t *testing.T) {
	longCSV := "x,y\n" + strings.Repeat("1,2\n", 300_000) // longer than one piece
	infinite := make([]float64, 20)
	infinite[13] = math.Inf(1)
	bin := npyOf("<f8", "False", "10, 2", infinite...)
	y := dataset.Rules{Targets: []string{"y"}}
	for _, c := range []struct {
		name, text string
		rules      dataset.Rules
		want       string
	}{
		{"a.csv", "", y, ": is empty; a header line with the names of the columns is needed"},
		{"a.csv", "x,y\n", y, ": has no rows below its header"},
		{"a.csv", "x,x\n1,2\n", y, `:1: column "x": the name is used twice, for columns 1 and 2`},
		{"a.csv", "x,z\n1,2\n", y, `: has no target column "y"; it has "x", "z"`},
		{"a.csv", "y\n1\n", y, ": has no column except the target; at least one feature is needed"},
		{"a.csv", longCSV + "1\n", y, ":300002: has 1 cell where the header has 2"},
		{"a.csv", longCSV + "1,a\n", y, `:300002: column "y": "a" is not a number, as a target must be`},
		{"a.csv", longCSV + "1,\n", y, `:300002: column "y": the cell is empty; a target needs a value: give it one or drop the row`},
		{"a.csv", longCSV + "inf,3\n", y, `:300002: column "x": "inf" is not a finite number`},
		{"a.csv", longCSV + ",3\n", dataset.Rules{Targets: []string{"y"}, RefuseMissing: true}, `:300002: column "x": the cell is empty; missing cells are refused: give it a value or drop the row`},
		{"a.csv", longCSV + "1,6\" pipe\n", y, `:300002: broken quoting: a cell with a quotation mark must be quoted as a whole, its marks doubled: "6"" pipe"`},
		{"a.csv", longCSV + "\xff,1\n", y, `:300002: column "x": "\xff" is not valid UTF-8; save the file as UTF-8`},
		{"a.csv", longCSV + "1,\n", dataset.Rules{Targets: []string{"y"}, Labels: true}, `:300002: column "y": the cell is empty; a target needs a class: give it one or drop the row`},
		{"a.csv", "x,y\n1,1\nNA,\n1,nan\n", dataset.Rules{Targets: []string{"y"}, Labels: true}, `:3: column "y": the cell is empty; a target needs a class: give it one or drop the row`},
		{"a.csv", "x,y\n1,1\n1,nan\n", dataset.Rules{Targets: []string{"y"}, Labels: true}, `:3: column "y": "nan" stands for a missing cell; a target needs a class: give it one or drop the row`},
		{"a.csv", "x,y\n" + numbersBelow(2*dataset.MaxCategories), dataset.Rules{Targets: []string{"y"}, Labels: true}, `: column "y": has more than 1000 distinct values: too many to be classes; a target of numbers needs a learner for regression`},
		{"a.csv", "x,y\n" + numbersBelow(2*dataset.MaxCategories) + "one,1\n", y, `:2002: column "x": "one" is not a number; correct it, or name it as a marker of missing values`},
		{"a.csv", "x,y\n" + numbersBelow(50) + "one,1\n", y, `:52: column "x": "one" is not a number, but 50 of the 51 cells of the column are; correct it, name it as a marker of missing values, or name the column as categorical`},
		{"a.csv", "x,y\n,1\n", y, `: column "x": has no values; drop the column`},
		{"a.csv", "x,y\n1,1\n", dataset.Rules{Text: "x"}, `: column "x": is a column of texts or trees, which cannot be learned in blocks; read the whole file`},
		{"a.csv", "x,y\n1,1\n", dataset.Rules{Targets: []string{"y", "y"}}, `: column "y": is named twice as a target`},
		{"a.csv", "x,y\n1,1\n", dataset.Rules{Labels: true}, `: classification needs exactly one target column, not 0`},
		{"a.npy", string(bin), dataset.Rules{}, `: row 7: column "x2": "+Inf" is not a finite number`},
		{"a.npy", string(bin[:len(bin)-3]), dataset.Rules{}, ": byte 71: is truncated: 160 bytes are needed for 10 rows, but the file ends after 157"},
		{"a.npy", string(bin) + "x", dataset.Rules{}, `: row 7: column "x2": "+Inf" is not a finite number`},
		{"f.npy", string(npyOf("<i2", "True", "2, 2", int16(1), 2, 3)), dataset.Rules{}, ": byte 69: is truncated: 8 bytes are needed for 2 rows, but the file ends after 6"},
		{"f.npy", string(npyOf("<i2", "True", "2, 1", int16(1), 2, 3)), dataset.Rules{}, ": byte 73: has more bytes than its header describes"},
		{"a.npz", string(npz(t, zip.Store, "X.npy", bin, "y.npy", npyOf("<i2", "False", "1,", int16(1)))), dataset.Rules{}, ": has 10 rows of features and 1 of targets"},
		{"t-images-idx3-ubyte", string(idx(8, []byte{1, 2}, 2, 1)), dataset.Rules{Targets: []string{"label"}}, `: has no target column "label"; it has "x1"; no file of labels was found in its folder`},
		{"t-images-idx3-ubyte", string(idx(8, []byte{1, 2}, 2, 1)), dataset.Rules{Targets: []string{"label"}, Labels: true}, `: has no target column "label"; it has "x1"; no file of labels was found in its folder`},
		{"a.libsvm", "1 1:1\n1 2:1 1:1\n", dataset.Rules{Targets: []string{"label"}}, `:2: "1:1" comes after index 2; indices must increase, as LIBSVM requires`},
	} {
		path := file(t, c.name, []byte(c.text))
		s, err := dataset.Open(path)
		if err == nil {
			_, err = s.Learn(t.Context(), c.rules)
		}
		wantError(t, err, path+c.want)
	}
	_, err := dataset.Open("-")
	wantError(t, err, "standard input: cannot be read several times; save it to a file")
	_, err = dataset.Open(filepath.Join(t.TempDir(), "none"))
	if err == nil || !strings.HasSuffix(err.Error(), "none: no such file") {
		t.Error(err)
	}
}

// TestBlockFaults checks the errors of passes over a file that differs from the encoder's training file.
func TestBlockFaults(t *testing.T) {
	e := learn(t, read(t, "x,c,y\n1,a,1\n2,b,2\n"), dataset.Rules{Targets: []string{"y"}, Standardize: true})
	e.RefuseUnknown = true
	l := learn(t, read(t, "x,y\n1,a\n2,b\n"), dataset.Rules{Targets: []string{"y"}, Labels: true})
	longCSV := "x,c,y\n" + strings.Repeat("1,a,2\n", 200_000)
	for _, c := range []struct {
		e          *dataset.Encoder
		text, want string
	}{
		{e, "x,y\n1,1\n", `: has no feature column "c"; it has "x", "y"`},
		{e, "x,c\n1,a\n", `: has no target column "y"; it has "x", "c"`},
		{e, longCSV + "1,A,2\n", `:200002: column "c": "A" is an unknown category; known are "a", "b"; did you mean "a"?`},
		{e, longCSV + "1,a,\n", `:200002: column "y": the cell is empty; a target needs a value: give it one or drop the row`},
		{e, longCSV + "1,a\n", `:200002: has 2 cells where the header has 3`},
		{e, longCSV + "1,a,3,4\n", `:200002: has 4 cells where the header has 3`},
		{e, longCSV + "1.7e308,a,3\n", `:200002: column "x": "1.7e308" overflows float64 when standardized with mean 1.5 and scale 0.5`},
		{e, "x,c,y\n", ": has no rows below its header"},
		{l, "x,y\n1,a\n3,c\n", `:3: column "y": "c" is an unknown class; known are "a", "b"`},
		{l, "x,y\n1,a\n3,1\n", `:3: column "y": "1" is an unknown class; known are "a", "b"`},
	} {
		path := file(t, "a.csv", []byte(c.text))
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Blocks(t.Context(), c.e, 1000, func(x, y *mat.Dense) error { return nil })
		wantError(t, err, path+c.want)
	}
	s, err := dataset.Open(file(t, "a.csv", []byte(longCSV)))
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{0, -1, math.MaxInt} {
		if err := s.Blocks(t.Context(), e, rows, nil); err == nil {
			t.Errorf("blocks of %d rows are accepted", rows)
		}
	}
	raw := learn(t, read(t, "x,y\n1,a\n2,b\n"), dataset.Rules{Text: "x"})
	if err := s.Blocks(t.Context(), raw, 10, nil); err == nil {
		t.Error("texts are read as features")
	}
}

// TestStreamChanged checks that the second pass returns an error if the file has changed.
func TestStreamChanged(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x,y\n1,2\n", ": has changed since it was first read: it had 2 rows, now 1"},
		{"x,z\n1,2\n3,4\n", `: has changed since it was opened: its columns were "x", "y", now they are "x", "z"`},
		{string(idx(8, []byte{1}, 1, 1)), ": has the name of a CSV file but the first bytes of an IDX file; rename it"},
	} {
		path := file(t, "a.csv", []byte("x,y\n1,2\n3,4\n"))
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Learn(t.Context(), dataset.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err = s.Blocks(t.Context(), e, 1, func(x, y *mat.Dense) error { return nil })
		wantError(t, err, path+c.want)
	}
}

// TestStreamStops checks that a pass, with all its goroutines, ends soon after its context is canceled or the function
// use returns an error.
func TestStreamStops(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("x,y\n")
	for i := range 200_000 {
		fmt.Fprintf(&b, "%d,%d\n", i, i)
	}
	s, err := dataset.Open(file(t, "a.csv", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Learn(t.Context(), dataset.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	errCanceled, errStop := errors.New("the user went home"), errors.New("enough")
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		err := s.Blocks(ctx, e, 100, func(x, y *mat.Dense) error {
			if calls++; calls == 3 {
				cancel(errCanceled)
			}
			return nil
		})
		if !errors.Is(err, errCanceled) || calls > 3 {
			t.Fatalf("%d calls, %v", calls, err)
		}
		if _, err := s.Learn(ctx, dataset.Rules{}); !errors.Is(err, errCanceled) {
			t.Fatal(err)
		}
		calls = 0
		err = s.Blocks(t.Context(), e, 100, func(x, y *mat.Dense) error { calls++; return errStop })
		if err != errStop || calls != 1 {
			t.Fatalf("%d calls, %v", calls, err)
		}
	}
	for attempt := 0; runtime.NumGoroutine() > goroutines; attempt++ {
		if attempt == 100 {
			t.Fatalf("%d goroutines, there were %d", runtime.NumGoroutine(), goroutines)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestStreamMemory checks that a pass takes memory for its blocks, not for the whole file.
func TestStreamMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100 MB: skipped by -short")
	}
	const n, d = 250_000, 50
	path := filepath.Join(t.TempDir(), "a.npy")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(npyOf[byte]("<f8", "False", fmt.Sprintf("%d, %d", n, d)))
	row := make([]byte, 8*d)
	for i := range n {
		binary.LittleEndian.PutUint64(row[i%d*8:], math.Float64bits(float64(i)))
		f.Write(row)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	heapInUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	e, err := s.Learn(t.Context(), dataset.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	const rows = 1000
	heapBefore, peak := heapInUse(), uint64(0)
	calls := 0
	err = s.Blocks(t.Context(), e, rows, func(x, y *mat.Dense) error {
		if calls++; calls%16 == 0 {
			peak = max(peak, heapInUse())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The bound allows three blocks, which append may enlarge by a quarter, and GOMAXPROCS + 3 parts of 8 MiB.
	bound := 1.25*3*8*rows*d + float64(runtime.GOMAXPROCS(0)+3)*8*(1<<20) + 1<<20
	t.Logf("%.1f MB live, allowed %.1f; the file has %.1f", float64(peak-heapBefore)/1e6, bound/1e6, n*d*8/1e6)
	if float64(peak-heapBefore) > bound {
		t.Errorf("a pass holds %d bytes, allowed %.0f", peak-heapBefore, bound)
	}
}

// FuzzStream checks that arbitrary bytes give the same result as a stream and as a table, or both give an error.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,b\r\n\"x\"\"y\",\r\n,1\r\n", "a\nNA\nnan\n1e999\n", "a,target\nred,1\n,2\n", "a\n\xff\n", "a,b\n\n\n1, 2 \n\"\n\",3\n", "1 1:2 3:4\n-1 2:1e5 # no\n",
		string(npyOf("<f4", "True", "2, 2", float32(1), 2, 3, 4)), string(npz(f, zip.Deflate, "X.npy", npyOf("<i2", "False", "1,", int16(3)))), string(idx(8, []byte{1, 2, 3, 4}, 2, 2)),
	} {
		f.Add([]byte(seed), true)
	}
	path := filepath.Join(f.TempDir(), "fuzz")
	f.Fuzz(func(t *testing.T, data []byte, standardize bool) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := dataset.Rules{Standardize: standardize}
		table, err := dataset.Read(path, nil)
		if err == nil && (len(table.Names()) > 1000 || table.Rows() > 1<<20) {
			return
		}
		var want *dataset.Encoder
		if err == nil {
			want, err = dataset.Learn(table, r)
		}
		var got *dataset.Encoder
		s, streamErr := dataset.Open(path)
		if streamErr == nil {
			got, streamErr = s.Learn(t.Context(), r)
		}
		if (err == nil) != (streamErr == nil) {
			t.Fatalf("as a whole: %v; as a stream: %v", err, streamErr)
		}
		if err != nil {
			oneLine(t, streamErr)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		x, err := want.Features(table)
		rows := 0
		streamErr = s.Blocks(t.Context(), got, 2, func(block, _ *mat.Dense) error {
			n, d := block.Dims()
			if err == nil && !mat.Equal(block, x.Slice(rows, rows+n, 0, d)) {
				return fmt.Errorf("rows from %d on are\n%v", rows, mat.Formatted(block))
			}
			rows += n
			return nil
		})
		if fmt.Sprint(err) != fmt.Sprint(streamErr) {
			t.Fatalf("as a whole: %v; as a stream: %v", err, streamErr)
		}
	})
}

// TestTables checks that the tables of Stream.Tables together have all rows of the file.
func TestTables(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,b,c\n")
	const rows = 120000
	for i := range rows {
		fmt.Fprintf(&text, "%d,%s,%v\n", i, []string{"x", "y", ""}[i%3], float64(i)/7)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	rowsRead, tables := 0, 0
	err = s.Tables(t.Context(), func(part *dataset.Table) error {
		a, err := part.Numbers("a")
		if err != nil {
			return err
		}
		b, err := part.Texts("b")
		if err != nil {
			return err
		}
		for i := range a {
			if want := []string{"x", "y", ""}[rowsRead%3]; a[i] != float64(rowsRead) || b[i] != want {
				t.Fatalf("row %d is %v, %q", rowsRead, a[i], b[i])
			}
			rowsRead++
		}
		tables++
		return nil
	})
	if err != nil || rowsRead != rows || tables < 2 {
		t.Errorf("%d rows in %d tables, error %v; want %d rows in several", rowsRead, tables, err, rows)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Tables(ctx, func(*dataset.Table) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

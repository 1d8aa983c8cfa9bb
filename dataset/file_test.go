package dataset_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// npy returns an NPY file of version 1.0 with the given header and data.
func npy(header string, data ...byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

// npyOf returns an NPY file of the given type and shape, with the values written as T.
func npyOf[T any](descr, order, shape string, values ...T) []byte {
	var data bytes.Buffer
	var to binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		to = binary.BigEndian
	}
	if err := binary.Write(&data, to, values); err != nil {
		panic(err)
	}
	return npy(fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", descr, order, shape), data.Bytes()...)
}

// npz returns a zip file of arrays. The arguments are names and arrays in turn.
func npz(t testing.TB, method uint16, arrays ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(arrays); i += 2 {
		f, err := w.CreateHeader(&zip.FileHeader{Name: arrays[i].(string), Method: method})
		if err != nil {
			t.Fatal(err)
		}
		f.Write(arrays[i+1].([]byte))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// idx returns an IDX file with the type byte kind, the dimensions sizes, and the data.
func idx(kind byte, data []byte, sizes ...uint32) []byte {
	b := []byte{0, 0, kind, byte(len(sizes))}
	for _, n := range sizes {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, data...)
}

// zstandard returns a text compressed by zstd.
func zstandard(text string) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

// file writes a file into a new folder and returns its path.
func file(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cells returns a map from the name of each column to its numbers.
func cells(t testing.TB, table *dataset.Table) map[string][]float64 {
	t.Helper()
	m := map[string][]float64{}
	for _, name := range table.Names() {
		values, err := table.Numbers(name)
		if err != nil {
			t.Fatal(err)
		}
		m[name] = values
	}
	return m
}

// TestFormats checks the tables that are read from all formats and their variants, from a file and from stdin.
func TestFormats(t *testing.T) {
	twoRows := map[string][]float64{"x1": {1, 4}, "x2": {2, 5}, "x3": {3, 6}}
	labeled := map[string][]float64{"x1": {1, 0}, "x2": {0, 0}, "x3": {0, -2.5}, "label": {1, -1}}
	xy := map[string][]float64{"x1": {1, 3}, "x2": {2, 4}, "y": {7, 8}}
	x := npyOf("<f8", "False", "2, 2", 1.0, 2, 3, 4)
	y := npyOf("<i8", "False", "2,", int64(7), 8)
	v2 := func(version byte) []byte {
		b := npyOf("<f8", "False", "2, 3", 1.0, 2, 3, 4, 5, 6)
		return append([]byte("\x93NUMPY\x00\x00"[:6]+string(rune(version))+"\x00"+string(rune(b[8]))+"\x00\x00\x00"), b[10:]...)
	}
	for _, c := range []struct {
		name string
		data []byte
		want map[string][]float64
	}{
		{"f8.npy", npyOf("<f8", "False", "2, 3", 1.0, 2, 3, 4, 5, 6), twoRows},
		{"f8 big.npy", npyOf(">f8", "False", "2, 3", 1.0, 2, 3, 4, 5, 6), twoRows},
		{"f8 fortran.npy", npyOf("<f8", "True", "2, 3", 1.0, 4, 2, 5, 3, 6), twoRows},
		{"f4.npy", npyOf("<f4", "False", "2, 3", float32(1), 2, 3, 4, 5, 6), twoRows},
		{"f4 big fortran.npy", npyOf(">f4", "True", "2, 3", float32(1), 4, 2, 5, 3, 6), twoRows},
		{"f2.npy", npyOf("<f2", "False", "2, 3", uint16(0x3c00), 0x4000, 0x4200, 0x4400, 0x4500, 0x4600), twoRows},
		{"i1.npy", npyOf("|i1", "False", "2, 3", int8(1), 2, 3, 4, 5, 6), twoRows},
		{"u1.npy", npyOf("|u1", "False", "2, 3", uint8(1), 2, 3, 4, 5, 6), twoRows},
		{"i2 big.npy", npyOf(">i2", "False", "2, 3", int16(1), 2, 3, 4, 5, 6), twoRows},
		{"u2.npy", npyOf("<u2", "False", "2, 3", uint16(1), 2, 3, 4, 5, 6), twoRows},
		{"i4.npy", npyOf("<i4", "False", "2, 3", int32(1), 2, 3, 4, 5, 6), twoRows},
		{"u4 big.npy", npyOf(">u4", "False", "2, 3", uint32(1), 2, 3, 4, 5, 6), twoRows},
		{"i8.npy", npyOf("<i8", "False", "2, 3", int64(1), 2, 3, 4, 5, 6), twoRows},
		{"u8 big.npy", npyOf(">u8", "False", "2, 3", uint64(1), 2, 3, 4, 5, 6), twoRows},
		{"negative.npy", npyOf("<i2", "False", "2,", int16(-3), 300), map[string][]float64{"x1": {-3, 300}}},
		{"bool.npy", npyOf("|b1", "False", "2,", uint8(0), 1), map[string][]float64{"x1": {0, 1}}},
		{"halves.npy", npyOf("<f2", "False", "5,", uint16(1), 0xc500, 0x7bff, 0x8000, 0x7e00), map[string][]float64{"x1": {0x1p-24, -5, 65504, 0, math.NaN()}}},
		{"missing.npy", npyOf("<f4", "False", "2, 1", float32(math.NaN()), 2), map[string][]float64{"x1": {math.NaN(), 2}}},
		{"version 2.npy", v2(2), twoRows},
		{"version 3.npy", v2(3), twoRows},
		{"python 2.npy", npy("{'shape': (2L, 3L), 'fortran_order': False, \"descr\": '|u1'}", 1, 2, 3, 4, 5, 6), twoRows},
		{"zipped.npy.gz", gzipped(t, string(npyOf("<f8", "False", "2, 3", 1.0, 2, 3, 4, 5, 6))), twoRows},
		{"stored.npz", npz(t, zip.Store, "X.npy", x, "y.npy", y), xy},
		{"deflated.npz", npz(t, zip.Deflate, "y.npy", y, "note.txt", []byte("none"), "X.npy", x), xy},
		{"small.npz", npz(t, zip.Deflate, "x.npy", x, "Y.npy", y), xy},
		{"one.npz", npz(t, zip.Store, "arr_0.npy", x), map[string][]float64{"x1": {1, 3}, "x2": {2, 4}}},
		{"two targets.npz", npz(t, zip.Store, "X.npy", y, "y.npy", x), map[string][]float64{"x1": {7, 8}, "y1": {1, 3}, "y2": {2, 4}}},
		{"bytes.idx", idx(8, []byte{1, 2, 3, 4, 5, 6}, 2, 3), twoRows},
		{"images-ubyte", idx(8, []byte{1, 2, 3, 4, 5, 6}, 2, 3, 1), twoRows},
		{"shorts.idx", idx(0xb, []byte{0xff, 0xff, 1, 0}, 2, 1), map[string][]float64{"x1": {-1, 256}}},
		{"floats.idx", idx(0xd, []byte{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}, 1, 2), map[string][]float64{"x1": {1}, "x2": {-2}}},
		{"labels.idx", idx(8, []byte{7, 3}, 2), map[string][]float64{"label": {7, 3}}},
		{"a.libsvm", []byte("+1 1:1\n-1 3:-2.5\n"), labeled},
		{"a.svm", []byte("# made by hand\r\n1  1:1\t \r\n\r\n-1 1:0 3:-25e-1 # a comment\r\n"), labeled},
		{"no name", []byte("1 1:1\n-1 3:-2.5"), labeled},
		{"mark.svmlight", []byte("\ufeff1 1:1\n-1 3:-2.5"), labeled},
		{"empty row.libsvm.gz", gzipped(t, "1 1:1\n0\n"), map[string][]float64{"x1": {1, 0}, "label": {1, 0}}},
		{"queries.libsvm", []byte("1 qid:1 1:1\n-1 qid:2 3:-2.5\n"), labeled},
		{"a.csv", []byte("x1,x2,x3\n1,2,3\n4,5,6\n"), twoRows},
		{"a.csv.zst", zstandard("x1,x2,x3\n1,2,3\n4,5,6\n"), twoRows},
		{"missing.csv", []byte("x1,x2\n1,NaN\nnan,2\nNULL,\nNA,null\n"), map[string][]float64{"x1": {1, math.NaN(), math.NaN(), math.NaN()}, "x2": {math.NaN(), 2, math.NaN(), math.NaN()}}},
		{"semicolons.csv", []byte("x1;x2;x3\n1;2;3\n4;5;6\n"), twoRows},
		{"tabs.tsv", []byte("x1\tx2\tx3\n1\t2\t3\n4\t\"5\"\t6\n"), twoRows},
		{"bars.csv", []byte("x1|x2|x3\n1|2|3\n4|5|6\n"), twoRows},
		{"pandas.csv", []byte(",x1,x2,x3\n0,1,2,3\n1,4,5,6\n"), twoRows},
		{"r.csv", []byte("\"\",\"x1\",\"x2\",\"x3\"\n\"a\",1,2,3\n\"b,c\",4,5,6\n"), twoRows},
		{"a table", []byte("x1,x2,x3\n1,2,3\n4,5,6\n"), twoRows},
	} {
		t.Run(c.name, func(t *testing.T) {
			fromFile, err := dataset.Read(file(t, c.name, c.data), nil)
			if err != nil {
				t.Fatal(err)
			}
			fromInput, err := dataset.Read("-", iotest.OneByteReader(bytes.NewReader(c.data)))
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range []*dataset.Table{fromFile, fromInput} {
				if diff := cmp.Diff(c.want, cells(t, table), cmpopts.EquateNaNs()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestTextArrays checks that the texts of a target array are read as classes.
func TestTextArrays(t *testing.T) {
	x := npyOf("<f8", "False", "3,", 1.0, 2, 3)
	for name, y := range map[string][]byte{
		"U": npyOf("<U3", "False", "3,", 'h', 'a', 'm', 'ä', 'ß', 0, 'h', 'a', 'm'),
		"B": npyOf(">U3", "False", "3,", 'h', 'a', 'm', 'ä', 'ß', 0, 'h', 'a', 'm'),
		"S": npy("{'descr': '|S4', 'fortran_order': False, 'shape': (3,), }", []byte("ham\x00äßham\x00")...),
	} {
		table, err := dataset.Read("-", bytes.NewReader(npz(t, zip.Deflate, "X.npy", x, "y.npy", y)))
		if err != nil {
			t.Fatal(name, err)
		}
		e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Labels: true})
		if got := e.Classes(); !slices.Equal(got, []string{"ham", "äß"}) || !slices.Equal(indices(t, e, table), []float64{0, 1, 0}) {
			t.Errorf("%s: classes are %q of %v", name, got, indices(t, e, table))
		}
	}
}

// TestNamedParts checks that File.Arrays selects arrays by name, and that labels are found by name.
func TestNamedParts(t *testing.T) {
	x, z := npyOf("<f8", "False", "2,", 1.0, 2), npyOf("<f8", "False", "3,", 1.0, 2, 3)
	path := file(t, "a.npz", npz(t, zip.Store, "x_train.npy", x, "y_train.npy", x, "x_test.npy", z))
	table, err := dataset.File{Path: path, Arrays: []string{"x_train", "y_train"}}.Read()
	if err != nil || !cmp.Equal(cells(t, table), map[string][]float64{"x1": {1, 2}, "y": {1, 2}}) {
		t.Error(table, err)
	}
	if table, err = (dataset.File{Path: path, Arrays: []string{"x_test"}}).Read(); err != nil || !slices.Equal(table.Names(), []string{"x1"}) {
		t.Error(table, err)
	}
	for _, c := range []struct {
		arrays []string
		want   string
	}{
		{nil, `: holds the arrays "x_train", "y_train", "x_test"; name the feature array and the target array`},
		{[]string{"x_trian"}, `: has no array "x_trian"; it has "x_train", "y_train", "x_test"; did you mean "x_train"?`},
		{[]string{"x_train", "x_test"}, `: array "x_train" has 2 rows, array "x_test" has 3`},
		{[]string{"x_train", "y_train", "x_test"}, ": 3 arrays are named; name at most two: the feature array and the target array"},
	} {
		_, err := dataset.File{Path: path, Arrays: c.arrays}.Read()
		wantError(t, err, path+c.want)
	}

	images, labels := idx(8, []byte{1, 2, 3, 4}, 2, 2), idx(8, []byte{7, 8}, 2)
	path = file(t, "t10k-images-idx3-ubyte", images)
	dir := filepath.Dir(path)
	table, err = dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Learn(table, dataset.Rules{Targets: []string{"label"}})
	wantError(t, err, path+`: has no target column "label"; it has "x1", "x2"; no file of labels was found in its folder`)
	want := map[string][]float64{"x1": {1, 3}, "x2": {2, 4}, "label": {7, 8}}
	beside := filepath.Join(dir, "t10k-labels-idx1-ubyte.gz")
	if err := os.WriteFile(beside, gzipped(t, string(labels)), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err = dataset.Read(path, nil); err != nil || !cmp.Equal(cells(t, table), want) {
		t.Error(table, err)
	}
	otherLabels := file(t, "others", labels)
	if table, err = (dataset.File{Path: "-", Stdin: bytes.NewReader(images), Labels: otherLabels}).Read(); err != nil || !cmp.Equal(cells(t, table), want) {
		t.Error(table, err)
	}
	_, err = dataset.File{Path: path, Labels: path}.Read()
	wantError(t, err, path+": has 2 dimensions; a file of labels has one")
	longer := file(t, "longer", idx(8, []byte{7, 8, 9}, 3))
	_, err = dataset.File{Path: path, Labels: longer}.Read()
	wantError(t, err, longer+": has 3 labels, "+path+" has 2 rows")
	_, err = dataset.File{Path: path, Labels: filepath.Join(dir, "none")}.Read()
	wantError(t, err, filepath.Join(dir, "none")+": no such file")
}

// TestSparse checks that a feature is 0 if a row of a sparse file omits it.
func TestSparse(t *testing.T) {
	e := learn(t, mustRead(t, "a.libsvm", "1 1:1 3:2\n-1 2:4\n"), dataset.Rules{Targets: []string{"label"}})
	if x := features(t, e, mustRead(t, "b.libsvm", "1 2:5\n0\n")); !mat.Equal(x, mat.NewDense(2, 3, []float64{0, 5, 0, 0, 0, 0})) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	table := mustRead(t, "c.libsvm", "1 9:5\n1 2:1\n")
	if x := features(t, e, table); !mat.Equal(x, mat.NewDense(2, 3, []float64{0, 0, 0, 0, 1, 0})) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	standard := learn(t, table, dataset.Rules{Standardize: true}) // without Targets, the label is a feature
	if x := features(t, standard, table); !mat.EqualApprox(x, mat.NewDense(2, 10, []float64{0, -1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, -1, 0}), 0x1p-52) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	if _, test := table.Split(0.5, 1); test.Rows() == 1 {
		standardized, part := features(t, standard, table), features(t, standard, test)
		if !mat.Equal(part, standardized.Slice(0, 1, 0, 10)) && !mat.Equal(part, standardized.Slice(1, 2, 0, 10)) {
			t.Errorf("features of a split:\n%v", mat.Formatted(part))
		}
	}
	largeScale := learn(t, mustRead(t, "f.libsvm", "1 1:1 2:1\n1 1:2\n"), dataset.Rules{Targets: []string{"label"}, Standardize: true})
	overflowing := mustRead(t, "g.libsvm", "1 1:1 2:1\n1 1:1.7e308\n")
	_, err := largeScale.Features(overflowing)
	wantError(t, err, overflowing.Source+`:2: column "x1": "1.7e+308" overflows float64 when standardized with mean 1.5 and scale 0.5`)
	nonSequential := learn(t, read(t, "x1,x02\n1,2\n3,4\n"), dataset.Rules{})
	_, err = nonSequential.Features(table)
	wantError(t, err, table.Source+`: has no feature column "x02"; it has "x1", "x2", "x3", "x4", "x5", "x6", "x7", …, "label" (10 in all); did you mean "x2"?`)
	e = learn(t, mustRead(t, "d.libsvm", "1 20000:1\n"), dataset.Rules{Targets: []string{"label"}})
	sparseWide := mustRead(t, "e.libsvm", strings.Repeat("1 1:1\n", 10_000))
	_, err = e.Features(sparseWide)
	wantError(t, err, sparseWide.Source+": 10000 rows of 20000 features, zeros included, are too many for a dense matrix")
}

func mustRead(t testing.TB, name, text string) *dataset.Table {
	t.Helper()
	table, err := dataset.Read(file(t, name, []byte(text)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestRowsOfBinary checks that an error about a row of a binary file gives its number in the file, even after a
// split.
func TestRowsOfBinary(t *testing.T) {
	values := make([]float64, 20)
	values[13] = math.Inf(1)
	table := mustRead(t, "a.npy", string(npyOf("<f8", "False", "10, 2", values...)))
	_, err := table.Numbers("x2")
	want := table.Source + `: row 7: column "x2": "+Inf" is not a finite number`
	wantError(t, err, want)
	train, test := table.Split(0.5, 5)
	_, err = train.Numbers("x2")
	if err == nil {
		_, err = test.Numbers("x2")
	}
	wantError(t, err, want)
}

// TestFormatFaults checks that the error for a damaged file is one line, and names the position of the damage.
func TestFormatFaults(t *testing.T) {
	valid := npyOf("<f8", "False", "2, 3", 1.0, 2, 3, 4, 5, 6)
	header := func(text string) []byte { return npy(text, 1, 2, 3, 4) }
	member := func(b []byte) []byte { return npz(t, zip.Store, "X.npy", b) }
	zipped := npz(t, zip.Deflate, "X.npy", npyOf("<f8", "False", "1000,", make([]float64, 1000)...))
	damaged := slices.Clone(zipped)
	damaged[50] ^= 0xff
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"text.npy", []byte("a,b\n1,2\n"), ": has the name of an NPY file but not the signature"},
		{"text.idx", []byte("a,b\n1,2\n"), ": has the name of an IDX file but not the signature"},
		{"array.csv", valid, ": has the name of a CSV file but the first bytes of an NPY file; rename it"},
		{"a.npz.gz", gzipped(t, string(zipped)), ": NPZ files have their own compression; unpack the file first"},
		{"empty.npz", nil, ": has the name of an NPZ file but not the signature"},

		{"start.npy", valid[:7], ": is truncated: 8 bytes are needed for the header, but the file ends after 7"},
		{"header.npy", valid[:30], ": byte 10: is truncated: 60 bytes are needed for the header, but the file ends after 20"},
		{"data.npy", valid[:len(valid)-1], ": byte 70: is truncated: 48 bytes are needed for 2 rows, but the file ends after 47"},
		{"data.npy.gz", gzipped(t, string(valid[:len(valid)-1])), ": byte 70: is truncated: 48 bytes are needed for 2 rows, but the file ends after 47"},
		{"gzip.npy.gz", gzipped(t, string(valid))[:12], ": the gzip data is cut short"},
		{"more.npy", append(slices.Clone(valid), 0), ": byte 118: has more bytes than its header describes"},
		{"version.npy", []byte("\x93NUMPY\x04\x00\x00\x00"), ": has NPY version 4.0; versions 1.0 to 3.0 are supported"},
		{"long.npy", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), ": has a header of 4294967295 bytes; at most 65536 can be read"},
		{"lies.npy", npyOf[byte]("<f8", "False", "2000000000, 1000000"), ": byte 85: is truncated: 16000000000000000 bytes are needed for 2000000000 rows, but the file ends after 0"},
		{"lies.npy.gz", gzipped(t, string(npyOf[byte]("<f8", "False", "2000000000, 1000000"))), ": byte 85: is truncated: 16000000000000000 bytes are needed for 2000000000 rows, but the file ends after 0"},
		{"rows.npy", npyOf[byte]("<f8", "False", "2147483648,"), ": has 2147483648 rows; at most 2147483647 can be read"},
		{"wide.npy", npyOf[byte]("<f8", "False", "1, 9000000000000000000"), ": has 9000000000000000000 numbers in a row; at most 1048576 can be read"},
		{"wide2.npy", npyOf[byte]("<f8", "False", "1, 1048576, 1048576, 1048576"), ": byte 10: its header has the shape (1, 1048576, 1048576, 1048576), but a table has one or two dimensions: save a.reshape(rows, columns)"},
		{"narrow.npy", npyOf[byte]("<f8", "False", "5, 0"), ": has no numbers in its rows"},
		{"scalar.npy", npyOf("<f8", "False", "", 1.0), ": byte 10: its header has the shape (), but a table has one or two dimensions: save a.reshape(rows, columns)"},
		{"images.npy", npyOf("|u1", "False", "2, 3, 1", uint8(1), 2, 3, 4, 5, 6), ": byte 10: its header has the shape (2, 3, 1), but a table has one or two dimensions: save a.reshape(rows, columns)"},
		{"images.npz", npz(t, zip.Deflate, "X.npy", npyOf("|u1", "False", "1, 2, 1", uint8(1), 2)), `: array "X": byte 10: its header has the shape (1, 2, 1), but a table has one or two dimensions: save a.reshape(rows, columns)`},
		{"scalar.npz", npz(t, zip.Deflate, "X.npy", npyOf("<f8", "False", "1,", 1.0), "y.npy", npyOf("<f8", "False", "", 1.0)), `: array "y": byte 10: its header has the shape (), but a table has one or two dimensions: save a.reshape(rows, columns)`},
		{"huge.npy", npyOf[byte]("<f8", "False", "99999999999999999999,"), `: byte 10: its header has an unknown "shape"`},
		{"shape.npy", npyOf[byte]("<f8", "False", "-1,"), `: byte 10: its header has an unknown "shape"`},
		{"cube.npy", npyOf("|u1", "True", "1, 1, 1", byte(1)), ": byte 10: its header has the shape (1, 1, 1), but a table has one or two dimensions: save a.reshape(rows, columns)"},
		{"object.npy", npyOf[byte]("|O", "False", "2,"), ": byte 10: its header describes Python objects, which are not supported: save numbers (astype(float)) or texts (astype(str))"}, // numpy.save writes this header
		{"dates.npy", npyOf[byte]("<M8[s]", "False", "2,"), ": byte 10: its header describes dates, which are not supported: save numbers, such as astype('M8[D]').astype(float)"},
		{"objects.npy", npyOf[byte]("|O8", "False", "2,"), ": byte 10: its header describes Python objects, which are not supported: save numbers (astype(float)) or texts (astype(str))"},
		{"records.npy", header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}"), ": byte 10: its header describes a structured array; save the columns as one array of numbers, or as a CSV file"},
		{"complex.npy", npyOf[byte]("<c16", "False", "2,"), `: byte 10: its header has the type "<c16"; supported are f2, f4, f8, i1 to i8, u1 to u8, b1, U and S`},
		{"type.npy", npyOf[byte]("f8", "False", "2,"), `: byte 10: its header has the unknown type "f8"`},
		{"words.npy", npyOf[byte]("<U2", "False", "2, 2"), `: byte 10: its header has texts ("<U2") in 2 dimensions; an array of texts must have one dimension`},
		{"character.npy", npyOf("<U1", "False", "2,", 'a', 0xd800), `: row 2: column "x1": 0xd800 is not a Unicode character`},
		{"latin1.npy", npy("{'descr': '|S1', 'fortran_order': False, 'shape': (2,), }", 'a', 0xe4), `: row 2: column "x1": "\xe4" is not valid UTF-8`},
		{"nothing.npy", header(""), ": byte 10: its header does not begin with {"},
		{"dict.npy", header("{'descr': '<f8', 'descr': '<f8'}"), `: byte 10: its header has no key and value at "'<f8'}"`},
		{"comma.npy", header("{'descr': '<f8' 'shape': (1,)}"), `: byte 10: its header has no comma at "'shape': (1,)}"`},
		{"key.npy", header("{'descr': '<f8', 'size': 5}"), `: byte 10: its header has an unknown "size"`},
		{"less.npy", header("{'descr': '<f8', 'shape': (1,)}"), ": byte 10: its header must have the keys descr, fortran_order and shape"},

		{"cut.npz", zipped[:len(zipped)-9], ": the zip data is damaged: not a valid zip file"},
		{"none.npz", npz(t, zip.Store, "a.txt", []byte("a")), ": holds no arrays: no member is named .npy"},
		{"nothing.npz", npz(t, zip.Store), ": holds no arrays: no member is named .npy"},
		{"member.npz", member(valid[:40]), `: array "X": byte 10: is truncated: 60 bytes are needed for the header, but the file ends after 30`},
		{"text.npz", member([]byte("X,Y\n1,2\n")), `: array "X": is not an NPY array: it does not begin with \x93NUMPY`},

		{"kind.idx", idx(10, []byte{1}, 1), ": is not an IDX file: it begins with the bytes 00000a01"},
		{"start.idx", idx(8, nil, 3)[:6], ": byte 4: is truncated: 4 bytes are needed for the dimensions, but the file ends after 2"},
		{"data.idx", idx(8, []byte{1, 2, 3}, 2, 2), ": byte 12: is truncated: 4 bytes are needed for 2 rows, but the file ends after 3"},
		{"more.idx", idx(8, []byte{1, 2, 3, 4, 5}, 2, 2), ": byte 16: has more bytes than its header describes"},
		{"lies.idx", idx(8, []byte{1}, 1<<31-1, 1<<20), ": byte 12: is truncated: 2251799812636672 bytes are needed for 2147483647 rows, but the file ends after 1"},
		{"wide.idx", idx(8, []byte{1}, 1, 1<<31, 1<<31), ": has 2147483648 numbers in a row; at most 1048576 can be read"},
		{"rows.idx", idx(8, []byte{1}, 1<<31, 1), ": has 2147483648 rows; at most 2147483647 can be read"},

		{"empty.libsvm", []byte("# nothing\n"), ": is empty; a line label index:value … is needed"},
		{"zero.libsvm", []byte("1 0:1\n\n1 0:1 0:2\n"), `:3: "0:2" has the same index as the value before it; an index may occur only once in a line`},
		{"fall.libsvm", []byte("1 1:1\n1 3:1 2:1\n"), `:2: "2:1" comes after index 3; indices must increase, as LIBSVM requires`},
		{"twice.libsvm", []byte("1 3:1 3:1\n"), `:1: "3:1" has the same index as the value before it; an index may occur only once in a line`},
		{"far.libsvm", []byte("1 1:1 99999999999:1\n"), `:1: "99999999999:1" has too large an index; at most 16777216 features can be read`},
		{"colon.libsvm", []byte("1 1:1 2\n"), `:1: "2" has no colon; index:value is needed`},
		{"index.libsvm", []byte("1 a:1\n"), `:1: "a:1" has no index, an integer ≥ 0, before its colon`},
		{"minus.libsvm", []byte("1 -1:1\n"), `:1: "-1:1" has no index, an integer ≥ 0, before its colon`},
		{"value.libsvm", []byte("1 1:one\n"), `:1: "1:one" has a value that is not a number`},
		{"none.libsvm", []byte("1 1:\n"), `:1: "1:" has a value that is not a number`},
		{"nan.libsvm", []byte("1 1:nan\n"), `:1: "1:nan" has a value that is not a finite number`},
		{"range.libsvm", []byte("1 1:1e999\n"), `:1: "1:1e999" has a value that is outside the range of float64`},
		{"query.libsvm", []byte("1 1:1 qid:3\n"), `:1: "qid:3" has no index, an integer ≥ 0, before its colon`},
		{"a.csv.bz2", []byte("BZh91AY&SY"), ": is compressed by bzip2, which is not supported: unpack it, or use gzip or zstd"},
		{"a.csv.xz", []byte("\xfd7zXZ\x00\x00\x04"), ": is compressed by xz, which is not supported: unpack it, or use gzip or zstd"},
		{"damaged.csv.zst", []byte("\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ": the zstd data is damaged or cut short: reserved bit set on frame header"},
		{"label.libsvm", []byte("1:1 2:1\n"), `:1: column "label": "1:1" stands where the label is needed: begin the line with a label`},
		{"labels.libsvm", []byte("1,2 2:1\n"), `:1: column "label": "1,2" names several classes; a row may have only one`},
		{"word.libsvm", []byte("spam 2:1\n"), `:1: column "label": "spam" is not a number`},
		{"bytes.libsvm", []byte("1 \xff:1\n"), ":1: \"\ufffd:1\" has no index, an integer ≥ 0, before its colon"},
		{"cut.libsvm.gz", gzipped(t, strings.Repeat("1 1:1\n", 1000))[:30], ": the gzip data is cut short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.name, c.data)
			_, err := dataset.Read(path, nil)
			wantError(t, err, path+c.want)
		})
	}
	if _, err := dataset.Read(file(t, "damaged.npz", damaged), nil); err == nil {
		t.Error("a damaged zip file is read")
	} else {
		oneLine(t, err)
	}
	_, err := dataset.Read("-", io.MultiReader(bytes.NewReader(valid[:90]), iotest.ErrReader(io.ErrClosedPipe)))
	wantError(t, err, "standard input: byte 90: cannot be read: io: read/write on closed pipe")
}

// FuzzRead reads arbitrary bytes as a file of any format. The size of the table must be proportional to the number
// of bytes read.
func FuzzRead(f *testing.F) {
	x := npyOf("<f4", "True", "2, 2", float32(1), 2, 3, 4)
	for _, seed := range [][]byte{
		x, npyOf("<U2", "False", "2,", 'a', 'b', 'c', 0), npyOf[byte]("<f8", "False", "2000000000, 1000000"),
		npz(f, zip.Store, "X.npy", x, "y.npy", npyOf(">i2", "False", "2,", int16(1), 2)), npz(f, zip.Deflate, "X.npy", x),
		idx(8, []byte{1, 2, 3, 4}, 2, 2), idx(0xd, []byte{1, 2, 3, 4}, 1), idx(8, nil, 1<<31-1, 1<<20),
		[]byte("1 1:2 3:4\n-1 2:1e5 # no\n"), []byte("1 5000:1\n"), []byte("a,b\n1,2\n"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := dataset.File{Path: "-", Stdin: bytes.NewReader(data), Memory: fuzzMemory}.Read()
		if err != nil {
			oneLine(t, err)
			return
		}
		names := table.Names()
		if len(names) == 0 || len(names) > 1000 || table.Rows() > 1<<20 { // with larger tables, fuzzing would be slow
			return
		}
		rules := dataset.Rules{Targets: names[len(names)-1:], Labels: true}
		e, err := dataset.Learn(table, rules)
		if err != nil {
			oneLine(t, err)
			return
		}
		if _, err := e.Features(table); err != nil {
			oneLine(t, err)
		}
		if _, err := e.Targets(table); err != nil {
			t.Fatalf("learned, but then: %v", err)
		}
	})
}

// FuzzNPZ reads two arrays of arbitrary bytes from a zip file, stored or deflated, that may be truncated.
func FuzzNPZ(f *testing.F) {
	x, y := npyOf("<f4", "True", "2, 2", float32(1), 2, 3, 4), npyOf("<U2", "False", "2,", 'a', 'b', 'c', 0)
	f.Add(x, y, true, uint16(0))
	f.Add(x, npyOf(">i8", "False", "2,", int64(1<<60), 1<<60+1), false, uint16(0))
	f.Add(npyOf("<f2", "False", "1, 3", uint16(0x3c00), 0xfc00, 0x7e00), npyOf("|b1", "False", "1, 2", byte(1), 0), true, uint16(30))
	f.Add(npyOf[byte]("<f8", "False", "2000000000, 1000000"), y, true, uint16(0))
	f.Add(x[:60], y, false, uint16(0))
	f.Fuzz(func(t *testing.T, x, y []byte, uncompressed bool, length uint16) {
		method := zip.Deflate
		if uncompressed {
			method = zip.Store
		}
		data := npz(t, method, "X.npy", x, "y.npy", y)
		data = data[:max(len(data)-int(length), 0)]
		table, err := dataset.File{Path: "-", Stdin: io.MultiReader(strings.NewReader("PK\x03\x04"), bytes.NewReader(data[min(4, len(data)):])), Memory: fuzzMemory}.Read()
		if err != nil {
			oneLine(t, err)
			return
		}
		for _, name := range table.Names() {
			if texts, err := table.Texts(name); err != nil || len(texts) != table.Rows() {
				t.Fatalf("%d cells of %d rows, %v", len(texts), table.Rows(), err)
			}
			if _, err := table.Numbers(name); err != nil {
				oneLine(t, err)
			}
		}
	})
}

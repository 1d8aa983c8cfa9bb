package dataset_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// read passes text to ReadCSV as standard input and returns the table.
func read(t *testing.T, text string) *dataset.Table {
	t.Helper()
	table, err := dataset.ReadCSV("-", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadForms checks that all forms of a CSV file give the same table.
func TestReadForms(t *testing.T) {
	const plainCSV = "size,color\n1.5,red\n,\"light, blue\"\n-2e3,\"5\"\" wide\"\n"
	forms := map[string][]byte{
		"lf":               []byte(plainCSV),
		"crlf":             []byte(strings.ReplaceAll(plainCSV, "\n", "\r\n")),
		"no last line end": []byte(strings.TrimSuffix(plainCSV, "\n")),
		"byte order mark":  []byte("\ufeff" + plainCSV),
		"empty lines":      []byte("\n" + strings.ReplaceAll(plainCSV, "\n", "\n\n")),
		"spaces":           []byte("size , color\n 1.5, red \n ,\"light, blue\"\n-2e3 ,\"5\"\" wide\"\n"),
		"gzip":             gzipped(t, plainCSV),
		"gzip and mark":    gzipped(t, "\ufeff"+plainCSV),
		"two gzip members": append(gzipped(t, plainCSV[:20]), gzipped(t, plainCSV[20:])...),
	}
	for name, data := range forms {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.csv")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			fromFile, err := dataset.ReadCSV(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			fromInput, err := dataset.ReadCSV("-", iotest.OneByteReader(bytes.NewReader(data)))
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range []*dataset.Table{fromFile, fromInput} {
				if table.Rows() != 3 || !slices.Equal(table.Names(), []string{"size", "color"}) {
					t.Fatalf("%d rows, columns %q", table.Rows(), table.Names())
				}
				sizes, err := table.Numbers("size")
				if err != nil {
					t.Fatal(err)
				}
				if want := []float64{1.5, math.NaN(), -2000}; !cmp.Equal(sizes, want, cmpopts.EquateNaNs()) {
					t.Errorf("size is %v, want %v", sizes, want)
				}
				colors, err := table.Texts("color")
				if err != nil {
					t.Fatal(err)
				}
				if want := []string{"red", "light, blue", `5" wide`}; !slices.Equal(colors, want) {
					t.Errorf("color is %q, want %q", colors, want)
				}
			}
		})
	}
}

// TestReadFaults checks the error for each text that cannot be read. The error must be one line.
func TestReadFaults(t *testing.T) {
	compressed := gzipped(t, strings.Repeat("a,b\n1,2\n", 1000))
	damaged := slices.Clone(compressed)
	damaged[len(damaged)-6] ^= 1 // invert a bit of the checksum
	for _, c := range []struct{ name, data, want string }{
		{"empty.csv", "", ": is empty; a header line with the names of the columns is needed"},
		{"blank.csv", "\n\n", ": is empty; a header line with the names of the columns is needed"},
		{"mark.csv", "\ufeff", ": is empty; a header line with the names of the columns is needed"},
		{"twice.csv", "a,b,c,b\n1,2,3,4\n", `:1: column "b": the name is used twice, for columns 2 and 4`},
		{"nameless.csv", "a,,c\n1,2,3\n", `:1: the name "" of column 2 is empty`},
		{"spaces.csv", "a, ,c\n1,2,3\n", `:1: the name "" of column 2 is empty`},
		{"control.csv", "a\tb\x07\n1\t2", `:1: the name "b\a" of column 2 contains a control character`},
		{"short.csv", "a,b\n1,2\n3\n", ":3: has 1 cell where the header has 2"},
		{"long.csv", "a,b\n\n\n1,2,3\n", ":4: has 3 cells where the header has 2"},
		{"bare.csv", "a,b\n1,6\" pipe\n", `:2: broken quoting: a cell with a quotation mark must be quoted as a whole, its marks doubled: "6"" pipe"`},
		{"after.csv", "a,b\n1,\"x\"y\n", ":2: broken quoting: a quotation mark is not closed properly at byte 5 of the line"},
		{"open.csv", "a,b\n1,\"x\n2,y\n", ":2: broken quoting: a quotation mark is not closed properly by line 3"},
		{"header.csv", "a,\"b\n1,2\n", ":1: broken quoting: a quotation mark is not closed properly by line 2"},
		{"latin1.csv", "a,b\n1,M\xfcller\n", `:2: column "b": "M\xfcller" is not valid UTF-8; save the file as UTF-8`},
		{"latin1header.csv", "a,\xfc\n1,2\n", `:1: the name "\xfc" of column 2 is not valid UTF-8; save the file as UTF-8, if it is a table at all`},
		{"plain.csv.gz", "a,b\n1,2\n", ": is named .gz but does not hold gzip data"},
		{"cut.csv.gz", string(compressed[:len(compressed)-12]), ": the gzip data is cut short"},
		{"start.csv.gz", string(compressed[:4]), ": the gzip data is cut short"},
		{"checksum.csv.gz", string(damaged), ": the gzip data is damaged"},
		{"method.csv", "\x1f\x8b\x07aaaaaaaaaaaa", ": the gzip data is damaged"},
		{"flate.csv.gz", string(compressed[:10]) + "\xff\xff\xff\xff\xff\xff\xff\xff", ": the gzip data is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.name)
			if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := dataset.ReadCSV(path, nil)
			wantError(t, err, path+c.want)
		})
	}
}

// wantError fails the test unless err is an *Error with the text want.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	var e *dataset.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("got %v, want an *Error: %s", err, want)
	case err.Error() != want:
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestReadNoFile(t *testing.T) {
	dir := t.TempDir()
	absent := filepath.Join(dir, "missing.csv")
	_, err := dataset.ReadCSV(absent, nil)
	wantError(t, err, absent+": no such file")
	_, err = dataset.ReadCSV(dir, nil)
	wantError(t, err, dir+": is a directory; give the name of a file")
	_, err = dataset.ReadCSV("-", nil)
	wantError(t, err, "standard input: cannot be read: no standard input was given")
	_, err = dataset.ReadCSV("-", io.MultiReader(strings.NewReader("a,b\n1,2\n"), iotest.ErrReader(errors.New("the line went dead"))))
	wantError(t, err, "standard input:3: cannot be read: the line went dead")
}

// TestLines checks that the line numbers in errors include line ends in quotation marks and empty lines.
func TestLines(t *testing.T) {
	table := read(t, "a,b\n\"x\ny\",1\n\nz,oops\nz,2\nz,3\n")
	_, err := table.Numbers("b")
	wantError(t, err, `standard input:5: column "b": "oops" is not a number; correct it, or name it as a marker of missing values`)
	_, err = table.Numbers("c")
	wantError(t, err, `standard input: has no column "c"; it has "a", "b"`)
}

// TestCells checks that finite decimal numbers are read, and that the error for any other text quotes it.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		cell string
		want float64
		rule string
	}{
		{"0", 0, ""}, {"-1.5e3", -1500, ""}, {"+.5", 0.5, ""}, {"5.", 5, ""}, {" 7 ", 7, ""}, {"1E2", 100, ""},
		{"1e-400", 0, ""}, {"007", 7, ""},
		{"", math.NaN(), ""}, {"NA", math.NaN(), ""}, {"n/a", math.NaN(), ""}, {"#N/A", math.NaN(), ""}, {"None", math.NaN(), ""}, {"Null", 0, "is not a number"}, {"?", 0, "is not a number"},
		{"nan", math.NaN(), ""}, {"NaN", math.NaN(), ""}, {"null", math.NaN(), ""}, {"inf", 0, "is not a finite number"},
		{"-Inf", 0, "is not a finite number"}, {"+Infinity", 0, "is not a finite number"},
		{"1e999", 0, "is outside the range of float64"}, {"-1e309", 0, "is outside the range of float64"},
		{"abc", 0, "is not a number"}, {"1;5", 0, "is not a number"}, {"0x1p-2", 0, "is not a number"}, {"1_000", 0, "is not a number"},
		{"0x10", 0, "is not a number"}, {"true", 0, "is not a number"}, {"12 cm", 0, "is not a number"}, {"no", 0, "is not a number"}, {"--1", 0, "is not a number"},
	} {
		// The cell is read in a short column, and in a column with so many numbers that their texts are not stored.
		fewNumbers := read(t, fmt.Sprintf("a,b\n1,\"%s\"\n", c.cell))
		manyNumbers := read(t, "a,b\n"+numbersBelow(3*dataset.MaxCategories)+fmt.Sprintf("1,\"%s\"\n", c.cell))
		for _, table := range []*dataset.Table{fewNumbers, manyNumbers} {
			got, err := table.Numbers("b")
			if c.rule != "" {
				if c.rule == "is not a number" {
					c.rule += "; correct it, or name it as a marker of missing values"
				}
				wantError(t, err, fmt.Sprintf(`standard input:%d: column "b": %q %s`, table.Rows()+1, c.cell, c.rule))
				continue
			}
			if err != nil {
				t.Errorf("%q: %v", c.cell, err)
				continue
			}
			if v := got[len(got)-1]; !cmp.Equal(v, c.want, cmpopts.EquateNaNs()) {
				t.Errorf("%q is read as %v, want %v", c.cell, v, c.want)
			}
		}
	}
}

// numbersBelow returns n rows of two numbers. The numbers of each column are distinct.
func numbersBelow(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,%d.5\n", i, i)
	}
	return b.String()
}

// TestLongColumn checks that values do not change if a column changes to the plain form (see column) while it is read.
func TestLongColumn(t *testing.T) {
	var b strings.Builder
	b.WriteString("a,b\n")
	const rows = 5 * dataset.MaxCategories
	for i := range rows {
		if i%7 == 3 {
			fmt.Fprintf(&b, "%d,\n", i%10)
		} else {
			fmt.Fprintf(&b, "%d,%d\n", i%10, i)
		}
	}
	table := read(t, b.String())
	got, err := table.Numbers("b")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != rows {
		t.Fatalf("%d rows, want %d", len(got), rows)
	}
	for i, v := range got {
		if i%7 == 3 && !math.IsNaN(v) || i%7 != 3 && v != float64(i) {
			t.Fatalf("row %d is %v", i, v)
		}
	}
}

func TestNewTable(t *testing.T) {
	table, err := dataset.NewTable("",
		dataset.Numbers("x", []float64{1, math.NaN(), 3}),
		dataset.Texts("c", []string{"a", "", "b"}),
		dataset.Texts("n", []string{"1", "2", ""}))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := table.Numbers("n"); err != nil || !cmp.Equal(n, []float64{1, 2, math.NaN()}, cmpopts.EquateNaNs()) {
		t.Errorf("n is %v, %v", n, err)
	}
	if x, err := table.Texts("x"); err != nil || !slices.Equal(x, []string{"1", "", "3"}) {
		t.Errorf("x is %q, %v", x, err)
	}
	_, err = table.Numbers("c")
	wantError(t, err, `dataset: row 1: column "c": "a" is not a number; correct it, or name it as a marker of missing values`)

	ones := []float64{1}
	for _, c := range []struct {
		columns []dataset.Column
		want    string
	}{
		{nil, "made: has no columns"},
		{[]dataset.Column{dataset.Numbers("a", ones), dataset.Numbers("a", ones)}, `made: column "a": the name is used twice, for columns 1 and 2`},
		{[]dataset.Column{dataset.Numbers("", ones)}, `made: the name "" of column 1 is empty`},
		{[]dataset.Column{dataset.Numbers("a", ones), dataset.Texts("b", nil)}, `made: column "b": has 0 cells, but column "a" has 1`},
		{[]dataset.Column{dataset.Numbers("a", []float64{0, math.Inf(-1)})}, `made: row 2: column "a": "-Inf" is not a finite number`},
		{[]dataset.Column{dataset.Texts("a", []string{"\xff"})}, `made: row 1: column "a": "\xff" is not valid UTF-8`},
	} {
		_, err := dataset.NewTable("made", c.columns...)
		wantError(t, err, c.want)
	}
}

// TestLongValue checks that the error about a very long cell is short.
func TestLongValue(t *testing.T) {
	table := read(t, "a\n"+strings.Repeat("ü\"\"", 1)[:2]+strings.Repeat("é", 1<<16)+"\n")
	_, err := table.Numbers("a")
	if err == nil || len(err.Error()) > 250 || strings.Contains(err.Error(), "\n") {
		t.Errorf("message: %.300v", err)
	}
}

func FuzzReadCSV(f *testing.F) {
	for _, s := range []string{
		"a,b\n1,2\n", "a,b\r\n\"x\"\"y\",\r\n", "\ufeffa\nNA\nnan\n1e999\n", "a,target\nred,1\n,2\n", "a;b\n", "\x1f\x8b\x08", "a\n\xff\n",
		"id,target\n" + strings.Repeat("1,2\nx,3\n", 30),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := dataset.ReadCSV("-", bytes.NewReader(data))
		if err != nil {
			oneLine(t, err)
			return
		}
		names := table.Names()
		for _, name := range names {
			texts, err := table.Texts(name)
			if err != nil || len(texts) != table.Rows() {
				t.Fatalf("Texts(%q): %d cells of %d, %v", name, len(texts), table.Rows(), err)
			}
			if _, err := table.Numbers(name); err != nil {
				oneLine(t, err)
			}
		}
		e, err := dataset.Learn(table, dataset.Rules{Targets: names[len(names)-1:], Standardize: true})
		if err != nil {
			oneLine(t, err)
			return
		}
		if _, err := e.Features(table); err != nil {
			oneLine(t, err) // Features fails if a number overflows when it is standardized
		}
		if _, err := e.Targets(table); err != nil {
			t.Fatalf("learned, but then: %v", err)
		}
	})
}

// oneLine fails the test unless err is an *Error whose text is one line of limited length.
func oneLine(t *testing.T, err error) {
	t.Helper()
	var e *dataset.Error
	if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 10_000 {
		t.Fatalf("not a good message: %q", err)
	}
}

// TestDelimitersAndIndex checks files of pandas and R with each delimiter, read at once and in passes. A row
// without its index must give an error.
func TestDelimitersAndIndex(t *testing.T) {
	for _, d := range []string{",", ";", "\t", "|"} {
		text := strings.ReplaceAll(",x1,kind,y\n"+strings.Repeat("0,1.5,a,1\n7,-2,\"b\",2\n,,b,3\n", 20_000), ",", d)
		path := file(t, "a.csv", []byte(text))
		checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"y"}, Standardize: true}, 1000)
		checkStream(t, dataset.File{Path: path, Dialect: dataset.Dialect{Delimiter: d}}, dataset.Rules{Targets: []string{"y"}}, 1000)
		unquoted := file(t, "b.csv", []byte(strings.ReplaceAll(text, "\"", "")))
		checkStream(t, dataset.File{Path: unquoted}, dataset.Rules{Targets: []string{"y"}}, 1000)
		table, err := dataset.Read(path, nil)
		if err != nil || !slices.Equal(table.Names(), []string{"x1", "kind", "y"}) || table.Rows() != 60_000 {
			t.Fatal(table, err)
		}
	}
	_, err := dataset.Read("-", strings.NewReader(",a,b\n0,1,2\n1,2\n"))
	wantError(t, err, "standard input:3: has 2 cells where the header has 3")
	for _, d := range []byte("1a.-\"\n") {
		_, err = dataset.File{Path: "-", Stdin: strings.NewReader("a,b\n1,2\n"), Dialect: dataset.Dialect{Delimiter: string(d)}}.Read()
		wantError(t, err, fmt.Sprintf("standard input: the character %q cannot be a delimiter: use , ; | a tab or a space", d))
	}
	table, err := dataset.File{Path: "-", Stdin: strings.NewReader("a;b,c:d\n1;2,3:4\n"), Dialect: dataset.Dialect{Delimiter: ":"}}.Read()
	if err != nil || !slices.Equal(table.Names(), []string{"a;b,c", "d"}) {
		t.Error(table, err)
	}
}

// TestPiecesJoinAsOneTable checks that a file of several pieces gives the same table as cells read one by one, even
// if a column has only numbers in one piece and texts in another.
func TestPiecesJoinAsOneTable(t *testing.T) {
	rows, change := 150_000, 70_000 // the rows fill at least 3 pieces of 1 MiB
	if required.FewCases() {
		rows, change = 60_000, 28_000
	}
	columns := map[string]func(i int) string{
		"numbers":      func(i int) string { return fmt.Sprint(float64(i) / 7) },
		"few":          func(i int) string { return strconv.Itoa(i % 9) },
		"texts":        func(i int) string { return "c" + strconv.Itoa(i*i%11) },
		"few and many": func(i int) string { return strconv.Itoa(max(i, change) - change) },
		"many and few": func(i int) string { return strconv.Itoa(min(i, change)) },
		"text first":   func(i int) string { return map[bool]string{true: "x", false: fmt.Sprintf("%05d", i)}[i == 3] },
		"text last":    func(i int) string { return map[bool]string{true: "x", false: strconv.Itoa(i)}[i == rows-3] },
		"text between": func(i int) string { return map[bool]string{true: "x", false: strconv.Itoa(i / 100)}[i == change] },
		"missing":      func(i int) string { return []string{"", "NA", strconv.Itoa(i), " 7 "}[i%4] },
		"odd":          func(i int) string { return map[bool]string{true: "inf", false: strconv.Itoa(i)}[i == change] },
	}
	names := slices.Sorted(maps.Keys(columns))
	cells := map[string][]string{}
	var file strings.Builder
	file.WriteString(strings.Join(names, ",") + ",quoted\n")
	for i := range rows {
		for _, name := range names {
			cell := columns[name](i)
			cells[name] = append(cells[name], strings.TrimSpace(cell))
			file.WriteString(cell + ",")
		}
		quoted, cell := "a", "a"
		if i > change && i%1000 == 0 {
			quoted, cell = "\"a\nb, \"\"c\"\"\"", "a\nb, \"c\""
		}
		cells["quoted"] = append(cells["quoted"], cell)
		file.WriteString(quoted + "\n")
	}
	names = append(names, "quoted")
	var list []dataset.Column
	for _, name := range names {
		list = append(list, dataset.Texts(name, cells[name]))
	}
	want, err := dataset.NewTable("standard input", list...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := dataset.ReadCSV("-", strings.NewReader(file.String()))
	if err != nil || got.Rows() != rows {
		t.Fatal(got, err)
	}
	message := func(err error) string {
		var e *dataset.Error
		if errors.As(err, &e) {
			return e.Value + " " + e.Rule
		}
		return fmt.Sprint(err)
	}
	for _, name := range names {
		a, errA := got.Texts(name)
		b, errB := want.Texts(name)
		if !slices.Equal(a, b) || message(errA) != message(errB) {
			t.Errorf("%s: other cells: %v, want %v", name, errA, errB)
		}
		x, errA := got.Numbers(name)
		y, errB := want.Numbers(name)
		if !slices.EqualFunc(x, y, func(v, w float64) bool { return math.Float64bits(v) == math.Float64bits(w) }) || message(errA) != message(errB) {
			t.Errorf("%s: other numbers: %v, want %v", name, errA, errB)
		}
	}
	lines := strings.SplitAfter(file.String(), "\n")
	for _, line := range []int{5, change / 2, change, rows - 5} {
		damaged := slices.Clone(lines)
		damaged[line] = "1,2\n"
		_, err := dataset.ReadCSV("-", strings.NewReader(strings.Join(damaged, "")))
		wantError(t, err, fmt.Sprintf("standard input:%d: has 2 cells where the header has %d", line+1, len(names)))
		damaged[line] = strings.Replace(lines[line], ",", "\xff,", 1)
		_, err = dataset.ReadCSV("-", strings.NewReader(strings.Join(damaged, "")))
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("standard input:%d: column ", line+1)) || !strings.HasSuffix(err.Error(), "is not valid UTF-8; save the file as UTF-8") {
			t.Errorf("row %d: %v", line, err)
		}
	}
}

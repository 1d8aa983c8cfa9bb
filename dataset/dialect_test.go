package dataset_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// utf16Of returns a text in UTF-16 with its byte order mark.
func utf16Of(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestDialects checks that a table gives the same cells in every dialect that programs write (pandas, R's
// write.table, Excel, UCI; deephaven #1800, arrow #26743, vroom #186, readr #607).
func TestDialects(t *testing.T) {
	const longText = "a text with spaces so long that some thousand rows are two pieces"
	header, rows := []string{"x", "k", "y"}, [][]string{{"1.5", longText, "2"}, {"2", "c", "4"}, {"", longText, "-6"}}
	// write writes n rows whose cells are joined by a delimiter. Each line has a prefix and a suffix.
	write := func(n int, prefix, delimiter, behind, end string, cell func(s string) string) string {
		var b strings.Builder
		for i := range n + 1 {
			cells := header
			if i > 0 {
				cells = rows[(i-1)%len(rows)]
			}
			b.WriteString(prefix)
			for j, s := range cells {
				if j > 0 {
					b.WriteString(delimiter)
				}
				b.WriteString(cell(s))
			}
			b.WriteString(behind + end)
		}
		return b.String()
	}
	identity := func(s string) string { return s }
	quoted := func(s string) string { return `"` + s + `"` }
	texts := func(s string) string { // R quotes texts but not NA
		if s == "" {
			return "NA"
		}
		if strings.Trim(s, "-.0123456789") != "" {
			return `"` + s + `"`
		}
		return s
	}
	numbered := func(s string) string { // R also writes row names
		lines := strings.SplitAfter(s, "\n")
		for i := range lines[1 : len(lines)-1] {
			lines[i+1] = fmt.Sprintf("\"%d\"%c%s", 3*i+5, strings.Trim(lines[0], "\"x")[0], lines[i+1])
		}
		return strings.Join(lines, "")
	}
	dialects := map[string]func(n int) string{
		"plain":                     func(n int) string { return write(n, "", ",", "", "\n", identity) },
		"delimiters at the end":     func(n int) string { return write(n, "", ",", ",", "\n", identity) },
		"many delimiters":           func(n int) string { return write(n, "", ";", ";;;", "\r\n", identity) },
		"quoted, delimiters":        func(n int) string { return write(n, "", ",", ",\"\"", "\n", quoted) },
		"header with delimiters":    func(n int) string { return strings.Replace(write(n, "", ",", "", "\n", identity), "\n", ",,\n", 1) },
		"white lines":               func(n int) string { return "  \n\t\n" + write(n, "", ",", "", "\n   \n \t \n\n", identity) },
		"white lines, quoted":       func(n int) string { return write(n, "", ",", "", "\r\n   \r\n \t \r\n", quoted) },
		"white lines, tabs":         func(n int) string { return write(n, "", "\t", "", "\n   \n", identity) },
		"CR":                        func(n int) string { return write(n, "", ",", "", "\r", identity) },
		"CR, quoted":                func(n int) string { return write(n, "", ";", "", "\r", quoted) },
		"CR, no last end":           func(n int) string { return strings.TrimSuffix(write(n, "", "\t", "", "\r", identity), "\r") },
		"CR and LF by turns":        func(n int) string { return strings.Replace(write(n, "", ",", "", "\r", identity), "\r", "\n", 2) },
		"CR CR LF":                  func(n int) string { return write(n, "", ",", "", "\r\r\n", identity) },
		"sep=;":                     func(n int) string { return "sep=;\r\n" + write(n, "", ";", "", "\r\n", identity) },
		"sep=tab":                   func(n int) string { return "\ufeffSEP=\t\n" + write(n, "", "\t", "", "\n", identity) },
		"sep, quoted":               func(n int) string { return "\"sep=:\"\n" + write(n, "", ":", "", "\n", quoted) },
		"sep, against the header":   func(n int) string { return "sep=|\n" + write(n, "", "|", "", "\n", identity) },
		"spaces before quotes":      func(n int) string { return write(n, " ", ",  ", "", "\n", quoted) },
		"spaces around quotes":      func(n int) string { return write(n, "  ", " , ", "  ", "\r\n", quoted) },
		"spaces":                    func(n int) string { return write(n, "  ", "   ", " ", "\n", texts) },
		"spaces and tabs":           func(n int) string { return write(n, "", " \t ", "\t", "\r\n", texts) },
		"spaces, CR":                func(n int) string { return write(n, "", "  ", "", "\r", texts) },
		"UTF-16 little":             func(n int) string { return utf16Of(binary.LittleEndian, write(n, "", ",", "", "\n", identity)) },
		"UTF-16 big":                func(n int) string { return utf16Of(binary.BigEndian, write(n, "", ";", "", "\r\n", quoted)) },
		"UTF-16 tabs of Excel":      func(n int) string { return utf16Of(binary.LittleEndian, write(n, "", "\t", "", "\r\n", identity)) },
		"UTF-16, delimiters at end": func(n int) string { return utf16Of(binary.LittleEndian, write(n, "", ",", ",", "\r", identity)) },
		"row names of R":            func(n int) string { return numbered(write(n, "", ",", "", "\n", texts)) },
		"row names, spaces":         func(n int) string { return numbered(write(n, "", " ", "", "\n", texts)) },
		"row names, semicolons":     func(n int) string { return numbered(write(n, "", ";", "", "\n", quoted)) },
	}
	rules := dataset.Rules{Targets: []string{"y"}}
	for name, dialect := range dialects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{3, 24_000} {
				if n > 3 && required.FewCases() && len(name)%3 != 0 {
					continue
				}
				text := dialect(n)
				f := dataset.File{Path: file(t, "t.csv", []byte(text))}
				table, err := f.Read()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(header, table.Names()); diff != "" || table.Rows() != n {
					t.Fatalf("%d rows, want %d; %s", table.Rows(), n, diff)
				}
				var cells [3][]string
				for j, column := range header {
					if cells[j], err = table.Texts(column); err != nil {
						t.Fatal(err)
					}
				}
				for i := range n {
					if got := []string{cells[0][i], cells[1][i], cells[2][i]}; !cmp.Equal(got, rows[i%3]) {
						t.Fatalf("row %d is %q, want %q", i+1, got, rows[i%3])
					}
				}
				if want := strings.HasPrefix(name, "row names"); table.OmittedIndex() != want {
					t.Errorf("the first column is left out: %v", table.OmittedIndex())
				}
				if n == 3 || !testing.Short() {
					checkStream(t, f, rules, 2+n/10)
				}
				if n == 3 {
					stdin, err := dataset.Read("-", strings.NewReader(text))
					if err != nil || stdin.Rows() != n {
						t.Error(err)
					}
				}
			}
		})
	}
	// A given delimiter must have the same result as a detected delimiter.
	for _, c := range []struct {
		delimiter, text string
	}{{" ", "x  y\n 1 2\n\n3\t4 \n"}, {";", "sep=;\nx;y\n1;2\n3;4\n"}, {",", "sep=;\nx,y\n1,2\n3,4\n"}} {
		table, err := dataset.File{Path: "-", Stdin: strings.NewReader(c.text), Dialect: dataset.Dialect{Delimiter: c.delimiter}}.Read()
		if err != nil {
			t.Fatal(err)
		}
		y, err := table.Numbers("y")
		if err != nil || !cmp.Equal(y, []float64{2, 4}) {
			t.Error(y, err)
		}
	}
	// A single column of texts with spaces must not be split.
	titles := read(t, "full name\nAda Lovelace\nAlan Turing\n")
	if got := titles.Names(); !cmp.Equal(got, []string{"full name"}) || titles.Rows() != 2 {
		t.Error(got)
	}
}

// TestDialectFaults checks that a file in an unsupported dialect gives an error with the reason.
func TestDialectFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"delimiters under a header without", "x,y\n1,2,\n3,4,\n", ":2: has 3 cells where the header has 2: the line ends with a delimiter and the header does not; remove this delimiter, or name the column"},
		{"quoted", "\"x\",\"y\"\n\"1\",2,\n3,4,\n", ":2: has 3 cells where the header has 2: the line ends with a delimiter and the header does not; remove this delimiter, or name the column"},
		{"value without a name", "x,y,\n1,2,\n3,4,5\n", `:3: "5" is in a column without a name; name the column in the header`},
		{"value without a name, quoted", "x,y,,\n1,2,,\n3,4,,\"5\"\n", `:3: "5" is in a column without a name; name the column in the header`},
		{"too many delimiters", "x,y,\n1,2,,\n", ":2: has 4 cells where the header has 3: the line ends with a delimiter and the header does not; remove this delimiter, or name the column"},
		{"measurements", "x,y\n4,1,2\n7,3,4\n", ":2: has 3 cells where the header has 2"},
		{"row names that repeat", "x,y\na,1,2\na,3,4\n", ":2: has 3 cells where the header has 2"},
		{"row names that end", "x,y\na,1,2\nb,3,4\n3,4\n", ":2: has 3 cells where the header has 2"},
		{"UTF-16 without a mark", strings.TrimPrefix(utf16Of(binary.LittleEndian, "x,y\n1,2\n"), "\xff\xfe"), ": contains zero bytes: it is not a text file, or it is UTF-16 without a byte-order mark; save it as UTF-8"},
		{"UTF-32", "\xff\xfe\x00\x00x\x00\x00\x00", ": is UTF-32; save it as UTF-8"},
		{"half a character", utf16Of(binary.BigEndian, "x,y\n1,a\n") + "\x00", `:3: has 1 cell where the header has 2`},
		{"half a pair", utf16Of(binary.LittleEndian, "x,y\n1,") + "\x3d\xd8\n\x00", `:2: column "y": "\xff" is not valid UTF-8; save the file as UTF-8`},
		{"empty", "sep=;\n", ": is empty; a header line with the names of the columns is needed"},
		{"spaces", "  \n\t\n", ": is empty; a header line with the names of the columns is needed"},
	} {
		f := dataset.File{Path: file(t, "t.csv", []byte(c.text))}
		_, err := f.Read()
		if c.name == "half a pair" && err == nil {
			continue // this file is valid as UTF-8
		}
		wantError(t, err, f.Path+c.want)
	}
	table := read(t, "first name\n")
	_, err := table.Numbers("name")
	wantError(t, err, `standard input: has no column "name"; it has "first name"; did you mean "first name"?; if spaces separate the columns, give the delimiter ' '`)
	_, err = dataset.File{Path: "-", Stdin: strings.NewReader("x y\n1 2\n3 4 5\n"), Dialect: dataset.Dialect{Delimiter: " "}}.Read()
	wantError(t, err, "standard input:3: has 3 cells where the header has 2")
	var e *dataset.Error
	if _, err := dataset.ReadCSV("-", strings.NewReader("x,y\r1,2\r3,a\r")); err != nil {
		t.Error(err)
	} else if table := read(t, "x,y\r1,2\r\r3,a\r"); !errors.As(func() error { _, err := table.Numbers("y"); return err }(), &e) || e.Line != 4 {
		t.Errorf("the line of a fault in a file with line ends of CR: %v", e)
	}
}

package dataset_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// readText writes a text to a file with the given name and reads it.
func readText(t *testing.T, name, text string) (*dataset.Table, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return dataset.Read(path, nil)
}

// TestJSONIsTheTableOfCSV checks that the JSON forms of a table give the cells of its CSV form, with the columns in
// the order of the first object.
func TestJSONIsTheTableOfCSV(t *testing.T) {
	const csv = "b,a,text\n1.5,-2e3,\"says \"\"hi\"\",\nthen goes\"\n,7,true\n3,,\n"
	rows := []string{
		`{"b": 1.5, "a": -2e3, "text": "says \"hi\",\nthen goes"}`,
		`{"text": true, "b": null, "a": 7}`,
		`{"b": 3}`,
	}
	want, err := readText(t, "t.csv", csv)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"t.jsonl":  strings.Join(rows, "\n"),
		"t.ndjson": "\n" + strings.Join(rows, "\n\n") + "\n",
		"t.json":   " [\n" + strings.Join(rows, ",\n") + "\n]\n",
		"t":        "[" + strings.Join(rows, ", ") + "]",
		"u":        "\ufeff" + strings.Join(rows, ""),
	} {
		got, err := readText(t, name, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Rows() != want.Rows() || strings.Join(got.Names(), " ") != strings.Join(want.Names(), " ") {
			t.Fatalf("%s: %d rows of %q, want %d of %q", name, got.Rows(), got.Names(), want.Rows(), want.Names())
		}
		for _, column := range want.Names() {
			g, _ := got.Cells(column)
			w, _ := want.Cells(column)
			if strings.Join(g, "|") != strings.Join(w, "|") {
				t.Errorf("%s: column %s is %q, want %q", name, column, g, w)
			}
		}
	}
	// Rows whose only cell is missing are not skipped.
	got, err := readText(t, "one.jsonl", `{"a": null} {"a": ""} {"a": 1}`)
	if err != nil || got.Rows() != 3 {
		t.Errorf("a column with missing cells: %v, %v", got, err)
	}
}

// TestJSONFaults checks the one-line error for each fault, with the number of the row.
func TestJSONFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "has no rows",
		" \n":                       "has no rows",
		"[]":                        "has no rows",
		"{}":                        "row 1: has no keys",
		`[{"a": 1}`:                 "row 1: is not valid JSON: the file is cut short",
		`[{"a": 1}] 2`:              "row 1: must be one array of objects, with nothing after it",
		`{"a": 1} {"a": `:           "row 2: is not valid JSON: the file is cut short",
		`{"a": 1} {"a" 2}`:          "row 2: is not valid JSON",
		`{"a": 1} {"a": NaN}`:       "row 2: is not valid JSON, which has neither NaN nor Infinity: write null for a missing value",
		`{"a": 1} {"a": -Infinity}`: "row 2: is not valid JSON, which has neither NaN nor Infinity",
		`{"a": 1} {"a": nan}`:       "row 2: is not valid JSON: ",
		`{"a": 1} {"b": 2}`:         `row 2: column "b": is not a key of the first row`,
		`{"a": 1} {"a": 2, "a": 2}`: `row 2: column "a": occurs twice in the object: give each key once`,
		`{"a": 1, "a": 2}`:          `row 1: column "a": occurs twice in the object: give each key once`,
		`{"a": 1} {"a": [2]}`:       `row 2: column "a": must be a number, a text, true, false or null`,
		`{"a": {"b": 2}}`:           `row 1: column "a": must be a number, a text, true, false or null`,
		`{"a": 1} 7`:                `row 1: must be an object whose keys are the names of the columns, got 7`,
		`[[1, 2]]`:                  "must be an object whose keys are the names of the columns",
		`{"": 1}`:                   "row 1: has a value without a name",
		"{\"a\": \"\xff\"}":         "row 1: is not valid JSON: invalid UTF-8",
	} {
		_, err := readText(t, "t.jsonl", text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got the error %v, want %q in it", text, err, want)
		}
	}
	_, err := dataset.File{Path: "-", Stdin: strings.NewReader(strings.Repeat(`{"a": 0.1, "b": 0.2}`, 200000)), Memory: 1 << 20}.Read()
	if err == nil || !strings.Contains(err.Error(), "takes more than its limit") {
		t.Errorf("200,000 rows within 1 MiB: %v", err)
	}
}

// FuzzJSON checks that a text that encoding/json reads as an array of flat objects with equal keys gives a table
// with one row per object.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`[{"a": 1, "b": "x"}, {"a": null, "b": true}]`, `{"a": 1} {"a": 2}`, `[]`, `[{"a": [1]}]`, `{"sep=;": 1}`, `{"a\r": "\r\n", "b": "\""}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := dataset.File{Path: "-", Stdin: bytes.NewReader(append([]byte("[{\"first\": 1},"), text...))}.Read()
		if err != nil {
			return
		}
		var rows []map[string]any
		if json.Unmarshal(append([]byte("[{\"first\": 1},"), text...), &rows) == nil && got.Rows() != len(rows) {
			t.Errorf("%d rows, encoding/json has %d", got.Rows(), len(rows))
		}
	})
}

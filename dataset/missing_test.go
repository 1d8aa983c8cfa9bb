package dataset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// TestMissingValuesAgainstPandas checks that the default texts of missing cells are those of pandas.
func TestMissingValuesAgainstPandas(t *testing.T) {
	if err := exec.Command(required.Python, "-c", "import pandas").Run(); err != nil {
		required.SkipOrFail(t, "pandas", err)
	}
	cells := append(dataset.DefaultNAValues(), "", "na", "Na", "NAN", "none", "?", "-", "NIL", "#N/A!", "0", "-999", "red")
	text := "number,text\n"
	for _, cell := range cells {
		text += fmt.Sprintf("%s,%s\n", cell, cell)
	}
	command := exec.Command(required.Python, "-c", "import sys, json, pandas\nt = pandas.read_csv(sys.stdin)\nprint(json.dumps([list(t[c].isna()) for c in t], default=bool))")
	command.Stdin = strings.NewReader(text)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want [2][]bool
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	table := read(t, text)
	for i, name := range table.Names() {
		texts, err := table.Texts(name)
		if err != nil {
			t.Fatal(err)
		}
		for row, cell := range cells {
			if cell == "None" && !want[i][row] {
				continue // missing only since pandas 2.0
			}
			if got := texts[row] == ""; got != want[i][row] {
				t.Errorf("column %s: %q is missing: %v, in pandas %v", name, cell, got, want[i][row])
			}
		}
	}
}

// TestNAValues checks that a list of texts of missing cells applies to numbers and to texts, at once and in blocks,
// and that the encoder stores it.
func TestNAValues(t *testing.T) {
	const text = "a,kind,y\n1,red,1\n?,?,2\n3,red,3\n-999.0,blue,4\n8,NA,5\n\"?\",red,6\n"
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		list     []string
		features []string
		want     []float64 // the features of all rows; in each row the feature of column a is the first
	}{
		{[]string{"?", "-999"}, []string{"a", "kind=NA", "kind=blue", "kind=red"}, []float64{1, 0, 0, 1, 3, 0, 0, 1, 3, 0, 0, 1, 3, 0, 1, 0, 8, 1, 0, 0, 3, 0, 0, 1}},
		{[]string{"", "?", "NA"}, []string{"a", "kind=blue", "kind=red"}, []float64{1, 0, 1, 2, 0, 1, 3, 0, 1, -999, 1, 0, 8, 0, 1, 2, 0, 1}},
	} {
		f := dataset.File{Path: path, Dialect: dataset.Dialect{NAValues: c.list, NoDefaultNA: true}}
		table, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		r := dataset.Rules{Targets: []string{"y"}}
		e := learn(t, table, r)
		if got := e.FeatureNames(); !slices.Equal(got, c.features) {
			t.Errorf("%q: features %q, want %q", c.list, got, c.features)
		}
		want := mat.NewDense(6, len(c.features), c.want)
		if x := features(t, e, table); !mat.Equal(x, want) {
			t.Errorf("%q:\n%v", c.list, mat.Formatted(x))
		}
		s, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := s.Learn(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, streamed); diff != "" {
			t.Error(diff)
		}
		err = s.Blocks(context.Background(), e, 6, func(x, _ *mat.Dense) error {
			if !mat.Equal(x, want) {
				t.Errorf("%q, in blocks:\n%v", c.list, mat.Formatted(x))
			}
			return nil
		})
		if err != nil || len(s.Unknown())+len(e.Unknown(table)) > 0 {
			t.Error(err, s.Unknown(), e.Unknown(table))
		}
		var decoded dataset.Encoder
		b, _ := json.Marshal(e)
		if err := json.Unmarshal(b, &decoded); err != nil {
			t.Fatal(err)
		}
		if reread, err := (dataset.File{Path: path, Dialect: decoded.TrainingDialect(dataset.Dialect{})}).Read(); err != nil {
			t.Error(err)
		} else if x := features(t, &decoded, reread); !mat.Equal(x, want) {
			t.Errorf("%q, with the list of the model:\n%v", c.list, mat.Formatted(x))
		}
	}
}

// TestNAValuesOfOldModels checks an encoder of an old version, whose JSON has no na_values. In a column of texts, NA is
// a category. In a column of numbers, ? and Null are missing cells.
func TestNAValuesOfOldModels(t *testing.T) {
	var e dataset.Encoder
	err := json.Unmarshal([]byte(`{"inputs":[{"name":"a","number":{"fill":7,"mean":0,"scale":1}},{"name":"b","text":{"fill":"red","categories":["NA","red"]}}],"outputs":[],"refuse_missing":false}`), &e)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("a,b\n?,NA\nNull,red\n1,\n2,nan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := dataset.File{Path: path, Dialect: e.TrainingDialect(dataset.Dialect{})}
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	want := mat.NewDense(4, 3, []float64{7, 1, 0, 7, 0, 1, 1, 0, 1, 2, 0, 0})
	if x := features(t, &e, table); !mat.Equal(x, want) {
		t.Errorf("features:\n%v", mat.Formatted(x))
	}
	if u := e.Unknown(table); len(u) != 1 || u[0].Example != "nan" || u[0].Rows != 1 {
		t.Errorf("unknown: %v", u)
	}
	s, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	err = s.Blocks(context.Background(), &e, 4, func(x, _ *mat.Dense) error {
		if !mat.Equal(x, want) {
			t.Errorf("in blocks:\n%v", mat.Formatted(x))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOddMarkers checks that a small number of texts in a column of numbers is an error, unless the column is
// declared categorical, and that a column with many words is categorical.
func TestOddMarkers(t *testing.T) {
	for _, c := range []struct {
		cells   string
		message string // the text in the error; "" means no error
	}{
		{"1 ?", "?"}, {"- 1 2", "-"}, {"1 2 3 unknown", "unknown"}, {"1 -- -- 2", "--"},
		{strings.Repeat("4 5 6 ", 30) + "? ?", "?"}, {strings.Repeat("4 5 6 ", 30) + "6a", "6a"},
		{"1 2 12a", ""}, {"1 2 3 a b", ""}, {"0 1 + - +", ""}, {"12 12a 14 14b 16 18 20 22", ""}, {"a b 1", ""},
	} {
		text := "n,y\n" + strings.ReplaceAll(strings.TrimSpace(c.cells), " ", ",1\n") + ",1\n"
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, declared := range []bool{false, true} {
			r := dataset.Rules{Targets: []string{"y"}}
			if declared {
				r.Categorical = []string{"n"}
			}
			e, err := dataset.Learn(read(t, text), r)
			s, openErr := dataset.Open(path)
			if openErr != nil {
				t.Fatal(openErr)
			}
			streamed, streamErr := s.Learn(context.Background(), r)
			if c.message == "" || declared {
				if err != nil || streamErr != nil {
					t.Errorf("%.40s, declared: %v: %v, %v", c.cells, declared, err, streamErr)
				} else if e.Inputs[0].Text == nil || !cmp.Equal(e, streamed) {
					t.Errorf("%.40s, declared: %v: not categories", c.cells, declared)
				}
				continue
			}
			for _, err := range []error{err, streamErr} {
				line := bytes.Count([]byte(text[:strings.Index(text, "\n"+c.message+",")+1]), []byte("\n")) + 1
				want := fmt.Sprintf(`:%d: column "n": %q is not a number, but `, line, c.message)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%.40s: %v, want %s", c.cells, err, want)
				}
			}
		}
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("n,y\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"y": `column "y": is named both as a target and as categorical`, "m": `has no column "m"`} {
		_, err := dataset.Learn(read(t, "n,y\n1,2\n"), dataset.Rules{Targets: []string{"y"}, Categorical: []string{name}})
		s, openErr := dataset.Open(path)
		if openErr != nil {
			t.Fatal(openErr)
		}
		_, streamErr := s.Learn(context.Background(), dataset.Rules{Targets: []string{"y"}, Categorical: []string{name}})
		for _, err := range []error{err, streamErr} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		}
	}
}

package dataset_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// TestComments checks that comments are removed, and that errors give the line numbers of the file with its
// comments.
func TestComments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := dataset.File{Path: path, Dialect: dataset.Dialect{Comment: "#"}}
	write("# it's \"quoted, a, b, c\r\n\n  # second\na;b # names\n1;\"x # y\"\n# 3;z\n2;z# tail\n")
	table, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if texts, err := table.Texts("b"); err != nil || strings.Join(texts, "|") != "x # y|z" {
		t.Errorf("%q, %v", texts, err)
	}
	want := features(t, learn(t, table, dataset.Rules{}), table)
	s, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Learn(context.Background(), dataset.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Blocks(context.Background(), e, 5, func(x, _ *mat.Dense) error {
		if !mat.Equal(x, want) {
			t.Errorf("in blocks:\n%v", mat.Formatted(x))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	write("# 1\n# 2\na,b\n# 4\n1,2\n3\n")
	_, err = f.Read()
	wantError(t, err, path+":6: has 1 cell where the header has 2")
	write("# 1\n\na,a\n")
	if _, err = f.Read(); err == nil || !strings.HasPrefix(err.Error(), path+":3: ") {
		t.Error(err)
	}
	f.Dialect.Comment = "\""
	_, err = f.Read()
	wantError(t, err, path+`: the character '"' cannot begin comments: use # or another mark`)
}

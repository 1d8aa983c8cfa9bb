package dataset_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestOpened checks that an open file is read from its beginning each time, even after it has been deleted.
func TestOpened(t *testing.T) {
	text := "a,y\n" + strings.Repeat("1,2\n3,4\n", 500)
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Skipf("an open file cannot be removed here: %v", err)
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	from := dataset.File{Path: "far://away/t.csv", Opened: f}
	s, err := from.Open()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rows := 0
		if err := s.Tables(context.Background(), func(t *dataset.Table) error { rows += t.Rows(); return nil }); err != nil || rows != 1000 {
			t.Errorf("%d rows, %v", rows, err)
		}
	}
	table, err := from.Read()
	if err != nil || table.Rows() != 1000 || table.Source != "far://away/t.csv" || table.Sparse() {
		t.Errorf("%+v, %v", table, err)
	}
	from.Path = "far://away/t.parquet"
	_, err = from.Read()
	wantError(t, err, "far://away/t.parquet: has the name of a Parquet file but not the signature")
}

// TestReadLIBSVM checks that ReadLIBSVM reads a file whose first row has no features.
func TestReadLIBSVM(t *testing.T) {
	text := "7\n8 2:0.5\n"
	table, err := dataset.ReadLIBSVM("-", strings.NewReader(text))
	if err != nil || table.Rows() != 2 || !table.Sparse() || strings.Join(table.Names(), " ") != "x1 x2 label" {
		t.Errorf("%v, %v", table, err)
	}
	_, err = dataset.ReadLIBSVM("-", strings.NewReader("7 x\n"))
	wantError(t, err, `standard input:1: "x" has no colon; index:value is needed`)
}

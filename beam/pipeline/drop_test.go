package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestDroppedColumns checks that a dropped column has no effect, whatever its cells contain, as in mercer fit.
func TestDroppedColumns(t *testing.T) {
	const seed = 20261125
	t.Logf("seed %d", seed)
	header, rows := lines(seed, 400, false)
	for _, dropped := range []struct {
		name string
		cell func(i int) string
	}{
		{"key", func(i int) string { return fmt.Sprintf("n%d", i) }}, // this column has more distinct texts than a column of categories may have
		{"the day", func(i int) string { return "" }},                // a column without values
		{`a "b", c`, func(i int) string { return []string{"1", "2", "3", "abc", "inf", "4"}[i*i%6] }},
	} {
		name := `"` + strings.ReplaceAll(dropped.name, `"`, `""`) + `"`
		withColumn := make([]string, len(rows))
		for i, row := range rows {
			withColumn[i] = dropped.cell(i) + "," + row
		}
		p := Params{
			Targets: []string{"y"}, Kernels: []string{"gaussian(sigma=1)", "gaussian(sigma=3)"}, Functions: 20,
			Passes: 1, Seed: seed, Device: "cpu", WholeFiles: true,
		}
		p.Inputs = []string{write(t, header, rows, 150)}
		want, _ := fit(t, p)
		p.Inputs, p.Drop = []string{write(t, name+","+header, withColumn, 150)}, []string{dropped.name}
		got, result := fit(t, p)
		if len(result.Report.Dropped) != 1 || result.Report.Features != 5 {
			t.Errorf("%s: the report has %+v", name, result.Report)
		}
		checkNear(t, name, arrays(got.Model), arrays(want.Model), 0) // the same pieces give the same sums
	}
}

// TestDroppedByOneRule checks that with dropped columns, Beam gives the same encoder or the same error as Learn.
func TestDroppedByOneRule(t *testing.T) {
	const seed = 20261126
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	list, err := os.ReadFile(filepath.Join("..", "..", "dataset", "testdata", "parquet", "go-list.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var libsvm strings.Builder // the last 150 rows have no feature x9
	for i := range 200 {
		fmt.Fprintf(&libsvm, "%d 1:%d 3:%d", i%7, i, i*i%11)
		if i < 50 {
			fmt.Fprintf(&libsvm, " 9:%d", i%3)
		}
		libsvm.WriteString("\n")
	}
	dir := folder(t, map[string][]byte{
		"t.csv":      []byte("id,a,b,y\n" + strings.Repeat("n,1,2,3\nm,2,7,4\nm,5,3,5\n", 10) + "n,1,x,2\n"),
		"l.parquet":  list,
		"z.libsvm":   []byte(libsvm.String()),
		"one.csv":    []byte("id,y\n1,2\n2,3\n3,4\n"),
		"quoted.csv": []byte("\"a,b\",c,y\n1,2,3\n2,1,4\n"),
	})
	for _, c := range []struct {
		file, target string
		drop         []string
		want         string // a part of the error; "" for no error
	}{
		{"t.csv", "y", []string{"id", "b"}, ""},
		{"t.csv", "y", []string{"id"}, "is not a number"},
		{"t.csv", "y", []string{"id", "idd"}, `has no column "idd"`},
		{"t.csv", "y", []string{"id", "y"}, `column "y": is named both as a target and as dropped`},
		{"t.csv", "y", []string{"id", "id"}, `column "id": is named twice as dropped`},
		{"l.parquet", "price", []string{"list"}, ""},
		{"z.libsvm", "label", []string{"x9"}, ""},
		{"z.libsvm", "label", []string{"x10"}, `has no column "x10"`},
		{"one.csv", "y", []string{"id"}, "has no column except the target"},
		{"quoted.csv", "y", []string{"a,b"}, ""},
	} {
		path := filepath.Join(dir, c.file)
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := dataset.Learn(table, dataset.Rules{Targets: []string{c.target}, Drop: c.drop, Standardize: true})
		if (c.want == "") != (wantErr == nil) || wantErr != nil && !strings.Contains(wantErr.Error(), c.want) {
			t.Fatalf("%s without %q: %v, want %q", c.file, c.drop, wantErr, c.want)
		}
		for _, size := range []int64{0, 1024} {
			p, err := Params{Inputs: []string{path}, Targets: []string{c.target}, Drop: c.drop, Model: "m", PieceBytes: size}.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			got, err := encoderOf(t, p, r)
			if wantErr != nil && err != nil && !errors.As(err, new(*dataset.Error)) {
				t.Errorf("%s without %q: %v, want %v", c.file, c.drop, err, wantErr)
				continue
			}
			sameRule(t, fmt.Sprintf("%s without %q, pieces of %d bytes", c.file, c.drop, size), got, err, want, wantErr, 1e-12)
		}
	}
}

package dataset_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// shared returns the path of a public data set, which is in a folder beside the repository, or skips the test.
func shared(t testing.TB, name string) string {
	t.Helper()
	return required.Data(t, name)
}

func readFile(t testing.TB, path string) *dataset.Table {
	t.Helper()
	table, err := dataset.ReadCSV(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestPenguins compares the texts, numbers and missing cells of a real table with results of Python.
func TestPenguins(t *testing.T) {
	path := shared(t, "penguins_mixed.csv")
	table := readFile(t, path)
	if table.Rows() != 342 {
		t.Errorf("%d rows, want 342", table.Rows())
	}
	rules := dataset.Rules{Targets: []string{"target"}, Standardize: true}
	e := learn(t, table, rules)
	want := []string{
		"species=Adelie", "species=Chinstrap", "species=Gentoo",
		"island=Biscoe", "island=Dream", "island=Torgersen",
		"bill_length_mm", "bill_depth_mm", "flipper_length_mm",
		"sex=female", "sex=male",
	}
	if !slices.Equal(e.FeatureNames(), want) {
		t.Errorf("features are %q, want %q", e.FeatureNames(), want)
	}
	x := features(t, e, table)
	counts := map[string]float64{
		"species=Adelie": 151, "species=Chinstrap": 68, "species=Gentoo": 123,
		"island=Biscoe": 167, "island=Dream": 124, "island=Torgersen": 51,
		"sex=female": 165, "sex=male": 168 + 9, // "male" replaces 9 missing cells
	}
	for j, name := range want {
		column := mat.Col(nil, j, x)
		if n, ok := counts[name]; ok {
			if sum := mat.Sum(x.ColView(j)); sum != n {
				t.Errorf("%s occurs %v times, want %v", name, sum, n)
			}
			continue
		}
		n := float64(len(column))
		mean, sd := stat.PopMeanStdDev(column, nil)
		// The features, of magnitude at most 3, have two rounding errors each; sums of n features have at most n more.
		if tol := 2 * (n + 2) * 3 * 0x1p-53; math.Abs(mean) > tol || math.Abs(sd-1) > tol {
			t.Errorf("%s has mean %g and standard deviation 1%+g, allowed %g", name, mean, sd-1, tol)
		}
	}
	if fill := e.Inputs[4].Number; e.Inputs[4].Name != "flipper_length_mm" || fill.Fill != 197 {
		t.Errorf("%s has median %v, want flipper_length_mm and 197", e.Inputs[4].Name, fill.Fill)
	}
	rules.RefuseMissing = true
	_, err := dataset.Learn(table, rules)
	wantError(t, err, path+`:9: column "sex": the cell is empty; missing cells are refused: give it a value or drop the row`)
}

// TestDiabetes checks that features without standardization equal the cells, also from the compressed file.
func TestDiabetes(t *testing.T) {
	path := shared(t, "diabetes.csv")
	table := readFile(t, path)
	e := learn(t, table, dataset.Rules{Targets: []string{"target"}})
	x := features(t, e, table)
	if rows, cols := x.Dims(); rows != 442 || cols != 10 {
		t.Fatalf("features are %d×%d, want 442×10", rows, cols)
	}
	if want := []float64{59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87}; !slices.Equal(x.RawRowView(0), want) {
		t.Errorf("row 1 is %v, want %v", x.RawRowView(0), want)
	}
	y, err := e.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	// The documentation of the data set gives the mean of the target to one decimal.
	if mean := mat.Sum(y) / 442; math.Abs(mean-152.1) > 0.05 {
		t.Errorf("the target's mean is %v, want 152.1", mean)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(data)
	w.Close()
	reread, err := dataset.ReadCSV("-", io.Reader(&z))
	if err != nil {
		t.Fatal(err)
	}
	if !mat.Equal(x, features(t, e, reread)) {
		t.Error("the compressed file gives other features")
	}
}

// BenchmarkReadCSV times ReadCSV for a file of 20,640 × 9 numbers.
func BenchmarkReadCSV(b *testing.B) {
	path := shared(b, "california_housing.csv")
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		readFile(b, path)
	}
}

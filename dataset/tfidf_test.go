package dataset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// messages is a CSV file with short texts, a column of numbers and a column of categories.
const messages = "text,size,kind,label\n" +
	"free prize free,1,a,spam\n" +
	"see you at home,3,b,ham\n" +
	"\"home, free\",5,a,ham\n" +
	",7,b,ham\n"

func messageRules() dataset.Rules {
	return dataset.Rules{Targets: []string{"label"}, Labels: true, TFIDF: []string{"text"}, Standardize: true}
}

// TestTextFeatures compares the tf-idf features of a column with their formula: as a sparse and as a dense matrix, with
// a saved encoder, for a part of the rows, and in passes over the file.
func TestTextFeatures(t *testing.T) {
	path := file(t, "a.csv", []byte(messages))
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := learn(t, table, messageRules())
	names := []string{"text=at", "text=free", "text=home", "text=prize", "text=see", "text=you", "size", "kind=a", "kind=b"}
	if !slices.Equal(e.FeatureNames(), names) || !e.Sparse() || e.Width() != len(names) || e.Raw() != "" {
		t.Fatalf("the features are %q", e.FeatureNames())
	}
	once, twice := 1+math.Log(5./2), 1+math.Log(5./3) // idf of a word in one of four texts, and of a word in two of them
	first, second, third := math.Hypot(2*twice, once), math.Sqrt(3*once*once+twice*twice), math.Sqrt2*twice
	size := func(v float64) float64 { return (v - 4) / math.Sqrt(5) }
	want := mat.NewDense(4, 9, []float64{
		0, 2 * twice / first, 0, once / first, 0, 0, size(1), 1, 0,
		once / second, 0, twice / second, 0, once / second, once / second, size(3), 0, 1,
		0, twice / third, twice / third, 0, 0, 0, size(5), 1, 0,
		0, 0, 0, 0, 0, 0, size(7), 0, 1,
	})
	const tol = 8 * 0x1p-52 // for several roundings of numbers below 2
	checkEqual := func(name string, x mat.Matrix, err error, want mat.Matrix) {
		t.Helper()
		if err != nil || !mat.EqualApprox(x, want, tol) {
			t.Errorf("%s: %v\n%v", name, err, mat.Formatted(x))
		}
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	read := &dataset.Encoder{}
	if err := json.Unmarshal(encoded, read); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*dataset.Encoder{e, read} {
		x, err := e.SparseFeatures(table)
		checkEqual("sparse", x, err, want)
		if err := x.Check(); err != nil {
			t.Error(err)
		}
		dense, err := e.Features(table)
		checkEqual("dense", dense, err, want)
		x, err = e.SparseFeatures(table.Select([]int{2, 0}))
		var first mat.Dense
		first.Stack(want.Slice(2, 3, 0, 9), want.Slice(0, 1, 0, 9))
		checkEqual("rows 3 and 1", x, err, &first)
	}
	if n := e.Nonzeros(table); n != 8+4+4 { // numbers of nonzero features of the texts, the numbers and the categories
		t.Errorf("%d values are not 0", n)
	}
	s, err := dataset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	index := 0
	err = s.Blocks(context.Background(), read, 3, func(x, _ *mat.Dense) error {
		n, _ := x.Dims()
		checkEqual("passes", x, nil, want.Slice(index, index+n, 0, 9))
		index += n
		return nil
	})
	if err != nil || index != 4 {
		t.Errorf("passes: %d rows, %v", index, err)
	}
	notes := e.RowWarnings(table)
	if len(notes[0].Missing) > 0 || !slices.Equal(notes[3].Missing, []string{"text"}) || notes[0].Unknown != nil || notes[0].Unused != nil {
		t.Errorf("the notes are %+v", notes)
	}
}

// TestUnknownTexts checks the report on texts without a known n-gram, and the error for them with RefuseUnknown.
func TestUnknownTexts(t *testing.T) {
	read := func(csv string) *dataset.Table {
		t.Helper()
		table, err := dataset.Read(file(t, "a.csv", []byte(csv)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	e := learn(t, read("title,body,y\ngood news,see you,1\nbad news,see me,2\n"), dataset.Rules{Targets: []string{"y"}, TFIDF: []string{"title", "body"}})
	if want := []string{"title=bad", "title=good", "title=news", "body=me", "body=see", "body=you"}; !slices.Equal(e.FeatureNames(), want) {
		t.Errorf("the features are %q", e.FeatureNames())
	}
	later := read("title,body\nno,you see\n,nothing\ngood,at all\nbad,at all\nok,\n")
	want := []dataset.Unknown{{Column: "title", TFIDF: true, Rows: 3, Example: "no"}, {Column: "body", TFIDF: true, Rows: 4, Example: "at all"}}
	if list := e.Unknown(later); !slices.Equal(list, want) {
		t.Errorf("unknown are %+v, want %+v", list, want)
	}
	x, err := e.SparseFeatures(later)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 2, 2, 3, 4, 4}; !slices.Equal(x.Indptr, want) {
		t.Errorf("the rows of features begin at %v, want %v", x.Indptr, want)
	}
	notes := e.RowWarnings(later)
	if len(notes[0].Unknown) != 1 || notes[0].Unknown["title"] != "no" || len(notes[1].Unknown) != 1 || notes[1].Unknown["body"] != "nothing" || !slices.Equal(notes[4].Missing, []string{"body"}) {
		t.Errorf("the notes are %+v", notes)
	}
	e.RefuseUnknown = true
	if _, err := e.SparseFeatures(later); err == nil || !strings.Contains(err.Error(), `:2: column "title": "no" has no n-gram of the training texts`) {
		t.Error(err)
	}
}

// TestTextFeaturesOfPart checks that each fold of a cross-validation learns a vocabulary of its own.
func TestTextFeaturesOfPart(t *testing.T) {
	table, err := dataset.Read(file(t, "a.csv", []byte(messages)), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := messageRules()
	part, err := learn(t, table, r).LearnPart(table.Select([]int{0, 2}), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"text=free", "text=home", "text=prize", "size", "kind=a"}; !slices.Equal(part.FeatureNames(), want) {
		t.Errorf("the features are %q", part.FeatureNames())
	}
}

// TestTextFeatureFaults checks the errors for wrong rules, tables and encoders.
func TestTextFeatureFaults(t *testing.T) {
	path := file(t, "a.csv", []byte(messages))
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(r *dataset.Rules)
		want   string
	}{
		{func(r *dataset.Rules) { r.TFIDF, r.NGrams.MaxN = nil, 2 }, "n-grams are specified, but no column of texts is named"},
		{func(r *dataset.Rules) { r.TFIDF = []string{"texts"} }, `has no column "texts"`},
		{func(r *dataset.Rules) { r.TFIDF = []string{"label"} }, "is named both as a target and as a text for tf-idf features"},
		{func(r *dataset.Rules) { r.TFIDF = []string{"text", "text"} }, "is named twice as a text for tf-idf features"},
		{func(r *dataset.Rules) { r.Text = "kind" }, `is named as a text for tf-idf features, but the whole input is the column "kind"`},
		{func(r *dataset.Rules) { r.NGrams.Analyzer = "line" }, `the analyzer is "line"; it must be word, char or char_wb`},
		{func(r *dataset.Rules) { r.NGrams.MinDF = 4 }, "no n-gram occurs in at least 4 of the 4 texts"},
		{func(r *dataset.Rules) { r.TFIDF = []string{"kind"} }, "the texts have no n-grams"},
		{func(r *dataset.Rules) { r.RefuseMissing = true }, `:5: column "text": the cell is empty`},
	} {
		r := messageRules()
		c.change(&r)
		if _, err := dataset.Learn(table, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	numbers, err := dataset.NewTable("", dataset.Numbers("text", []float64{1, 2}), dataset.Texts("label", []string{"a", "b"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Learn(numbers, messageRules()); err == nil || !strings.Contains(err.Error(), "holds numbers, not texts") {
		t.Error(err)
	}
	encoded, err := json.Marshal(learn(t, table, messageRules()))
	if err != nil {
		t.Fatal(err)
	}
	for old, forged := range map[string]string{
		`"grams":["at",`: `"grams":["zz",`,
		`"texts":4`:      `"texts":0`,
		`"df":[1,`:       `"df":[5,`,
		`"df":[`:         `"df":[1,`,
		`"tfidf":{`:      `"raw":"text","tfidf":{"max_n":99,`,
	} {
		e := &dataset.Encoder{}
		text := strings.Replace(string(encoded), old, forged, 1)
		if err := json.Unmarshal([]byte(text), e); err != nil || text == string(encoded) {
			t.Fatal(err, text)
		}
		for _, use := range []func() error{
			e.Check,
			func() error { _, err := e.SparseFeatures(table); return err },
			func() error { _, err := e.Features(table); return err },
		} {
			if err := use(); err == nil || !strings.HasPrefix(err.Error(), `dataset: encoder: column "text"`) {
				t.Error(forged, err)
			}
		}
	}
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "%q,%d\n", fmt.Sprintf("word%d", i), i%2)
	}
	manyColumns, err := dataset.Read(file(t, "b.csv", []byte("text,label\n"+b.String())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learn(t, manyColumns, messageRules()).Features(manyColumns); err == nil || !strings.Contains(err.Error(), "too many for a dense matrix") {
		t.Error(err)
	}
}

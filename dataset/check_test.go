package dataset_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// throughJSON returns e after encoding as JSON and decoding, and the JSON. The two encoders must be equal.
func throughJSON(t *testing.T, e *dataset.Encoder) (*dataset.Encoder, []byte) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var decoded dataset.Encoder
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	if err := decoded.Check(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, &decoded); diff != "" {
		t.Errorf("changed by JSON:\n%s", diff)
	}
	return &decoded, data
}

// TestEncoderJSON checks that a decoded encoder gives features with the same bits, and that an encoder that is
// learned again gives the same JSON.
func TestEncoderJSON(t *testing.T) {
	table := read(t, mixed)
	e := learn(t, table, dataset.Rules{Targets: []string{"y"}, Standardize: true})
	decoded, data := throughJSON(t, e)
	if !mat.Equal(features(t, e, table), features(t, decoded, table)) {
		t.Error("features differ")
	}
	relearned, err := json.Marshal(learn(t, read(t, mixed), dataset.Rules{Targets: []string{"y"}, Standardize: true}))
	if err != nil || string(relearned) != string(data) {
		t.Errorf("learned again, the JSON differs:\n%s\n%s, %v", data, relearned, err)
	}
}

// TestCheck checks that Check and Features return an error for encoders that Learn cannot return.
func TestCheck(t *testing.T) {
	table := read(t, mixed)
	number := func(fill, mean, scale float64) dataset.Input {
		return dataset.Input{Name: "size", Number: &dataset.Number{Fill: fill, Mean: mean, Scale: scale}}
	}
	text := func(fill string, categories ...string) dataset.Input {
		return dataset.Input{Name: "color", Text: &dataset.Text{Fill: fill, Categories: categories}}
	}
	manyCategories := make([]string, dataset.MaxCategories+1)
	for i := range manyCategories {
		manyCategories[i] = fmt.Sprintf("c%04d", i)
	}
	manyInputs := make([]dataset.Input, dataset.MaxFeatures/dataset.MaxCategories+1)
	for i := range manyInputs {
		manyInputs[i] = dataset.Input{Name: fmt.Sprint(i), Text: &dataset.Text{Fill: manyCategories[0], Categories: manyCategories[:dataset.MaxCategories]}}
	}
	valid := number(0, 0, 1)
	for _, c := range []struct {
		inputs  []dataset.Input
		outputs []string
		want    string
	}{
		{[]dataset.Input{valid}, []string{"y"}, ""},
		{nil, nil, "dataset: encoder: has no inputs"},
		{[]dataset.Input{{Name: "size"}}, nil, `dataset: encoder: column "size": must be either a number or a text`},
		{[]dataset.Input{{Name: "size", Number: valid.Number, Text: text("a", "a").Text}}, nil, `dataset: encoder: column "size": must be either a number or a text`},
		{[]dataset.Input{{Number: valid.Number}}, nil, `dataset: encoder: the name "" is empty`},
		{[]dataset.Input{{Name: "\xff", Number: valid.Number}}, nil, `dataset: encoder: the name "\xff" is not valid UTF-8`},
		{[]dataset.Input{{Name: " a", Number: valid.Number}}, nil, `dataset: encoder: the name " a" begins or ends with a space`},
		{[]dataset.Input{valid, valid}, nil, `dataset: encoder: column "size" occurs twice`},
		{[]dataset.Input{valid}, []string{"size"}, `dataset: encoder: column "size" occurs twice`},
		{[]dataset.Input{valid}, []string{"y", "y"}, `dataset: encoder: column "y" occurs twice`},
		{[]dataset.Input{valid}, []string{""}, `dataset: encoder: the name "" is empty`},
		{[]dataset.Input{number(math.NaN(), 0, 1)}, nil, `dataset: encoder: column "size": fill must be finite, but is NaN`},
		{[]dataset.Input{number(0, math.Inf(1), 1)}, nil, `dataset: encoder: column "size": mean must be finite, but is +Inf`},
		{[]dataset.Input{number(0, 0, math.Inf(1))}, nil, `dataset: encoder: column "size": scale must be finite, but is +Inf`},
		{[]dataset.Input{number(0, 0, 0)}, nil, `dataset: encoder: column "size": scale must be > 0, but is 0`},
		{[]dataset.Input{number(0, 0, -1)}, nil, `dataset: encoder: column "size": scale must be > 0, but is -1`},
		{[]dataset.Input{text("a")}, nil, `dataset: encoder: column "color": must have 1 to 1000 categories, has 0`},
		{[]dataset.Input{text(manyCategories[0], manyCategories...)}, nil, `dataset: encoder: column "color": must have 1 to 1000 categories, has 1001`},
		{[]dataset.Input{text("b", "b", "a")}, nil, `dataset: encoder: column "color": categories must be sorted and distinct, but "b" precedes "a"`},
		{[]dataset.Input{text("a", "a", "a")}, nil, `dataset: encoder: column "color": categories must be sorted and distinct, but "a" precedes "a"`},
		{[]dataset.Input{text("a", "", "a")}, nil, `dataset: encoder: column "color": "" is not a valid category`},
		{[]dataset.Input{text("c", "a", "b")}, nil, `dataset: encoder: column "color": the fill value "c" is not a category`},
		{manyInputs, nil, `dataset: encoder: makes more than 1048576 features`},
	} {
		e := dataset.Encoder{Inputs: c.inputs, Outputs: c.outputs}
		err := e.Check()
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if _, err := e.Features(table); err == nil {
			t.Errorf("Features uses an encoder that is wrong: %s", c.want)
		}
		if _, err := e.Targets(table); err == nil {
			t.Errorf("Targets uses an encoder that is wrong: %s", c.want)
		}
	}
}

func FuzzEncoderJSON(f *testing.F) {
	f.Add([]byte(`{"inputs":[{"name":"size","number":{"fill":1,"mean":0,"scale":1}},{"name":"color","text":{"fill":"red","categories":["blue","red"]}}],"outputs":["y"]}`), mixed)
	f.Add([]byte(`{"inputs":[{"name":"size","number":{"scale":1e-320}}]}`), mixed)
	f.Add([]byte(`{"inputs":[{"name":"a","text":{"fill":"?","categories":["?"]}}],"refuse_missing":true}`), "a\n?\n")
	f.Fuzz(func(t *testing.T, data []byte, csv string) {
		var e dataset.Encoder
		if json.Unmarshal(data, &e) != nil {
			return
		}
		table, err := dataset.ReadCSV("-", strings.NewReader(csv))
		if err != nil {
			return
		}
		checked := e.Check()
		x, err := e.Features(table)
		if checked != nil && err == nil {
			t.Fatalf("Features accepts what Check does not: %v", checked)
		}
		if err == nil {
			rows, cols := x.Dims()
			if rows != table.Rows() || cols != len(e.FeatureNames()) {
				t.Fatalf("features are %d×%d for %d rows and %d names", rows, cols, table.Rows(), len(e.FeatureNames()))
			}
			if s := mat.Sum(x); math.IsNaN(s) {
				t.Fatal("features hold NaN")
			}
		}
		if y, err := e.Targets(table); err == nil && math.IsNaN(mat.Sum(y)) {
			t.Fatal("targets hold NaN")
		}
	})
}

package dataset_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

var update = flag.Bool("update", false, "write testdata/encoders/golden.json anew")

// goldenFile lists the tables of testdata/encoders, rules for them, and the expected results of Learn: an encoder
// as JSON, or an error. The test of the module beam reads the same file.
const goldenFile = "testdata/encoders/golden.json"

type goldenCase struct {
	Table  string            `json:"table"`
	Rules  map[string]any    `json:"rules"` // the fields of dataset.Rules that are not zero
	Learn  string            `json:"learn"`
	Others map[string]string `json:"others,omitempty"` // the results of Stream.Learn and of module beam, by their names, if they differ from the result of Learn
}

func readGolden(t *testing.T) (cases []goldenCase) {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (c goldenCase) rules(t *testing.T) (r dataset.Rules) {
	t.Helper()
	text, err := json.Marshal(c.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// golden returns the JSON of an encoder, or the text of err if it is not nil.
func golden(t *testing.T, e *dataset.Encoder, err error) string {
	t.Helper()
	var dataErr *dataset.Error
	if errors.As(err, &dataErr) {
		unlocated := *dataErr
		unlocated.Source = filepath.Base(dataErr.Source)
		return "error: " + unlocated.Error()
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return asJSON(t, e)
}

// TestGoldenEncoders checks the bits of the encoders that Learn and Stream.Learn make from small tables.
func TestGoldenEncoders(t *testing.T) {
	cases := readGolden(t)
	for i := range cases {
		c := &cases[i]
		path := filepath.Join(filepath.Dir(goldenFile), c.Table)
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		learned, err := dataset.Learn(table, c.rules(t))
		text := golden(t, learned, err)
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		learned, err = s.Learn(t.Context(), c.rules(t))
		streamed := golden(t, learned, err)
		want, ok := c.Others["stream"]
		if !ok {
			want = c.Learn
		}
		switch {
		case *update:
			delete(c.Others, "stream")
			if c.Learn = text; streamed != text {
				if c.Others == nil {
					c.Others = map[string]string{}
				}
				c.Others["stream"] = streamed
			}
		case text != c.Learn:
			t.Errorf("%s, %v: Learn gives\n%s\nwant\n%s", c.Table, c.Rules, text, c.Learn)
		case streamed != want:
			t.Errorf("%s, %v: Stream.Learn gives\n%s\nwant\n%s", c.Table, c.Rules, streamed, want)
		}
	}
	if *update {
		text, err := json.MarshalIndent(cases, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGoldenLongStream checks the bits of the encoder that Stream.Learn makes from a file that has several parts
// and more rows than the sample.
func TestGoldenLongStream(t *testing.T) {
	var text strings.Builder
	text.WriteString("many,few,late,word,w,y\n")
	for i := range 70_000 {
		category := strconv.Itoa(i * 7919 % 69_997)
		if i%10 == 3 {
			category = "NA"
		}
		lateText := i % 9
		if i > 40_000 {
			lateText = i
		}
		fmt.Fprintf(&text, "%s.25,%v,%d,%s,%d,%d\n", category, float64(i*i%101)/4, lateText, []string{"a", "b", "", "c c"}[i%7%4], i%4, i%3)
	}
	path := file(t, "long.csv", []byte(strings.ReplaceAll(text.String(), "NA.25", "NA")))
	for _, c := range []struct {
		rules dataset.Rules
		want  string
	}{
		{dataset.Rules{Targets: []string{"y"}, Drop: []string{"w"}, Standardize: true}, `{"inputs":[{"name":"many","number":{"fill":35044.75,"mean":35001.656442857144,"scale":19170.198056935475,"low":0.25,"high":69996.25}},{"name":"few","number":{"fill":12.25,"mean":12.499075,"scale":7.607808021656107,"high":25}},{"name":"late","number":{"fill":7,"mean":23572.928485714947,"scale":27800.036971743895,"high":69999}},{"name":"word","text":{"fill":"a","categories":["a","b","c c"]}}],"outputs":["y"],"dropped":["w"],"refuse_missing":false,"na_values":["#N/A","#N/A N/A","#NA","-1.#IND","-1.#QNAN","-NaN","-nan","1.#IND","1.#QNAN","\u003cNA\u003e","N/A","NA","NULL","NaN","None","n/a","nan","null"]}`},
		{dataset.Rules{Targets: []string{"y"}, Weight: "w", Labels: true, Standardize: true}, `{"inputs":[{"name":"many","number":{"fill":35001.75,"mean":34999.008,"scale":18811.478407301503,"low":0.25,"high":69996.25}},{"name":"few","number":{"fill":12.25,"mean":12.49847857142857,"scale":7.607867525167503,"high":25}},{"name":"late","number":{"fill":7,"mean":23573.85704761762,"scale":27800.367253352753,"high":69999}},{"name":"word","text":{"fill":"a","categories":["a","b","c c"]}}],"outputs":["y"],"weight":"w","labels":["0","1","2"],"refuse_missing":false,"na_values":["#N/A","#N/A N/A","#NA","-1.#IND","-1.#QNAN","-NaN","-nan","1.#IND","1.#QNAN","\u003cNA\u003e","N/A","NA","NULL","NaN","None","n/a","nan","null"]}`},
	} {
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Learn(t.Context(), c.rules)
		if got := golden(t, e, err); got != c.want {
			t.Errorf("%+v:\ngot  %s\nwant %s", c.rules, got, c.want)
		}
	}
}

package dataset_test

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// summaries divides a CSV file of n rows into tables of 40 rows and returns their summaries.
func summaries(t *testing.T, n int, r dataset.Rules) (list []*dataset.Summary) {
	t.Helper()
	const header = "many,few,offset,huge,word,y\n"
	for from := 0; from < n; from += 40 {
		text := strings.Builder{}
		for i := from; i < min(from+40, n); i++ {
			distinct := fmt.Sprint(math.Sin(float64(i)))
			if i%7 == 2 {
				distinct = "NA"
			}
			huge := "1.7e308"
			if i%10 == 9 {
				huge = "-1.7e308"
			}
			fmt.Fprintf(&text, "%s,%d,%d,%s,%s,%d\n", distinct, i%6, int64(1e12)+int64(i), huge, []string{"b", "a", "", "b", "a"}[i%5], i)
		}
		table, err := dataset.Dialect{}.ReadLines([]byte(header), strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		s := &dataset.Summary{}
		if err := s.Add(table, r, int64(from)); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// throughGob encodes a summary and decodes it.
func throughGob(t *testing.T, s *dataset.Summary) *dataset.Summary {
	t.Helper()
	var b bytes.Buffer
	decoded := &dataset.Summary{}
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(&b).Decode(decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// TestSummariesMergeInAnyOrder merges summaries in random order, some after encoding and decoding. It checks that the
// encoders have the same bits, and compares two columns with closed forms: offset is 10¹² + i for i < n, and huge has
// nine numbers v for each number −v.
func TestSummariesMergeInAnyOrder(t *testing.T) {
	const seed = 29
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rules := dataset.Rules{Targets: []string{"y"}, Standardize: true}
	const n = 2400
	nearlyEqual := func(got, want float64) bool { return math.Abs(got-want) <= 0x1p-51*want }
	want := ""
	for order := range 4 {
		list := summaries(t, n, rules)
		for len(list) > 1 {
			i := rng.IntN(len(list))
			list[0], list[i] = list[i], list[0]
			j := 1 + rng.IntN(len(list)-1)
			if rng.IntN(2) == 0 {
				list[j] = throughGob(t, list[j])
			}
			list[0].Merge(list[j])
			list = append(list[:j], list[j+1:]...)
		}
		e, err := list[0].Encoder("tables", dataset.Dialect{}, rules, func(string) []float64 { return []float64{1, math.NaN(), 0.5, 2} })
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, e); order == 0 {
			want = got
		} else if got != want {
			t.Errorf("order %d gives\n%s\nwant\n%s", order, got, want)
		}
		if many, offset, huge := e.Inputs[0].Number, e.Inputs[2].Number, e.Inputs[3].Number; many.Fill != 1 ||
			!nearlyEqual(offset.Mean, 1e12+(n-1)/2.) || !nearlyEqual(offset.Scale, math.Sqrt((n*n-1)/12.)) || !nearlyEqual(huge.Mean, 0.8*1.7e308) || !nearlyEqual(huge.Scale, 0.6*1.7e308) {
			t.Errorf("many is %+v, offset %+v, huge %+v", *many, *offset, *huge)
		}
	}
}

// TestSummaryNamesTheFirstFault checks that the error is about the first wrong cell of the file, in whatever order its
// parts were added, and that the error has the byte offset of the part.
func TestSummaryNamesTheFirstFault(t *testing.T) {
	read := func(text string) *dataset.Table {
		table, err := dataset.Dialect{}.ReadLines([]byte("x,y\n"), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	rules := dataset.Rules{Targets: []string{"y"}}
	tables := []*dataset.Table{read("1,1\n2,2\n"), read("3,3\ninf,4\n"), read("inf,5\n")}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		s := &dataset.Summary{}
		for _, k := range order {
			if err := s.Add(tables[k], rules, int64(100*k)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Encoder("a.csv", dataset.Dialect{}, rules, func(string) []float64 { return nil })
		e, ok := err.(*dataset.Error)
		if !ok || e.Line != 2 || e.Offset != 100 || e.Column != "x" || e.Value != "inf" {
			t.Errorf("order %v: %v", order, err)
		}
	}
	if _, err := (&dataset.Summary{}).Encoder("a.csv", dataset.Dialect{}, rules, nil); err == nil || !strings.Contains(err.Error(), "a.csv: has no rows") {
		t.Errorf("no rows: %v", err)
	}
}

package tfidf

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// unusualTexts lists texts that different programs treat in different ways.
var unusualTexts = []string{
	"", "   ", "a", "Hello hello, WORLD world's end", "cafe\u0301 café naïve", "İstanbul Iğdır ISPARTA ıI",
	"ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ' ΑΣ\u0301Β Σ.Σ", "no\u00a0break \u2003em  two\tab\t\ttabs", "line\r\nends\rof\nall\x1ckinds\x85 here",
	"👍🏽 thumbs 👩‍👩‍👧 family ❤️", "snake_case __init__ x_1 42 3.14 ²³ ½ Ⅷ", "नमस्ते दुनिया", "你好世界 再见", "STRASSE Straße ẞ ﬁn Ǆ", "go go go going gone go",
	"a\u0000b nul", "don't 'quote' \u2019tis", "x", "  lead and trail  ",
}

// settings lists the settings that are compared with scikit-learn, with scikit-learn's names.
var settings = []struct {
	params Params
	python string
}{
	{Params{}, ""},
	{Params{MaxN: 3, Sublinear: true}, "ngram_range=(1,3), sublinear_tf=True"},
	{Params{Analyzer: Word, MinN: 2, MinDF: 2}, "ngram_range=(2,2), min_df=2"},
	{Params{MinDF: 0.1, KeepCase: true}, "min_df=0.1, lowercase=False"},
	{Params{Analyzer: Char, MinN: 1, MaxN: 4}, "analyzer='char', ngram_range=(1,4)"},
	{Params{Analyzer: CharWB, MinN: 2, MaxN: 5, MinDF: 2}, "analyzer='char_wb', ngram_range=(2,5), min_df=2"},
	{Params{Analyzer: CharWB, MinN: 4, MaxN: 6, Sublinear: true}, "analyzer='char_wb', ngram_range=(4,6), sublinear_tf=True"},
}

// corpus returns unusualTexts, and sentences of a few words whose n-grams occur in several texts.
func corpus() []string {
	words := strings.Fields("the a cat dog Sat sat on mat mats it's running RUNS free call now 0800 txt £100 prize the the")
	texts := slices.Clone(unusualTexts)
	for i := range 200 {
		var b strings.Builder
		for k := range i%11 + 2 {
			b.WriteString(words[(i*7+k*k*3+i*k)%len(words)] + " ")
		}
		texts = append(texts, b.String())
	}
	return texts
}

// A result is the vocabulary and the features that scikit-learn's TfidfVectorizer learns from texts.
type result struct {
	Grams           []string
	IDF             []float64
	Indptr, Indices []int
	Data            []float64
}

// scikitLearn returns scikit-learn's vocabulary of texts[:trainSize] and features of all texts, for each setting.
func scikitLearn(t *testing.T, texts []string, trainSize int) (list []result) {
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, s := range settings {
		calls = append(calls, "dict("+s.python+")")
	}
	cmd := exec.Command(required.SKLearn(t), "-c", fmt.Sprintf(`
import json, sys
from sklearn.feature_extraction.text import TfidfVectorizer
texts = json.loads(sys.stdin.buffer.read().decode())
out = []
for settings in [%s]:
    v = TfidfVectorizer(**settings).fit(texts[:%d])
    x = v.transform(texts); x.sort_indices()
    out.append({'Grams': list(v.get_feature_names_out()), 'IDF': v.idf_.tolist(), 'Indptr': x.indptr.tolist(), 'Indices': x.indices.tolist(), 'Data': x.data.tolist()})
print(json.dumps(out))
`, strings.Join(calls, ", "), trainSize))
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// checkEqual compares vocabularies, weights and features with those of scikit-learn.
func checkEqual(t *testing.T, texts []string, trainSize int, list []result) {
	t.Helper()
	// The tolerance allows a few roundings of the logarithm, the products and the norm.
	const tol = 1e-12
	for k, s := range settings {
		want := list[k]
		v, err := Learn(texts[:trainSize], s.params)
		if err != nil {
			t.Fatal(err)
		}
		// A vocabulary does not change when it is encoded as JSON and decoded.
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		v = &Vocabulary{}
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v.Grams, want.Grams) {
			for i := range min(len(v.Grams), len(want.Grams)) {
				if v.Grams[i] != want.Grams[i] {
					t.Errorf("%s: n-gram %d is %q, want %q", s.python, i, v.Grams[i], want.Grams[i])
					break
				}
			}
			t.Errorf("%s: %d n-grams, want %d", s.python, v.Len(), len(want.Grams))
			continue
		}
		for i, gram := range v.Grams {
			if w := v.IDF(i); math.Abs(w-want.IDF[i]) > tol*w {
				t.Errorf("%s: the weight of %q is %v, want %v", s.python, gram, w, want.IDF[i])
			}
		}
		row, err := v.NewRow()
		if err != nil {
			t.Fatal(err)
		}
		var nonzeros int64
		for i, text := range texts {
			columns, values := row.Append(text, 0, nil, nil)
			if i < trainSize {
				nonzeros += int64(len(columns))
			}
			if len(columns) != want.Indptr[i+1]-want.Indptr[i] {
				t.Errorf("%s: %q has %d features, want %d", s.python, text, len(columns), want.Indptr[i+1]-want.Indptr[i])
				continue
			}
			for k, j := range columns {
				pos := want.Indptr[i] + k
				if int(j) != want.Indices[pos] || math.Abs(values[k]-want.Data[pos]) > tol {
					t.Errorf("%s: %q: feature %d is %d: %v, want %d: %v", s.python, text, k, j, values[k], want.Indices[pos], want.Data[pos])
				}
			}
		}
		if nonzeros != v.Nonzeros() {
			t.Errorf("%s: the training texts have %d features, Nonzeros returns %d", s.python, nonzeros, v.Nonzeros())
		}
	}
}

// TestEqualsScikitLearn compares the results with the installed scikit-learn, also on other texts.
func TestEqualsScikitLearn(t *testing.T) {
	texts := corpus()
	trainSize := len(texts) - 60
	checkEqual(t, texts, trainSize, scikitLearn(t, texts, trainSize))
}

var update = flag.Bool("update", false, "write testdata/sklearn.json.gz with the scikit-learn of this machine")

// TestEqualsSavedScikitLearn compares the results with saved results of scikit-learn 1.2.1.
func TestEqualsSavedScikitLearn(t *testing.T) {
	const name, trainSize = "testdata/sklearn.json.gz", 28
	texts := corpus()[:32]
	if *update {
		data, err := json.Marshal(scikitLearn(t, texts, trainSize))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []result
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		t.Fatal(err)
	}
	checkEqual(t, texts, trainSize, list)
}

// TestWorkersDoNotChangeResults checks that the vocabulary is the same for one worker and for eight.
func TestWorkersDoNotChangeResults(t *testing.T) {
	texts := corpus()
	var list []*Vocabulary
	for _, workers := range []int{1, 8} {
		previous := runtime.GOMAXPROCS(workers)
		v, err := Learn(texts, Params{MaxN: 2, MaxFeatures: 100})
		runtime.GOMAXPROCS(previous)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if !slices.Equal(list[0].Grams, list[1].Grams) || !slices.Equal(list[0].DF, list[1].DF) {
		t.Error("the vocabularies of one worker and of eight differ")
	}
}

// TestClosedForm compares the weights of two texts with values computed by hand.
func TestClosedForm(t *testing.T) {
	v, err := Learn([]string{"aa bb BB", "Aa"}, Params{})
	if err != nil {
		t.Fatal(err)
	}
	idf := 1 + math.Log(1.5)
	if !slices.Equal(v.Grams, []string{"aa", "bb"}) || v.IDF(0) != 1 || math.Abs(v.IDF(1)-idf) > 0x1p-51 {
		t.Errorf("the n-grams are %q, the weights %v and %v", v.Grams, v.IDF(0), v.IDF(1))
	}
	row, err := v.NewRow()
	if err != nil {
		t.Fatal(err)
	}
	columns, values := row.Append("bb cc aa bb", 5, []int32{1}, []float64{9})
	norm := math.Sqrt(1 + 4*idf*idf)
	if !slices.Equal(columns, []int32{1, 5, 6}) || values[0] != 9 || math.Abs(values[1]-1/norm) > 0x1p-51 || math.Abs(values[2]-2*idf/norm) > 0x1p-51 {
		t.Errorf("the features are %v, %v", columns, values)
	}
}

// TestMaxFeatures checks that the most frequent n-grams are selected, and of equally frequent n-grams the first.
func TestMaxFeatures(t *testing.T) {
	v, err := Learn([]string{"cc cc cc bb aa", "dd dd"}, Params{MaxFeatures: 3})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Grams, []string{"aa", "cc", "dd"}) {
		t.Errorf("the vocabulary is %q, want aa, cc, dd", v.Grams)
	}
}

// TestFaults checks the settings and texts that are refused.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		params Params
		texts  []string
		want   string
	}{
		{Params{Analyzer: "line"}, nil, `the analyzer is "line"; it must be word, char or char_wb`},
		{Params{MinN: 2, MaxN: 1}, nil, "the n of the n-grams has the range 2 to 1; it must be an increasing range from 1 to 20 at most"},
		{Params{MaxN: 21}, nil, "the n of the n-grams has the range 1 to 21; it must be an increasing range from 1 to 20 at most"},
		{Params{MinDF: math.NaN()}, nil, "the smallest document frequency is NaN; it must be a number of texts, or a share of the texts from 0 to 1"},
		{Params{MinDF: 1.5}, nil, "the smallest document frequency is 1.5; it must be a number of texts, or a share of the texts from 0 to 1"},
		{Params{MaxFeatures: -1}, nil, "the maximum number of features is -1; it must not be negative"},
		{Params{Analyzer: Char}, []string{"", ""}, "the texts have no n-grams"},
		{Params{}, nil, "the texts have no n-grams"},
		{Params{MinDF: 3}, []string{"aa", "aa"}, "no n-gram occurs in at least 3 of the 2 texts"},
		{Params{MinDF: 0.6}, []string{"aa", "bb", "cc"}, "no n-gram occurs in at least 2 of the 3 texts"},
	} {
		if _, err := Learn(c.texts, c.params); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.params, err, c.want)
		}
	}
}

// TestCheckFindsForgedVocabularies checks that Check refuses vocabularies that Learn cannot return.
func TestCheckFindsForgedVocabularies(t *testing.T) {
	for _, c := range []struct {
		vocabulary *Vocabulary
		want       string
	}{
		{&Vocabulary{}, "the vocabulary was learned from 0 texts"},
		{&Vocabulary{Texts: 2}, "the vocabulary has 0 n-grams and 0 document frequencies"},
		{&Vocabulary{Texts: 2, Grams: []string{"aa"}}, "the vocabulary has 1 n-grams and 0 document frequencies"},
		{&Vocabulary{Texts: 2, Grams: []string{""}, DF: []int{1}}, `n-gram 1, "", is empty or not UTF-8`},
		{&Vocabulary{Texts: 2, Grams: []string{"a\xff"}, DF: []int{1}}, `n-gram 1, "a\xff", is empty or not UTF-8`},
		{&Vocabulary{Texts: 2, Grams: []string{"bb", "aa"}, DF: []int{1, 1}}, `n-gram 2, "aa", does not come after n-gram 1, "bb"`},
		{&Vocabulary{Texts: 2, Grams: []string{"aa", "aa"}, DF: []int{1, 1}}, `n-gram 2, "aa", does not come after n-gram 1, "aa"`},
		{&Vocabulary{Texts: 2, Grams: []string{"aa"}, DF: []int{3}}, `n-gram 1, "aa", is in 3 of 2 texts`},
		{&Vocabulary{Texts: 2, Grams: []string{"aa"}, DF: []int{-1}}, `n-gram 1, "aa", is in -1 of 2 texts`},
		{&Vocabulary{Params: Params{MaxN: 1 << 30}, Texts: 2, Grams: []string{"aa"}, DF: []int{1}}, "the n of the n-grams has the range 1 to"},
	} {
		if _, err := c.vocabulary.NewRow(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.vocabulary.Grams, err, c.want)
		}
	}
}

// BenchmarkLearnAndTransform times learning a vocabulary of words from texts and computing their features.
func BenchmarkLearnAndTransform(b *testing.B) {
	texts := slices.Repeat(corpus(), 20)
	for b.Loop() {
		v, err := Learn(texts, Params{MaxN: 2})
		if err != nil {
			b.Fatal(err)
		}
		row, err := v.NewRow()
		if err != nil {
			b.Fatal(err)
		}
		var columns []int32
		var values []float64
		for _, text := range texts {
			columns, values = row.Append(text, 0, columns[:0], values[:0])
		}
	}
}

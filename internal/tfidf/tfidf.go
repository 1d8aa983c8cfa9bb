// Package tfidf computes features of texts: the n-grams of words or characters of each text, weighted
// by the term frequency and the inverse document frequency (Salton and Buckley 1988). The features
// equal those of scikit-learn's TfidfVectorizer with the same settings.
package tfidf

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/elementary"
)

// An Analyzer specifies the units of the n-grams.
type Analyzer string

const (
	Word   Analyzer = "word"    // words of two or more letters, digits and underscores
	Char   Analyzer = "char"    // characters
	CharWB Analyzer = "char_wb" // characters inside words, which are padded with a space on both sides
)

// Analyzers returns all analyzers.
func Analyzers() []Analyzer { return []Analyzer{Word, Char, CharWB} }

// Params holds the settings. With the zero value each word, in lower case, is a feature.
type Params struct {
	Analyzer    Analyzer `json:"analyzer,omitempty"`     // the unit of the n-grams; "" means Word
	MinN        int      `json:"min_n,omitempty"`        // the smallest n of the n-grams; 0 means 1
	MaxN        int      `json:"max_n,omitempty"`        // the largest n; 0 means MinN
	MinDF       float64  `json:"min_df,omitempty"`       // n-grams that occur in fewer texts are ignored; MinDF is a fraction of the texts if it is below 1, otherwise a number of texts
	MaxFeatures int      `json:"max_features,omitempty"` // maximum number of n-grams: the most frequent in all texts are selected, and of equally frequent n-grams the first in sort order; 0 means no limit
	Sublinear   bool     `json:"sublinear,omitempty"`    // whether 1 + log(tf) replaces the term frequency tf
	KeepCase    bool     `json:"keep_case,omitempty"`    // whether letters keep their case
}

// maxN is the largest n. It is limited because the number of distinct n-grams grows with n.
const maxN = 20

// maxMinDF is the largest MinDF; above it, not every integer is a float64.
const maxMinDF = 1 << 53

// complete returns p with its zeros replaced by the defaults.
func (p Params) complete() Params {
	p.Analyzer = cmp.Or(p.Analyzer, Word)
	p.MinN = cmp.Or(p.MinN, 1)
	p.MaxN = cmp.Or(p.MaxN, p.MinN)
	return p
}

// Check returns nil, or an error that names the first invalid setting.
func (p Params) Check() error {
	p = p.complete()
	switch {
	case !slices.Contains(Analyzers(), p.Analyzer):
		return fmt.Errorf("the analyzer is %q; it must be word, char or char_wb", string(p.Analyzer))
	case p.MinN < 1 || p.MaxN < p.MinN || p.MaxN > maxN:
		return fmt.Errorf("the n of the n-grams has the range %d to %d; it must be an increasing range from 1 to %d at most", p.MinN, p.MaxN, maxN)
	case !(p.MinDF >= 0 && p.MinDF <= maxMinDF) || p.MinDF > 1 && p.MinDF != math.Trunc(p.MinDF):
		return fmt.Errorf("the smallest document frequency is %v; it must be a number of texts, or a share of the texts from 0 to 1", p.MinDF)
	case p.MaxFeatures < 0:
		return fmt.Errorf("the maximum number of features is %d; it must not be negative", p.MaxFeatures)
	}
	return nil
}

// minTexts returns the minimum number of texts, out of n, that must contain an n-gram.
func (p Params) minTexts(n int) float64 {
	if p.MinDF < 1 {
		return p.MinDF * float64(n)
	}
	return p.MinDF
}

// A Vocabulary holds the n-grams of the training texts in the order of their code points, and their
// document frequencies. It marshals to JSON and back without loss. It must not be changed after the
// first call of Check or NewRow.
type Vocabulary struct {
	Params
	Texts int      `json:"texts"` // the number of training texts
	Grams []string `json:"grams"`
	DF    []int    `json:"df"` // the number of training texts with each n-gram

	checked sync.Once
	err     error
	index   map[string]int32
	idf     []float64
}

// Len returns the number of n-grams.
func (v *Vocabulary) Len() int { return len(v.Grams) }

// IDF returns the inverse document frequency of an n-gram: log((1 + texts) / (1 + texts with the n-gram)) + 1.
func (v *Vocabulary) IDF(i int) float64 {
	return elementary.Log(float64(1+v.Texts)/float64(1+v.DF[i])) + 1
}

// Nonzeros returns the number of nonzero features of the training texts.
func (v *Vocabulary) Nonzeros() int64 {
	var n int64
	for _, texts := range v.DF {
		n += int64(texts)
	}
	return n
}

// Check returns nil if Learn could have returned v, and otherwise an error that names the first defect. Only the
// first call examines v; later calls return the same result.
func (v *Vocabulary) Check() error {
	v.checked.Do(func() {
		if v.err = v.check(); v.err != nil {
			return
		}
		v.index, v.idf = make(map[string]int32, len(v.Grams)), make([]float64, len(v.Grams))
		for i, gram := range v.Grams {
			v.index[gram], v.idf[i] = int32(i), v.IDF(i)
		}
	})
	return v.err
}

func (v *Vocabulary) check() error {
	if err := v.Params.Check(); err != nil {
		return err
	}
	if v.Texts < 1 || v.Texts > math.MaxInt32 {
		return fmt.Errorf("the vocabulary was learned from %d texts; the number must be from 1 to %d", v.Texts, math.MaxInt32)
	}
	if len(v.Grams) == 0 || len(v.Grams) > math.MaxInt32 || len(v.DF) != len(v.Grams) {
		return fmt.Errorf("the vocabulary has %d n-grams and %d document frequencies", len(v.Grams), len(v.DF))
	}
	for i, gram := range v.Grams {
		switch {
		case gram == "" || !utf8.ValidString(gram):
			return fmt.Errorf("n-gram %d, %.40q, is empty or not UTF-8", i+1, gram)
		case i > 0 && v.Grams[i-1] >= gram:
			return fmt.Errorf("n-gram %d, %.40q, does not come after n-gram %d, %.40q, in the order of code points", i+1, gram, i, v.Grams[i-1])
		case v.DF[i] < 1 || v.DF[i] > v.Texts:
			return fmt.Errorf("n-gram %d, %.40q, is in %d of %d texts", i+1, gram, v.DF[i], v.Texts)
		}
	}
	return nil
}

// gramCounts holds the counts of an n-gram in the training texts.
type gramCounts struct {
	texts int32 // number of texts with the n-gram
	times int64 // number of occurrences of the n-gram in all texts
}

// shards is the number of maps that divide the counts, so that workers seldom wait for each other.
const shards = 256

// Learn returns the vocabulary of texts. Each n-gram is stored once, for any number of texts and workers.
func Learn(texts []string, p Params) (*Vocabulary, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if len(texts) > math.MaxInt32 {
		return nil, fmt.Errorf("the vocabulary cannot be learned from %d texts: the maximum is %d", len(texts), math.MaxInt32)
	}
	var counts [shards]struct {
		sync.Mutex
		uses map[string]*gramCounts
	}
	for k := range counts {
		counts[k].uses = map[string]*gramCounts{}
	}
	seed := maphash.MakeSeed()
	parallel(len(texts), func() func(int) {
		g, textCounts := &grams{Params: p.complete()}, map[string]int64{}
		return func(i int) {
			clear(textCounts)
			g.forEach(texts[i], func(gram string) { textCounts[gram]++ })
			for gram, times := range textCounts {
				c := &counts[maphash.String(seed, gram)%shards]
				c.Lock()
				u := c.uses[gram]
				if u == nil {
					u = &gramCounts{}
					c.uses[strings.Clone(gram)] = u // a copy, because a slice would keep the whole text in memory
				}
				u.texts++
				u.times += times
				c.Unlock()
			}
		}
	})
	type countedGram struct {
		gram string
		gramCounts
	}
	var list []countedGram
	minTexts := p.minTexts(len(texts))
	for k := range counts {
		for gram, u := range counts[k].uses {
			if float64(u.texts) >= minTexts {
				list = append(list, countedGram{gram, *u})
			}
		}
		counts[k].uses = nil
	}
	if len(list) == 0 && minTexts > 1 {
		return nil, fmt.Errorf("no n-gram occurs in at least %v of the %d texts", math.Ceil(minTexts), len(texts))
	}
	if len(list) == 0 {
		return nil, errors.New("the texts have no n-grams")
	}
	if p.MaxFeatures > 0 && len(list) > p.MaxFeatures {
		slices.SortFunc(list, func(a, b countedGram) int {
			return cmp.Or(cmp.Compare(b.times, a.times), cmp.Compare(a.gram, b.gram))
		})
		list = list[:p.MaxFeatures]
	}
	slices.SortFunc(list, func(a, b countedGram) int { return cmp.Compare(a.gram, b.gram) })
	v := &Vocabulary{Params: p, Texts: len(texts), Grams: make([]string, len(list)), DF: make([]int, len(list))}
	for i, c := range list {
		v.Grams[i], v.DF[i] = c.gram, int(c.texts)
	}
	return v, nil
}

// parallel calls f(0), …, f(n − 1) in several goroutines. Each goroutine obtains its f from worker.
func parallel(n int, worker func() func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	const block = 16
	for range min(runtime.GOMAXPROCS(0), (n+block-1)/block) {
		wg.Go(func() {
			f := worker()
			for {
				begin := int(next.Add(block)) - block
				if begin >= n {
					return
				}
				for i := begin; i < min(begin+block, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

// A Row computes the features of texts, one text at a time.
type Row struct {
	v       *Vocabulary
	grams   grams
	columns []int32
}

// NewRow returns a Row for one goroutine, or the error of Check.
func (v *Vocabulary) NewRow() (*Row, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	return &Row{v: v, grams: grams{Params: v.complete()}}, nil
}

// Append appends the columns and the values of the nonzero features of a text, in increasing order of the columns.
// Feature j is column first + j. The values have the ℓ₂ norm 1, unless the text has no n-gram of the vocabulary.
func (r *Row) Append(text string, first int, columns []int32, values []float64) ([]int32, []float64) {
	r.columns = r.columns[:0]
	r.grams.forEach(text, func(gram string) {
		if i, ok := r.v.index[gram]; ok {
			r.columns = append(r.columns, i)
		}
	})
	slices.Sort(r.columns)
	begin, squares := len(values), 0.0
	for i := 0; i < len(r.columns); {
		j := r.columns[i]
		n := 1
		for i+n < len(r.columns) && r.columns[i+n] == j {
			n++
		}
		i += n
		w := float64(n)
		if r.v.Sublinear {
			w = 1 + elementary.Log(w)
		}
		w *= r.v.idf[j]
		squares += w * w
		columns, values = append(columns, int32(first)+j), append(values, w)
	}
	norm := math.Sqrt(squares)
	for k := begin; k < len(values); k++ {
		values[k] /= norm
	}
	return columns, values
}

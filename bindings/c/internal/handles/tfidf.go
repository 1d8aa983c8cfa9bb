package handles

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/internal/tfidf"
)

// TFIDF returns the features of texts as a CSR matrix: the starts of the rows, the values and the columns,
// in the byte order of the processor. If learn is true, settings are tfidf.Params in JSON, and TFIDF also
// returns the vocabulary of the texts in JSON; otherwise settings are such a vocabulary.
func TFIDF(settings string, texts []string, learn bool) (vocabulary, features []byte, err error) {
	if len(texts) == 0 {
		return nil, nil, errors.New("libmercer: tfidf: there are no texts")
	}
	v := &tfidf.Vocabulary{}
	to := any(v)
	if learn {
		to = &v.Params
	}
	d := json.NewDecoder(bytes.NewReader([]byte(settings)))
	d.DisallowUnknownFields()
	err = d.Decode(to)
	if err == nil && learn {
		if v, err = tfidf.Learn(texts, v.Params); err == nil {
			vocabulary, err = json.Marshal(v)
		}
	}
	if err == nil {
		err = v.Check()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("libmercer: tfidf: %w", err)
	}
	columns, values := make([][]int32, len(texts)), make([][]float64, len(texts))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for first := range workers {
		wg.Go(func() {
			row, _ := v.NewRow() // NewRow cannot fail, because v.Check has succeeded
			for i := first; i < len(texts); i += workers {
				columns[i], values[i] = row.Append(texts[i], 0, nil, nil)
			}
		})
	}
	wg.Wait()
	starts := make([]int64, len(texts)+1)
	for i, c := range columns {
		starts[i+1] = starts[i] + int64(len(c))
	}
	features = make([]byte, 0, 8*len(starts)+12*int(starts[len(texts)]))
	for _, array := range []any{starts, slices.Concat(values...), slices.Concat(columns...)} {
		features, _ = binary.Append(features, binary.NativeEndian, array) // Append cannot fail for numbers of fixed size
	}
	return vocabulary, features, nil
}

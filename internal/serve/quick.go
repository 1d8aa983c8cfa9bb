package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
)

// fastPath answers a request without package encoding/json if its body is one JSON object, a row of numbers and
// categories. It serves only regression models whose predictions take at most maxFastTime.
type fastPath struct {
	rows    *dataset.ObjectReader
	names   []string // the names of the targets in JSON, in ascending order, each followed by a colon
	outputs []int    // index of the output for each name in names
}

// maxFastTime is the longest time of a prediction for which the fast path is used instead of batches.
const maxFastTime = 200 * time.Microsecond

// rowBuffer has the memory for one request.
type rowBuffer struct {
	body, answer []byte
	x, f         []float64
}

var rowPool = sync.Pool{New: func() any { return new(rowBuffer) }}

// newFastPath returns nil if the general path must answer all requests.
func newFastPath(ctx context.Context, m *served) *fastPath {
	targets := m.Model.Encoder().TargetNames()
	q := &fastPath{rows: m.Model.Encoder().ObjectReader()}
	features, outputs := m.Model.Dims()
	if _, ok := m.Model.Model().(learners.Classifier); ok || q.rows == nil || q.rows.Width() != features || len(targets) != outputs || outputs == 0 {
		return nil
	}
	x, f, minTime := make([]float64, features), make([]float64, outputs), time.Duration(math.MaxInt64)
	for range 3 { // the first prediction takes longer, because it prepares the model
		start := time.Now()
		if m.Model.PredictRow(ctx, f, x) != nil {
			return nil
		}
		minTime = min(minTime, time.Since(start))
	}
	if minTime > maxFastTime {
		return nil
	}
	for i := range targets {
		q.outputs = append(q.outputs, i)
	}
	slices.SortFunc(q.outputs, func(a, b int) int { return strings.Compare(targets[a], targets[b]) })
	for _, i := range q.outputs {
		var name bytes.Buffer
		e := json.NewEncoder(&name)
		e.SetEscapeHTML(false)
		_ = e.Encode(targets[i]) // encoding a text cannot fail
		q.names = append(q.names, strings.TrimSuffix(name.String(), "\n")+":")
	}
	return q
}

// answer returns the answer to a request in the memory of row, or nil if the general path must answer.
func (q *fastPath) answer(ctx context.Context, m *mercer.Model[learners.Model], row *rowBuffer, body []byte) []byte {
	if q == nil {
		return nil
	}
	row.x = slices.Grow(row.x[:0], q.rows.Width())[:q.rows.Width()]
	row.f = slices.Grow(row.f[:0], len(q.names))[:len(q.names)]
	if !q.rows.Read(row.x, body) || m.PredictRow(ctx, row.f, row.x) != nil {
		return nil
	}
	b := append(row.answer[:0], `{"values":{`...)
	for i, name := range q.names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(append(b, name...), row.f[q.outputs[i]])
	}
	row.answer = append(b, "}}\n"...)
	return row.answer
}

// appendNumber appends a finite number as package encoding/json writes it.
func appendNumber(b []byte, v float64) []byte {
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, v, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 becomes e-9
		b = b[:n-1]
	}
	return b
}

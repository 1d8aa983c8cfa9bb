package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/count"
)

// A form is a format of the rows of a request, and of the answer.
type form int

const (
	object form = iota // one JSON object, for one row
	array              // a JSON array of rows
	lines              // JSON, one row in each line
	table              // CSV with a header line
)

// forms maps content types to formats. A body of type application/json that begins with { is an object.
var forms = map[string]form{"application/json": array, "application/x-ndjson": lines, "application/ndjson": lines, "application/jsonl": lines, "text/csv": table}

// kinds lists the content type of the answer for each form.
var kinds = []string{object: "application/json", array: "application/json", lines: "application/x-ndjson", table: "text/csv; charset=utf-8"}

const wantedTypes = "application/json, application/x-ndjson or text/csv"

func formOf(r *http.Request) (form, error) {
	text := r.Header.Get("Content-Type")
	if text == "application/json" {
		return array, nil
	}
	kind, parameters, err := mime.ParseMediaType(text)
	f, ok := forms[kind]
	switch charset := strings.ToLower(parameters["charset"]); {
	case text == "":
		return 0, failf(http.StatusUnsupportedMediaType, "the header Content-Type is missing: want %s", wantedTypes)
	case err != nil || !ok:
		return 0, failf(http.StatusUnsupportedMediaType, "the Content-Type %.100q is not known: want %s", text, wantedTypes)
	case charset != "" && charset != "utf-8" && charset != "us-ascii":
		return 0, failf(http.StatusUnsupportedMediaType, "the charset %.100q is not known: want utf-8", charset)
	case kind == "text/csv" && parameters["header"] == "absent":
		return 0, failf(http.StatusUnsupportedMediaType, "text/csv needs a header line with the names of the columns")
	}
	return f, nil
}

// wantOf returns the optional results that the query parameters of a request select.
func wantOf(u *url.URL) (w RequestOptions, err error) {
	if u.RawQuery == "" {
		return w, nil
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return w, failf(http.StatusBadRequest, "the query cannot be read: %.200v", err)
	}
	for name, values := range query {
		value := values[0]
		flag := map[string]*bool{"std": &w.Std, "bound": &w.Bound, "proba": &w.Proba}[name]
		switch {
		case len(values) > 1:
			return w, failf(http.StatusBadRequest, "the query parameter %s is given %d times", name, len(values))
		case name == "interval":
			if w.Level, err = strconv.ParseFloat(value, 64); err != nil || !(w.Level > 0 && w.Level < 1) {
				return w, failf(http.StatusBadRequest, "interval: want a number > 0 and < 1 such as 0.9, got %.100q", value)
			}
		case flag == nil:
			return w, failf(http.StatusBadRequest, "the query parameter %.100q is not known; the parameters are interval, std, bound and proba", name)
		case value == "":
			*flag = true
		default:
			if *flag, err = strconv.ParseBool(value); err != nil {
				return w, failf(http.StatusBadRequest, "%s: want true or false, got %.100q", name, value)
			}
		}
	}
	return w, nil
}

// readBody reads the whole body. The result uses the buffer of row if the body is short.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, row *rowBuffer) ([]byte, error) {
	tooLarge := failf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: send the rows in several requests", s.MaxBody)
	switch encoding := r.Header.Get("Content-Encoding"); {
	case r.ContentLength > s.MaxBody:
		return nil, tooLarge
	case encoding != "" && encoding != "identity":
		return nil, failf(http.StatusUnsupportedMediaType, "the Content-Encoding %.100q is not known: send the body uncompressed", encoding)
	}
	var body []byte
	var err error
	if n := r.ContentLength; 0 <= n && n < largeBody {
		row.body = slices.Grow(row.body[:0], int(n))[:n]
		body = row.body
		_, err = io.ReadFull(r.Body, body) // net/http ends r.Body after n bytes
	} else {
		var buf bytes.Buffer
		buf.Grow(int(min(max(n, 0), 64<<10)) + bytes.MinRead)
		_, err = buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.MaxBody))
		body = buf.Bytes()
	}
	var netErr net.Error
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case errors.As(err, &netErr) && netErr.Timeout():
		return nil, failf(http.StatusRequestTimeout, "the body did not arrive within %v", s.Timeout)
	}
	return nil, failf(http.StatusBadRequest, "the body cannot be read: %.200v", err)
}

// rowsOf returns the rows in a body as a table. columns lists the model's columns in the order of training.
func rowsOf(f *form, body []byte, e *dataset.Encoder, columns []string) (t *dataset.Table, err error) {
	switch *f {
	case table:
		if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) || bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			return nil, failf(http.StatusUnsupportedMediaType, "the body is compressed: send it uncompressed")
		}
		t, err = dataset.File{Path: "-", Stdin: bytes.NewReader(body), Dialect: e.TrainingDialect(dataset.Dialect{})}.ReadCSV()
	case lines:
		if body, err = joinLines(body); err != nil {
			return nil, err
		}
		t, err = fromJSON(body, columns)
	default:
		if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
			*f = object
		}
		t, err = fromJSON(body, columns)
	}
	if dataErr := (*dataset.Error)(nil); errors.As(err, &dataErr) {
		dataErr.Source = "body"
	}
	return t, err
}

// joinLines returns a JSON array of the JSON values in the lines of a body. It skips empty lines.
func joinLines(body []byte) ([]byte, error) {
	joined := make([]byte, 1, len(body)+2)
	joined[0] = '['
	number := 0
	for line := range bytes.Lines(body) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return nil, failf(http.StatusBadRequest, "body:%d: the line is not one JSON value", number)
		}
		if len(joined) > 1 {
			joined = append(joined, ',')
		}
		joined = append(joined, line...)
	}
	return append(joined, ']'), nil
}

// fromJSON reads an object, an array of objects, or an array of arrays of cells in columns' order.
func fromJSON(body []byte, columns []string) (*dataset.Table, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, failf(http.StatusBadRequest, "the body is empty: want an object for one row, or an array of rows")
	}
	if trimmed[0] != '[' || !bytes.HasPrefix(bytes.TrimLeft(trimmed[1:], " \t\r\n"), []byte("[")) {
		return dataset.FromRows("body", json.RawMessage(body))
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(body, &rows); err != nil {
		return nil, failf(http.StatusBadRequest, "body: must be an array whose rows are all arrays of cells, or all objects: %.200v", err)
	}
	names := make([][]byte, len(columns))
	for j, name := range columns {
		names[j], _ = json.Marshal(name)
	}
	objects := make([]byte, 0, 2*len(body)+len(rows))
	for i, row := range rows {
		if len(row) != len(columns) {
			return nil, failf(http.StatusBadRequest, "body: row %d has %s, the model has %s: %s", i+1, count.Of(len(row), "cell"), count.Of(len(columns), "column"), listColumns(columns))
		}
		objects = append(objects, "[,"[min(i, 1)], '{')
		for j, cell := range row {
			if j > 0 {
				objects = append(objects, ',')
			}
			objects = append(append(append(objects, names[j]...), ':'), cell...)
		}
		objects = append(objects, '}')
	}
	return dataset.FromRows("body", json.RawMessage(append(objects, ']')))
}

// listColumns returns the names of the columns as text, but at most 20 names.
func listColumns(columns []string) string {
	if omitted := len(columns) - 20; omitted > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(columns[:20], ", "), omitted)
	}
	return strings.Join(columns, ", ")
}

// columnsOf returns the input columns of a model, in the order of the training table.
func columnsOf(e *dataset.Encoder) (names []string) {
	features := e.FeatureNames()
	for _, in := range e.Inputs {
		switch {
		case in.Sparse != nil:
			names, features = append(names, features[:in.Sparse.Columns]...), features[in.Sparse.Columns:]
			continue
		case in.Text != nil:
			features = features[len(in.Text.Categories):]
		case in.TFIDF != nil:
			features = features[in.TFIDF.Len():]
		default:
			features = features[min(1, len(features)):]
		}
		names = append(names, in.Name)
	}
	return slices.Clip(names)
}

// largeBody is the smallest size, in bytes, of a body that is treated as a request of many rows.
const largeBody = 16 << 10

// predict answers a request for predictions.
func (s *Server) predict(w http.ResponseWriter, r *http.Request) error {
	start := s.metrics.begin()
	defer s.metrics.end(start)
	want, err := wantOf(r.URL)
	if err != nil {
		return err
	}
	f, err := formOf(r)
	if err != nil {
		return err
	}
	select {
	case s.requests <- struct{}{}:
		defer func() { <-s.requests }()
	default:
		return failf(http.StatusTooManyRequests, "%s are running, which is the limit: try again later", count.Of(s.MaxRequests, "request"))
	}
	row := rowPool.Get().(*rowBuffer)
	defer rowPool.Put(row)
	body, err := s.readBody(w, r, row)
	if err != nil {
		return err
	}
	if f == array && want == (RequestOptions{}) {
		m := s.acquire()
		answer := m.fastPath.answer(r.Context(), m.Model, row, body)
		m.users.Done()
		if answer != nil {
			s.metrics.batches.observe(1)
			s.metrics.rows.Add(1)
			send(w, kinds[object], http.StatusOK, answer)
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
	defer cancel()
	if len(body) >= largeBody {
		select {
		case s.largeRequests <- struct{}{}:
			defer func() { <-s.largeRequests }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m := s.acquire()
	defer m.users.Done()
	if err := m.Check(want); err != nil {
		return err
	}
	list, err := s.rows(ctx, m, &f, body, want.PredictOptions)
	if err != nil {
		return err
	}
	answer, err := m.format(f, list, want)
	if err != nil {
		return failf(http.StatusInternalServerError, "the prediction cannot be written: %v", err)
	}
	s.metrics.rows.Add(int64(len(list)))
	send(w, kinds[f], http.StatusOK, answer)
	return nil
}

// rows returns the predictions for the rows in a body.
func (s *Server) rows(ctx context.Context, m *served, f *form, body []byte, want mercer.PredictOptions) ([]mercer.Prediction, error) {
	e := m.Model.Encoder()
	t, err := rowsOf(f, body, e, m.columns)
	if err != nil {
		return nil, err
	}
	if n := t.Rows(); n > s.MaxRows {
		return nil, failf(http.StatusRequestEntityTooLarge, "the body has %d rows, more than %d: send them in several requests", n, s.MaxRows)
	} else if n != 1 {
		return predictRows(ctx, m.Model, t, want)
	}
	x, err := m.Model.Encode(ctx, t)
	if err != nil {
		return nil, err
	}
	p, err := m.batch.predict(ctx, x, want)
	p.RowWarnings = e.RowWarnings(t)[0]
	return []mercer.Prediction{p}, err
}

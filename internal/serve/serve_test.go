package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

const houses = `area,town,kind,price,rent
50,york,flat,90,4
80,bath,house,160,8
95,york,house,180,9
100,bath,house,200,9
110,york,house,210,11
60,bath,flat,120,6
`

// fit fits a learner to the table of houses.
func fit[M learners.Model](t testing.TB, l mercer.Learner[M], r dataset.Rules) *mercer.Model[learners.Model] {
	t.Helper()
	table, err := dataset.Read("-", strings.NewReader(houses))
	if err != nil {
		t.Fatal(err)
	}
	return fitTable(t, table, l, r)
}

// fitTable fits a learner and returns the model after writing and reading it.
func fitTable[M learners.Model](t testing.TB, table *dataset.Table, l mercer.Learner[M], r dataset.Rules) *mercer.Model[learners.Model] {
	t.Helper()
	m, err := mercer.FitTable(t.Context(), l, table, r, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := mercer.Read(bytes.NewReader(file.Bytes()), int64(file.Len()), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(read.Close)
	return read
}

var (
	price    = dataset.Rules{Targets: []string{"price"}, Drop: []string{"rent"}, Standardize: true}
	ridge    = learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.5}
	flatRow  = `{"area": 55, "town": "york", "kind": "flat"}`
	defaults = Config{Path: "houses.safetensors", MaxBody: 1 << 20, MaxRows: 1000, MaxRequests: 64, Timeout: 10 * time.Second}
)

// server returns a Server for the model. The function change may change the limits of the Server.
func server(t testing.TB, m *mercer.Model[learners.Model], change func(*Config)) *Server {
	t.Helper()
	c := defaults
	c.Log = func(text string) { t.Log(text) }
	c.Load = func(context.Context) (*Loaded, error) {
		return &Loaded{Model: m, Shown: json.RawMessage(`{"program":"show"}`)}, nil
	}
	if change != nil {
		change(&c)
	}
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call passes one request to the handler without a network.
func call(h http.Handler, method, target, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestForms checks that rows in each format get the predictions of Model.PredictRows, in the same format.
func TestForms(t *testing.T) {
	m := fit(t, ridge, price)
	s := server(t, m, nil)
	want, err := m.PredictRows(t.Context(), json.RawMessage(`[`+flatRow+`,{"area":"70","town":"leeds","kind":null}]`), mercer.PredictOptions{Level: 0.6, Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	if want[1].Unknown["town"] != "leeds" || len(want[1].Missing) != 1 || len(want[1].Quoted) != 1 || len(want[0].Bound) != 1 || len(want[0].Upper) != 1 {
		t.Fatalf("the predictions that are compared lack something: %+v", want)
	}
	const query = "/predict?interval=0.6&bound=true"
	for _, c := range []struct{ name, kind, body, answer string }{
		{"objects", "application/json", "[" + flatRow + `,{"area":"70","town":"leeds","kind":null}]`, "application/json"},
		{"arrays", "application/json; charset=UTF-8", ` [ [55,"york","flat"], ["70","leeds",null] ]`, "application/json"},
		{"lines", "application/x-ndjson", flatRow + "\r\n\n" + `{"kind":null,"area":"70","town":"leeds"}`, "application/x-ndjson"},
		{"lines of arrays", "application/jsonl", `[55,"york","flat"]` + "\n" + `["70","leeds",null]` + "\n", "application/x-ndjson"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := call(s, "POST", query, c.kind, c.body)
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != c.answer {
				t.Fatalf("%d %s: %s", w.Code, w.Header(), w.Body)
			}
			var got []mercer.Prediction
			text := w.Body.String()
			if c.answer != "application/json" {
				if strings.Count(text, "\n") != 2 {
					t.Errorf("the answer does not have two lines: %q", text)
				}
				text = "[" + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",") + "]"
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %s\nwant %+v: %v", text, want, err)
			}
		})
	}
	w := call(s, "POST", query, "application/json", flatRow)
	var prediction mercer.Prediction
	if err := json.Unmarshal(w.Body.Bytes(), &prediction); err != nil || !approxEqual(prediction.Values["price"], want[0].Values["price"]) || !approxEqual(prediction.Upper["price"], want[0].Upper["price"]) {
		t.Errorf("one object gets %s, want %+v: %v", w.Body, want[0], err)
	}
	w = call(s, "POST", query, "text/csv", "town,area,kind\nyork,55,flat\nleeds,70,\n")
	text := "prediction,bound,lower,upper\n"
	for _, p := range want {
		text += strings.Join([]string{number(p.Values["price"]), number(p.Bound["price"]), number(p.Lower["price"]), number(p.Upper["price"])}, ",") + "\n"
	}
	if w.Body.String() != text || w.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("CSV: got %s\nwant %s", w.Body, text)
	}
}

// approxEqual reports whether a and b agree up to rounding errors of short sums in any order.
func approxEqual(a, b float64) bool { return math.Abs(a-b) <= 64*0x1p-52*max(math.Abs(a), math.Abs(b)) }

// TestColumnsOfTables checks the columns of CSV answers for each kind of model.
func TestColumnsOfTables(t *testing.T) {
	kind := dataset.Rules{Targets: []string{"kind"}, Labels: true, Drop: []string{"rent"}, Standardize: true}
	gp := learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, Fixed: true}
	calibrated := fit(t, learners.Logistic{Lambda: 1}, kind)
	table, err := dataset.Read("-", strings.NewReader(houses))
	if err != nil {
		t.Fatal(err)
	}
	x, err := calibrated.Encode(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if err := calibrated.Calibrate(t.Context(), x, mat.NewDense(6, 1, []float64{0, 1, 1, 1, 1, 0})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m           *mercer.Model[learners.Model]
		query, want string
	}{
		{fit(t, gp, price), "?std", "prediction,std\n"},
		{fit(t, learners.Ridge{Lambda: 1, Bound: true}, dataset.Rules{Targets: []string{"price", "rent"}}), "?bound", "prediction_price,prediction_rent,bound_price,bound_rent\n"},
		{calibrated, "", "prediction\nflat\n"},
		{calibrated, "?proba=1&interval=0.8", "prediction,probability_flat,probability_house,in_set_flat,in_set_house\nflat,"},
	} {
		w := call(server(t, c.m, nil), "POST", "/predict"+c.query, "text/csv", "area,town,kind,price\n55,york,flat,100\n")
		if got := w.Body.String(); !strings.HasPrefix(got, c.want) || w.Code != 200 {
			t.Errorf("%s%s: %d %s, want %s", c.m.Model().Learner(), c.query, w.Code, got, c.want)
		}
	}
}

// TestBadRequests checks the status and the text of the answers to requests that cannot be fulfilled.
func TestBadRequests(t *testing.T) {
	s := server(t, fit(t, ridge, price), func(c *Config) { c.MaxBody, c.MaxRows = 300, 3 })
	const js = "application/json"
	for _, c := range []struct {
		method, target, kind, body string
		status                     int
		want                       string
	}{
		{"GET", "/predict", "", "", 405, `takes POST, not "GET"`},
		{"POST", "/health", "", "", 405, `takes GET`},
		{"GET", "/nothing", "", "", 404, "the paths are /predict, "},
		{"POST", "/predict", "", flatRow, 415, "Content-Type is missing: want application/json"},
		{"POST", "/predict", "text/html", flatRow, 415, `"text/html" is not known`},
		{"POST", "/predict", "a/b/c;;", flatRow, 415, "is not known"},
		{"POST", "/predict", "application/json; charset=utf-16", flatRow, 415, "want utf-8"},
		{"POST", "/predict", "text/csv; header=absent", "1,2", 415, "needs a header line"},
		{"POST", "/predict", "text/csv", "\x1f\x8b\x08", 415, "compressed"},
		{"POST", "/predict?interval=2", js, flatRow, 400, "interval: want a number > 0 and < 1"},
		{"POST", "/predict?interval=NaN", js, flatRow, 400, "interval: want a number > 0 and < 1"},
		{"POST", "/predict?std=perhaps", js, flatRow, 400, "std: want true or false"},
		{"POST", "/predict?std=1&std=0", js, flatRow, 400, "given 2 times"},
		{"POST", "/predict?intervall=0.9", js, flatRow, 400, `"intervall" is not known`},
		{"POST", "/predict?%zz", js, flatRow, 400, "the query cannot be read"},
		{"POST", "/predict?std", js, flatRow, 400, "has no standard deviation"},
		{"POST", "/predict", js, "", 400, "the body is empty"},
		{"POST", "/predict", js, "[]", 400, "body: has no rows"},
		{"POST", "/predict", js, "[{}]", 400, "has no columns"},
		{"POST", "/predict", js, `{"area": 1`, 400, "unexpected EOF"},
		{"POST", "/predict", js, flatRow + flatRow, 400, "with nothing after it"},
		{"POST", "/predict", js, `"row"`, 400, "must be an object or an array of objects"},
		{"POST", "/predict", js, `{"area": {"m2": 5}, "town": "york", "kind": "flat"}`, 400, `column "area"`},
		{"POST", "/predict", js, `{"area": "big", "town": "york", "kind": "flat"}`, 400, `"big" is not a number`},
		{"POST", "/predict", js, `{"area": 1e999, "town": "york", "kind": "flat"}`, 400, "area"},
		{"POST", "/predict", js, `{"town": "york", "kind": "flat"}`, 400, `"area"`},
		{"POST", "/predict", js, `[[55,"york"]]`, 400, "row 1 has 2 cells, the model has 3 columns: area, town, kind"},
		{"POST", "/predict", js, `[[55,"york","flat"],{"area":1}]`, 400, "all arrays of cells, or all objects"},
		{"POST", "/predict", js, strings.Repeat("[", 290), 400, "body: "},
		{"POST", "/predict", "application/x-ndjson", flatRow + "\n{", 400, "body:2: the line is not one JSON value"},
		{"POST", "/predict", "application/x-ndjson", flatRow + "," + flatRow, 400, "body:1: the line is not one JSON value"},
		{"POST", "/predict", "text/csv", "area,town\n5,york\n", 400, `"kind"`},
		{"POST", "/predict", "text/csv", "area,town,kind\n5,york,flat,7\n", 400, "body:2"},
		{"POST", "/predict", "text/csv", "", 400, "body"},
		{"POST", "/predict", js, strings.Repeat(" ", 301), 413, "larger than 300 bytes"},
		{"POST", "/predict", "text/csv", "area,town,kind\n" + strings.Repeat("5,york,flat\n", 4), 413, "4 rows, more than 3"},
	} {
		w := call(s, c.method, c.target, c.kind, c.body)
		var answer map[string]string
		err := json.Unmarshal(w.Body.Bytes(), &answer)
		if w.Code != c.status || err != nil || !strings.Contains(answer["error"], c.want) || len(answer) != 1 || strings.Contains(answer["error"], "\n") {
			t.Errorf("%s %s %q: %d %s, want %d and %q: %v", c.method, c.target, c.body, w.Code, w.Body, c.status, c.want, err)
		}
	}
	r := httptest.NewRequest("POST", "/predict", io.LimitReader(neverEnding{}, 1<<30)) // without Content-Length
	r.ContentLength = -1
	r.Header.Set("Content-Type", js)
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 413 {
		t.Errorf("a body without an end: %d %s", w.Code, w.Body)
	}
	r = httptest.NewRequest("POST", "/predict", strings.NewReader(flatRow))
	r.Header.Set("Content-Type", js)
	r.Header.Set("Content-Encoding", "gzip")
	w = httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 415 {
		t.Errorf("a compressed body: %d %s", w.Code, w.Body)
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestWantsAreChecked checks that the server answers with the error of Loaded.Check.
func TestWantsAreChecked(t *testing.T) {
	m := fit(t, ridge, price)
	s := server(t, m, func(c *Config) {
		c.Load = func(context.Context) (*Loaded, error) {
			return &Loaded{Model: m, Check: func(w RequestOptions) error {
				if w.Proba {
					return errors.New("proba: this model predicts numbers")
				}
				return nil
			}}, nil
		}
	})
	if w := call(s, "POST", "/predict?proba", "application/json", flatRow); w.Code != 400 || w.Body.String() != `{"error":"proba: this model predicts numbers"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if page := call(s, "GET", "/", "", "").Body.String(); strings.Contains(page, `"proba"`) || !strings.Contains(page, `"bound"`) {
		t.Errorf("the page does not offer what the model has: %s", page)
	}
}

// TestBatches checks that rows that arrive during a prediction are predicted together, that each gets its own
// prediction, and that a row that cannot be predicted does not affect the others.
func TestBatches(t *testing.T) {
	m := fit(t, learners.KernelRidge{Kernel: kernels.Polynomial{Degree: 3, C: 1}, Lambda: 0.5}, price)
	s := server(t, m, nil)
	b := &s.current.batch
	b.busy, s.current.fastPath = true, nil
	const rows = 40
	answers := make([]*httptest.ResponseRecorder, rows)
	var wg sync.WaitGroup
	for i := range rows {
		wg.Go(func() {
			area := float64(50 + i)
			if i == 17 {
				area = 1e300 // this row's kernel values overflow
			}
			query := []string{"", "?bound"}[i%2]
			answers[i] = call(s, "POST", "/predict"+query, "application/json", fmt.Sprintf(`{"area": %g, "town": "york", "kind": "flat"}`, area))
		})
	}
	for {
		b.mu.Lock()
		n := len(b.waiting)
		b.mu.Unlock()
		if n == rows {
			break
		}
		time.Sleep(time.Millisecond)
	}
	b.startWork()
	wg.Wait()
	for i, w := range answers {
		if i == 17 {
			if w.Code != 400 || strings.Contains(w.Body.String(), "row 9") {
				t.Errorf("a row that overflows gets %d %s", w.Code, w.Body)
			}
			continue
		}
		want, err := m.PredictRows(t.Context(), []map[string]any{{"area": 50 + i, "town": "york", "kind": "flat"}}, mercer.PredictOptions{Bound: i%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		var got mercer.Prediction
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !approxEqual(got.Values["price"], want[0].Values["price"]) || (got.Bound == nil) != (i%2 == 0) {
			t.Errorf("row %d: %s, want %+v: %v", i, w.Body, want[0], err)
		}
	}
	// There is one batch for each of two queries. After an overflow, the rows of a batch are predicted one by one.
	text := call(s, "GET", "/metrics", "", "").Body.String()
	if !strings.Contains(text, "\nmercer_batch_rows_count 22\n") || !strings.Contains(text, "\nmercer_batch_rows_sum 60\n") {
		t.Errorf("the metrics of the batches: %s", text)
	}
}

// TestSparseBatches checks that rows of sparse features are predicted together.
func TestSparseBatches(t *testing.T) {
	m := fit(t, learners.SVC{Kernel: kernels.Linear{}}, dataset.Rules{Targets: []string{"kind"}, Labels: true, Drop: []string{"rent", "price"}, TFIDF: []string{"town"}, NGrams: dataset.NGrams{Analyzer: "char", MinN: 1, MaxN: 2}, Standardize: true})
	b := &server(t, m, nil).current.batch
	var list []*waiter
	for _, town := range []string{"york", "leeds", "bath"} {
		x, err := m.Encode(t.Context(), []map[string]any{{"area": 60, "town": town}})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &waiter{ctx: t.Context(), x: x})
	}
	x, err := stackRows(list)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := m.Encode(t.Context(), []map[string]any{{"area": 60, "town": "york"}, {"area": 60, "town": "leeds"}, {"area": 60, "town": "bath"}})
	if err != nil || !mat.Equal(x, encoded) {
		t.Errorf("stacked %v\nwant %v: %v", mat.Formatted(x), mat.Formatted(encoded), err)
	}
	b.run(list...)
	for _, w := range list {
		if w.err != nil || w.result.Class == "" {
			t.Errorf("%+v, %v", w.result, w.err)
		}
	}
}

// swapper returns a Config.Load that reads the file at the path.
func swapper(path string) func(context.Context) (*Loaded, error) {
	return func(context.Context) (*Loaded, error) {
		m, err := mercer.Load(path, mercer.Options{})
		if err != nil {
			return nil, err
		}
		return &Loaded{Model: m}, nil
	}
}

// TestReloadLosesNoRequest replaces the model file repeatedly while clients send requests. Every answer must come
// from one of the two models, and broken files must change nothing.
func TestReloadLosesNoRequest(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.safetensors")
	var files [2]string
	var values [2]float64
	for i, lambda := range []float64{0.5, 5} {
		m := fit(t, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: lambda}, price)
		files[i] = filepath.Join(folder, fmt.Sprint(i))
		if err := m.Save(files[i]); err != nil {
			t.Fatal(err)
		}
		p, err := m.PredictRows(t.Context(), json.RawMessage(flatRow), mercer.PredictOptions{})
		if err != nil {
			t.Fatal(err)
		}
		values[i] = p[0].Values["price"]
	}
	replace := func(file string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path+".new", data, 0o666), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	replace(files[0])
	var messages []string
	var mu sync.Mutex
	s := server(t, nil, func(c *Config) {
		c.Path, c.Load = path, swapper(path)
		c.Log = func(text string) { mu.Lock(); messages = append(messages, text); mu.Unlock() }
	})
	first := s.current.Model
	web := httptest.NewServer(s)
	defer web.Close()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var answers [2]atomic.Int64
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				r, err := http.Post(web.URL+"/predict", "application/json", strings.NewReader(flatRow))
				if err != nil {
					t.Error(err)
					return
				}
				var p mercer.Prediction
				err = json.NewDecoder(r.Body).Decode(&p)
				r.Body.Close()
				switch v := p.Values["price"]; {
				case err != nil || r.StatusCode != 200:
					t.Errorf("%d, %v", r.StatusCode, err)
					return
				case approxEqual(v, values[0]):
					answers[0].Add(1)
				case approxEqual(v, values[1]):
					answers[1].Add(1)
				default:
					t.Errorf("%v is the prediction of neither model: %v", v, values)
					return
				}
			}
		})
	}
	hup := make(chan os.Signal)
	wg.Go(func() { s.Watch(ctx, time.Millisecond, hup) })
	loads := func() int64 { return s.metrics.loads.Load() + s.metrics.failedLoads.Load() }
	await := func(n int64) {
		for start := time.Now(); loads() < n && time.Since(start) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 12 {
		n := loads()
		replace(files[(i+1)%2])
		await(n + 1)
		count := answers[(i+1)%2].Load()
		for start := time.Now(); answers[(i+1)%2].Load() <= count+1 && time.Since(start) < time.Minute && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	n := loads()
	hup <- os.Interrupt
	await(n + 1)
	invalid := filepath.Join(folder, "broken")
	if err := os.WriteFile(invalid, []byte("not a model"), 0o666); err != nil {
		t.Fatal(err)
	}
	prevLoads := s.metrics.loads.Load()
	replace(invalid)
	await(n + 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 20 { // time in which the missing file must not be read
		time.Sleep(time.Millisecond)
	}
	stop()
	wg.Wait()
	if loads() != n+2 || s.metrics.loads.Load() != prevLoads || answers[0].Load() == 0 || answers[1].Load() == 0 {
		t.Errorf("%d loads, want %d; %d of them were good, want %d", loads(), n+2, s.metrics.loads.Load(), prevLoads)
	}
	last := messages[len(messages)-1]
	if !strings.Contains(last, "was not read again, the previous model is used: ") || strings.Contains(last, "\n") || len(messages) != int(loads())-1 {
		t.Errorf("%d messages for %d loads; the last is %q", len(messages), loads(), last)
	}
	web.Close()
	s.Close()
	if _, err := first.PredictRows(context.Background(), json.RawMessage(flatRow), mercer.PredictOptions{}); !errors.Is(err, mercer.ErrClosed) {
		t.Errorf("the first model is not closed: %v", err)
	}
}

// waitForGoroutines waits until at most limit goroutines run.
func waitForGoroutines(t *testing.T, limit int) {
	t.Helper()
	for start := time.Now(); runtime.NumGoroutine() > limit; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), limit, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestSlowAndCancelled checks that slow and disconnecting clients do not block others and leave no goroutine.
func TestSlowAndCancelled(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	s := server(t, fit(t, ridge, price), func(c *Config) { c.Timeout, c.MaxRequests = 300*time.Millisecond, 2 })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	serveErr := make(chan error)
	go func() { serveErr <- s.Serve(ctx, l, nil) }()
	open := func(text string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answer := func(c net.Conn) string {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return fmt.Sprint(r.StatusCode, " ", string(text))
	}
	const head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	slowConns := []net.Conn{open(head), open(head)}
	for len(s.requests) < 2 {
		time.Sleep(time.Millisecond)
	}
	complete := strings.Replace(head, "1000", fmt.Sprint(len(flatRow)), 1) + flatRow[1:]
	conn := open(complete)
	if got := answer(conn); !strings.HasPrefix(got, `429 {"error":"2 requests are running, which is the limit: try again later"}`) {
		t.Errorf("a third request gets %s", got)
	}
	for _, c := range slowConns {
		if got := answer(c); !strings.HasPrefix(got, `408 {"error":"the body did not arrive within 300ms"}`) {
			t.Errorf("a slow request gets %s", got)
		}
	}
	for range 20 {
		open(head).Close()           // a client that disconnects during the body
		open(head[:40]).Close()      // a client that disconnects during the header
		open(complete).Close()       // a client that disconnects before the answer
		open("\x16\x03\x01").Close() // a client that begins a TLS handshake
	}
	for len(s.requests) > 0 {
		time.Sleep(time.Millisecond)
	}
	last := open(complete)
	if got := answer(last); !strings.HasPrefix(got, `200 {"values":{"price":`) {
		t.Errorf("after all that, a request gets %s", got)
	}
	for _, c := range append(slowConns, conn, last) {
		c.Close()
	}
	stop()
	if err := <-serveErr; err != nil {
		t.Error(err)
	}
	s.Close()
	waitForGoroutines(t, goroutines+1) // a backend keeps one goroutine for the life of the process
}

// TestTimeouts checks the answer to a prediction that takes too long, alone and in a batch.
func TestTimeouts(t *testing.T) {
	s := server(t, fit(t, ridge, price), func(c *Config) { c.Timeout = time.Nanosecond })
	s.current.fastPath = nil // the fast path would ignore the timeout
	for _, busy := range []bool{false, true} {
		s.current.batch.busy = busy // if true, rows wait as during another prediction
		for _, body := range []string{flatRow, "[" + flatRow + "," + flatRow + "]"} {
			if w := call(s, "POST", "/predict", "application/json", body); w.Code != 503 || !strings.Contains(w.Body.String(), "took longer than 1ns") {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", "/predict", strings.NewReader(flatRow))
	r.Header.Set("Content-Type", "application/json")
	if s.ServeHTTP(w, r); w.Body.Len() > 0 {
		t.Errorf("a client that has gone gets %s", w.Body)
	}
	s.current.batch.startWork()
	s.current.batch.idle.Wait() // waits until the method work has dropped the rows of canceled requests
	if text := call(s, "GET", "/metrics", "", "").Body.String(); !strings.Contains(text, `mercer_requests_total{path="/predict",code="499"} 1`) {
		t.Error(text)
	}
}

// TestShutdown checks that a TLS request is still answered if the shutdown signal arrives during it.
func TestShutdown(t *testing.T) {
	s := server(t, fit(t, ridge, price), nil)
	certificates := httptest.NewTLSServer(nil)
	defer certificates.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	serveErr := make(chan error, 1)
	go func() {
		serveErr <- s.Serve(ctx, l, &tls.Config{Certificates: certificates.TLS.Certificates})
	}()
	body, send := io.Pipe()
	answers := make(chan string)
	go func() {
		r, err := certificates.Client().Post("https://"+l.Addr().String()+"/predict", "application/json", body)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		answers <- fmt.Sprint(r.Proto, " ", r.StatusCode, " ", string(text))
	}()
	for len(s.requests) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	for !s.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	if w := call(s, "GET", "/health", "", ""); w.Code != 503 {
		t.Errorf("health while stopping: %d %s", w.Code, w.Body)
	}
	if _, err := io.WriteString(send, flatRow); err != nil {
		t.Fatal(err)
	}
	send.Close()
	if got := <-answers; !strings.Contains(got, ` 200 {"values":{"price":`) {
		t.Errorf("the running request gets %s", got)
	}
	if err := <-serveErr; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the server accepts connections after its end")
	}
}

// TestPanicsCostOneRequest checks that after a panic the request gets an answer and the log gets a line.
func TestPanicsCostOneRequest(t *testing.T) {
	var logged string
	m := fit(t, ridge, price)
	s := server(t, m, func(c *Config) {
		c.Log = func(text string) { logged = text }
		c.Load = func(context.Context) (*Loaded, error) {
			return &Loaded{Model: m, Check: func(w RequestOptions) error {
				if w.Level == 0.123 {
					panic("a mistake")
				}
				return nil
			}}, nil
		}
	})
	if w := call(s, "POST", "/predict?interval=0.123", "application/json", flatRow); w.Code != 500 || !strings.Contains(logged, "a mistake") {
		t.Errorf("%d %s, and the log has %q", w.Code, w.Body, logged)
	}
}

var metricLine = regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+)$`)

// TestDescriptions checks the answers to GET requests, which describe the model and the server.
func TestDescriptions(t *testing.T) {
	s := server(t, fit(t, ridge, price), nil)
	if w := call(s, "GET", "/model", "", ""); w.Body.String() != `{"program":"show"}` {
		t.Error(w.Body)
	}
	var health map[string]string
	if w := call(s, "GET", "/health", "", ""); json.Unmarshal(w.Body.Bytes(), &health) != nil || health["status"] != "ok" || health["learner"] != "kernel-ridge" {
		t.Error(w.Body)
	}
	if w := call(s, "HEAD", "/health", "", ""); w.Code != 200 {
		t.Error(w.Code)
	}
	call(s, "POST", "/predict", "application/json", "["+flatRow+","+flatRow+"]")
	call(s, "POST", "/predict", "application/json", "[")
	text := call(s, "GET", "/metrics", "", "").Body.String()
	for line := range strings.Lines(text) {
		if !metricLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("the line of the metrics %q has another form", line)
		}
	}
	for _, want := range []string{`mercer_requests_total{path="/predict",code="200"} 1`, `mercer_requests_total{path="/predict",code="400"} 1`, "mercer_rows_total 2", `mercer_request_seconds_bucket{le="+Inf"} 2`, "mercer_request_seconds_count 2", "mercer_requests_running 0", `mercer_model_loads_total{result="ok"} 1`, `mercer_model_info{learner="kernel-ridge"} 1`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	t.Run("promtool", func(t *testing.T) {
		cmd := exec.Command(required.Program(t, "promtool", "promtool"), "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 { // it prints advice, too
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	})
	var api struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
			Parameters []struct{ Name string }
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	w := call(s, "GET", "/openapi.json", "", "")
	if err := json.Unmarshal(w.Body.Bytes(), &api); err != nil || api.OpenAPI != "3.1.0" || len(api.Components.Schemas["row"].Properties) != 3 || len(api.Paths) != 4 {
		t.Errorf("%v: %s", err, w.Body)
	}
	example := api.Paths["/predict"]["post"].RequestBody.Content["application/json"].Example
	if w := call(s, "POST", "/predict", "application/json", string(example)); w.Code != 200 {
		t.Errorf("the example %s gets %d %s", example, w.Code, w.Body)
	}
	refs := regexp.MustCompile(`"\$ref":"#/components/schemas/([a-z]+)"`).FindAllStringSubmatch(w.Body.String(), -1)
	for _, m := range refs {
		if _, ok := api.Components.Schemas[m[1]]; !ok {
			t.Errorf("there is no schema %s", m[1])
		}
	}
	page := call(s, "GET", "/", "", "")
	for _, want := range []string{`data-column="area" inputmode="decimal" autocomplete="off" value="87.5"`, `<option value="bath">`, `data-query="interval=0.9"`} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("the page lacks %s: %s", want, page.Body)
		}
	}
	if strings.Contains(page.Body.String(), "http:") || strings.Contains(page.Body.String(), "https:") || !strings.Contains(page.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("the page may load something from elsewhere")
	}
}

// FuzzPredict checks for any body and query that the answer has the predictions or is an error of one line.
func FuzzPredict(f *testing.F) {
	f.Add(uint8(0), "", flatRow)
	f.Add(uint8(0), "std&interval=0.5", `[[1,"york",null]]`)
	f.Add(uint8(1), "bound", flatRow+"\n[1,2,3]")
	f.Add(uint8(2), "interval=0.9", "area,town,kind\n1,2,3\n")
	s := server(f, fit(f, ridge, price), func(c *Config) { c.MaxBody = 1 << 12; c.Log = func(text string) { panic(text) } })
	types := []string{"application/json", "application/x-ndjson", "text/csv"}
	f.Fuzz(func(t *testing.T, kind uint8, query, body string) {
		r := httptest.NewRequest("POST", "/predict", strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", types[int(kind)%len(types)])
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch w.Code {
		case 200:
		case 400, 413, 415:
			var answer map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer["error"] == "" || strings.Contains(answer["error"], "\n") {
				t.Errorf("%d %q: %v", w.Code, w.Body, err)
			}
		default:
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}

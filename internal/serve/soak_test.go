package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// soak is a server under a mixed load, with the counts of its clients.
type soak struct {
	t       *testing.T
	s       *Server
	addr    string // host and port
	areas   []float64
	models  [2][]float64 // models[i] has the predictions of model i for the rows in areas
	second  atomic.Bool  // whether the server has read the second model
	stopped atomic.Bool  // whether the signal to stop was given

	mu       sync.Mutex
	answers  map[int]int64 // answers by status
	vanished int64         // requests that the client may have canceled before the answer
	rows     int64         // rows predicted for clients that read the answer
	lost     int64         // rows of the requests that vanished counts
}

// count counts an answer.
func (k *soak) count(status int, rows int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[status]++
	k.rows += int64(rows)
}

// vanish counts a request whose answer the client possibly did not read.
func (k *soak) vanish(rows int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.vanished++
	k.lost += int64(rows)
}

// check checks that got has the predictions of one of the two models for rows, of the second if afterSwap is true.
func (k *soak) check(rows []int, got []float64, afterSwap bool) {
	matches := func(model int) bool {
		for i, row := range rows {
			if !approxEqual(got[i], k.models[model][row]) {
				return false
			}
		}
		return true
	}
	if len(got) != len(rows) || !matches(1) && (afterSwap || !matches(0)) {
		k.t.Errorf("rows %v get %v", rows, got)
	}
}

// sendValid sends a request that must be answered, in one of the formats.
func (k *soak) sendValid(client *http.Client, r *rand.Rand) {
	afterSwap := k.second.Load()
	rows := make([]int, []int{1, 1, 1, 1, 30, 300}[r.IntN(6)])
	kind := []string{"application/json", "application/x-ndjson", "text/csv"}[r.IntN(3)]
	if len(rows) == 1 && r.IntN(2) == 0 {
		kind = "application/json"
	}
	var lines []string
	for i := range rows {
		rows[i] = r.IntN(len(k.areas))
		text := number(k.areas[rows[i]])
		if kind == "text/csv" {
			lines = append(lines, text+",york,flat")
		} else {
			lines = append(lines, `{"area":`+text+`,"town":"york","kind":"flat"}`)
		}
	}
	body := strings.Join(lines, "\n")
	switch {
	case kind == "text/csv":
		body = "area,town,kind\n" + body
	case kind == "application/json" && len(rows) > 1:
		body = "[" + strings.Join(lines, ",") + "]"
	}
	query := []string{"", "", "?bound"}[r.IntN(3)]
	for {
		start := time.Now()
		answer, err := client.Post("http://"+k.addr+"/predict"+query, kind, strings.NewReader(body))
		if err != nil {
			if k.vanish(len(rows)); !k.stopped.Load() {
				k.t.Error(err)
			}
			return
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if delayed := time.Since(start) > k.s.Timeout/2; delayed && (answer.StatusCode == 408 || answer.StatusCode == 503) {
			k.count(answer.StatusCode, 0) // another process delayed the answer
			continue
		}
		if err != nil || answer.StatusCode != 200 {
			k.t.Errorf("%s%s %.100q gets %d %.200s, %v", kind, query, body, answer.StatusCode, text, err)
			return
		}
		k.count(200, len(rows))
		k.check(rows, values(k.t, kind, text), afterSwap)
		return
	}
}

// values returns the predictions in an answer.
func values(t *testing.T, kind string, text []byte) (list []float64) {
	if kind == "text/csv" {
		records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Errorf("%.200s: %v", text, err)
		}
		for _, record := range records[min(1, len(records)):] {
			v, err := strconv.ParseFloat(record[0], 64)
			if err != nil {
				t.Error(err)
			}
			list = append(list, v)
		}
		return list
	}
	array := strings.TrimSpace(string(text))
	if !strings.HasPrefix(array, "[") {
		array = "[" + strings.ReplaceAll(array, "\n", ",") + "]"
	}
	var predictions []mercer.Prediction
	if err := json.Unmarshal([]byte(array), &predictions); err != nil {
		t.Errorf("%.200s: %v", text, err)
	}
	for _, p := range predictions {
		list = append(list, p.Values["price"])
	}
	return list
}

// sendInvalid sends a request that must be refused.
func (k *soak) sendInvalid(client *http.Client, r *rand.Rand) {
	const js = "application/json"
	c := []struct {
		query, kind, body string
		status            int
	}{
		{"", js, flatRow[:r.IntN(len(flatRow)-1)+1], 400},
		{"", js, strings.Repeat("[", 1+r.IntN(10000)), 400},
		{"", js, `{"area": "wide", "town": "york", "kind": "flat"}`, 400},
		{"", js, `{"area": 1e999, "town": "york", "kind": "flat"}`, 400},
		{"?interval=2", js, flatRow, 400},
		{"", "text/csv", "area,town\n5,york\n", 400},
		{"", "application/x-ndjson", flatRow + "\n{", 400},
		{"", "image/png", "\x89PNG", 415},
		{"", "text/csv", "area,town,kind\n" + strings.Repeat("5,york,flat\n", k.s.MaxRows+1), 413},
		{"", js, "[" + strings.Repeat(flatRow+",", int(k.s.MaxBody)/len(flatRow)) + flatRow + "]", 413},
	}[r.IntN(10)]
	var body io.Reader = strings.NewReader(c.body)
	if r.IntN(2) == 0 {
		body = io.MultiReader(body) // without Content-Length
	}
	answer, err := client.Post("http://"+k.addr+"/predict"+c.query, c.kind, body)
	if err != nil {
		// The server may close the connection while the client still sends a body that is too large.
		if k.vanish(0); !k.stopped.Load() && c.status != 413 {
			k.t.Error(err)
		}
		return
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	var response map[string]string
	if err := json.Unmarshal(text, &response); err != nil || answer.StatusCode != c.status || response["error"] == "" || strings.Contains(response["error"], "\n") {
		k.t.Errorf("%s %.100q gets %d %.200s, want %d", c.kind, c.body, answer.StatusCode, text, c.status)
	}
	k.count(answer.StatusCode, 0)
}

// cancelled sends a request and cancels it after a random time.
func (k *soak) cancelled(client *http.Client, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Duration(r.IntN(3000))*time.Microsecond)
	defer cancel()
	rows := 1 + 500*r.IntN(2)
	body := "area,town,kind\n" + strings.Repeat("75,york,flat\n", rows)
	request, err := http.NewRequestWithContext(ctx, "POST", "http://"+k.addr+"/predict", strings.NewReader(body))
	if err != nil {
		k.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "text/csv")
	k.vanish(rows)
	if answer, err := client.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

// sendRaw opens a connection and sends bytes that no client of net/http sends.
func (k *soak) sendRaw(r *rand.Rand) {
	c, err := net.Dial("tcp", k.addr)
	if err != nil {
		if !k.stopped.Load() {
			k.t.Error(err)
		}
		return
	}
	defer c.Close()
	head := fmt.Sprintf("POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(flatRow))
	switch r.IntN(5) {
	case 0: // bytes that are no request
		noise := make([]byte, 1+r.IntN(2000))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		_, _ = c.Write(noise)
	case 1: // an endless header, until the server closes the connection
		_, _ = io.WriteString(c, "POST /predict HTTP/1.1\r\n")
		for range 2000 {
			if _, err := io.WriteString(c, "X-Header: "+strings.Repeat("x", 100)+"\r\n"); err != nil {
				break
			}
		}
	case 2: // the first part of a request
		k.vanish(1)
		_, _ = io.WriteString(c, head+flatRow[:r.IntN(len(flatRow))])
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	case 3: // a request whose answer nobody reads
		k.vanish(1)
		_, _ = io.WriteString(c, head+flatRow)
	case 4: // a request sent slowly, byte by byte
		for _, b := range []byte(head + flatRow) {
			if _, err := c.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		k.vanish(1)
		if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); answer.StatusCode != 200 && answer.StatusCode != 408 {
				k.t.Errorf("a slow request gets %d %s, %v", answer.StatusCode, text, err)
			}
		} else if !k.stopped.Load() {
			k.t.Errorf("a slow request gets no answer: %v", err)
		}
	}
}

// load sends requests over many connections until ctx is done.
func (k *soak) load(ctx context.Context, seed uint64) {
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			transport := &http.Transport{DisableKeepAlives: i%6 == 0}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for ctx.Err() == nil {
				switch n := r.IntN(10); {
				case i%3 == 0 || n < 4:
					k.sendValid(client, r)
				case n < 6:
					k.sendInvalid(client, r)
				case n < 8:
					k.cancelled(client, r)
				default:
					k.sendRaw(r)
				}
			}
		})
	}
	wg.Wait()
}

// liveHeap returns the number of bytes in reachable objects.
func liveHeap() int64 {
	for range 3 { // objects in a sync.Pool and objects with cleanups remain reachable for some collections
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// metric returns the sum of the values in /metrics whose name and labels match a pattern.
func metric(text, pattern string) (sum int64) {
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (.*)$`).FindAllStringSubmatch(text, -1) {
		v, _ := strconv.ParseFloat(m[len(m)-1], 64)
		sum += int64(v)
	}
	return sum
}

// TestSoak sends good, malformed, huge, slow and cancelled requests over many connections, while the model file is
// replaced and the server begins to shut down. Every good request must get the predictions of the current model,
// the metrics must agree with the clients, and neither goroutines nor memory may remain.
func TestSoak(t *testing.T) {
	duration := 10 * time.Second // the test has two parts; longer parts send more requests
	if testing.Short() {
		duration = 700 * time.Millisecond
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	goroutines := runtime.NumGoroutine()
	folder := t.TempDir()
	path := filepath.Join(folder, "m.safetensors")
	k := &soak{t: t, answers: map[int]int64{}}
	var rows []map[string]any
	for i := range 100 {
		k.areas = append(k.areas, 50+0.5*float64(i))
		rows = append(rows, map[string]any{"area": k.areas[i], "town": "york", "kind": "flat"})
	}
	var files [2]string
	for i, lambda := range []float64{0.5, 5} {
		m := fit(t, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: lambda, Bound: true}, price)
		files[i] = filepath.Join(folder, fmt.Sprint(i))
		list, err := m.PredictRows(t.Context(), rows, mercer.PredictOptions{})
		if err := errors.Join(err, m.Save(files[i])); err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			k.models[i] = append(k.models[i], p.Values["price"])
		}
	}
	if err := os.Rename(files[0], path); err != nil {
		t.Fatal(err)
	}
	k.s = server(t, nil, func(c *Config) {
		c.Path, c.Load, c.MaxBody = path, swapper(path), 1<<17
		c.Log = func(string) {}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k.addr = l.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	serveErr := make(chan error, 1)
	go func() { serveErr <- k.s.Serve(ctx, l, nil) }()
	watchDone := make(chan struct{})
	go func() { k.s.Watch(ctx, 5*time.Millisecond, nil); close(watchDone) }()
	metricsText := func() string { return call(k.s, "GET", "/metrics", "", "").Body.String() }
	idle := func() {
		for metric(metricsText(), "mercer_requests_running") > 0 {
			time.Sleep(time.Millisecond)
		}
	}

	first, end := context.WithTimeout(t.Context(), duration)
	k.load(first, seed)
	end()
	idle()
	heap, requests := liveHeap(), metric(metricsText(), "mercer_request_seconds_count")

	second, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { k.load(second, seed+1) })
	time.Sleep(duration / 3)
	if err := os.Rename(files[1], path); err != nil {
		t.Error(err)
	}
	for !t.Failed() && k.s.metrics.loads.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	k.second.Store(true)
	time.Sleep(duration / 3)

	// Running requests must still be answered. The server sends "100 Continue" when it begins to read a body.
	body := `{"area":` + number(k.areas[7]) + `,"town":"york","kind":"flat"}`
	var running [4]net.Conn
	var answers [4]*bufio.Reader
	for i := range running {
		if running[i], err = net.Dial("tcp", k.addr); err != nil {
			t.Fatal(err)
		}
		defer running[i].Close()
		answers[i] = bufio.NewReader(running[i])
		fmt.Fprintf(running[i], "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
		for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
			if line, err := answers[i].ReadString('\n'); line != want {
				t.Fatalf("%q, %v", line, err)
			}
		}
	}
	k.stopped.Store(true)
	stop()
	for !k.s.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	for i, c := range running {
		if _, err := io.WriteString(c, body); err != nil {
			t.Error(err)
		}
		answer, err := http.ReadResponse(answers[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("a running request gets %d %s, %v", answer.StatusCode, text, err)
		}
		k.count(200, 1)
		k.check([]int{7}, values(t, "application/json", text), true)
	}
	end()
	wg.Wait()
	if err := <-serveErr; err != nil {
		t.Error(err)
	}
	<-watchDone
	if _, err := net.Dial("tcp", k.addr); err == nil {
		t.Error("the server accepts connections after its end")
	}

	text := metricsText()
	total, expected := metric(text, `mercer_requests_total\{path="/predict".*`), int64(0)
	for _, status := range []int{200, 400, 408, 413, 415, 499, 503} {
		n := metric(text, fmt.Sprintf(`mercer_requests_total\{path="/predict",code="%d"\}`, status))
		if n < k.answers[status] || n > k.answers[status]+k.vanished {
			t.Errorf("the metrics count %d answers with status %d, the clients %d, and %d unknown", n, status, k.answers[status], k.vanished)
		}
		total -= n
		expected += k.answers[status]
	}
	if total != 0 {
		t.Errorf("the metrics count %d answers with other statuses:\n%s", total, text)
	}
	total = metric(text, "mercer_request_seconds_count")
	for _, c := range []struct {
		name                   string
		got, smallest, largest int64
	}{
		{"times", total, expected, expected + k.vanished},
		{"times in buckets", metric(text, `mercer_request_seconds_bucket\{le="\+Inf"\}`), total, total},
		{"answers with times", metric(text, `mercer_requests_total\{path="/predict".*`), total, total},
		{"rows", metric(text, "mercer_rows_total"), k.rows, k.rows + k.lost},
		{"running requests", metric(text, "mercer_requests_running"), 0, 0},
		{"models", metric(text, `mercer_model_loads_total\{result="ok"\}`), 2, 2},
		{"failed models", metric(text, `mercer_model_loads_total\{result="failed"\}`), 0, 0},
		{"bytes", liveHeap() - heap, -1 << 40, 256<<10 + 128*(total-requests)}, // a request that remains in memory takes more than 128 bytes
	} {
		if c.got < c.smallest || c.got > c.largest {
			t.Errorf("%d %s, want a number from %d to %d", c.got, c.name, c.smallest, c.largest)
		}
	}
	t.Logf("%d requests, of which clients ended %d", total, k.vanished)
	k.s.Close()
	waitForGoroutines(t, goroutines+1) // a backend keeps one goroutine for the life of the process
}

package serve

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type metrics struct {
	started                           time.Time
	running, rows, loads, failedLoads atomic.Int64
	seconds                           histogram // durations of requests to /predict
	batches                           histogram // sizes of batches of one-row requests

	mu       sync.Mutex
	answered map[answered]int64
}

// answered is a key of the map that counts answers.
type answered struct {
	path   string
	status int
}

// histogram counts observations by their value.
type histogram struct {
	mu     sync.Mutex
	counts [13]int64 // one count for each bound, and one for larger observations
	sum    float64
}

// These are the upper bounds of the buckets of the histograms.
var (
	secondBounds = []float64{0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2, 10}
	batchBounds  = []float64{1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 192, maxBatch}
)

// observe counts a batch with the given number of rows.
func (h *histogram) observe(rows float64) { h.add(batchBounds, rows) }

func (h *histogram) add(bounds []float64, v float64) {
	bucket, _ := slices.BinarySearch(bounds, v)
	h.mu.Lock()
	h.counts[bucket]++
	h.sum += v
	h.mu.Unlock()
}

// begin counts the start of a request to /predict and returns the current time.
func (m *metrics) begin() time.Time {
	m.running.Add(1)
	return time.Now()
}

func (m *metrics) end(start time.Time) {
	m.running.Add(-1)
	m.seconds.add(secondBounds, time.Since(start).Seconds())
}

func (m *metrics) request(path string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answered == nil {
		m.answered = map[answered]int64{}
	}
	m.answered[answered{path, status}]++
}

// exposition returns the counters in the text format 0.0.4 of Prometheus.
func (s *Server) exposition() []byte {
	var buf bytes.Buffer
	head := func(name, kind, help string) {
		fmt.Fprintf(&buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	writeMetric := func(name, kind, help string, v float64) {
		head(name, kind, help)
		fmt.Fprintf(&buf, "%s %s\n", name, number(v))
	}
	m := &s.metrics
	m.mu.Lock()
	counts := maps.Clone(m.answered)
	m.mu.Unlock()
	head("mercer_requests_total", "counter", "Answered requests; 499 stands for a client that disconnected.")
	for _, a := range slices.SortedFunc(maps.Keys(counts), func(a, b answered) int {
		return slices.Compare([]string{a.path, strconv.Itoa(a.status)}, []string{b.path, strconv.Itoa(b.status)})
	}) {
		fmt.Fprintf(&buf, "mercer_requests_total{path=%q,code=\"%d\"} %d\n", a.path, a.status, counts[a])
	}
	writeMetric("mercer_rows_total", "counter", "Rows that were predicted.", float64(m.rows.Load()))
	writeMetric("mercer_requests_running", "gauge", "Requests to /predict that are running.", float64(m.running.Load()))
	m.seconds.write(&buf, head, "mercer_request_seconds", "Time from the header of a request to /predict to the end of its answer.", secondBounds)
	m.batches.write(&buf, head, "mercer_batch_rows", "Rows of requests of one row that were predicted together.", batchBounds)
	head("mercer_model_loads_total", "counter", "Number of times that the model file was read.")
	fmt.Fprintf(&buf, "mercer_model_loads_total{result=\"ok\"} %d\nmercer_model_loads_total{result=\"failed\"} %d\n", m.loads.Load(), m.failedLoads.Load())
	current := s.acquire()
	writeMetric("mercer_model_loaded_timestamp_seconds", "gauge", "Unix time at which the model was read.", unixSeconds(current.loadedAt))
	head("mercer_model_info", "gauge", "The learner of the model; the value is 1.")
	fmt.Fprintf(&buf, "mercer_model_info{learner=%q} 1\n", current.Model.Model().Learner())
	current.users.Done()
	writeMetric("process_start_time_seconds", "gauge", "Unix time at which the server was started.", unixSeconds(m.started))
	writeMetric("go_goroutines", "gauge", "Goroutines of the process.", float64(runtime.NumGoroutine()))
	return buf.Bytes()
}

// write writes the histogram with cumulative buckets.
func (h *histogram) write(buf *bytes.Buffer, head func(name, kind, help string), name, help string, bounds []float64) {
	h.mu.Lock()
	counts, sum := h.counts, h.sum
	h.mu.Unlock()
	head(name, "histogram", help)
	total := int64(0)
	for i, c := range counts {
		total += c
		bound := "+Inf"
		if i < len(bounds) {
			bound = number(bounds[i])
		}
		fmt.Fprintf(buf, "%s_bucket{le=%q} %d\n", name, bound, total)
	}
	fmt.Fprintf(buf, "%s_sum %s\n%s_count %d\n", name, number(sum), name, total)
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

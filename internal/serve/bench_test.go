package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// BenchmarkOneRow sends requests of one row over 1 and 8 connections. It reports the requests per second and the
// 99th percentile of the request times. MERCER_SERVE_URL is the URL of a server, such as bench/serve_fastapi.py.
// Without it, a server with the same model runs in this process.
func BenchmarkOneRow(b *testing.B) {
	target := os.Getenv("MERCER_SERVE_URL")
	if target == "" {
		table, err := dataset.Read("../../testdata/diabetes.csv", nil)
		if err != nil {
			b.Fatal(err)
		}
		m := fitTable(b, table, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 5}, Lambda: 1}, dataset.Rules{Targets: []string{"target"}, Standardize: true})
		web := httptest.NewServer(server(b, m, nil))
		defer web.Close()
		target = web.URL + "/predict"
	}
	targetURL, err := url.Parse(target)
	if err != nil {
		b.Fatal(err)
	}
	const body = `{"age":59,"sex":2,"bmi":32.1,"bp":101,"s1":157,"s2":93.2,"s3":38,"s4":4,"s5":4.86,"s6":87}`
	request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", targetURL.RequestURI(), targetURL.Host, len(body), body)
	for _, connections := range []int{1, 8} {
		b.Run(fmt.Sprint("connections=", connections), func(b *testing.B) {
			times := make([][]time.Duration, connections)
			var remaining atomic.Int64
			remaining.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range times {
				wg.Go(func() {
					c, err := net.Dial("tcp", targetURL.Host)
					if err != nil {
						b.Error(err)
						return
					}
					defer c.Close()
					r := bufio.NewReader(c)
					for remaining.Add(-1) >= 0 {
						start := time.Now()
						if _, err = io.WriteString(c, request); err == nil {
							err = readAnswer(r)
						}
						if err != nil {
							b.Error(err)
							return
						}
						times[i] = append(times[i], time.Since(start))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
			if len(sorted) > 0 {
				b.ReportMetric(float64(len(sorted))/b.Elapsed().Seconds(), "requests/s")
				b.ReportMetric(float64(sorted[len(sorted)*99/100].Microseconds())/1000, "ms-p99")
			}
		})
	}
}

// readAnswer reads an answer with the status 200 and a Content-Length.
func readAnswer(r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		err = fmt.Errorf("got %q", line)
	}
	length := 0
	for err == nil && line != "\r\n" {
		if line, err = r.ReadString('\n'); err == nil {
			if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "Content-Length") {
				length, err = strconv.Atoi(strings.TrimSpace(value))
			}
		}
	}
	if err == nil {
		_, err = r.Discard(length)
	}
	return err
}

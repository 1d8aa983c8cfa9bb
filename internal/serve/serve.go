// Package serve answers HTTP requests with the predictions of a model file.
//
//	POST /predict       the predictions for the rows in the body: see docs/guide/serving.md
//	GET  /model         the description of the model
//	GET  /health        whether requests are accepted
//	GET  /metrics       counters in the text format of Prometheus
//	GET  /openapi.json  the description of these paths for programs
//	GET  /docs          the same description for people
//	GET  /              a page with a form for one row
//
// A changed model file replaces the model: running requests finish with the old model, and later requests use the
// new model.
package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/learners"
)

// Loaded is a model that was read from its file.
type Loaded struct {
	Model *mercer.Model[learners.Model] // a model whose Encoder is not nil
	Shown json.RawMessage               // the answer to GET /model
	// Check returns an error if the model cannot compute a requested result. A nil Check allows all results.
	Check func(RequestOptions) error
}

// RequestOptions selects the optional results of a request.
type RequestOptions struct {
	mercer.PredictOptions
	Proba bool // requests the probabilities of the classes
}

// Config specifies a Server. All fields except Text are required.
type Config struct {
	Path        string // path of the model file
	Load        func(context.Context) (*Loaded, error)
	MaxBody     int64         // largest body of a request, in bytes
	MaxRows     int           // largest number of rows of a request
	MaxRequests int           // largest number of simultaneous predictions; further requests get an error
	Timeout     time.Duration // limit on the time to read a request, and on the time of a prediction
	Log         func(text string)
	Text        func(error) string // returns the text of an error in one line; nil means err.Error()
}

// Server is an http.Handler for one model file.
type Server struct {
	Config
	requests      chan struct{} // one element for each running request to /predict
	largeRequests chan struct{} // one element for each running request of many rows
	metrics       metrics
	stopping      atomic.Bool

	mu      sync.RWMutex // held for writing while current changes
	current *served
	reading sync.Mutex  // held while the model file is read
	file    os.FileInfo // the file that was read last, successfully or not
}

type served struct {
	*Loaded
	batch    batcher
	fastPath *fastPath
	columns  []string
	page     []byte
	docs     []byte
	openAPI  []byte
	loadedAt time.Time
	users    sync.WaitGroup // counts the running requests
}

// New returns a Server after it has read the model file.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Text == nil {
		c.Text = error.Error
	}
	s := &Server{Config: c, requests: make(chan struct{}, c.MaxRequests), largeRequests: make(chan struct{}, runtime.GOMAXPROCS(0))}
	s.metrics.started = time.Now()
	return s, s.read(ctx)
}

// Close releases the model. All requests must have ended before.
func (s *Server) Close() { s.swap(nil) }

// Reload reads the model file again. If that fails, the previous model remains in use.
func (s *Server) Reload(ctx context.Context) {
	if err := s.read(ctx); err != nil {
		s.metrics.failedLoads.Add(1)
		s.Log(fmt.Sprintf("%s was not read again, the previous model is used: %s", s.Path, s.Text(err)))
		return
	}
	s.Log(s.Path + " was read again")
}

// Watch reads the model file again after each signal, and after each change or replacement of the
// file, until ctx is done. It checks the file at the given interval, or never if the interval is 0.
func (s *Server) Watch(ctx context.Context, interval time.Duration, signals <-chan os.Signal) {
	var ticks <-chan time.Time
	if interval > 0 {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			s.Reload(ctx)
		case <-ticks:
			if s.changed() {
				s.Reload(ctx)
			}
		}
	}
}

// changed reports whether the model file exists and differs from the file that was read last.
func (s *Server) changed() bool {
	info, err := os.Stat(s.Path)
	if err != nil {
		return false
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.file == nil || !os.SameFile(info, s.file) || info.Size() != s.file.Size() || !info.ModTime().Equal(s.file.ModTime())
}

func (s *Server) read(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.file, _ = os.Stat(s.Path) // Stat precedes Load, so that the method changed sees a change during Load
	l, err := s.Load(ctx)
	if err != nil {
		return err
	}
	if l.Check == nil {
		l.Check = func(RequestOptions) error { return nil }
	}
	next := &served{Loaded: l, loadedAt: time.Now(), columns: columnsOf(l.Model.Encoder())}
	next.fastPath = newFastPath(ctx, next)
	next.batch = batcher{model: l.Model, timeout: s.Timeout, metrics: &s.metrics}
	if next.openAPI, err = s.describe(next); err == nil {
		next.docs, err = makeDocs(next.openAPI)
	}
	if err == nil {
		next.page, err = makePage(s.Path, next)
	}
	if err != nil {
		l.Model.Close()
		return err
	}
	s.metrics.loads.Add(1)
	s.swap(next)
	return nil
}

// swap sets the model of later requests to next. The previous model is closed after its last request.
func (s *Server) swap(next *served) {
	s.mu.Lock()
	previous := s.current
	s.current = next
	s.mu.Unlock()
	if previous == nil {
		return
	}
	release := func() {
		previous.users.Wait()
		previous.batch.idle.Wait()
		previous.Model.Close()
	}
	if next == nil {
		release()
	} else {
		go release()
	}
}

// acquire returns the current model. The caller must call users.Done after its use.
func (s *Server) acquire() *served {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.current.users.Add(1)
	return s.current
}

// errorLog passes the messages of net/http, such as failed TLS handshakes, to Log.
func (s *Server) errorLog() *log.Logger { return log.New(logWriter(s.Log), "", 0) }

type logWriter func(text string)

func (l logWriter) Write(p []byte) (int, error) {
	l(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Serve accepts connections until ctx is done, with TLS unless t is nil. It then waits for running
// requests, for at most 3 times Timeout.
func (s *Server) Serve(ctx context.Context, l net.Listener, t *tls.Config) error {
	h := &http.Server{
		Handler: s, TLSConfig: t, ErrorLog: s.errorLog(),
		ReadHeaderTimeout: min(s.Timeout, 10*time.Second), ReadTimeout: s.Timeout, WriteTimeout: 3 * s.Timeout, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	serveErr := make(chan error, 1)
	go func() {
		if t != nil {
			serveErr <- h.ServeTLS(l, "", "")
		} else {
			serveErr <- h.Serve(l)
		}
	}()
	select {
	case err := <-serveErr:
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*s.Timeout)
	defer cancel()
	if err := h.Shutdown(shutdownCtx); err != nil {
		_ = h.Close()
		return fmt.Errorf("requests were still running %v after the signal and were cut off", 3*s.Timeout)
	}
	return nil
}

// failure is an error with the HTTP status of its answer.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func failf(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// statusGone is the status in the metrics for a request whose client has disconnected, as in nginx.
const statusGone = 499

// statusOf returns the HTTP status and the text of the answer for an error.
func (s *Server) statusOf(r *http.Request, err error) (int, string) {
	f := (*failure)(nil)
	switch {
	case errors.As(err, &f):
		return f.status, f.text
	case r.Context().Err() != nil:
		return statusGone, ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, fmt.Sprintf("the prediction took longer than %v: send fewer rows, or try again later", s.Timeout)
	case outOfMemory(err):
		return http.StatusServiceUnavailable, s.Text(err)
	}
	return http.StatusBadRequest, s.Text(err)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, status := r.URL.Path, http.StatusOK
	defer func() { s.metrics.request(path, status) }()
	route, ok := routes[path]
	var err error
	switch method, head := r.Method, r.Method == http.MethodHead; {
	case !ok:
		path = "other"
		err = failf(http.StatusNotFound, "there is no %.100q here; the paths are %s", r.URL.Path, strings.Join(paths, ", "))
	case method != route.method && !(head && route.method == http.MethodGet):
		w.Header().Set("Allow", route.method)
		err = failf(http.StatusMethodNotAllowed, "%s takes %s, not %.20q", path, route.method, method)
	default:
		err = s.recoverPanic(func() error { return route.answer(s, w, r) })
	}
	if err == nil {
		return
	}
	var text string
	if status, text = s.statusOf(r, err); status == statusGone {
		return
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	body, _ := json.Marshal(map[string]string{"error": strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))})
	send(w, "application/json", status, append(body, '\n'))
}

// recoverPanic turns a panic into an error.
func (s *Server) recoverPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log(fmt.Sprintf("a request caused a panic: %v", p))
			err = failf(http.StatusInternalServerError, "an error inside the server, which its log also has: %.200v", p)
		}
	}()
	return f()
}

// A route has the HTTP method of a path and the function that answers the requests.
type route struct {
	method string
	answer func(s *Server, w http.ResponseWriter, r *http.Request) error
}

var paths = []string{"/predict", "/model", "/health", "/metrics", "/openapi.json", "/docs", "/"}

var routes = map[string]route{
	"/predict": {http.MethodPost, (*Server).predict},
	"/health":  {http.MethodGet, (*Server).health},
	"/metrics": {http.MethodGet, func(s *Server, w http.ResponseWriter, _ *http.Request) error {
		send(w, "text/plain; version=0.0.4; charset=utf-8", http.StatusOK, s.exposition())
		return nil
	}},
	"/model":        storedRoute("application/json", func(m *served) []byte { return m.Shown }),
	"/openapi.json": storedRoute("application/json", func(m *served) []byte { return m.openAPI }),
	"/docs":         storedRoute("text/html; charset=utf-8", func(m *served) []byte { return m.docs }),
	"/":             storedRoute("text/html; charset=utf-8", func(m *served) []byte { return m.page }),
}

// storedRoute returns a route that answers with a text that was stored when the model was read.
func storedRoute(kind string, text func(m *served) []byte) route {
	return route{http.MethodGet, func(s *Server, w http.ResponseWriter, _ *http.Request) error {
		m := s.acquire()
		defer m.users.Done()
		if strings.HasPrefix(kind, "text/html") {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'")
		}
		send(w, kind, http.StatusOK, text(m))
		return nil
	}}
}

// health answers with status 200, or with 503 if the server is stopping.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	if s.stopping.Load() {
		return failf(http.StatusServiceUnavailable, "the server is stopping")
	}
	m := s.acquire()
	defer m.users.Done()
	body, err := json.Marshal(map[string]string{"status": "ok", "model": s.Path, "learner": m.Model.Model().Learner(), "since": m.loadedAt.UTC().Format(time.RFC3339)})
	send(w, "application/json", http.StatusOK, append(body, '\n'))
	return err
}

// These header values are shared by all answers, to avoid allocations.
var jsonKind, noSniff, noStore = []string{"application/json"}, []string{"nosniff"}, []string{"no-store"}

func send(w http.ResponseWriter, kind string, status int, body []byte) {
	h := w.Header()
	if h["Content-Type"] = jsonKind; kind != jsonKind[0] {
		h["Content-Type"] = []string{kind}
	}
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

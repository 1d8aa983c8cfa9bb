package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/serve"
	"github.com/mercer-go/mercer/learners/validate"
)

// serveFlags are the flags of `mercer serve`.
type serveFlags struct {
	listen, cert, key string
	body              size
	rows, requests    int
	timeout, reload   time.Duration
	prepare           bool
}

func (a *app) serveCommand() *cobra.Command {
	f := serveFlags{body: 8 << 20}
	c := &cobra.Command{
		Use:   "serve [flags] MODEL",
		Short: "Answer HTTP requests with the predictions of a model",
		Long: `Answer HTTP requests with the predictions of a model, until SIGINT or SIGTERM. Requests
that are running then get their answers, and the exit status is 0.

POST /predict takes rows as JSON (an object, or an array of objects or of arrays), as
lines of JSON or as CSV, according to the Content-Type: application/json,
application/x-ndjson or text/csv. The answer has the same format. The query parameters
interval=0.9, std, bound and proba add results, as the flags of mercer predict do.
GET / is a page with a form for one row; /model is what mercer show --json prints, with
at most 20 points; /health, /metrics (of Prometheus) and /openapi.json are for programs;
/docs describes all paths.

If the file of the model is replaced by renaming another file, or on SIGHUP, the
new model answers all later requests. If the new file cannot be read, the old model
stays, and one line on standard error says why. The files of --tls-cert and --tls-key
are read again with the model.

The server can be reached from this machine only, unless --listen names another
address. It has no user accounts: put it behind a proxy that has them.`,
		Args: maxArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return usagef("serve needs MODEL: a file that mercer fit wrote")
			}
			return a.serve(ctx, f, args[0])
		}),
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen at; port 0 takes any free port, and :8080 listens beyond this machine")
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` of the TLS certificate, PEM; needs --tls-key")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of the private key of --tls-cert, PEM")
	flags.Var(&f.body, "max-body", "maximum `SIZE` of the body of a request")
	intFlag(flags, &f.rows, "max-rows", 10000, 1, "maximum `NUMBER` of rows in a request")
	intFlag(flags, &f.requests, "max-requests", 256, 1, "maximum `NUMBER` of requests for predictions at the same time")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "maximum `TIME` for reading a request, and for its prediction")
	flags.DurationVar(&f.reload, "reload", 2*time.Second, "`TIME` between checks whether MODEL was replaced; 0 checks only on SIGHUP")
	flags.BoolVar(&f.prepare, "prepare", false, "before answering, do the work that the first request for std or interval would otherwise wait for")
	return c
}

func (f serveFlags) check() error {
	switch {
	case (f.cert == "") != (f.key == ""):
		return usagef("--tls-cert and --tls-key: give both or neither")
	case f.timeout <= 0:
		return usagef("--timeout: must be > 0, got %v", f.timeout)
	case f.reload < 0:
		return usagef("--reload: must be ≥ 0, got %v", f.reload)
	}
	return nil
}

// served is the output of mercer serve when the server is ready for requests.
type served struct {
	Program string `json:"program"` // "serve"
	URL     string `json:"url"`
	Model   string `json:"model"`
}

// certificate is the TLS certificate of a server. Each reload of the model also reloads it.
type certificate struct {
	cert, key string // paths of the files
	current   atomic.Pointer[tls.Certificate]
}

func (c *certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	c.current.Store(&pair)
	return nil
}

func (c *certificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

func (a *app) serve(ctx context.Context, f serveFlags, path string) error {
	if err := f.check(); err != nil {
		return err
	}
	var t *tls.Config
	pair := certificate{cert: f.cert, key: f.key}
	if f.cert != "" {
		if err := pair.read(); err != nil {
			return err
		}
		t = &tls.Config{GetCertificate: pair.getCertificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	dev, err := a.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	var mu sync.Mutex
	log := func(text string) {
		if mu.Lock(); !a.quiet {
			fmt.Fprintln(a.stderr, strings.ReplaceAll(text, "\n", " "))
		}
		mu.Unlock()
	}
	s, err := serve.New(ctx, serve.Config{
		Path: path, MaxBody: int64(f.body), MaxRows: f.rows, MaxRequests: f.requests, Timeout: f.timeout, Text: a.oneLine, Log: log,
		Load: func(ctx context.Context) (*serve.Loaded, error) {
			if t != nil {
				if err := pair.read(); err != nil {
					log("the certificate was not read again, the previous one is used: " + a.oneLine(err))
				}
			}
			return loadServed(ctx, dev, path, f.prepare)
		},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer l.Close()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.Watch(watching, f.reload, hup) })
	defer watch.Wait()
	defer stop()
	v := served{"serve", map[bool]string{false: "http", true: "https"}[t != nil] + "://" + l.Addr().String() + "/", path}
	if err := a.printJSONOrText(ctx, v, func() string { return v.URL + " serves " + path + "\n" }); err != nil {
		return err
	}
	a.lasting.Store(true)
	debug.SetGCPercent(100) // with garbagePercent instead of 100, the collector would run after every hundred requests
	return s.Serve(ctx, l, t)
}

// loadServed reads a model from a file, and makes the answer to /model from the same version of the file.
func loadServed(ctx context.Context, dev backend.Device, path string, prepare bool) (*serve.Loaded, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b, err := modelfile.Read(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if b.Encoder == nil {
		return nil, usagef("%s: the model was saved without the rules for its columns, so that only a Go program can use it", path)
	}
	shown, err := newShown(b, 20)
	if err != nil {
		return nil, err
	}
	shown.Weights = firstOf(shown.Weights, 1000)
	text, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	b.Model = validate.Scorable(b.Model)
	check := func(w serve.RequestOptions) error {
		err := predictFlags{proba: w.Proba, std: w.Std, bound: w.Bound}.defined(b)
		if err == nil && w.Level > 0 {
			err = checkInterval(w.Level, b)
		}
		return err
	}
	m, err := mercer.Read(file, info.Size(), mercer.Options{Device: dev})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if prepare {
		if err := m.Prepare(ctx); err != nil {
			m.Close()
			return nil, errors.Join(errors.New("--prepare"), err)
		}
	}
	return &serve.Loaded{Model: m, Shown: append(text, '\n'), Check: check}, nil
}

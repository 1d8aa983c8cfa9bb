package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serving is a running mercer serve.
type serving struct {
	*exec.Cmd
	url    string
	stderr bytes.Buffer
}

// startServing starts mercer serve in the current folder, on a free port.
func startServing(t *testing.T, args ...string) *serving {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &serving{Cmd: exec.Command(self, append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...)}
	c.Env, c.Stderr = append(os.Environ(), asCommand+"=1"), &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The guard ends a test that hangs. It does not test the speed.
	guard := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		_ = c.Process.Kill()
	})
	var v served
	if err := json.NewDecoder(out).Decode(&v); err != nil || v.Program != "serve" {
		_ = c.Wait()
		t.Fatalf("%+v, %v: %s", v, err, c.stderr.String())
	}
	c.url = v.URL
	return c
}

// post returns the answer to rows of a CSV table.
func (c *serving) post(t *testing.T, query, table string) string {
	t.Helper()
	r, err := http.Post(c.url+"predict"+query, "text/csv", strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Errorf("%s: %d %s, %v", query, r.StatusCode, text, err)
	}
	return string(text)
}

// TestServePredictsAsPredict compares the answers of mercer serve with the output of mercer predict,
// for models of numbers, classes and novelty that replace each other while the server runs.
func TestServePredictsAsPredict(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.csv", []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	mercer := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append(args, "--quiet"), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("mercer %q: %s", args, errs.String())
		}
		return out.String()
	}
	var c *serving
	for i, m := range []struct{ fit, flags, query string }{
		{"--learner kernel-ridge --kernel gaussian(sigma=1) --lambda 0.1 --target number --drop class", "--interval 0.8 --bound", "?interval=0.8&bound"},
		{"--learner gaussian-process --kernel gaussian(sigma=1) --target number --drop class", "--std", "?std"},
		{"--learner logistic --target class --drop number --calibrate 0.25", "--proba --interval 0.8", "?proba&interval=0.8"},
		{"--learner one-class-svm --drop number,class", "", ""},
	} {
		mercer(append(strings.Fields("fit --model new.st "+m.fit), "t.csv")...)
		if err := os.Rename("new.st", "m.st"); err != nil {
			t.Fatal(err)
		}
		if c == nil {
			c = startServing(t, "--reload", "0", "--prepare", "m.st")
		} else if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		want := mercer(append(strings.Fields("predict --model m.st "+m.flags), "t.csv")...)
		header, _, _ := strings.Cut(want, "\n")
		var got string
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
			r, err := http.Get(c.url + "model")
			if err != nil {
				t.Fatal(err)
			}
			var shown shownModel
			err = json.NewDecoder(r.Body).Decode(&shown)
			r.Body.Close()
			if err != nil || shown.Fit == nil {
				t.Fatalf("/model: %v", err)
			}
			if shown.Learner.Name == strings.Fields(m.fit)[1] {
				break
			}
		}
		if got = c.post(t, m.query, everyData()); got != want {
			t.Errorf("model %d, %s: got %.300s\nwant %.300s", i, header, got, want)
		}
	}
	if err := os.WriteFile("m.st", []byte("not a model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, c.stderr.String())
	}
}

// TestServeRefusesWrongUse checks calls that must not begin to serve.
func TestServeRefusesWrongUse(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.csv", []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run(strings.Fields("fit --quiet --learner ridge --target number --model m.st t.csv"), nil, &errs, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "serve needs MODEL"},
		{"m.st n.st", 2, `"n.st" is one argument too many`},
		{"nosuch.st", 1, "nosuch.st"},
		{"t.csv", 1, "t.csv"},
		{"--tls-cert c.pem m.st", 2, "give both or neither"},
		{"--tls-cert c.pem --tls-key k.pem m.st", 1, "--tls-cert: "},
		{"--timeout 0s m.st", 2, "--timeout: must be > 0"},
		{"--reload -1s m.st", 2, "--reload: must be ≥ 0"},
		{"--max-rows 0 m.st", 2, "--max-rows"},
		{"--max-body none m.st", 2, "--max-body"},
		{"--listen 127.0.0.1:70000 m.st", 1, "--listen: "},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"serve"}, strings.Fields(c.args)...), nil, &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("serve %s: %d %s%s, want %d %s", c.args, code, errs.String(), out.String(), c.code, c.want)
		}
	}
}

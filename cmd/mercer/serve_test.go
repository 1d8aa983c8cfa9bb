package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/required"
)

// serving is a running process of mercer serve.
type serving struct {
	*exec.Cmd
	url    string
	stderr bytes.Buffer
}

// startServing starts mercer serve in the current folder, on a free port.
func startServing(t *testing.T, args ...string) *serving {
	t.Helper()
	c := newServing(t, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	if c.url == "" {
		t.Fatalf("%v: %s", c.ProcessState, c.stderr.String())
	}
	return c
}

// newServing starts mercer serve with the given flags. If the process ends before it listens, the URL is "".
func newServing(t *testing.T, args ...string) *serving {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &serving{Cmd: exec.Command(executable, append([]string{"serve", "--json"}, args...)...)}
	c.Env, c.Stderr = append(os.Environ(), asCommand+"=1"), &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The guard stops a process that hangs.
	guard := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		_ = c.Process.Kill()
	})
	var v served
	if err := json.NewDecoder(out).Decode(&v); err != nil || v.Program != "serve" {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	c.url = v.URL
	return c
}

// post sends the rows of a CSV table and returns the answer of the server.
func (c *serving) post(t *testing.T, query, table string) string {
	t.Helper()
	return c.postBy(t, http.DefaultClient, query, table)
}

func (c *serving) postBy(t *testing.T, client *http.Client, query, table string) string {
	t.Helper()
	r, err := client.Post(c.url+"predict"+query, "text/csv", strings.NewReader(table))
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

// TestServePredictsAsPredict compares the answers of mercer serve with the output of mercer predict, while models
// of numbers, of classes and of novelty replace each other.
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
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(5 * time.Millisecond) {
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

// fitServed changes to a new folder and fits the model m.st to t.csv there.
func fitServed(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.csv", []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run(strings.Fields("fit --quiet --learner ridge --target number --model m.st t.csv"), nil, &errs, &errs); code != 0 {
		t.Fatal(errs.String())
	}
}

// TestServeListensAtLoopbackOnly checks in /proc that a server without the flag --listen listens only on 127.0.0.1.
func TestServeListensAtLoopbackOnly(t *testing.T) {
	fitServed(t)
	c := newServing(t, "m.st")
	if c.url == "" { // another program uses the port
		if want := "--listen: listen tcp 127.0.0.1:8080: bind: address already in use"; !strings.Contains(c.stderr.String(), want) {
			t.Errorf("the server says %q, want %s", c.stderr.String(), want)
		}
		return
	}
	if want := "http://127.0.0.1:8080/"; c.url != want {
		t.Errorf("the server listens at %s, want %s", c.url, want)
	}
	c.post(t, "", everyData())
	process := fmt.Sprintf("/proc/%d/", c.Process.Pid)
	files, err := os.ReadDir(process + "fd")
	if err != nil {
		required.SkipOrFail(t, "proc", err)
	}
	ownFiles := map[string]bool{}
	for _, f := range files {
		if target, err := os.Readlink(process + "fd/" + f.Name()); err == nil {
			ownFiles[target] = true
		}
	}
	var listening []string
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		table, _ := os.ReadFile(process + name) // the file net/tcp6 does not exist if the system has no IPv6
		for line := range strings.Lines(string(table)) {
			const address, state, inode, listen = 1, 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listen && ownFiles["socket:["+f[inode]+"]"] {
				listening = append(listening, f[address])
			}
		}
	}
	var port [2]byte
	binary.BigEndian.PutUint16(port[:], 8080)
	host := binary.NativeEndian.Uint32([]byte{127, 0, 0, 1})
	if want := []string{fmt.Sprintf("%08X:%X", host, port)}; !slices.Equal(listening, want) {
		t.Errorf("the process listens at %q, want %q", listening, want)
	}
}

// newCertificate writes a self-signed certificate for 127.0.0.1 to c.pem and its key to k.pem. It returns a client
// that trusts only this certificate and opens a new connection for each request.
func newCertificate(t *testing.T) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{"c.pem": public, "k.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}

// TestServeTLS sends requests to a server with a certificate, renews it by SIGHUP, and makes its file invalid.
func TestServeTLS(t *testing.T) {
	fitServed(t)
	client, renewed := newCertificate(t), (*http.Client)(nil)
	c := startServing(t, "--reload", "0", "--tls-cert", "c.pem", "--tls-key", "k.pem", "m.st")
	if !strings.HasPrefix(c.url, "https://127.0.0.1:") {
		t.Errorf("the URL is %s", c.url)
	}
	var want, errs bytes.Buffer
	if code := run(strings.Fields("predict --quiet --model m.st t.csv"), nil, &want, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	checkRefused := func(client *http.Client, certificate string) {
		t.Helper()
		if r, err := client.Get(c.url + "health"); err == nil {
			r.Body.Close()
			t.Errorf("a client that does not trust the %s got %s", certificate, r.Status)
		} else if !errors.As(err, new(*tls.CertificateVerificationError)) {
			t.Error(err)
		}
	}
	predicts := func(client *http.Client) {
		t.Helper()
		if got := c.postBy(t, client, "", everyData()); got != want.String() {
			t.Errorf("got %.200s\nwant %.200s", got, want.String())
		}
	}
	// reload sends SIGHUP and waits until the server has read the model the given number of times in total.
	reload := func(times int) {
		t.Helper()
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("mercer_model_loads_total{result=\"ok\"} %d\n", times)
		for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			if r, err := renewed.Get(c.url + "metrics"); err == nil {
				text, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err == nil && strings.Contains(string(text), line) {
					return
				}
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("the metrics do not have %s", line)
			}
		}
	}
	predicts(client)
	checkRefused(http.DefaultClient, "first certificate")
	response, err := http.Get(strings.Replace(c.url, "https:", "http:", 1) + "health")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("a request without TLS gets %s", response.Status)
	}

	renewed = newCertificate(t)
	checkRefused(renewed, "first certificate")
	reload(2)
	predicts(renewed)
	checkRefused(client, "second certificate")

	if err := os.WriteFile("c.pem", []byte("not a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload(3)
	predicts(renewed)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if text := c.stderr.String(); strings.Count(text, "the certificate was not read again, the previous one is used: --tls-cert: ") != 1 {
		t.Errorf("standard error has\n%s", text)
	}
}

// TestServeRefusesWrongUse checks calls that must end with an error before the server listens.
func TestServeRefusesWrongUse(t *testing.T) {
	fitServed(t)
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

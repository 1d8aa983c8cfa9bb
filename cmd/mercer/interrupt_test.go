package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// command is a running process of mercer whose current folder is folder.
type command struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stderr *bufio.Reader
	folder string
}

func start(t *testing.T, args ...string) *command {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &command{Cmd: exec.Command(executable, args...), folder: t.TempDir()}
	c.Dir = c.folder
	c.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+c.folder)
	if c.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stderr = bufio.NewReader(stderr)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The guard stops a process that hangs.
	guard := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		_ = c.Process.Kill()
	})
	return c
}

// interrupt sends a signal and checks that the command ends as documented.
func (c *command) interrupt(t *testing.T, s syscall.Signal) {
	t.Helper()
	sent := time.Now()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c.stderr)
	if err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(sent)
	_ = c.Wait()
	t.Logf("ended %v after the signal", elapsed.Round(time.Millisecond))
	// This is the value of a shell for a process ended by a signal (POSIX, Shell Command Language, 2.8.2).
	if code := c.ProcessState.ExitCode(); code != 128+int(s) {
		t.Errorf("%v, want exit code %d", c.ProcessState, 128+int(s))
	}
	if !strings.HasSuffix("\n"+string(text), "\nmercer: interrupted\n") {
		t.Errorf("stderr ends with %q", text)
	}
	remaining, err := filepath.Glob(filepath.Join(c.folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(c.folder, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	if remaining = append(remaining, hidden...); len(remaining) > 0 {
		t.Errorf("files are left: %v", remaining)
	}
}

// TestInterruptWork stops a fit that has reported progress.
func TestInterruptWork(t *testing.T) {
	for _, test := range []struct {
		device string
		rows   int
	}{
		{"ref", 5000},   // the fit takes a minute
		{"auto", 12000}, // the fit takes seconds and 1.2 GB of memory
	} {
		t.Run(test.device, func(t *testing.T) {
			if testing.Short() && test.device != "ref" {
				t.Skip("takes 1.2 GB")
			}
			c := start(t, "fit", "--device", test.device, "--solver", "dual", "--kernel", "gaussian(sigma=1)", "--target", "y", "--model", "m.safetensors", "-")
			go func() {
				_, _ = io.Copy(c.stdin, bytes.NewReader(table3(test.rows)))
				_ = c.stdin.Close()
			}()
			line, err := c.stderr.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("progress: %q", line)
			if !strings.HasSuffix(line, " %\n") {
				t.Errorf("want a line of progress")
			}
			c.interrupt(t, syscall.SIGINT)
		})
	}
}

// TestInterruptReading stops a fit that waits for its input.
func TestInterruptReading(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			c := start(t, "fit", "--target", "y", "--model", "m.safetensors", "-")
			// The table exceeds the buffer of a pipe, so that Write returns after the command has begun to read.
			if _, err := c.stdin.Write(table3(100_000)); err != nil {
				t.Fatal(err)
			}
			c.interrupt(t, s)
		})
	}
}

// TestVersionOfAClone checks the version that is printed for the build information of a release, of a clone, of a
// changed clone and of a build without such information.
func TestVersionOfAClone(t *testing.T) {
	for _, c := range []struct {
		v    version
		want string
	}{
		{version{Version: "v1.2.3", Go: "go1", Platform: "p", Build: "static"}, "mercer v1.2.3 go1 p static\n"},
		{version{Version: "v1.2.3", Revision: "abc", Go: "go1", Platform: "p", Build: "static"}, "mercer v1.2.3 abc go1 p static\n"},
		{version{Version: "(devel)", Revision: "abc", Go: "go1", Platform: "p", Build: "dynamic"}, "mercer abc go1 p dynamic\n"},
		{version{Version: "(devel)", Revision: "abc", Modified: true, Go: "go1", Platform: "p", Build: "dynamic"}, "mercer abc+changes go1 p dynamic\n"},
		{version{Version: "(devel)", Go: "go1", Platform: "p", Build: "dynamic"}, "mercer (devel) go1 p dynamic\n"},
	} {
		if got := c.v.text(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.v, got, c.want)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// command is a mercer that runs in a folder of its own.
type command struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stderr *bufio.Reader
	folder string
}

func start(t *testing.T, args ...string) *command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &command{Cmd: exec.Command(self, args...), folder: t.TempDir()}
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
	// A guard against a test that hangs, not a measure of speed.
	guard := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		_ = c.Process.Kill()
	})
	return c
}

// interrupt sends SIGINT and holds the command to its promises.
func (c *command) interrupt(t *testing.T) {
	t.Helper()
	sent := time.Now()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c.stderr)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(sent)
	_ = c.Wait()
	t.Logf("ended %v after the signal", took.Round(time.Millisecond))
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("%v, want exit code 1", c.ProcessState)
	}
	if !strings.HasSuffix("\n"+string(text), "\nmercer: interrupted\n") {
		t.Errorf("stderr ends with %q", text)
	}
	left, err := filepath.Glob(filepath.Join(c.folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(c.folder, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	if left = append(left, hidden...); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestInterruptWork stops a fit that has told of its progress.
func TestInterruptWork(t *testing.T) {
	for _, test := range []struct {
		device string
		rows   int
	}{
		{"ref", 5000},   // a minute
		{"auto", 12000}, // seconds, and 1.2 GB
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
			c.interrupt(t)
		})
	}
}

// TestInterruptReading stops a fit that waits for its input.
func TestInterruptReading(t *testing.T) {
	c := start(t, "fit", "--target", "y", "--model", "m.safetensors", "-")
	// More than a pipe holds: once it is written the command is reading.
	if _, err := c.stdin.Write(table3(100_000)); err != nil {
		t.Fatal(err)
	}
	c.interrupt(t)
}

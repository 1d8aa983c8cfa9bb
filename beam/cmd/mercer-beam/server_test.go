package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

// TestJobServer checks that with only flags the job is sent over Beam's job API to a server in
// another process. The server starts its own workers, as the servers of Flink and Spark do. The
// model has the same bytes as the model of a run in one process.
func TestJobServer(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	if _, err := prism.CreateJobServer(t.Context(), prism.Options{Port: port}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, models := tables(t, 20261203), t.TempDir()
	var want []byte
	for _, flags := range [][]string{
		nil,
		{"--runner", "universal"},
		{"--runner", "flink"},
		{"--runner", "spark"},
	} {
		model := filepath.Join(models, fmt.Sprint("m", flags))
		args := []string{"--target", "y", "--kernel", "gaussian(sigma=1)", "--functions", "40", "--device", "cpu", "--model", model}
		if flags != nil {
			args = append(args, flags...)
			args = append(args, "--endpoint", fmt.Sprintf("localhost:%d", port), "--environment_type", "PROCESS", "--environment_config", fmt.Sprintf(`{"command": %q}`, self))
		}
		c := exec.CommandContext(t.Context(), self, append(args, filepath.Join(dir, "*.csv"))...)
		c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", flags, err, out)
		}
		got, err := os.ReadFile(model)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%q: the model is not that of one process", flags)
		}
	}
}

// TestContainer checks that the program sends its own binary for workers in containers, does not
// need its source, and reaches the point where the runner would start the container.
func TestContainer(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("containers run linux/amd64")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "--environment_type", "DOCKER", "--environment_config", "none/such",
		"--attempts", "1", "--target", "y", "--model", filepath.Join(t.TempDir(), "m"), filepath.Join(tables(t, 1), "*.csv"))
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1", "DOCKER_HOST=unix:///nowhere/docker.sock")
	out, err := c.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("unable to create container image none/such")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

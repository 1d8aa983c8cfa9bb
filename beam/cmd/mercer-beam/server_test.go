package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

// jobServer starts Prism's job server and returns its address.
func jobServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	if _, err := prism.CreateJobServer(t.Context(), prism.Options{Port: port}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("localhost:%d", port)
}

// TestJobServer checks that the command sends its job over Beam's job API to a server in another process, and that
// the model has the same bytes as the model of a run in one process.
func TestJobServer(t *testing.T) {
	endpoint := jobServer(t)
	executable, err := os.Executable()
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
			args = append(args, "--endpoint", endpoint, "--environment_type", "PROCESS", "--environment_config", fmt.Sprintf(`{"command": %q}`, executable))
		}
		c := exec.CommandContext(t.Context(), executable, append(args, filepath.Join(dir, "*.csv"))...)
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

// TestSeveralWorkers checks that several worker processes share the pieces, each read by one worker only, with
// Prism in this program and as a separate job server. The model must have the same bytes as the model of a run in
// one process.
func TestSeveralWorkers(t *testing.T) {
	const workers = 3
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, models := tables(t, 20261204), t.TempDir()
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, learner := range []string{"nystrom-ridge", "fourier-ridge"} {
		var want []byte
		for i, flags := range [][]string{
			nil,
			{"--workers", fmt.Sprint(workers)},
			{"--workers", fmt.Sprint(workers), "--runner", "universal", "--endpoint", jobServer(t), "--environment_type", "PROCESS", "--environment_config", fmt.Sprintf(`{"command": %q}`, executable)},
		} {
			log, model := filepath.Join(dir, "opened"), filepath.Join(models, fmt.Sprint(learner, i))
			os.Remove(log)
			args := append([]string{"--target", "y", "--learner", learner, "--std", "--kernel", "gaussian(sigma=1)", "--functions", "40", "--device", "cpu", "--attempts", "1", "--model", model}, flags...)
			c := exec.CommandContext(t.Context(), executable, append(args, countedScheme+filepath.Join(dir, "*.csv"))...)
			c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", flags, err, out)
			}
			got, err := os.ReadFile(model)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				want = got
				continue
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %q: the model is not that of one process", learner, flags)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			reads := map[string]map[string]int{} // number of reads of each file by each process
			for line := range strings.Lines(string(text)) {
				process, file, _ := strings.Cut(strings.TrimSpace(line), " ")
				if reads[file] == nil {
					reads[file] = map[string]int{}
				}
				reads[file][process]++
			}
			pieces := map[string]int{} // number of pieces of each worker
			for _, file := range files {
				for process, n := range reads[filepath.Base(file)] {
					if n == 3 {
						pieces[process]++
					} else if n != 1 { // the process that lists the pieces opens each file once
						t.Errorf("%s, %q: process %s opened %s %d times", learner, flags, process, file, n)
					}
				}
			}
			if len(pieces) != workers || len(files) != 8 {
				t.Errorf("%s, %q: the workers read %v of %d pieces, want %d workers", learner, flags, pieces, len(files), workers)
			}
			for process, n := range pieces {
				if n != len(files)/workers && n != len(files)/workers+1 {
					t.Errorf("%s, %q: worker %s read %d of %d pieces", learner, flags, process, n, len(files))
				}
			}
		}
	}
}

// TestOneOfSeveralWorkersIsKilled kills one of three worker processes of Prism while it computes sums, and checks
// that the repeated run gives the same bytes as an undisturbed run. With one attempt, the run ends with an error of
// one line.
func TestOneOfSeveralWorkersIsKilled(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, models := tables(t, 20261205), t.TempDir()
	run := func(model, input string, flags ...string) (string, error) {
		args := append([]string{"--target", "y", "--std", "--kernel", "gaussian(sigma=1)", "--functions", "40", "--device", "cpu", "--model", filepath.Join(models, model)}, flags...)
		c := exec.CommandContext(t.Context(), executable, append(args, input)...)
		c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	killed := filepath.Join(dir, "killed") // written by the worker that is killed
	var want []byte
	for _, c := range []struct {
		model, input string
		flags        []string
	}{
		{"undisturbed", filepath.Join(dir, "*.csv"), nil},
		{"repeated", scheme + filepath.Join(dir, "*.csv"), []string{"--workers", "3"}},
	} {
		out, err := run(c.model, c.input, c.flags...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.model, err, out)
		}
		got, err := os.ReadFile(filepath.Join(models, c.model))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
			continue
		}
		if _, err := os.Stat(killed); err != nil || !strings.Contains(out, "a worker was lost") {
			t.Errorf("no worker was killed: %v\n%s", err, out)
		}
		if !bytes.Equal(got, want) {
			t.Error("the model is not that of an undisturbed run")
		}
	}
	if err := os.Remove(killed); err != nil {
		t.Fatal(err)
	}
	out, err := run("failed", scheme+filepath.Join(dir, "*.csv"), "--workers", "3", "--attempts", "1")
	lines := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "mercer-beam: ") {
			lines++
		}
	}
	if _, lost := os.Stat(killed); err == nil || lost != nil || lines != 1 {
		t.Errorf("with one attempt: %v, %v\n%s", err, lost, out)
	}
	if got := names(t, models); len(got) != 4 { // the files of two models and their reports
		t.Errorf("the folder of the models has %q", got)
	}
}

// TestContainer checks that the program sends its own binary for workers in containers, and reaches the point where
// the runner would start the container.
func TestContainer(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("containers run linux/amd64")
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), executable, "--environment_type", "DOCKER", "--environment_config", "none/such",
		"--attempts", "1", "--target", "y", "--model", filepath.Join(t.TempDir(), "m"), filepath.Join(tables(t, 1), "*.csv"))
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1", "DOCKER_HOST=unix:///nowhere/docker.sock")
	out, err := c.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("unable to create container image none/such")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

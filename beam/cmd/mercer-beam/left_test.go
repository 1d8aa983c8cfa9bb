package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mercer-go/mercer/internal/required"
)

// tables writes 8 files of numbers.
func tables(t *testing.T, seed uint64) (dir string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	dir = t.TempDir()
	for file := range 8 {
		var b strings.Builder
		b.WriteString("a,b,y\n")
		for range 700 {
			x, z := r.NormFloat64(), r.NormFloat64()
			fmt.Fprintf(&b, "%v,%v,%v\n", x, z, math.Sin(x)+z+0.1*r.NormFloat64())
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", file)), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A watched is a run of the command, with marks that identify its processes and files.
type watched struct {
	*exec.Cmd
	marker string // value of an environment variable of all processes of the run
	temp   string // the run's folder for temporary files
	models string // the folder of the model
	out    bytes.Buffer
	exited chan error
}

// watch starts the command; workers are separate processes unless inProcess is set.
func watch(t *testing.T, temp, models, input string, inProcess bool) *watched {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{marker: fmt.Sprintf("MERCER_BEAM_TEST_RUN=%d.%d", os.Getpid(), rand.Uint64()), temp: temp, models: models, exited: make(chan error, 1)}
	args := []string{"--target", "y", "--kernel", "gaussian(sigma=1)", "--functions", "40", "--device", "cpu", "--model", filepath.Join(models, "m")}
	if !inProcess {
		args = append(args, "--environment_type", "PROCESS", "--environment_config", fmt.Sprintf(`{"command": %q}`, executable))
	}
	w.Cmd = exec.Command(executable, append(args, input)...)
	w.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1", "TMPDIR="+temp, w.marker)
	w.Stdout, w.Stderr = &w.out, &w.out
	w.WaitDelay = time.Minute
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.exited <- w.Wait() }()
	return w
}

// processes lists the running processes of the run.
func (w *watched) processes(t *testing.T) (list []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		required.SkipOrFail(t, "proc", "processes are not listed in /proc", err)
	}
	for _, path := range paths {
		if environ, err := os.ReadFile(path); err == nil && bytes.Contains(environ, []byte(w.marker)) {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			list = append(list, path+": "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return list
}

// names returns the names of the files in a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// The method nothing checks that no process of the run remains, that the names of remaining temporary files begin
// with except, and that the folder of the model contains only the given files.
func (w *watched) nothing(t *testing.T, except string, files ...string) {
	t.Helper()
	var processes []string
	for range 600 { // a worker checks five times a second whether its parent exists
		if processes = w.processes(t); len(processes) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if len(processes) > 0 {
		t.Errorf("these processes are left after a minute:\n%s\n%s", strings.Join(processes, "\n"), w.out.String())
	}
	for _, name := range names(t, w.temp) {
		if except == "" || !strings.HasPrefix(name, except) {
			t.Errorf("a temporary file is left: %s", name)
		}
	}
	if got := names(t, w.models); fmt.Sprint(got) != fmt.Sprint(files) {
		t.Errorf("beside the model: %q, want %q", got, files)
	}
}

// waitFor waits until a file exists or the run ends.
func (w *watched) waitFor(t *testing.T, path string) {
	t.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case err := <-w.exited:
			t.Fatalf("the run has ended: %v\n%s", err, w.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestNothingIsLeft checks that no process and no unneeded file remains after a run that lost a worker, was asked
// to stop, or was killed.
func TestNothingIsLeft(t *testing.T) {
	const seed = 20261202
	t.Logf("seed %d", seed)
	t.Run("a worker is killed", func(t *testing.T) {
		dir, temp, models := tables(t, seed), t.TempDir(), t.TempDir()
		w := watch(t, temp, models, scheme+filepath.Join(dir, "*.csv"), false)
		if err := <-w.exited; err != nil || !strings.Contains(w.out.String(), "a worker was lost") {
			t.Fatalf("%v:\n%s", err, w.out.String())
		}
		w.nothing(t, "", "m", "m.json")
	})
	for _, c := range []struct {
		signal    syscall.Signal
		inProcess bool
	}{{syscall.SIGTERM, false}, {syscall.SIGINT, false}, {syscall.SIGINT, true}} {
		t.Run(fmt.Sprintf("it is asked to stop by %v, workers in its process: %t", c.signal, c.inProcess), func(t *testing.T) {
			dir, temp, models := tables(t, seed), t.TempDir(), t.TempDir()
			file, prefix := "killed", scheme
			if c.inProcess {
				file, prefix = "waits", endless
			}
			w := watch(t, temp, models, prefix+filepath.Join(dir, "*.csv"), c.inProcess)
			w.waitFor(t, filepath.Join(dir, file))
			if err := w.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			<-w.exited
			// This is the status that a shell reports (POSIX, Shell Command Language, 2.8.2).
			if code := w.ProcessState.ExitCode(); code != 128+int(c.signal) || !strings.HasSuffix("\n"+w.out.String(), "\nmercer-beam: interrupted\n") {
				t.Errorf("it has ended with %d:\n%s", code, w.out.String())
			}
			w.nothing(t, "")
		})
	}
	t.Run("it is killed", func(t *testing.T) {
		dir, temp, models := tables(t, seed), t.TempDir(), t.TempDir()
		w := watch(t, temp, models, scheme+filepath.Join(dir, "*.csv"), false)
		w.waitFor(t, filepath.Join(dir, "killed"))
		if err := w.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-w.exited
		w.nothing(t, scratchName) // the next run removes the folder whose name begins with scratchName
		restarted := watch(t, temp, models, filepath.Join(dir, "*.csv"), true)
		if err := <-restarted.exited; err != nil {
			t.Fatalf("%v:\n%s", err, restarted.out.String())
		}
		restarted.nothing(t, "", "m", "m.json")
	})
}

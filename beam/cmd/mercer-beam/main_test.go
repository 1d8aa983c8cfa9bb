package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"

	"github.com/mercer-go/mercer/beam/pipeline"
)

var test options

// TestMain makes the test binary a worker if a runner started it as a worker. If
// MERCER_BEAM_TEST_COMMAND is set, the test binary is the command mercer-beam.
func TestMain(m *testing.M) {
	if os.Getenv("MERCER_BEAM_TEST_COMMAND") != "" {
		main()
	}
	test.add(flag.CommandLine)
	boot := addBoot(flag.CommandLine)
	flag.Parse()
	boot.endWithParent()
	if boot.isWorker() {
		exit(boot.start())
	}
	beam.Init() // in a worker, Init does not return
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	remove := scratch()
	code := m.Run()
	remove()
	os.Exit(code)
}

func init() {
	filesystem.Register("deadly", func(ctx context.Context) filesystem.Interface { return deadly{local.New(ctx), scheme} })
	filesystem.Register("counted", func(ctx context.Context) filesystem.Interface {
		return loggingFS{deadly{local.New(ctx), countedScheme}}
	})
	filesystem.Register("endless", func(ctx context.Context) filesystem.Interface { return waiting{deadly{local.New(ctx), endless}} })
}

// deadly is the local file system, except that it kills its process by SIGKILL, once for each folder, while the
// process reads a file for the third time, to compute sums.
type deadly struct {
	filesystem.Interface
	scheme string
}

const (
	scheme  = "deadly://"
	endless = "endless://"
)

var openCounts sync.Map // number of reads (*atomic.Int64) of each file

func (d deadly) path(name string) string { return strings.TrimPrefix(name, d.scheme) }

func (d deadly) List(ctx context.Context, glob string) ([]string, error) {
	list, err := d.Interface.List(ctx, d.path(glob))
	for i := range list {
		list[i] = d.scheme + list[i]
	}
	return list, err
}

func (d deadly) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := d.Interface.OpenRead(ctx, d.path(name))
	times, _ := openCounts.LoadOrStore(name, new(atomic.Int64))
	if err == nil && times.(*atomic.Int64).Add(1) == 3 {
		f = dying{f, filepath.Join(filepath.Dir(d.path(name)), "killed")}
	}
	return f, err
}

func (d deadly) Size(ctx context.Context, name string) (int64, error) {
	return d.Interface.Size(ctx, d.path(name))
}

// waiting is the local file system with files that never end: a read blocks until it is canceled.
type waiting struct{ deadly }

func (w waiting) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	file, err := os.Create(filepath.Join(filepath.Dir(w.path(name)), "waits"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, _ := io.Pipe()
	go func() {
		<-ctx.Done()
		r.CloseWithError(context.Cause(ctx))
	}()
	return r, nil
}

// loggingFS is the local file system with a log of the process numbers and names of opened files in the file
// "opened".
type loggingFS struct{ deadly }

const countedScheme = "counted://"

func (c loggingFS) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	path := c.path(name)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(path), "opened"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "%d %s\n", os.Getpid(), filepath.Base(path)); err != nil {
		return nil, err
	}
	return c.Interface.OpenRead(ctx, path)
}

// dying is a file that kills the process after some of its bytes have been read.
type dying struct {
	io.ReadCloser
	marker string
}

func (d dying) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p[:min(len(p), 1000)])
	file, created := os.OpenFile(d.marker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if created == nil {
		fmt.Fprintf(file, "%d", os.Getpid())
		file.Close()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return n, err
}

// TestWorkerIsKilled kills the first worker process while it computes sums, and checks that the model has the same
// bytes as the model of an undisturbed run.
func TestWorkerIsKilled(t *testing.T) {
	const seed = 20261129
	t.Logf("seed %d", seed)
	dir := tables(t, seed)
	p := pipeline.Params{Targets: []string{"y"}, Kernels: []string{"gaussian(sigma=1)"}, Functions: 80, Passes: 1, Seed: 4, Device: "cpu"}
	run := func(input, model string) (*pipeline.Ran, []byte) {
		t.Helper()
		p.Inputs, p.Model = []string{input}, filepath.Join(t.TempDir(), model)
		result, err := pipeline.Run(t.Context(), "prism", p, 2)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(p.Model)
		if err != nil {
			t.Fatal(err)
		}
		return result, b
	}
	plain, want := run(filepath.Join(dir, "*.csv"), "plain")
	if plain.Attempts != 1 {
		t.Errorf("nothing happened, and it took %d attempts", plain.Attempts)
	}

	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	oldType, oldConfig, oldBinary := *jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary
	*jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary = "PROCESS", fmt.Sprintf(`{"command": %q}`, executable), executable
	defer func() {
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary = oldType, oldConfig, oldBinary
	}()
	result, got := run(scheme+filepath.Join(dir, "*.csv"), "killed")
	pid, err := os.ReadFile(filepath.Join(dir, "killed"))
	if err != nil || string(pid) == fmt.Sprint(os.Getpid()) {
		t.Fatalf("no worker of its own was killed: process %s, error %v", pid, err)
	}
	if result.Attempts != 2 {
		t.Errorf("a worker was killed, and it took %d attempts", result.Attempts)
	}
	if !bytes.Equal(got, want) {
		t.Error("the model is not that of a run in which nothing happens")
	}
}

// TestCommand checks that the command fits a model that the command mercer can read.
func TestCommand(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), executable, args...)
		c.Env = append(os.Environ(), "MERCER_BEAM_TEST_COMMAND=1")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("a,b,y\n")
	for i := range 300 {
		fmt.Fprintf(&b, "%d,%d,%d\n", i, i*i%31, 3*i+7*(i*i%31)+2)
	}
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "m.safetensors")
	out, err := command("--learner", "ridge", "--lambda", "1e-6,1", "--target", "y", "--model", model, table)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"candidate", "lambda    1e-06\n", "data      300 rows, 2 features, 2 functions\n", "over the rows\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	if _, err := os.Stat(model); err != nil {
		t.Error(err)
	}
	out, err = command("--target", "z", "--model", model, table)
	if err == nil || !strings.Contains(out, `no target column "z"`) {
		t.Errorf("a wrong target: %v: %s", err, out)
	}
	out, err = command("--task", "guess", table)
	if err == nil || !strings.Contains(out, `--task: want regression or classification, got "guess"`) {
		t.Errorf("a wrong task: %v: %s", err, out)
	}
}

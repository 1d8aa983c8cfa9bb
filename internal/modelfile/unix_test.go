//go:build unix

package modelfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// TestNoFile checks paths that are not regular files.
func TestNoFile(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(folder, "none")
	for path, want := range map[string]string{
		missing: "modelfile: " + missing + ": no such file or directory",
		folder:  "modelfile: " + folder + ": is a directory",
		pipe:    "modelfile: " + pipe + ": is not a regular file",
		"":      "modelfile: the path is empty",
	} {
		if _, err := Load(path); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := Load(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not fs.ErrNotExist: %v", err)
	}
}

// TestDiskFull checks that if a write fails, the old file is unchanged and no other file remains. It runs in a
// separate process, because the limit on the file size would truncate the log of go test.
func TestDiskFull(t *testing.T) {
	if os.Getenv("MERCER_TEST_DISK_FULL") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$")
		cmd.Env = append(os.Environ(), "MERCER_TEST_DISK_FULL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "m.safetensors")
	old := bundle(t, nil, true)
	if err := Save(path, old); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	x := mat.NewDense(1, n, nil)
	bigModel, err := learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, NoIntercept: true}.Fit(t.Context(), backendtest.Device(t, "ref"), x, mat.NewDense(1, 1, nil), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = n // the limit in bytes, an eighth of the size of the file
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	err = Save(path, Bundle{Model: bigModel})
	fresh := Save(filepath.Join(folder, "new"), Bundle{Model: bigModel})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{err, fresh} {
		if err == nil || !strings.HasSuffix(err.Error(), ": file too large") {
			t.Errorf("got %v", err)
		}
	}
	checkFolder(t, folder, "m.safetensors")
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the old file was changed, %v", err)
	}
}

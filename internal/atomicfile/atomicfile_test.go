package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/atomicfile"
)

// checkEntries fails the test unless folder has exactly the named entries.
func checkEntries(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", folder, got, names)
	}
}

func content(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v; want %q", path, got, err, want)
	}
}

// TestWrite checks that WriteBytes creates files and replaces files without changing their mode.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(folder, "none"))
	path := filepath.Join(folder, "f")
	if err := atomicfile.WriteBytes(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	content(t, path, "one")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Check(path); err != nil {
		t.Error(err)
	}
	if err := atomicfile.WriteBytes(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	content(t, path, "two")
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	checkEntries(t, folder, "f")
}

// TestLinks writes through symbolic links to existing and missing files and to a link. The links must remain.
func TestLinks(t *testing.T) {
	folder := t.TempDir()
	sub := filepath.Join(folder, "sub")
	if err := os.Mkdir(sub, 0o777); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"first": "second", "second": "sub/f", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"new", "replaced"} {
		if err := atomicfile.WriteBytes(filepath.Join(folder, "first"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		content(t, filepath.Join(sub, "f"), text)
		checkEntries(t, sub, "f")
		checkEntries(t, folder, "first", "loop", "second", "sub")
		for _, link := range []string{"first", "second"} {
			if info, err := os.Lstat(filepath.Join(folder, link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s has become %v, %v", link, info.Mode(), err)
			}
		}
	}
	// The target of this link begins with "..", in a folder that is itself reached by a link.
	if err := os.Symlink("../made", filepath.Join(sub, "up")); err != nil {
		t.Fatal(err)
	}
	otherDir := t.TempDir()
	if err := os.Symlink(sub, filepath.Join(otherDir, "near")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(otherDir, "near", "up"), []byte("up")); err != nil {
		t.Fatal(err)
	}
	content(t, filepath.Join(folder, "made"), "up")
	if err := atomicfile.WriteBytes(filepath.Join(folder, "loop"), nil); err == nil || !strings.HasSuffix(err.Error(), "too many symbolic links") {
		t.Errorf("a loop: %v", err)
	}
}

// TestRefused checks that Check and Write return the same error for a bad path and leave no temporary file.
func TestRefused(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "f")
	if err := os.WriteFile(file, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                 "the path is empty",
		folder:                             "is a directory",
		os.DevNull:                         "is not a regular file",
		filepath.Join(folder, "none", "f"): "no such file or directory",
		filepath.Join(file, "f"):           "not a directory",
		filepath.Join(folder, strings.Repeat("n", 300)): "file name too long",
	} {
		for _, err := range []error{atomicfile.Check(path), atomicfile.WriteBytes(path, nil)} {
			var pathErr *fs.PathError
			if !errors.As(err, &pathErr) || pathErr.Path != path || pathErr.Err.Error() != want {
				t.Errorf("%q: got %v, want %q", path, err, want)
			}
		}
		checkEntries(t, folder, "f")
	}
	errHalfway := errors.New("half-way")
	err := atomicfile.Write(file, func(w io.Writer) error {
		_, err := w.Write([]byte("new"))
		return errors.Join(err, errHalfway)
	})
	if !errors.Is(err, errHalfway) {
		t.Errorf("got %v", err)
	}
	checkEntries(t, folder, "f")
	content(t, file, "old")
}

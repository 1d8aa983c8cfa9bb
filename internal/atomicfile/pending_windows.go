package atomicfile

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// pendingFile is a file that os.Rename, which replaces on Windows too, brings to
// its place. (renameio leaves Windows out, where a crash of the system in the midst
// may leave either file.)
type pendingFile struct {
	*os.File
	path string
	done bool
}

// begin makes the file that is to be at path.
func begin(path string) (pending, error) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+strconv.FormatInt(rand.Int64(), 10)), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &pendingFile{File: f, path: path}, nil
}

func (f *pendingFile) CloseAtomicallyReplace() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	return nil
}

func (f *pendingFile) Cleanup() error {
	if f.done {
		return nil
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// removeOrphan removes a file that begin made for a process that no longer runs:
// Windows does not remove one that is open.
func removeOrphan(name string) { _ = os.Remove(name) }

// syncFolder has nothing to do: Windows does not force folders to the disk.
func syncFolder(string) error { return nil }

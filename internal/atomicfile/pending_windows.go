package atomicfile

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// pendingFile is a temporary file that os.Rename, which also replaces files on Windows, moves
// to its path. (renameio does not support Windows, where a crash of the system during the move
// may leave either file.)
type pendingFile struct {
	*os.File
	path string
	done bool
}

// begin creates the temporary file for path.
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

// removeOrphan removes a file that begin created in a process that no longer runs: Windows
// refuses to remove open files.
func removeOrphan(name string) { _ = os.Remove(name) }

// syncFolder does nothing, because Windows cannot flush folders.
func syncFolder(string) error { return nil }

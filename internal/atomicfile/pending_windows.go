package atomicfile

import (
	"os"
	"path/filepath"
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
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
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

// syncFolder has nothing to do: Windows does not force folders to the disk.
func syncFolder(string) error { return nil }

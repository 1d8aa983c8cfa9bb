// Package atomicfile creates or replaces files atomically: it writes a temporary file in the same
// folder, flushes it to the disk and renames it.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mode is the mode of a new file, before the umask.
const mode = 0o666

// Write replaces the file at path by the output of the function write. An existing file keeps its mode. If path is
// a symbolic link, Write replaces or creates the file that the link names. Every error is an *fs.PathError with
// the given path. After an error, the old file is unchanged or still missing, unless the error says that the file
// was written. Write also removes temporary files for path whose processes were killed.
func Write(path string, write func(io.Writer) error) error {
	f, err := create(path)
	if err != nil {
		return pathError("write", path, err)
	}
	defer f.Cleanup() // does nothing once the file has been renamed
	if err := write(f); err != nil {
		return pathError("write", path, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return pathError("write", path, err)
	}
	if err := syncFolder(filepath.Dir(f.Name())); err != nil {
		return pathError("write", path, err)
	}
	return nil
}

// WriteBytes replaces the file at path by data, as Write does.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Check returns an error if path cannot name a file or its folder does not allow new files, so that
// Write would fail. Check creates a file in the folder and removes it.
func Check(path string) error {
	f, err := create(path)
	if err == nil {
		err = f.Cleanup()
	}
	if err != nil {
		return pathError("create", path, err)
	}
	return nil
}

func create(path string) (pending, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case err != nil: // the file is new, or creating the temporary file will report the error
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	removeOrphans(path)
	return begin(path)
}

// digits is the minimum number of digits of the random number in the name of a temporary file that removeOrphans
// removes. Only 1 of 90,000 random numbers of 63 bits has fewer digits.
const digits = 15

// removeOrphans removes the temporary files for path whose processes have ended.
func removeOrphans(path string) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return // creating the temporary file will report the error
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "."+name)
		if ok && len(number) >= digits && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			removeOrphan(filepath.Join(dir, e.Name()))
		}
	}
}

type pending interface {
	io.Writer
	Name() string
	CloseAtomicallyReplace() error
	Cleanup() error // removes the temporary file unless it has replaced the other file
}

// resolve follows symbolic links from path and returns the final path. No file need exist there.
func resolve(path string) (string, error) {
	const maxLinks = 40 // the limit of Linux
	if path == "" {
		return "", errors.New("the path is empty")
	}
	for range maxLinks {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target, nil
		}
		// filepath.Dir is wrong here: link/.. is the parent of the link's target, and not ".".
		dir, name := filepath.Split(path)
		target, err := os.Readlink(path)
		switch {
		case err == nil && filepath.IsAbs(target):
			path = target
		case err == nil:
			path = dir + target
		default: // path is not a link: the file is new, or creating it will report the error
			if dir, err := filepath.EvalSymlinks(dir); err == nil {
				return filepath.Join(dir, name), nil
			}
			return path, nil
		}
	}
	return "", errors.New("too many symbolic links")
}

// pathError returns an error with the path of the caller, not the path of the temporary file.
func pathError(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: reason(err)}
}

// reason returns err without the paths that package os prepends.
func reason(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

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

// Write replaces the file at path by the output of write; an existing file keeps its mode. A
// symbolic link is followed: the file that it names is replaced or made, not the link. On an error
// no new file exists and an old one is unchanged, unless the error says that the file was written.
// The error is an *fs.PathError with the given path. Write removes the temporary files for the
// same path that killed processes have left.
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

// WriteBytes is Write for content that is in memory.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Check reports whether Write could begin: whether path can name a file and its folder
// allows new files. It creates a file there and removes it.
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

// create makes the file that will be renamed.
func create(path string) (pending, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case err != nil: // there is no file, or creating one will report the fault
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	removeOrphans(path)
	return begin(path)
}

// digits is the minimum length of the random number in the name of a temporary file that is
// recognized as one: one in 90,000 random numbers of 63 bits is shorter.
const digits = 15

// removeOrphans removes the temporary files for path whose processes have ended.
func removeOrphans(path string) {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return // creating a file there will report the fault
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "."+name)
		if ok && len(number) >= digits && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			removeOrphan(filepath.Join(dir, e.Name()))
		}
	}
}

// pending is a temporary file that will replace another file.
type pending interface {
	io.Writer
	Name() string
	CloseAtomicallyReplace() error
	Cleanup() error // removes the temporary file unless it has replaced the other file
}

// resolve returns the path that symbolic links at path lead to, also if no file exists
// there yet.
func resolve(path string) (string, error) {
	const most = 40 // as many as Linux follows
	if path == "" {
		return "", errors.New("the path is empty")
	}
	for range most {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target, nil
		}
		// Not filepath.Dir, which removes a link together with a .. that follows it.
		dir, name := filepath.Split(path)
		target, err := os.Readlink(path)
		switch {
		case err == nil && filepath.IsAbs(target):
			path = target
		case err == nil:
			path = dir + target
		default: // not a link: a new file, or an error that creating the file will report
			if dir, err := filepath.EvalSymlinks(dir); err == nil {
				return filepath.Join(dir, name), nil
			}
			return path, nil
		}
	}
	return "", errors.New("too many symbolic links")
}

// pathError returns an error with the caller's path instead of the path of the temporary
// file.
func pathError(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: reason(err)}
}

// reason is err without the paths that package os puts before it.
func reason(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

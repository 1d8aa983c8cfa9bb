package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mercer-go/mercer/internal/atomicfile"
)

// checkOutput checks, before the work begins, that path names a file that can be written and that is not in inputs.
// It tests the folder by creating and removing a file.
func (a *app) checkOutput(ctx context.Context, flag, path string, inputs ...string) error {
	to, err := os.Stat(path)
	if err == nil {
		if to.IsDir() {
			return usagef("%s: %s is a directory; give the name of a file", flag, path)
		}
		if !to.Mode().IsRegular() { // the output would replace the special file by a regular file
			return usagef("%s: %s is not a regular file", flag, path)
		}
	}
	for _, name := range inputs {
		if a.sameFile(path, to, name) {
			return usagef("%s: %s is the file that is read; give another name", flag, path)
		}
	}
	if flag == "--plot" {
		if _, err := extensionOf(flag, path, pictures...); err != nil {
			return err
		}
	}
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no folder %s; make it first", flag, dir)
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !info.IsDir():
		return usagef("%s: %s is not a folder", flag, dir)
	}
	err = a.commit(ctx, func() error { return atomicfile.Check(path) })
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return fmt.Errorf("%s: %s cannot be made in the folder %s: %w", flag, filepath.Base(path), dir, pathErr.Err)
	}
	return err
}

// makeFolder creates the folder at path and its parents if they do not exist.
func makeFolder(flag, path string) error {
	err := os.MkdirAll(path, 0o777)
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return fmt.Errorf("%s: the folder %s cannot be made: %w", flag, path, pathErr.Err)
	}
	return err
}

// sameFile reports whether the input file name and the output path are the same file, possibly through links. The
// argument to describes the file at path, or is nil if there is no file.
func (a *app) sameFile(path string, to fs.FileInfo, name string) bool {
	from, err := os.Stat(name)
	if name == "-" {
		f, ok := a.stdin.(*os.File)
		if !ok {
			return false
		}
		from, err = f.Stat()
	} else if sameName(path, name) {
		return true
	}
	return to != nil && err == nil && os.SameFile(from, to)
}

// sameName reports whether two names are the same path, for files that cannot be examined.
func sameName(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// isFile reports whether path names an existing file and not a folder.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// extensionOf returns the extension with which path ends, or an error that lists the extensions.
func extensionOf(flag, path string, extensions ...string) (string, error) {
	for _, ext := range extensions {
		if name := strings.ToLower(filepath.Base(path)); strings.HasSuffix(name, ext) && name != ext {
			return ext, nil
		}
	}
	last := len(extensions) - 1
	list := extensions[last]
	if last > 0 {
		list = strings.Join(extensions[:last], ", ") + " or " + list
	}
	return "", usagef("%s: %s must end in %s", flag, path, list)
}

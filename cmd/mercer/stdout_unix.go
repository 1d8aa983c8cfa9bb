//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isClosed reports whether standard output was closed when the process began. Go's runtime then
// opens the null device in its place, for reading and writing; a shell's >/dev/null opens it only
// for writing.
func isClosed(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	to, err := f.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(to, null) {
		return false
	}
	mode, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && mode&unix.O_ACCMODE == unix.O_RDWR
}

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package atomicfile

import "errors"

// flock fails here, so that the files of processes that were killed stay.
func flock(int, bool) error { return errors.ErrUnsupported }

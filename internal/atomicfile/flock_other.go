//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package atomicfile

import "errors"

// flock fails here, so that temporary files of killed processes are not removed.
func flock(int, bool) error { return errors.ErrUnsupported }

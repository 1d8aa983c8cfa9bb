//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package atomicfile

import "errors"

// flock fails on this system. Temporary files of killed processes are therefore not removed.
func flock(int, bool) error { return errors.ErrUnsupported }

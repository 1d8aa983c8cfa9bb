//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import "golang.org/x/sys/unix"

// flock takes an exclusive lock on an open file. If another process holds a lock, it waits if wait is true, or fails.
func flock(fd int, wait bool) error {
	flags := unix.LOCK_EX
	if !wait {
		flags |= unix.LOCK_NB
	}
	return unix.Flock(fd, flags)
}

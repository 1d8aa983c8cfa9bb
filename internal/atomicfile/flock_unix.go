//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import "golang.org/x/sys/unix"

// flock locks an open file for its process alone; it waits until no other process holds a lock,
// or fails.
func flock(fd int, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	return unix.Flock(fd, how)
}

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

// lockFolder does nothing, because this operating system has no flock.
func lockFolder(string) (release func(), ok bool) { return func() {}, false }

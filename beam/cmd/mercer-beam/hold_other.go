//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

// hold does nothing, because this operating system has no flock. The folders of killed processes
// are therefore not removed.
func hold(string) (release func(), ok bool) { return func() {}, false }

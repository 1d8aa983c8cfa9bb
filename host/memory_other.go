//go:build !linux

package host

// Memory returns false on this system, where the free memory is not known.
func Memory() (int64, bool) { return 0, false }

//go:build !linux

package host

// Memory is not known here.
func Memory() (int64, bool) { return 0, false }

//go:build !linux

package backend

// HostMemory is not known here.
func HostMemory() (int64, bool) { return 0, false }

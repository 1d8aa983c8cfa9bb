//go:build !linux

package pages

// adviseHuge does nothing on this system.
func adviseHuge([]byte) {}

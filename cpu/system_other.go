//go:build !linux

package cpu

import "runtime"

// processor returns the architecture: the maker's name is not available on this system.
func processor() string { return runtime.GOARCH }

// discard leaves the memory to the collector.
func discard([]byte) {}

// reportedCaches returns zeros: this system does not report the sizes.
func reportedCaches() cacheSizes { return cacheSizes{} }

//go:build !linux

package cpu

import "runtime"

// processor returns the architecture, because this system does not report the processor's name.
func processor() string { return runtime.GOARCH }

// discard does nothing; the garbage collector frees the memory later.
func discard([]byte) {}

// reportedCaches returns zeros: this system does not report the sizes.
func reportedCaches() cacheSizes { return cacheSizes{} }

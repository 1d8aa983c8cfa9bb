//go:build !linux

package cpu

import "runtime"

// processor is the architecture: the maker's name is not known here.
func processor() string { return runtime.GOARCH }

// adviseHuge has no counterpart here.
func adviseHuge([]byte) {}

// discard leaves the memory to the collector.
func discard([]byte) {}

// reportedCaches are not known here.
func reportedCaches() Caches { return Caches{} }

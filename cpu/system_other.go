//go:build !linux

package cpu

// processor is not known here.
func processor() string { return "" }

// adviseHuge has no counterpart here.
func adviseHuge([]byte) {}

// discard leaves the memory to the collector.
func discard([]byte) {}

// reportedCaches are not known here.
func reportedCaches() Caches { return Caches{} }

//go:build !linux

package handles

import "math"

// mapped returns true: this operating system does not report mappings.
func mapped(p, size uintptr) bool { return true }

func machine() int64 { return math.MaxInt64 }

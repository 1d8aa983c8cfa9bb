//go:build !linux

package handles

import "math"

// mapped is not known here.
func mapped(p, size uintptr) bool { return true }

func machine() int64 { return math.MaxInt64 }

package bench

import (
	"os"
	"runtime/debug"

	"github.com/mercer-go/mercer/internal/process"
)

// watchResident gives free memory back to the system, and begins to watch how
// much of it the process holds. What it returns tells by how many bytes the most
// since then exceeds the beginning; 0 where the system does not say.
func watchResident() func() float64 {
	debug.FreeOSMemory()
	before, ok := process.Status("VmRSS:")
	// 5 sets VmHWM to what is held now (proc(5)).
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil || !ok {
		return func() float64 { return 0 }
	}
	return func() float64 {
		after, ok := process.Status("VmHWM:")
		if !ok {
			return 0
		}
		return max(after-before, 0)
	}
}

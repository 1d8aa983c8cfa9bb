package bench

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// watchResident gives free memory back to the system, and begins to watch how
// much of it the process holds. What it returns tells by how many bytes the most
// since then exceeds the beginning; 0 where the system does not say.
func watchResident() func() float64 {
	debug.FreeOSMemory()
	before, ok := status("VmRSS:")
	// 5 sets VmHWM to what is held now (proc(5)).
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil || !ok {
		return func() float64 { return 0 }
	}
	return func() float64 {
		after, ok := status("VmHWM:")
		if !ok {
			return 0
		}
		return max(after-before, 0)
	}
}

// status is a line of /proc/self/status, in bytes.
func status(name string) (float64, bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return v * 1024, err == nil
		}
	}
	return 0, false
}

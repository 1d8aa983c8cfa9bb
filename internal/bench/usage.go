package bench

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/process"
)

// The functions below read files that exist on Linux only. On other systems the values are unknown.

// usage holds processor times in ticks of the system.
type usage struct {
	total, idle, steal float64 // sums over all processors
	ownTime            float64 // time of this process and its children
}

// noise returns the Noise between two readings, or nil if no tick has passed.
func noise(from, to usage) *Noise {
	total := to.total - from.total
	if total <= 0 {
		return nil
	}
	steal := to.steal - from.steal
	others := total - (to.idle - from.idle) - steal - (to.ownTime - from.ownTime)
	return &Noise{Steal: 100 * max(steal, 0) / total, Others: 100 * max(others, 0) / total}
}

// readUsage reads the usage from /proc/stat, in ticks of a hundredth of a second, including child processes.
func readUsage() (usage, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, false
	}
	u, ok := parseUsage(string(text))
	u.ownTime = processTicks("self")
	return u, ok
}

// processTicks returns the processor time, in ticks, of a process and of its running and ended children.
func processTicks(pid string) (ticks float64) {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	// After the name in brackets, fields 11 to 14 are utime, stime, and both times of ended children.
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for i := 11; i < min(15, len(words)); i++ {
		v, _ := strconv.ParseFloat(words[i], 64)
		ticks += v
	}
	lists, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "children"))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			ticks += processTicks(child)
		}
	}
	return ticks
}

// parseUsage reads the first line of /proc/stat. It ignores guest and guest_nice, which user and nice include.
func parseUsage(stat string) (u usage, ok bool) {
	line, _, _ := strings.Cut(stat, "\n")
	words := strings.Fields(line)
	if len(words) < 9 || words[0] != "cpu" {
		return u, false
	}
	for i, w := range words[1:9] {
		ticks, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return u, false
		}
		u.total += ticks
		switch i {
		case 3, 4:
			u.idle += ticks
		case 7:
			u.steal = ticks
		}
	}
	return u, true
}

// watchResident begins to watch the resident memory of the process. The function that it returns gives the largest
// growth since then, in bytes, or 0 if the system does not report it.
func watchResident() func() float64 {
	debug.FreeOSMemory()
	before, ok := process.Status("VmRSS:")
	// Writing 5 resets VmHWM to the current resident memory (proc(5)).
	if !ok || os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
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

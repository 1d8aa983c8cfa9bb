package bench

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/process"
)

// What is read here is of Linux; elsewhere there are no such files, and it is not known.

// usage is processor time in ticks of the system's own, since some moment.
type usage struct {
	all, idle, steal float64 // of all processors
	own              float64 // of this process
}

// noise is what happened between two usages, nil when the clocks did not move.
func noise(from, to usage) *Noise {
	all := to.all - from.all
	if all <= 0 {
		return nil
	}
	steal := to.steal - from.steal
	others := all - (to.idle - from.idle) - steal - (to.own - from.own)
	return &Noise{Steal: 100 * max(steal, 0) / all, Others: 100 * max(others, 0) / all}
}

// readUsage reads /proc/stat, whose ticks are hundredths of a second. Peers that are
// processes of their own belong to the measurement.
func readUsage() (usage, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, false
	}
	u, ok := parseUsage(string(text))
	u.own = processTicks("self")
	return u, ok
}

// processTicks is the processor time of a process and of its children, those that have
// ended and those that live, in ticks.
func processTicks(pid string) (ticks float64) {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	// Behind the name in brackets: state is word 0, then utime, stime, and those of ended
	// children, are words 11 to 14.
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

// parseUsage reads the first line of /proc/stat: cpu, then user, nice, system,
// idle, iowait, irq, softirq and steal; what follows is counted in user.
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
		u.all += ticks
		switch i {
		case 3, 4:
			u.idle += ticks
		case 7:
			u.steal = ticks
		}
	}
	return u, true
}

// watchResident gives free memory back to the system, and begins to watch how
// much of it the process holds. What it returns is by how many bytes the
// maximum since then exceeds the beginning; 0 where the system does not say.
func watchResident() func() float64 {
	debug.FreeOSMemory()
	before, ok := process.Status("VmRSS:")
	// 5 sets VmHWM to what is held now (proc(5)).
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

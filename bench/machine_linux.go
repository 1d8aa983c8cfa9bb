package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func governor() string {
	text, _ := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	return strings.TrimSpace(string(text))
}

func virtual() bool {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return hasFlag(string(text), "hypervisor")
}

// readUsage reads /proc/stat, whose ticks are hundredths of a second.
func readUsage() (usage, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, false
	}
	u, ok := parseUsage(string(text))
	// Peers that are processes of their own belong to the measurement: those that
	// have ended, and those that live.
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			return usage{}, false
		}
		u.own += float64(r.Utime.Nano()+r.Stime.Nano()) / 1e7
	}
	u.own += childTicks("self")
	return u, ok
}

// childTicks is the processor time of the living children of a process, theirs
// included, in ticks.
func childTicks(process string) (ticks float64) {
	lists, _ := filepath.Glob(filepath.Join("/proc", process, "task", "*", "children"))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			text, _ := os.ReadFile(filepath.Join("/proc", child, "stat"))
			// Behind the name in brackets: state is word 0, then utime, stime, and
			// those of ended children, are words 11 to 14.
			words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			for i := 11; i < min(15, len(words)); i++ {
				v, _ := strconv.ParseFloat(words[i], 64)
				ticks += v
			}
			ticks += childTicks(child)
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

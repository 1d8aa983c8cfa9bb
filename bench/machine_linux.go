package bench

import (
	"os"
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
	var self unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &self); err != nil {
		return usage{}, false
	}
	u.own = float64(self.Utime.Nano()+self.Stime.Nano()) / 1e7
	return u, ok
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

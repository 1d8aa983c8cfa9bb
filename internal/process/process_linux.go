package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

func read() Used {
	var u Used
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err == nil {
		u.Processor = float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	// Do not use r.Maxrss: it includes the memory of the parent process before exec.
	if v, ok := Status("VmHWM:"); ok {
		u.Peak = int64(v)
	}
	return u
}

func status(name string) (float64, bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return v * 1024, err == nil
		}
	}
	return 0, false
}

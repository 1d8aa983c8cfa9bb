package host

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Memory returns the number of bytes that this process may still allocate: the smallest of the system's available
// memory and the unused parts of the limits of the process's control groups and of its address space (RLIMIT_AS).
// It returns false if it can read none of them.
func Memory() (int64, bool) {
	free := int64(math.MaxInt64)
	if kib, ok := field("/proc/meminfo", "MemAvailable"); ok {
		free = kib * 1024
	}
	for _, g := range controlGroups() {
		limit, okL := number(filepath.Join(g.folder, g.limit))
		used, okU := number(filepath.Join(g.folder, g.used))
		if okL && okU {
			// The control group counts pages of the file cache as used, but the system can free them.
			cache, _ := field(filepath.Join(g.folder, "memory.stat"), g.cache)
			free = min(free, max(limit-used+cache, 0))
		}
	}
	var limit syscall.Rlimit
	if kib, ok := field("/proc/self/status", "VmSize"); ok && syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur < math.MaxInt64 {
		free = min(free, max(int64(limit.Cur)-kib*1024, 0))
	}
	return free, free != math.MaxInt64
}

// controlGroup holds the folder of a control group and the names of the files with its limits.
type controlGroup struct{ folder, limit, used, cache string }

// controlGroups lists the control groups of this process, of version 1 and 2, from the innermost to the root.
func controlGroups() []controlGroup {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var list []controlGroup
	add := func(root, path string, g controlGroup) {
		for {
			g.folder = filepath.Join(root, path)
			list = append(list, g)
			if path == "/" || path == "." || path == "" {
				return
			}
			path = filepath.Dir(path)
		}
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[0] == "0" {
			add("/sys/fs/cgroup", fields[2], controlGroup{limit: "memory.max", used: "memory.current", cache: "inactive_file"})
		} else if strings.Contains(","+fields[1]+",", ",memory,") {
			add("/sys/fs/cgroup/memory", fields[2], controlGroup{limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", cache: "total_inactive_file"})
		}
	}
	return list
}

// number reads a file that holds one number, and returns false for the text "max", which stands for no limit.
func number(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field returns the number after the given name, which must be at the start of a line of the file.
func field(path, name string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) >= 2 && strings.TrimSuffix(words[0], ":") == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

package cpu

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// discard immediately returns the pages that lie within memory to the system; the pages then read as zeros.
// Otherwise they would remain resident until the garbage collector runs, which may be after the heap has doubled.
func discard(memory []byte) {
	page := uintptr(os.Getpagesize())
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	skip := -first & (page - 1)
	if size := uintptr(len(memory)); size >= skip+page {
		_ = syscall.Madvise(memory[skip:skip+(size-skip)&^(page-1)], syscall.MADV_DONTNEED)
	}
}

// reportedCaches reads the sizes of the first processor's caches.
func reportedCaches() cacheSizes {
	var c cacheSizes
	folders, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*")
	for _, folder := range folders {
		level, ok := number(filepath.Join(folder, "level"))
		text, err := os.ReadFile(filepath.Join(folder, "size"))
		if !ok || err != nil {
			continue
		}
		digits, kib := strings.CutSuffix(strings.TrimSpace(string(text)), "K")
		size, err := strconv.Atoi(digits)
		if err != nil || !kib || size < 0 {
			continue
		}
		switch level {
		case 2:
			c.L2 = size << 10
		case 3:
			c.L3 = size << 10
		}
	}
	return c
}

// number reads the number in a file. It returns false if the file holds other text, such as "max".
func number(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// processor returns the name of the processor.
var processor = sync.OnceValue(func() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	return processorName(f)
})

// processorName reads the name from the text of /proc/cpuinfo. On arm64 it consists of the implementer and the part.
func processorName(cpuinfo io.Reader) string {
	fields := map[string]string{}
	for s := bufio.NewScanner(cpuinfo); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if name := fields["model name"]; name != "" {
		return name
	}
	if part := fields["CPU part"]; part != "" {
		return fmt.Sprintf("%s, implementer %s, part %s", runtime.GOARCH, fields["CPU implementer"], part)
	}
	return runtime.GOARCH
}

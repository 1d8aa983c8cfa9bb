package handles

import (
	"math"
	"os"
	"syscall"
)

// mapped reports whether all pages of size bytes at p are mapped into the process. With MS_ASYNC, msync only fails
// with ENOMEM if a page is not mapped (msync(2), NOTES and ERRORS).
func mapped(p, size uintptr) bool {
	if p+size < p {
		return false
	}
	start := p &^ (uintptr(os.Getpagesize()) - 1)
	_, _, err := syscall.Syscall(syscall.SYS_MSYNC, start, p+size-start, syscall.MS_ASYNC)
	return err != syscall.ENOMEM
}

// machine is the memory of the machine in bytes, including swap space.
func machine() int64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	return int64((uint64(info.Totalram) + uint64(info.Totalswap)) * uint64(info.Unit))
}

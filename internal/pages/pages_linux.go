package pages

import "syscall"

// adviseHuge requests huge pages for memory that has not been accessed yet.
func adviseHuge(memory []byte) {
	const hugePages = 14 // MADV_HUGEPAGE
	_ = syscall.Madvise(memory, hugePages)
}

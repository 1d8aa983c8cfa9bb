package pages

import "syscall"

// adviseHuge asks for huge pages under memory that has not been touched yet. If the system
// ignores the advice, only the speed changes.
func adviseHuge(memory []byte) {
	const hugePages = 14 // MADV_HUGEPAGE
	_ = syscall.Madvise(memory, hugePages)
}

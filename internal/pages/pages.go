// Package pages allocates large arrays in huge pages of memory.
package pages

import "unsafe"

// These are the alignments of the first element of an array in bytes: a cache line or a huge page.
const (
	cacheLine = 64
	hugePage  = 2 << 20
)

// Zeros returns n zeros that begin at a cache line. An array of at least two huge pages begins at a huge page, and
// Zeros requests huge pages for it from the system. Without them, products of matrices of some megabytes are
// several percent slower.
func Zeros[T byte | float32 | float64](n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	to := cacheLine
	if n*size >= 2*hugePage {
		to = hugePage
	}
	data := make([]T, n+to/size)
	offset := (to - int(uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(to))) % to / size
	data = data[offset : offset+n : offset+n]
	if to == hugePage {
		adviseHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*size))
	}
	return data
}

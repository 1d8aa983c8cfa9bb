package cpu

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
)

// TestFreedMemoryBecomesZeros frees a matrix of ones, and checks that a matrix of the other
// precision, which is stored in the same memory, has only zeros.
func TestFreedMemoryBecomesZeros(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 3 * discardBytes / 8
	ones := slices.Repeat([]float64{1}, n)
	m, err := backend.Copy(dev.F64(), backend.Host[float64]{Rows: 1, Cols: n, Stride: n, Data: ones})
	if err != nil {
		t.Fatal(err)
	}
	address := unsafe.Pointer(unsafe.SliceData(m.(*matrix[float64]).data))
	m.Free()
	next, err := dev.F32().New(2, n)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Free()
	data := next.(*matrix[float32]).data
	if unsafe.Pointer(unsafe.SliceData(data)) != address {
		t.Error("the new matrix is not stored in the memory of the freed one")
	}
	if i := slices.IndexFunc(data, func(v float32) bool { return v != 0 }); i >= 0 {
		t.Errorf("element %d of a new matrix is %v", i, data[i])
	}
}

// TestFreedMemoryIsLimited frees three matrices that together have more than maxFreed bytes.
func TestFreedMemoryIsLimited(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	var all []backend.Matrix[float64]
	for range 3 {
		m, err := dev.F64().New(1, maxFreed/8/2)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for _, m := range all {
		m.Free()
	}
	if size := dev.(*device).freed.size(); size == 0 || size > maxFreed {
		t.Errorf("%d bytes of freed matrices are stored, want 1 to %d", size, maxFreed)
	}
}

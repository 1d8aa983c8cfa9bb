package cpu

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/process"
)

// TestFreeReturnsMemoryToTheSystem checks that a freed matrix is not resident even before garbage collection.
func TestFreeReturnsMemoryToTheSystem(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dev := backendtest.Device(t, "cpu")
	resident := func() float64 {
		v, ok := process.Status("VmRSS:")
		if !ok {
			t.Fatal("/proc/self/status has no VmRSS")
		}
		return v
	}
	const rows, cols = 1 << 10, 8 << 10
	const size = 8 * rows * cols
	b := dev.F64()
	m, err := b.New(rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	view := m.View(0, 0, rows, cols)
	row := backend.NewHost[float64](1, cols)
	for i := range row.Data {
		row.Data[i] = 1
	}
	for i := range rows {
		if err := b.Upload(m.View(i, 0, 1, cols), row); err != nil {
			t.Fatal(err)
		}
	}
	before := resident()
	m.Free()
	after := resident()
	t.Logf("%.0f bytes resident before Free, %.0f after, of a matrix of %d", before, after, size)
	// The bound allows for huge pages that are only partly in the matrix, and for other memory of the process.
	if freed := before - after; freed < size-2*(2<<20) {
		t.Errorf("Free returned %.0f bytes of a matrix of %d", freed, size)
	}
	runtime.KeepAlive(view)
}

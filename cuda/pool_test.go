package cuda

import (
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestPool: a repeated fit requests no memory from the driver. Pooled memory is returned
// when the driver has no more, so that a matrix within the budget gets its memory, and when
// the device is closed.
func TestPool(t *testing.T) {
	Need(t)
	real, err := library()
	if err != nil {
		t.Fatal(err)
	}
	allocations, live, refuse := 0, 0, false
	api := *real
	api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		if s.Name == "cuMemAlloc_v2" {
			if refuse && live > 4 {
				return int32(driver.OutOfMemory)
			}
			allocations++
			live++
		}
		if s.Name == "cuMemFree_v2" {
			live--
		}
		return real.Call(s, args...)
	}
	dev, err := open(&api, 0, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // memory reserved for scratch grows
		if err := workload(dev); err != nil {
			t.Fatal(err)
		}
	}
	before := allocations
	for range 3 {
		if err := workload(dev); err != nil {
			t.Fatal(err)
		}
	}
	if allocations != before {
		t.Errorf("%d allocations in repeated fits", allocations-before)
	}
	if err := dev.Sync(); err != nil {
		t.Fatal(err)
	}
	if live <= 4 || dev.pool.kept == 0 {
		t.Fatalf("%d allocations and %d bytes are pooled: nothing to return", live, dev.pool.kept)
	}
	refuse = true
	m, err := dev.F64().New(1000, 1000)
	if err != nil {
		t.Errorf("with pooled memory to return: %v", err)
	} else {
		m.Free()
	}
	refuse = false
	if now, _ := dev.InUse(); now != 0 {
		t.Errorf("%d bytes are in use", now)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if live != 0 {
		t.Errorf("%d allocations remain after Close", live)
	}
}

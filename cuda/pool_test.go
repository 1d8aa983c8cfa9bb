package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestPool checks that a repeated fit requests no memory from the driver, and that pooled memory is returned to the
// driver when the device is closed and when the driver has no more memory.
func TestPool(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	allocations, live, refuse := 0, 0, false
	api := *original
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
		return original.Call(s, args...)
	}
	dev, err := open(&api, 0, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the memory that the method scratch reuses grows in the first fits
		if err := workload(dev); err != nil {
			t.Fatal(err)
		}
	}
	previous := allocations
	for range 3 {
		if err := workload(dev); err != nil {
			t.Fatal(err)
		}
	}
	if allocations != previous {
		t.Errorf("%d allocations in repeated fits", allocations-previous)
	}
	if err := dev.Sync(); err != nil {
		t.Fatal(err)
	}
	if live <= 4 || dev.pool.pooledBytes == 0 {
		t.Fatalf("%d allocations and %d bytes are pooled: nothing to return", live, dev.pool.pooledBytes)
	}
	refuse = true
	m, err := dev.F64().New(1000, 1000)
	if err != nil {
		t.Errorf("with pooled memory to return: %v", err)
	} else {
		m.Free()
	}
	refuse = false
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes are in use", inUse)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if live != 0 {
		t.Errorf("%d allocations remain after Close", live)
	}
}

// TestErrorsOfLibraries checks that, if cuBLAS or cuSOLVER may lack memory, pooled memory is returned to the driver
// and the call is repeated. A second failure is ErrMemory, and the device remains usable. If the driver reports an
// error, the call returns it, and the device is lost.
func TestErrorsOfLibraries(t *testing.T) {
	Need(t)
	SmallCuts(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		function string
		code     int32
		memory   bool
	}{
		{"cublasDtrsm_v2", 3, true}, {"cublasDtrsm_v2", 13, false}, {"cublasDtrsm_v2", 14, false},
		{"cusolverDnXpotrf", 2, true}, {"cusolverDnXpotrf", 6, false}, {"cusolverDnXpotrf", 7, false},
	} {
		for _, cause := range []string{"pooled memory", "always", "the driver"} {
			lost, api := false, *original
			api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
				if lost && s.Name == "cuStreamSynchronize" {
					return int32(driver.IllegalAddress)
				}
				return original.Call(s, args...)
			}
			dev, err := open(&api, 0, backend.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(workload(dev), dev.Sync()); err != nil {
				t.Fatal(err)
			}
			if dev.pool.pooledBytes == 0 {
				t.Fatal("no memory is pooled")
			}
			armed := true
			failing := func(call func(*driver.Symbol, ...uintptr) int32) func(*driver.Symbol, ...uintptr) int32 {
				return func(s *driver.Symbol, args ...uintptr) int32 {
					if armed && s.Name == c.function && (cause != "pooled memory" || dev.pool.pooledBytes > 0) {
						lost = cause == "the driver"
						return c.code
					}
					return call(s, args...)
				}
			}
			dev.libraries.Blas.Call, dev.libraries.Solver.Call = failing(dev.libraries.Blas.Call), failing(dev.libraries.Solver.Call)
			err = workload(dev)
			switch failure := c.function + ", " + cause; {
			case cause == "pooled memory" && err != nil:
				t.Errorf("%s: result %d: %v", failure, c.code, err)
			case cause == "always" && (err == nil || errors.Is(err, backend.ErrMemory) != c.memory || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), c.function)):
				t.Errorf("%s: result %d: %v", failure, c.code, err)
			case cause == "the driver" && (!errors.Is(err, ErrLost) || !strings.Contains(err.Error(), c.function)):
				t.Errorf("%s: result %d: %v", failure, c.code, err)
			}
			armed, lost = false, false
			if err := workload(dev); (err == nil) == (cause == "the driver") {
				t.Errorf("%s, %s: result %d: afterwards: %v", c.function, cause, c.code, err)
			}
			dev.Close()
		}
	}
}

// TestReserveHoldsWorkspaces checks that leftFree holds the workspaces of a factorization and 256 MiB of libraries.
func TestReserveHoldsWorkspaces(t *testing.T) {
	const ofFloat64 = 8
	if reserved := max(cuts.halfBytes, maxInverseBytes) + maxSpareBytes + int64(cuts.maxCopied*cuts.maxCopied*ofFloat64) + 256<<20; reserved > leftFree {
		t.Errorf("%d bytes are taken beside the budget, which leaves %d", reserved, leftFree)
	}
}

package cuda

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/kernels"
)

// workload is a small fit on a device: what goes wrong in it is returned.
func workload(dev backend.Device) error {
	b := dev.F64()
	h := backend.NewHost[float64](40, 5)
	for i := range h.Data {
		h.Data[i] = float64(i%7) / 7
	}
	x, err := b.New(40, 5)
	if err != nil {
		return err
	}
	defer x.Free()
	k, err := b.New(40, 40)
	if err != nil {
		return err
	}
	defer k.Free()
	if err := b.Upload(x, h); err != nil {
		return err
	}
	b.Gram(k, kernels.Sum{kernels.Gaussian{Sigma: 1}, kernels.Gaussian{Sigmas: []float64{1, 2, 3, 4, 5}}}, x, x)
	b.AddDiag([]float64{2}, k)
	if err := b.Potrf(backend.Lower, k); err != nil {
		return err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, k, x)
	b.GramMul(x.View(0, 0, 40, 2), kernels.Gaussian{Sigma: 1}, k.View(0, 0, 40, 3), k.View(0, 0, 40, 3), k.View(0, 3, 40, 2))
	return b.Download(h, x)
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// TestFaults lets the first call of the driver fail, then the second, and so on
// until the workload needs no more calls: each time there is an error that names
// the call, and what was allocated is given back.
func TestFaults(t *testing.T) {
	need(t)
	real, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []driver.Result{driver.OutOfMemory, 999} {
		for n := 1; ; n++ {
			failed, calls := "", 0
			var mu sync.Mutex
			live := 0 // what was taken and not given back
			api := *real
			api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
				mu.Lock()
				defer mu.Unlock()
				// What gives back or tells of an error is left to work.
				gives := contains(s.Name, "MemFree", "Destroy", "Release", "Unload")
				if !gives && !contains(s.Name, "GetError") {
					if calls++; calls == n {
						failed = s.Name
						return int32(code)
					}
				}
				r := real.Call(s, args...)
				if r == 0 && gives {
					live--
				}
				if r == 0 && contains(s.Name, "MemAlloc", "Create", "Retain", "LoadData") {
					live++
				}
				return r
			}
			dev, err := open(&api, 0, backend.Config{})
			if err == nil {
				err = errors.Join(workload(dev), dev.Close())
			}
			if failed == "" {
				if err != nil {
					t.Errorf("without a fault: %v", err)
				}
				t.Logf("code %d: %d calls", code, n-1)
				break
			}
			if err == nil {
				t.Errorf("call %d, %s: its failure was lost", n, failed)
			} else if !strings.Contains(err.Error(), failed) && !errors.Is(err, backend.ErrMemory) {
				t.Errorf("call %d, %s: the error does not name it: %v", n, failed, err)
			}
			if live != 0 {
				t.Errorf("call %d, %s: %d objects are left", n, failed, live)
			}
		}
	}
}

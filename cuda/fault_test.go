package cuda

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu" // registers the devices to which Open falls back
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/cuda/internal/ptx"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// workload runs a small fit on a device and returns its first error.
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
	u := b.(backend.UploadBackend[float64])
	u.Mark(1)
	if err := u.UploadAfter(1, x, h); err != nil {
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

// packedWorkload runs the operations on packed matrices, in device memory and in host memory.
func packedWorkload(dev backend.Device) error {
	b := dev.F64().(*queue[float64])
	const n = 60
	h := backend.NewHost[float64](n, 2)
	for i := range h.Data {
		h.Data[i] = float64(i%7) / 7
	}
	x, err := b.New(n, 2)
	if err != nil {
		return err
	}
	defer x.Free()
	if err := b.Upload(x, h); err != nil {
		return err
	}
	square, err := b.New(n, n)
	if err != nil {
		return err
	}
	defer square.Free()
	k := kernels.Gaussian{Sigma: 1}
	b.Gram(square, k, x, x)
	b.AddDiag([]float64{2}, square)
	if err := b.PotrfPreserve(square); err != nil {
		return err
	}
	for _, newMatrix := range []func(int) (backend.Packed[float64], error){b.NewPacked, b.NewHostPacked} {
		a, err := newMatrix(n)
		if err != nil {
			return err
		}
		defer a.Free()
		b.GramPacked(a, k, x)
		b.AddDiagPacked([]float64{2}, a)
		if err := b.PotrfPacked(a); err != nil {
			return err
		}
		b.TrsmPacked(backend.Transpose, a, x)
		low := backend.NewHost[float64](2, n)
		if err := errors.Join(b.Sync(), b.DiagPacked(zeros(n), a), b.DownloadPacked(low, a, n-2), b.UploadPacked(a, n-2, low)); err != nil {
			return err
		}
	}
	r := dev.F32().(*queue[float32])
	a, err := r.NewPacked(n)
	if err != nil {
		return err
	}
	defer a.Free()
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	r.AddDiagPacked(ones, a)
	if err := r.PotrfPackedReduced(a); err != nil {
		return err
	}
	column, err := r.New(n, 1)
	if err != nil {
		return err
	}
	defer column.Free()
	r.TrsmPacked(backend.NoTrans, a, column)
	if err := r.Sync(); err != nil {
		return err
	}
	return b.Download(h, x)
}

func zeros(n int) []float64 { return make([]float64, n) }

// TestFaults makes the first call of the driver or of a library fail, then the second, and so on up to the
// workload's last call. Each failure must give an error that names the call, and all memory must be released.
func TestFaults(t *testing.T) {
	Need(t)
	SmallCuts(t)
	previous := poolLimit
	poolLimit.total = 0 // the pool could satisfy a request without a call of the driver that can fail
	defer func() { poolLimit = previous }()
	const lost = driver.IllegalAddress
	works := []string{"Launch", "Memcpy", "Synchronize", "cublas", "cusolver"}
	for _, c := range []struct {
		name   string
		work   func(backend.Device) error
		code   driver.Result
		counts []string // parts of the names of the functions that fail
	}{
		{"all", workload, 999, []string{""}},
		{"packed matrices", packedWorkload, 999, []string{""}},
		{"memory", workload, driver.OutOfMemory, []string{"Alloc"}},
		{"memory of packed matrices", packedWorkload, driver.OutOfMemory, []string{"Alloc"}},
		{"lost", workload, lost, works},
		{"lost with packed matrices", packedWorkload, lost, works},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.code == driver.OutOfMemory { // a lack of memory for inverses is not an error, so that this test must not compute inverses
				defer func(previous int64) { maxInverseBytes = previous }(maxInverseBytes)
				maxInverseBytes = 0
			}
			for n := 1; ; n++ {
				if testing.Short() {
					n += n / 8
				}
				failed, live, err := fail(t, c.work, c.code, n, c.counts)
				if failed == "" {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					t.Logf("%d calls", n-1)
					return
				}
				switch {
				case err == nil:
					t.Errorf("call %d, %s: its failure was lost", n, failed)
				case c.code == lost && !errors.Is(err, ErrLost) && !errors.Is(err, backend.ErrUnavailable):
					t.Errorf("call %d, %s: the error does not say that the device is lost: %v", n, failed, err)
				case !strings.Contains(err.Error(), failed) && !errors.Is(err, backend.ErrMemory):
					t.Errorf("call %d, %s: the error does not name it: %v", n, failed, err)
				}
				if live != 0 {
					t.Errorf("call %d, %s: %d objects were not released", n, failed, live)
				}
			}
		})
	}
}

// fail runs work on a device. Of the calls of functions whose names contain an element of counts, the n-th fails with
// the given code. fail returns the name of the function that failed, the number of objects not released, and the error.
func fail(t *testing.T, work func(backend.Device) error, code driver.Result, n int, counts []string) (failed string, live int, err error) {
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	calls := 0
	faulty := func(call func(s *driver.Symbol, args ...uintptr) int32) func(s *driver.Symbol, args ...uintptr) int32 {
		return func(s *driver.Symbol, args ...uintptr) int32 {
			mu.Lock()
			defer mu.Unlock()
			// Calls that release objects or describe errors must not fail.
			gives := contains(s.Name, "MemFree", "Destroy", "Release", "Unload")
			// Calls for an attribute of the list `rates` must not fail, because open ignores their failures.
			rate := s.Name == "cuDeviceGetAttribute" && slices.Contains(rates, driver.Attribute(args[1]))
			if !gives && !rate && !contains(s.Name, "GetError") && contains(s.Name, counts...) {
				if calls++; calls == n {
					failed = s.Name
					return int32(code)
				}
			}
			r := call(s, args...)
			if r == 0 && strings.HasPrefix(s.Name, "cu") && !contains(s.Name, "cublas", "cusolver") {
				if gives {
					live--
				} else if contains(s.Name, "MemAlloc", "Create", "Retain", "LoadData") {
					live++
				}
			}
			return r
		}
	}
	api := *original
	api.Call = faulty(original.Call)
	dev, err := open(&api, 0, backend.Config{})
	if err != nil {
		return failed, live, err
	}
	if b := dev.libraries.Blas; b != nil {
		b.Call = faulty(b.Call)
	}
	if s := dev.libraries.Solver; s != nil {
		s.Call = faulty(s.Call)
	}
	err = errors.Join(work(dev), dev.Close())
	return failed, live, err
}

// TestFallback checks that a device that cannot allocate, or that computes wrong results, is not
// opened, and that the automatic choice reports this and opens the next best device.
func TestFallback(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	previous := library
	defer func() { library = previous }()
	t.Setenv(backend.EnvDevice, "")
	for _, c := range []struct {
		name, want string
		code       int32
	}{{"cuMemAlloc", "out of memory", int32(driver.OutOfMemory)}, {"cuLaunchKernel", "computes wrong results", 0}} {
		broken := *original
		broken.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if strings.HasPrefix(s.Name, c.name) {
				return c.code
			}
			return original.Call(s, args...)
		}
		library = func() (*driver.API, error) { return &broken, nil }
		if dev, err := backend.Open("cuda/0", backend.Config{}); err == nil || !strings.Contains(strings.ToLower(err.Error()), c.want) && !strings.Contains(err.Error(), "OUT_OF_MEMORY") {
			t.Errorf("%s: Open: %v, %v", c.name, dev, err)
		}
		var reported []string
		dev, err := backend.Open("auto", backend.Config{Fallback: func(device string, err error) { reported = append(reported, device) }})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(dev.Info().Device, "cpu/") || len(reported) == 0 || reported[0] != "cuda/0" {
			t.Errorf("%s: opened %s, reported %q", c.name, dev.Info().Device, reported)
		}
		dev.Close()
	}
}

// TestNoCode checks that PTX is loaded if the driver rejects the compiled code, but not after other errors.
func TestNoCode(t *testing.T) {
	Need(t)
	if required.Names("cuda") {
		t.Skip("there may be only PTX for this GPU")
	}
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []driver.Result{driver.NoBinary, driver.InvalidImage, 218, 222, 300, driver.OutOfMemory, driver.IllegalAddress} {
		loads := 0
		api := *original
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if s.Name == "cuModuleLoadDataEx" {
				if loads++; loads == 1 {
					return int32(code)
				}
			}
			return original.Call(s, args...)
		}
		dev, err := open(&api, 0, backend.Config{})
		if code == driver.OutOfMemory || code == driver.IllegalAddress {
			if err == nil || loads != 1 || !strings.Contains(err.Error(), "cuModuleLoadDataEx: CUDA_ERROR_") {
				t.Errorf("%d: %d loads: %v", code, loads, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if loads != 2 {
			t.Errorf("%d: %d loads", code, loads)
		}
		if err := errors.Join(workload(dev), dev.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestCodeOfDevelopers checks that device functions are loaded from the file that MERCER_CUDA_CODE
// names, and that the error of a failed load contains the name of the file.
func TestCodeOfDevelopers(t *testing.T) {
	Need(t)
	folder := t.TempDir()
	text, err := ptx.For(9, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		image []byte
		want  string
	}{{"good.ptx", text, ""}, {"bad.ptx", []byte(".version 7.8"), "MERCER_CUDA_CODE: "}, {"none.cubin", nil, "no such file"}} {
		path := filepath.Join(folder, c.name)
		if c.image != nil {
			if err := os.WriteFile(path, c.image, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(envCode, path)
		dev, err := backend.Open("cuda/0", backend.Config{})
		if c.want != "" {
			if err == nil || !contains(err.Error(), c.want) || !contains(err.Error(), path) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(workload(dev), dev.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestFaultOfOneCall checks that the device remains usable after a launch that requested too many resources (701),
// a call that is not permitted (800) and a call during a stream capture (900). After an illegal address (700) and
// three other errors, the device must be lost, and the error must say what to do.
func TestFaultOfOneCall(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []driver.Result{701, 704, 708, 712, 720, 800, 801, 900, 909, driver.IllegalAddress, 226, 721, 911} {
		armed := false
		api := *original
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if armed && s.Name == "cuLaunchKernel" {
				armed = false
				return int32(code)
			}
			return original.Call(s, args...)
		}
		dev, err := open(&api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		armed = true
		err = workload(dev)
		lost := slices.Contains([]driver.Result{driver.IllegalAddress, 226, 721, 911}, code)
		if err == nil || errors.Is(err, ErrLost) != lost || lost && !strings.Contains(err.Error(), "restart the program") {
			t.Errorf("%d: %v", code, err)
		}
		if err := workload(dev); (err != nil) != lost {
			t.Errorf("%d: afterwards: %v", code, err)
		}
		dev.Close()
	}
}

// rates lists the attributes that only the planner uses.
var rates = []driver.Attribute{driver.ClockRate, driver.MemoryClockRate, driver.MemoryBusWidth, driver.SingleToDoubleRatio}

// TestRefusedAttributes checks that a device is opened if the driver does not report the rates, which only the
// planner uses, but not without a compute capability.
func TestRefusedAttributes(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range append(rates, driver.ComputeMajor) {
		api := *original
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if s.Name == "cuDeviceGetAttribute" && driver.Attribute(args[1]) == a {
				return 1 // CUDA_ERROR_INVALID_VALUE
			}
			return original.Call(s, args...)
		}
		dev, err := open(&api, 0, backend.Config{})
		if a == driver.ComputeMajor {
			if !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("without a compute capability: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("attribute %d: %v", a, err)
		}
		r := dev.Rates()
		for _, v := range []float64{r.Single, r.Values, r.Products, r.Bytes, r.Pairs} {
			if !(v > 0 && !math.IsInf(v, 1)) {
				t.Errorf("attribute %d: the rates are %+v", a, r)
			}
		}
		if err := errors.Join(workload(dev), dev.Close()); err != nil {
			t.Errorf("attribute %d: %v", a, err)
		}
	}
}

// TestFreeWhileClosing checks that work that is queued while a device is closed, or afterwards, is
// dropped without a panic.
func TestFreeWhileClosing(t *testing.T) {
	Need(t)
	api, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		dev, err := open(api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var frees sync.WaitGroup
		for range 4 {
			m, err := dev.F64().New(2, 2)
			if err != nil {
				t.Fatal(err)
			}
			frees.Go(m.Free)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		frees.Wait()
		dev.exec.queue(func() { t.Error("work ran after Close") })
		if dev.exec.do(func() {}) {
			t.Error("do ran after Close")
		}
		dev.closed.Store(false) // simulates a call of New or Sync that read closed = false just before Close
		if _, err := dev.F64().New(2, 2); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("New after Close: %v", err)
		}
		if err := dev.F64().Sync(); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("Sync after Close: %v", err)
		}
	}
}

// TestCheckOfFunctions checks that a device without products in FP16 is opened without reduced
// precision, and that a device whose solves are wrong is not opened.
func TestCheckOfFunctions(t *testing.T) {
	Need(t)
	api, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		function string
		result   int32 // code that the function returns without doing its work; 0 means success
		opens    bool
		unit     bool
	}{
		{"none", 0, true, true}, {"cublasGemmEx", 15, true, false}, {"cublasGemmEx", 0, true, false},
		{"cublasDtrsv_v2", 0, false, false}, {"cublasStrsv_v2", 15, false, false}, {"cublasDtrsm_v2", 0, false, false},
	} {
		dev, err := open(api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := dev.libraries.Blas
		call := b.Call
		b.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if s.Name == c.function {
				return c.result
			}
			return call(s, args...)
		}
		err = dev.prepare(0, backend.Config{})
		if (err == nil) != c.opens {
			t.Errorf("%s returns %d: %v", c.function, c.result, err)
		}
		if err != nil {
			continue // ready has closed the device
		}
		if unit := dev.F32().(backend.ReducedBackend[float32]).ReducedUnit(); (unit > 0) != c.unit {
			t.Errorf("%s returns %d: ReducedUnit is %g", c.function, c.result, unit)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

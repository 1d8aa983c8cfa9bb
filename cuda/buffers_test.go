package cuda

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestSmallBuffers copies through page-locked buffers that are so small that each is reused
// many times. No buffer may be refilled before its contents have been read.
func TestSmallBuffers(t *testing.T) {
	Need(t)
	stage, bytes, most := stageBytes, ringBytes, ringMost
	stageBytes, ringBytes, ringMost = 160, 512, 256
	defer func() { stageBytes, ringBytes, ringMost = stage, bytes, most }()
	concerned := regexp.MustCompile("Transfer|ColAxpy|AddDiag|GramKernels|PackedDiagonal|PackedMemory|PackedExact")
	if testing.Short() {
		concerned = regexp.MustCompile("Transfer|ColAxpy|AddDiag|PackedDiagonal|PackedMemory")
	}
	backendtest.Suite{
		LargeN: 200, RequirePacked: true, Leave: func(test string) bool { return !concerned.MatchString(test) },
		Open: func(t testing.TB, c backend.Config) backend.Device {
			dev, err := openAt(cudatest.DriverOnly, c)
			return backendtest.Closed(t, dev, err)
		},
	}.Run(t)
}

// TestSmallUploadsBeyondTheRing queues more small vectors than fit in the ring: y ← y + (i,
// 2i, …) x for i = 1 … 40, in integers.
func TestSmallUploadsBeyondTheRing(t *testing.T) {
	Need(t)
	bytes, most := ringBytes, ringMost
	ringBytes, ringMost = 512, 256
	defer func() { ringBytes, ringMost = bytes, most }()
	const n, cols, times = 3, 10, 40
	for range 2 { // one of two simulated devices has a delayed stream
		dev, err := openAt(cudatest.DriverOnly, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := dev.F64()
		ones := backend.NewHost[float64](n, cols)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		x, err := b.New(n, cols)
		if err == nil {
			err = b.Upload(x, ones)
		}
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.New(n, cols)
		if err != nil {
			t.Fatal(err)
		}
		alpha := make([]float64, cols)
		for i := range times {
			for j := range alpha {
				alpha[j] = float64((i + 1) * (j + 1))
			}
			b.ColAxpy(alpha, x, y)
		}
		got := backend.NewHost[float64](n, cols)
		if err := b.Download(got, y); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range cols {
				if want := float64(times * (times + 1) / 2 * (j + 1)); got.Row(i)[j] != want {
					t.Fatalf("element (%d, %d) is %v, want %v", i, j, got.Row(i)[j], want)
				}
			}
		}
		x.Free()
		y.Free()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUploadsOverlapWork: an upload into page-locked memory waits for no work, so that the
// caller can read the next rows meanwhile; what the caller writes afterwards is not copied.
func TestUploadsOverlapWork(t *testing.T) {
	Need(t)
	real, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // one of two simulated devices has a delayed stream
		waits := 0
		api := *real
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if strings.HasSuffix(s.Name, "Synchronize") {
				waits++
			}
			return real.Call(s, args...)
		}
		dev, err := open(&api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := dev.F64()
		const n = 200
		square, column := backend.NewHost[float64](n, n), backend.NewHost[float64](n, 1)
		var on [3]backend.Matrix[float64]
		for i := range on {
			if on[i], err = b.New(n, []int{n, n, 1}[i]); err != nil {
				t.Fatal(err)
			}
		}
		b.AddDiag([]float64{1}, on[0]) // work
		if err := dev.Sync(); err != nil {
			t.Fatal(err)
		}
		b.AddDiag([]float64{1}, on[0])
		waits = 0
		for i, h := range []backend.Host[float64]{square, square, column} {
			for j := range h.Data {
				h.Data[j] = float64(i*j + 1)
			}
			if err := b.Upload(on[i], h); err != nil {
				t.Fatal(err)
			}
		}
		if waits > 0 {
			t.Errorf("the uploads waited %d times", waits)
		}
		for i, h := range []backend.Host[float64]{square, square, column} {
			if err := b.Download(h, on[i]); err != nil {
				t.Fatal(err)
			}
			for j, v := range h.Data {
				if v != float64(i*j+1) {
					t.Fatalf("matrix %d: element %d is %v, want %v", i, j, v, i*j+1)
				}
			}
			on[i].Free()
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

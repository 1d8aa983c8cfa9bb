package cuda

import (
	"regexp"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
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

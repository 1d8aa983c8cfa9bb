package cuda

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/required"
)

// TestSmallBuffers copies through page-locked buffers so small that every buffer is reused many
// times. It checks that no buffer is refilled before its contents have been read.
func TestSmallBuffers(t *testing.T) {
	Need(t)
	stage, bytes, maxVector := stageBytes, ringBytes, maxRingVector
	stageBytes, ringBytes, maxRingVector = 160, 512, 256
	defer func() { stageBytes, ringBytes, maxRingVector = stage, bytes, maxVector }()
	concerned := regexp.MustCompile("Transfer|ColAxpy|AddDiag|GramKernels|PackedDiagonal|PackedMemory|PackedExact")
	if testing.Short() {
		concerned = regexp.MustCompile("Transfer|ColAxpy|AddDiag|PackedDiagonal|PackedMemory")
	}
	backendtest.Suite{
		LargeN: 200, Fewer: required.FewCases(), RequirePacked: true, Leave: func(test string) bool { return !concerned.MatchString(test) },
		Open: func(t testing.TB, c backend.Config) backend.Device {
			dev, err := openAt(cudatest.DriverOnly, c)
			return backendtest.Closed(t, dev, err)
		},
	}.Run(t)
}

// TestSmallUploadsBeyondTheRing queues 40 calls of ColAxpy. The vectors alpha of all calls together are larger than
// the ring, the buffer through which they are copied. All values are integers.
func TestSmallUploadsBeyondTheRing(t *testing.T) {
	Need(t)
	bytes, maxVector := ringBytes, maxRingVector
	ringBytes, maxRingVector = 512, 256
	defer func() { ringBytes, maxRingVector = bytes, maxVector }()
	const n, cols, times = 3, 10, 40
	for range 2 { // one of the two opened devices has a delayed stream
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

// TestUploadsOverlapWork checks that Upload does not wait for queued work, because it copies the rows to page-locked
// memory. If the caller changes the rows after the upload, the device must still get the old values.
func TestUploadsOverlapWork(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // one of the two opened devices has a delayed stream
		waits := 0
		api := *original
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if strings.HasSuffix(s.Name, "Synchronize") {
				waits++
			}
			return original.Call(s, args...)
		}
		dev, err := open(&api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := dev.F64()
		const n = 200
		square, column := backend.NewHost[float64](n, n), backend.NewHost[float64](n, 1)
		var matrices [3]backend.Matrix[float64]
		for i := range matrices {
			if matrices[i], err = b.New(n, []int{n, n, 1}[i]); err != nil {
				t.Fatal(err)
			}
		}
		b.AddDiag([]float64{1}, matrices[0]) // queued work, for which the upload must not wait
		if err := dev.Sync(); err != nil {
			t.Fatal(err)
		}
		b.AddDiag([]float64{1}, matrices[0])
		waits = 0
		for i, h := range []backend.Host[float64]{square, square, column} {
			for j := range h.Data {
				h.Data[j] = float64(i*j + 1)
			}
			if err := b.Upload(matrices[i], h); err != nil {
				t.Fatal(err)
			}
		}
		if waits > 0 {
			t.Errorf("the uploads waited %d times", waits)
		}
		for i, h := range []backend.Host[float64]{square, square, column} {
			if err := b.Download(h, matrices[i]); err != nil {
				t.Fatal(err)
			}
			for j, v := range h.Data {
				if v != float64(i*j+1) {
					t.Fatalf("matrix %d: element %d is %v, want %v", i, j, v, i*j+1)
				}
			}
			matrices[i].Free()
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUploadAfter checks that UploadAfter queues its copies in the stream of copies, that the copies wait only for
// the work before the last Mark, and that later work waits for the copies. Work before the mark must read the old
// elements, and work after the upload must read the new elements, whichever stream is delayed.
func TestUploadAfter(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	stage, maxVector := stageBytes, maxRingVector
	const n, cols, pieces = 64, 24, 4
	stageBytes, maxRingVector = n*cols*8/pieces, 256
	defer func() { stageBytes, maxRingVector = stage, maxVector }()
	for range 2 { // one of the two opened devices has a delayed stream
		var calls []string
		var d *device
		api := *original
		api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			name := func(stream uintptr) string {
				if driver.Stream(stream) == d.copies {
					return "copies"
				}
				return "work"
			}
			switch s.Name {
			case "cuMemcpyAsync":
				calls = append(calls, "copy in "+name(args[3]))
			case "cuLaunchKernel":
				calls = append(calls, "launch in "+name(args[8]))
			case "cuStreamWaitEvent":
				event := "copied"
				if i := slices.Index(d.marks[:], driver.Event(args[1])); i >= 0 {
					event = fmt.Sprint("mark ", i)
				}
				calls = append(calls, name(args[0])+" waits for "+event)
			case "cuStreamSynchronize":
				calls = append(calls, "the host waits for "+name(args[0]))
			}
			return original.Call(s, args...)
		}
		d, err = open(&api, 0, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := d.F64().(backend.UploadBackend[float64])

		h, got := backend.NewHost[float64](n, cols), backend.NewHost[float64](n, cols)
		var x [2]backend.Matrix[float64]
		for i := range x {
			if x[i], err = b.New(n, cols); err != nil {
				t.Fatal(err)
			}
		}
		ones := make([]float64, cols)
		for j := range ones {
			ones[j] = 1
		}
		b.Mark(0)
		sum := 0.0
		for pass := range 4 {
			for i := range h.Data {
				h.Data[i] = float64(pass*len(h.Data) + i)
			}
			if err := b.UploadAfter(0, x[0], h); err != nil {
				t.Fatal(err)
			}
			want := []string{"copies waits for mark 0"}
			for range pieces {
				want = append(want, "copy in copies")
			}
			want = append(want, "work waits for copied")
			if n := len(calls) - len(want); n < 0 || !slices.Equal(calls[n:], want) || n > 0 && calls[n-1] != "launch in work" {
				t.Fatalf("pass %d: the calls are %q, which do not end with a launch and %q", pass, calls, want)
			}
			sum += float64(pass)
			b.ColAxpy(ones, x[0], x[1]) // queues work that reads x[0]
			b.Mark(0)
		}
		if err := b.Download(got, x[1]); err != nil {
			t.Fatal(err)
		}
		for i, v := range got.Data {
			if want := sum*float64(len(got.Data)) + 4*float64(i); v != want {
				t.Fatalf("element %d is %v, want %v", i, v, want)
			}
		}
		x[0].Free()
		x[1].Free()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

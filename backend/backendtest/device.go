package backendtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// testDevice tests the methods of a device that do not depend on the precision.
func testDevice(t *testing.T, s Suite) {
	t.Run("Info", func(t *testing.T) {
		dev := s.Open(t, backend.Config{Threads: 2, Memory: 1 << 24})
		info := dev.Info()
		if info.Device == "" || info.Processor == "" || info.Memory != 1<<24 {
			t.Errorf("Info must name the device and the processor, and have the requested memory, 16 MiB: %+v", info)
		}
		if info := s.Open(t, backend.Config{}).Info(); info.Memory <= 0 {
			t.Errorf("Info.Memory must be > 0 if Config.Memory is 0: %+v", info)
		}
		if inUse, peak := dev.InUse(); inUse != 0 || peak != 0 {
			t.Errorf("InUse of a new device is %d bytes, with the peak %d; want 0 and 0", inUse, peak)
		}
		if err := dev.Sync(); err != nil {
			t.Errorf("Sync of a new device: %v", err)
		}
	})
	t.Run("Convert", func(t *testing.T) { testConvert(t, s) })
	t.Run("NarrowPacked", func(t *testing.T) { testNarrowPacked(t, s) })
	t.Run("ConvertMisuse", func(t *testing.T) {
		dev, other := s.Open(t, backend.Config{}), s.Open(t, backend.Config{})
		m64, m32 := Upload(t, dev.F64(), backend.NewHost[float64](2, 3)), Upload(t, dev.F32(), backend.NewHost[float32](2, 3))
		foreign64, foreign32 := Upload(t, other.F64(), backend.NewHost[float64](2, 3)), Upload(t, other.F32(), backend.NewHost[float32](2, 3))
		requirePanic(t, "Narrow: ", func() { dev.Narrow(m32.View(0, 0, 2, 2), m64) })
		requirePanic(t, "Widen: ", func() { dev.Widen(m64, m32.View(0, 0, 1, 3)) })
		requirePanic(t, "Narrow: a matrix belongs to another device", func() { dev.Narrow(foreign32, m64) })
		requirePanic(t, "Narrow: a matrix belongs to another device", func() { dev.Narrow(m32, foreign64) })
		requirePanic(t, "Widen: a matrix belongs to another device", func() { dev.Widen(foreign64, m32) })
		requirePanic(t, "Widen: a matrix belongs to another device", func() { dev.Widen(m64, foreign32) })
	})
}

// testConvert requires Narrow and Widen to agree with Go's conversions, which round correctly.
func testConvert(t *testing.T, s Suite) {
	t.Logf("seed %d", s.Seed)
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	dev := s.Open(t, backend.Config{})
	special := []float64{
		0, math.Copysign(0, -1), 1, math.Inf(1), math.Inf(-1), math.NaN(),
		1 + 0x1p-24, 1 + 0x3p-24, // ties: the first rounds down to even, the second rounds up to even
		1 + 0x1p-24 + 0x1p-50,                   // slightly above a tie
		math.MaxFloat32, math.MaxFloat64, 1e-50, // finite; overflows to Inf; underflows to 0
		0x1p-140, math.SmallestNonzeroFloat32 * 0.75, // subnormal in float32
	}
	for _, shape := range [][2]int{{0, 4}, {4, 0}, {1, 1}, {3, 7}, {33, 65}, {257, 100}} {
		rows, cols := shape[0], shape[1]
		label := fmt.Sprintf("%d×%d", rows, cols)
		// Both matrices are views into larger matrices, at different offsets.
		host64 := backend.NewHost[float64](rows+3, cols+2)
		host32 := backend.NewHost[float32](rows+1, cols+6)
		for i := range host64.Data {
			host64.Data[i] = rng.NormFloat64() * math.Exp(10*rng.NormFloat64())
			if i < len(special) || rng.IntN(8) == 0 {
				host64.Data[i] = special[rng.IntN(len(special))]
			}
		}
		for i := range host32.Data {
			host32.Data[i] = float32(sentinel)
		}
		m64, m32 := Upload(t, dev.F64(), host64), Upload(t, dev.F32(), host32)
		dev.Narrow(m32.View(1, 4, rows, cols), m64.View(2, 1, rows, cols))
		source := host64.View(2, 1, rows, cols)
		for i := range rows {
			for j, v := range source.Row(i) {
				host32.Row(i + 1)[4+j] = float32(v)
			}
		}
		requireBits(t, "Narrow "+label, Download(t, dev.F32(), m32), host32)

		dev.Widen(m64.View(1, 2, rows, cols), m32.View(1, 4, rows, cols))
		for i := range rows {
			for j, v := range host32.View(1, 4, rows, cols).Row(i) {
				host64.Row(i + 1)[2+j] = float64(v)
			}
		}
		requireBits(t, "Widen "+label, Download(t, dev.F64(), m64), host64)
		m64.Free()
		m32.Free()
	}
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("InUse: %d bytes after every matrix was freed", inUse)
	}
}

// testNarrowPacked checks that NarrowPacked rounds elements as Go's conversion does.
func testNarrowPacked(t *testing.T, s Suite) {
	t.Logf("seed %d", s.Seed)
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	dev := s.Open(t, backend.Config{})
	narrower, ok := dev.(backend.PackedNarrower)
	if !ok {
		t.Skip("the device has no NarrowPacked")
	}
	b64, b32 := dev.F64().(backend.PackedBackend[float64]), dev.F32().(backend.PackedBackend[float32])
	for _, n := range []int{0, 1, 2, 3, 64, 65, 257} {
		host64, host32 := backend.NewHost[float64](n, n), backend.NewHost[float32](n, n)
		for i := range n {
			for j := range i + 1 {
				v := rng.NormFloat64() * math.Exp(10*rng.NormFloat64())
				if rng.IntN(8) == 0 {
					v = []float64{math.Inf(-1), math.NaN(), 1 + 0x1p-24, 1 + 0x3p-24, 1e-50}[rng.IntN(5)]
				}
				host64.Row(i)[j], host32.Row(i)[j] = v, float32(v)
			}
		}
		from, err := b64.NewPacked(n)
		if err != nil {
			t.Fatal(err)
		}
		to, err := b32.NewPacked(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := b64.UploadPacked(from, 0, host64); err != nil {
			t.Fatal(err)
		}
		narrower.NarrowPacked(to, from)
		got := backend.NewHost[float32](n, n)
		if err := errors.Join(dev.Sync(), b32.DownloadPacked(got, to, 0)); err != nil {
			t.Fatal(err)
		}
		requireBits(t, fmt.Sprintf("NarrowPacked n=%d", n), got, host32)
		if n > 1 {
			requirePanic(t, "NarrowPacked: orders differ", func() { narrower.NarrowPacked(to.Leading(n-1), from) })
		}
		from.Free()
		to.Free()
	}
}

// requireBits requires equal bits, except that the bits of converted NaNs may differ.
func requireBits[T backend.Float](t testing.TB, label string, got, want backend.Host[T]) {
	t.Helper()
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			g := got.Row(i)[j]
			if g != g && w != w {
				continue
			}
			if bits(float64(g)) != bits(float64(w)) {
				t.Fatalf("%s: element (%d, %d) is %v, want %v", label, i, j, g, w)
			}
		}
	}
}

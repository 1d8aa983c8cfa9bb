package driver

import (
	"testing"
	"unsafe"
)

// TestCopyPitch: rows farther apart than the driver copies go one by one, and one row
// has no pitch.
func TestCopyPitch(t *testing.T) {
	const width = 80
	for _, c := range []struct{ pitch, height, calls int }{{width, 3, 1}, {1<<31 - 1, 3, 1}, {1 << 31, 3, 3}, {1 << 40, 1, 1}} {
		calls := 0
		api := API{symbols: driverTable}
		api.Call = func(s *Symbol, args ...uintptr) int32 {
			p := args[0] // of the structure, which Copy holds
			m := *(**[16]uint64)(unsafe.Pointer(&p))
			from, to := 1<<20+uint64(calls*c.pitch), 1<<50+uint64(calls*width)
			if m[4] != from || m[11] != to || m[14] != width || m[6] > 1<<31-1 || m[13] > 1<<31-1 {
				t.Errorf("%+v: call %d copies %d bytes from %d to %d with the pitches %d and %d", c, calls, m[14], m[4], m[11], m[6], m[13])
			}
			if want := uint64(c.height / c.calls); m[15] != want {
				t.Errorf("%+v: %d rows, want %d", c, m[15], want)
			}
			calls++
			return 0
		}
		err := api.Copy(Copy2D{Src: Place{Device: 1 << 20, Pitch: c.pitch}, Dst: Place{Device: 1 << 50, Pitch: width}, Width: width, Height: c.height}, 0)
		if err != nil || calls != c.calls {
			t.Errorf("%+v: %d calls, %v", c, calls, err)
		}
	}
}

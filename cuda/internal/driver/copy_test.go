package driver

import (
	"slices"
	"testing"
	"unsafe"
)

// TestCopyRows checks the driver calls of Copy. Rows without gaps take one linear copy. Rows with gaps take one
// two-dimensional copy or, if the pitch exceeds the driver's limit, one copy per row.
func TestCopyRows(t *testing.T) {
	const width, from, to = 80, 1 << 20, 1 << 50
	for _, c := range []struct {
		src, dst, height int
		calls            []string
	}{
		{width, width, 3, []string{"cuMemcpyAsync"}},
		{width, width, 1 << 30, []string{"cuMemcpyAsync"}},
		{1 << 40, width, 1, []string{"cuMemcpyAsync"}},
		{96, width, 3, []string{"cuMemcpy2DAsync_v2"}},
		{width, 96, 3, []string{"cuMemcpy2DAsync_v2"}},
		{1<<31 - 1, width, 3, []string{"cuMemcpy2DAsync_v2"}},
		{1 << 31, width, 3, []string{"cuMemcpyAsync", "cuMemcpyAsync", "cuMemcpyAsync"}},
	} {
		var calls []string
		rows := 0
		api := API{symbols: driverTable}
		api.Call = func(s *Symbol, args ...uintptr) int32 {
			calls = append(calls, s.Name)
			wantFrom, wantTo := from+uint64(rows*c.src), to+uint64(rows*c.dst)
			if s.Name == "cuMemcpyAsync" {
				count := int(args[2]) / width
				if uint64(args[1]) != wantFrom || uint64(args[0]) != wantTo || args[2]%width != 0 || count > 1 && (c.src != width || c.dst != width) {
					t.Errorf("%+v: %d bytes from %d to %d", c, args[2], args[1], args[0])
				}
				rows += count
				return 0
			}
			p := args[0] // address of a CUDA_MEMCPY2D
			m := *(**[16]uint64)(unsafe.Pointer(&p))
			if m[4] != wantFrom || m[11] != wantTo || m[6] != uint64(c.src) || m[13] != uint64(c.dst) || m[14] != width {
				t.Errorf("%+v: %d bytes from %d to %d with the pitches %d and %d", c, m[14], m[4], m[11], m[6], m[13])
			}
			rows += int(m[15])
			return 0
		}
		err := api.Copy(Copy2D{Src: Place{Device: from, Pitch: c.src}, Dst: Place{Device: to, Pitch: c.dst}, Width: width, Height: c.height}, 0)
		if err != nil || rows != c.height || !slices.Equal(calls, c.calls) {
			t.Errorf("%+v: %d rows by %v, %v", c, rows, calls, err)
		}
	}
}

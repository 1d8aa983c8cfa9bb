package handles

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

// TestSizesBeyondTheMemoryAreRefused checks sizes that exceed the caller's memory. No element may be read.
func TestSizesBeyondTheMemoryAreRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		required.SkipOrFail(t, "proc", "the test finds out from Linux which memory is mapped")
	}
	data := []float64{1, 2, 3, 4, 5, 6}
	p := unsafe.Pointer(&data[0])
	h, err := SharedMatrix[float64]("x", p, 2, 2, 4)
	if err != nil || len(h.Data) != 6 || h.Row(1)[1] != 6 {
		t.Fatalf("2×2 with stride 4: %v, %v", h, err)
	}
	for _, c := range []struct {
		rows, cols, stride int64
		want               string
	}{
		{1 << 40, 1, 1, "reach beyond the memory of the process"},
		{1 << 40, 3, 3, "reach beyond the memory of the process"},
		{1, 1 << 40, 1 << 40, "reach beyond the memory of the process"},
		{2, 2, 1 << 44, "reach beyond the memory of the process"},
		{1 << 30, 1 << 30, 1 << 30, "possible"},
		{math.MaxInt64 / 8, 1, 1, "reach beyond the memory of the process"},
		{math.MaxInt64, 1, 1, "possible"},
		{2, 2, math.MaxInt64, "possible"},
		{1, math.MaxInt64, math.MaxInt64, "possible"},
		{math.MinInt64, 2, 2, "empty"},
		{2, -1, 2, "empty"},
		{2, 2, -2, "stride -2"},
	} {
		h, err := SharedMatrix[float64]("x", p, c.rows, c.cols, c.stride)
		if err == nil || !strings.Contains(err.Error(), c.want) || h.Data != nil || StatusOf(err) != Invalid {
			t.Errorf("%d×%d with stride %d: %d elements, error %v, want %q", c.rows, c.cols, c.stride, len(h.Data), err, c.want)
		}
	}
	if _, err := Shared[byte]("bytes", p, 1<<50); err == nil {
		t.Error("2⁵⁰ bytes are accepted from a slice of 48")
	}
}

// TestCopiesWithoutRoomAreRefused checks a mapped file whose float64 copy does not fit in memory.
func TestCopiesWithoutRoomAreRefused(t *testing.T) {
	if _, ok := backend.HostMemory(); !ok {
		required.SkipOrFail(t, "proc", "the test finds out the free memory from Linux")
	}
	tall := Matrix{F32: backend.Host[float32]{Rows: 1 << 40, Cols: 2, Stride: 2}}
	square := backend.Host[float64]{Rows: 1 << 22, Cols: 1 << 22, Stride: 1 << 22}
	_, floats := tall.host("x")
	_, training := trainingPoints(square)
	_, otherPointsErr := otherPoints(square)
	_, factor := newGiven(square)
	d := open(t, "ref")
	_, system := Solve(t.Context(), d, SolveProblem{Kernel: "gaussian(sigma=1)", Lambda: 1, X: tall}, nil)
	_, fit := Fit(t.Context(), d, Learner{Name: "ridge"}, tall, tall, nil)
	for name, err := range map[string]error{"floats": floats, "precomputed": training, "others": otherPointsErr, "factor": factor, "solve": system, "fit": fit} {
		if StatusOf(err) != Memory || !errors.Is(err, backend.ErrMemory) || !strings.Contains(err.Error(), "x: ") || !strings.Contains(err.Error(), "available") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

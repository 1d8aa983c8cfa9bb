package cpu

import (
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestWorkerPanics checks that if any worker panics, the caller panics after all other workers
// have ended, and that later jobs run normally.
func TestWorkerPanics(t *testing.T) {
	for round := range 20 { // more rounds than slots of the board, which every round must free
		var started, working atomic.Int64
		text := func() (text string) {
			defer func() { text = fmt.Sprint(recover()) }()
			parallel(4, 4, func(tasks iter.Seq[int]) {
				working.Add(1)
				defer working.Add(-1)
				for range tasks {
					// The worker that starts after round%4 other workers panics as soon as all four are active.
					first := started.Add(1) == int64(round%4)+1
					for deadline := time.Now().Add(time.Second); started.Load() < 4 && time.Now().Before(deadline); {
						time.Sleep(10 * time.Microsecond)
					}
					if first {
						panic("a defect")
					}
				}
			})
			return ""
		}()
		if !strings.Contains(text, "a defect") {
			t.Fatalf("round %d: the caller recovered %q", round, text)
		}
		if n := working.Load(); n != 0 {
			t.Fatalf("round %d: %d workers are still at work", round, n)
		}
	}
	var sum atomic.Int64
	parallelRanges(4, 1000, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	if sum.Load() != 1000 {
		t.Errorf("%d of 1000 pieces were done", sum.Load())
	}
}

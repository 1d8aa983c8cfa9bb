package learners

import (
	"runtime"
	"testing"
)

func TestCopyBuffers(t *testing.T) {
	first, second := acquireBuffer(10), acquireBuffer(10)
	if &first.data[0] == &second.data[0] {
		t.Fatal("two callers got the same buffer")
	}
	second.release()
	if b := acquireBuffer(8); b != second {
		t.Error("a released buffer was not reused")
	}
	if b := acquireBuffer(10); b == first || b == second {
		t.Error("a buffer was reused before its release")
	}
	first.release()
	if b := acquireBuffer(11); len(b.data) < 11 {
		t.Errorf("a buffer of %d elements, 11 were required", len(b.data))
	}
	second.release()
	first, second = nil, nil
	runtime.GC()
	if b := lastBuffer.Value(); b != nil {
		t.Error("the garbage collector did not free a released buffer")
	}
}

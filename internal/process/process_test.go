package process

import (
	"runtime"
	"testing"
)

// TestRead checks that Read counts processor time, and memory that was allocated and written to.
func TestRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		if u := Read(); u != (Used{}) {
			t.Errorf("%+v where nothing is known", u)
		}
		t.Skip("only Linux tells")
	}
	before := Read()
	const size = 64 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 1 << 10 {
		block[i] = byte(i)
	}
	after := Read()
	runtime.KeepAlive(block)
	// The peak must include the whole block that was allocated.
	if after.Peak < size || after.Peak < before.Peak {
		t.Errorf("%d bytes at most before %d were taken, %d after", before.Peak, size, after.Peak)
	}
	if !(after.Processor > 0) || after.Processor < before.Processor {
		t.Errorf("%v s of a processor before, %v after", before.Processor, after.Processor)
	}
}

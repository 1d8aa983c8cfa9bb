package process

import (
	"runtime"
	"testing"
)

// TestRead: memory that is taken and written to is seen, and so is work.
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
	// Nothing is given back in between, so the most that was held is no less than
	// the block.
	if after.Peak < size || after.Peak < before.Peak {
		t.Errorf("%d bytes at most before %d were taken, %d after", before.Peak, size, after.Peak)
	}
	if !(after.Processor > 0) || after.Processor < before.Processor {
		t.Errorf("%v s of a processor before, %v after", before.Processor, after.Processor)
	}
}

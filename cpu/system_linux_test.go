package cpu

import (
	"runtime"
	"strings"
	"testing"
)

// TestProcessorName checks the names read from the first lines of /proc/cpuinfo of two machines.
func TestProcessorName(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9R14\n", "AMD EPYC 9R14"},
		{"processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
			runtime.GOARCH + ", implementer 0x41, part 0xd0c"},
		{"", runtime.GOARCH},
	} {
		if got := processorName(strings.NewReader(test.text)); got != test.want {
			t.Errorf("%q is %q, want %q", test.text, got, test.want)
		}
	}
}

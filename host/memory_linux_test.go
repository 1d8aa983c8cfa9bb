package host_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/required"
)

// TestMemoryObeysTheLimitOfAddresses starts a process with RLIMIT_AS 256 MiB above the size of its address space.
func TestMemoryObeysTheLimitOfAddresses(t *testing.T) {
	const headroom, child = 256 << 20, "MERCER_TEST_RLIMIT"
	if os.Getenv(child) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), child+"=1")
		out, err := c.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			required.SkipOrFail(t, "exec", "the system cannot start this binary: an emulator runs it")
		}
		if err != nil || !strings.Contains(string(out), "bytes are left") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		t.Fatal(err)
	}
	limit := pages*uint64(os.Getpagesize()) + headroom
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	free, known := host.Memory()
	t.Logf("%d bytes are left", free)
	// Go's runtime may reserve memory after the pages were counted: free may be less than headroom.
	if !known || free > headroom || free < headroom/2 {
		t.Errorf("%d bytes may be taken (%v), at most %d are left", free, known, headroom)
	}
}

package bench

import (
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/internal/process"
)

func TestUsage(t *testing.T) {
	got, ok := parseUsage("cpu  10 20 30 400 50 6 7 80 1000 2000\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
	if d := cmp.Diff(usage{total: 603, idle: 450, steal: 80}, got, cmp.AllowUnexported(usage{})); d != "" || !ok {
		t.Error(d)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8 9"} {
		if _, ok := parseUsage(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
	before, ok := readUsage()
	if !ok || before.total <= 0 || before.ownTime < 0 || before.total < before.idle+before.steal {
		t.Errorf("got %+v, %v", before, ok)
	}
}

// TestProcessTicks checks that the time of a child process counts as time of this process.
func TestProcessTicks(t *testing.T) {
	child := exec.Command("sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	for end := time.Now().Add(20 * time.Second); processTicks("self")-100*process.Read().Processor < 5; {
		if time.Now().After(end) {
			t.Fatal("no time is counted for a child that works")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

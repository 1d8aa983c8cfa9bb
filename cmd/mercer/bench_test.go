package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestRestart: the same command runs again, with more in its environment.
func TestRestart(t *testing.T) {
	const began, again = "MERCER_TEST_RESTART", "MERCER_TEST_RESTARTED"
	if os.Getenv(again) == "yes" {
		return // the end of the second process
	}
	if os.Getenv(began) != "" {
		t.Fatal(restart([]string{again + "=yes"}))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestRestart$", "-test.v")
	c.Env = append(os.Environ(), began+"=yes")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

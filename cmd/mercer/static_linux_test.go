package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/testdata"
)

// TestStaticBuildNeedsNoSystem checks that the static command can fit and predict in a root folder
// that contains only itself and a table: no loader, no C library, no /proc, no /tmp.
func TestStaticBuildNeedsNoSystem(t *testing.T) {
	required.Slow(t, "chroot", "builds the command again")
	root := t.TempDir()
	build := exec.Command("go", "build", "-tags", "static", "-o", filepath.Join(root, "mercer"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	table, err := testdata.FS.ReadFile("diabetes.csv")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "train.csv"), table, 0o644); err != nil {
		t.Fatal(err)
	}
	attributes := syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() != 0 { // users other than root can change the root folder only in a user namespace
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	run := func(arguments ...string) string {
		t.Helper()
		cmd := exec.Command("/mercer", arguments...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{}, &attributes
		out, err := cmd.CombinedOutput()
		if os.IsPermission(err) {
			required.Lacking(t, "chroot", err)
		}
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	if out := run("version"); !strings.HasSuffix(out, " static\n") {
		t.Errorf("version: %q does not say static", out)
	}
	if out := run("devices"); !strings.Contains(out, "cannot open shared libraries") || !strings.Contains(out, "* ") {
		t.Errorf("devices:\n%s", out)
	}
	run("fit", "--kernel", "gaussian(sigma=4)", "--lambda", "1", "--target", "target", "--model", "m.safetensors", "train.csv")
	rows := strings.Count(string(table), "\n")
	if out := run("predict", "--model", "m.safetensors", "train.csv"); strings.Count(out, "\n") != rows {
		t.Errorf("predict printed %d lines for a table of %d:\n%.200s", strings.Count(out, "\n"), rows, out)
	}
}

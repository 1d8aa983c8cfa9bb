package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/testdata"
)

// TestStaticBuildNeedsNoSystem checks that the static command can fit, predict and serve in a root folder that
// contains only the command and a table: no loader, no C library, no /proc, no /tmp.
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
	if os.Geteuid() != 0 { // a user other than root needs a user namespace to change the root folder
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
			required.SkipOrFail(t, "chroot", err)
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
	// The Dockerfile and the page must build the command as this test does.
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/guide/serving.md")
	const line = "CGO_ENABLED=0 go build -tags static -o mercer ./cmd/mercer\n"
	if err != nil || !strings.Contains(string(dockerfile), "#   "+line) || !strings.Contains(string(page), "\n"+line) {
		t.Errorf("the Dockerfile or docs/guide/serving.md does not have %q, %v", line, err)
	}

	// As in the image, the server runs as user 65534, who owns no file, and its model is read-only.
	if os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	serve := exec.Command("/mercer", "serve", "--listen", "127.0.0.1:0", "/m.safetensors")
	serve.Dir, serve.Env, serve.SysProcAttr = "/", []string{}, &attributes
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer serve.Process.Kill()
	announced, err := bufio.NewReader(out).ReadString('\n')
	url, _, _ := strings.Cut(announced, " ")
	if err != nil {
		t.Fatal(err)
	}
	_, dataRows, _ := strings.Cut(string(table), "\n")
	row, _, _ := strings.Cut(dataRows, "\n")
	cells := strings.Split(row, ",")
	answer, err := http.Post(url+"predict", "application/json", strings.NewReader("[["+strings.Join(cells[:len(cells)-1], ",")+"]]"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(string(text), `[{"values":{"target":`) {
		t.Errorf("the server answers %s, %v", text, err)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

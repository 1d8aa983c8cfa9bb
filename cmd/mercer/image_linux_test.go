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
)

// TestImage builds the image of the Dockerfile with buildah, and runs the command and a server in a container, with
// the user of the image and a folder that can only be read.
func TestImage(t *testing.T) {
	required.Slow(t, "buildah", "builds an image")
	program := required.Program(t, "buildah", "buildah")
	if os.Geteuid() != 0 {
		required.SkipOrFail(t, "buildah", "the test must be run by root")
	}
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	command := func(arguments ...string) *exec.Cmd {
		return exec.Command(program, append([]string{"--storage-driver", "vfs", "--root", in("store"), "--runroot", in("state")}, arguments...)...)
	}
	buildah := func(arguments ...string) string {
		t.Helper()
		c := command(arguments...)
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", c, err, out, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	mercer := func(arguments ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := run(append(arguments, "--quiet"), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("mercer %s: %d: %s", strings.Join(arguments, " "), code, errs.String())
		}
		return out.String()
	}
	build := exec.Command("go", "build", "-tags", "static", "-o", in("context/mercer"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	if err := os.Mkdir(in("models"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("t.csv"), []byte("a,y\n1,2\n2,4\n3,7\n5,9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mercer("fit", "--kernel", "gaussian(sigma=2)", "--target", "y", "--model", in("models/m.safetensors"), in("t.csv"))

	buildah("bud", "--isolation", "chroot", "-f", "Dockerfile", "-t", "mercer", in("context"))
	container := buildah("from", "--pull-never", "localhost/mercer")
	t.Cleanup(func() { buildah("rm", container) })
	if got := buildah("inspect", "--format", "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.User}} {{.OCIv1.Config.WorkingDir}}", container); got != "[/mercer] 65534:65534 /tmp" {
		t.Errorf("the image has another configuration: %s", got)
	}
	runArgs := []string{"run", "--isolation", "chroot", "-v", in("models") + ":/models:ro", container, "--", "/mercer"}
	if got := buildah(append(runArgs, "version")...); !strings.HasSuffix(got, " static") {
		t.Errorf("mercer version in the container: %s", got)
	}

	serve := command(append(runArgs, "serve", "--listen", "127.0.0.1:0", "/models/m.safetensors")...)
	serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-serve.Process.Pid, syscall.SIGTERM)
		_ = serve.Wait() // buildah does not pass the signal on, but kills the server and reports it
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, _, found := strings.Cut(line, " serves /models/m.safetensors")
	if err != nil || !found {
		t.Fatalf("the server prints %q, %v", line, err)
	}
	answer, err := http.Post(url+"predict", "text/csv", strings.NewReader("a\n4\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := os.WriteFile(in("row.csv"), []byte("a\n4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := mercer("predict", "--model", in("models/m.safetensors"), in("row.csv"))
	if got, err := io.ReadAll(answer.Body); err != nil || string(got) != want {
		t.Errorf("the container predicts %q, want %q; %v", got, want, err)
	}
}

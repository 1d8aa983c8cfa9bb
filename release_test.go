package mercer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestTaggedClone cuts a release of the last commit by `make tag` in a clone, and uses
// it from outside as the README says: by a proxy that is a folder, with the modules of
// others from the cache of this machine and nothing from the network.
func TestTaggedClone(t *testing.T) {
	required.Slow(t, "tagged", "builds the command and a program with other flags")
	if _, err := os.Stat(".git"); err != nil {
		required.Lacking(t, "tagged", "this copy has no history: ", err)
	}
	for _, program := range []string{"git", "make"} {
		required.Program(t, "tagged", program)
	}
	here := t.TempDir()
	clone := filepath.Join(here, "clone")
	run := func(folder string, env []string, program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	cache := "file://" + strings.TrimSpace(run(".", nil, "go", "env", "GOMODCACHE")) + "/cache/download"
	common := []string{"CGO_ENABLED=0", "GOWORK=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOPROXY=" + cache,
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@localhost"}
	with := func(env ...string) []string { return append(append([]string(nil), common...), env...) }

	run(".", nil, "git", "clone", "--quiet", "--no-tags", ".", clone)
	changes, err := os.ReadFile(filepath.Join(clone, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## (v\S+)$`).FindSubmatch(changes)
	if heading == nil {
		t.Fatal("CHANGELOG.md has no heading of a version")
	}
	version := string(heading[1])
	served := filepath.Join(here, "served")
	fetch := with("GOMODCACHE="+served, "GOFLAGS=-modcacherw")
	run(clone, fetch, "make", "tag", "VERSION="+version)

	// What git serves to the go command becomes the proxy.
	git := append(fetch, "GONOPROXY="+module, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module)
	run(here, git, "go", "mod", "download", module+"@"+version, module+"/beam@"+version, module+"/gorgonia@"+version)
	bin := filepath.Join(here, "bin")
	outside := with("GOMODCACHE="+filepath.Join(here, "mod"), "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOBIN="+bin,
		"GOPROXY=file://"+served+"/cache/download,"+cache)

	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{} // by the command: install, get
	for _, m := range regexp.MustCompile(`(?m)^    go (install|get) ([^#\n]*)`).FindAllStringSubmatch(string(readme), -1) {
		lines[m[1]] = append(lines[m[1]], m[2])
	}
	if len(lines["install"]) == 0 || len(lines["get"]) == 0 {
		t.Fatalf("README.md has no go install or no go get: %q", lines)
	}

	work := filepath.Join(here, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	program := "package main\n\nimport \"" + module + "/kernels\"\n\nfunc main() { println(kernels.Gaussian{Sigma: 2}.String()) }\n"
	if err := os.WriteFile(filepath.Join(work, "main.go"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	run(work, outside, "go", "mod", "init", "example.org/program")
	for _, arguments := range lines["get"] {
		run(work, outside, "go", append([]string{"get"}, strings.Fields(arguments)...)...)
	}
	if out := run(work, outside, "go", "run", "."); out != "gaussian(sigma=2)\n" {
		t.Errorf("the program printed %q", out)
	}
	if out := run(work, outside, "go", "list", "-m", module); out != module+" "+version+"\n" {
		t.Errorf("the program has %s, want %s", out, version)
	}
	for _, arguments := range lines["install"] {
		run(here, outside, "go", append([]string{"install"}, strings.Fields(arguments)...)...)
		if out := run(here, nil, filepath.Join(bin, "mercer"), "version"); !strings.HasPrefix(out, "mercer "+version+" ") {
			t.Errorf("after go install %s: %q, want version %s", arguments, out, version)
		}
	}
	// go install refuses a module that replaces another. To build these takes minutes.
	for _, folder := range []string{"beam", "gorgonia"} {
		text, err := os.ReadFile(filepath.Join(served, "cache", "download", filepath.FromSlash(module), folder, "@v", version+".mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "replace ") || !strings.Contains(string(text), "\t"+module+" "+version+"\n") {
			t.Errorf("%s replaces a module, or does not require Mercer %s:\n%s", folder, version, text)
		}
	}
}

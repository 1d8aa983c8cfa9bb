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
// others from the cache of this machine.
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
	// go get reads the go.mod of every module of the graph, and a build only those of the
	// modules that it compiles: the cache may lack the others.
	for _, folder := range []string{"beam", "gorgonia"} {
		run(filepath.Join(clone, folder), nil, "go", "mod", "graph")
		run(filepath.Join(clone, folder), nil, "go", "list", "-deps", "./...")
	}
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

// TestReleaseWithoutWheel runs `make wheel` and `make release` with a Python that lacks
// pip, or hatchling and an index, and with a go command that only leaves traces.
func TestReleaseWithoutWheel(t *testing.T) {
	for _, program := range []string{"make", "gcc", "git", "sha256sum"} {
		required.Program(t, "tagged", program)
	}
	here := t.TempDir()
	script := func(name, text string) string {
		t.Helper()
		file := filepath.Join(here, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o777); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// Of `go run ./release DIST` it makes an archive; of `go build`, a trace.
	golang := script("go", `case "$1 $2" in "run ./release") echo archive >"$3/mercer.tar.gz";; build*) touch "`+here+`/compiled";; esac`)
	for _, c := range []struct{ python, says string }{
		{script("nopip", "exit 1"), "has no pip"},
		{script("noindex", `case "$*" in *--version*) exit 0;; esac; exit 1`), "has no hatchling >= 1.12, and pip has no index"},
	} {
		make := func(args ...string) (string, error) {
			cmd := exec.Command("make", append(args, "GO="+golang, "PYTHON="+c.python)...)
			cmd.Env = append(os.Environ(), "MAKEFLAGS=")
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := make("wheel", "WHEELS="+here); err == nil || !strings.Contains(out, "wheel: "+c.python+" "+c.says) {
			t.Errorf("make wheel: %v\n%s", err, out)
		}
		if _, err := os.Stat(filepath.Join(here, "compiled")); err == nil {
			t.Error("make wheel compiles before it says what it needs")
		}
		dist := filepath.Join(here, "dist")
		if out, err := make("release", "DIST="+dist); err == nil || !strings.Contains(out, "release: "+dist+" has the archives and SHA256SUMS, and no wheel") {
			t.Errorf("make release: %v\n%s", err, out)
		}
		// sha256sum of "archive\n", by Python's hashlib.
		const want = "371e16ce98051a3ea7af3eaef8b87d69033154fb5bb33da349d611f0fae061d6  mercer.tar.gz\n"
		if sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS")); err != nil || string(sums) != want {
			t.Errorf("SHA256SUMS: %v\n%s", err, sums)
		}
	}
}

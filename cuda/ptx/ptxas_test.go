package ptx

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestRegisters: what ptxas of CUDA 11.8 makes for an H200 keeps everything in
// registers, but for programs that need the interpreter.
func TestRegisters(t *testing.T) {
	toolkit := os.Getenv("MERCER_CUDA_TOOLKIT")
	if toolkit == "" {
		required.Lacking(t, "ptxas", "MERCER_CUDA_TOOLKIT names no folder with bin/ptxas")
	}
	ptxas := filepath.Join(toolkit, "bin", "ptxas")
	if _, err := os.Stat(ptxas); err != nil {
		required.Lacking(t, "ptxas", err)
	}
	text, err := For(9, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mercer.ptx")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ptxas, "-v", "-arch", "sm_90", "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	interpreted := regexp.MustCompile(`^(gram|gram_mul|self)_f(32|64)$`)
	// The other functions are listed too; they have no "Compiling entry".
	entry := regexp.MustCompile(`Compiling entry function '(\w+)'`)
	spills := regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`)
	name, checked := "", 0
	for _, line := range strings.Split(string(out), "\n") {
		if m := entry.FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		m := spills.FindStringSubmatch(line)
		if m == nil || name == "" {
			continue
		}
		if !interpreted.MatchString(name) && (m[1] != "0" || m[2] != "0") {
			t.Errorf("%s spills: %s", name, strings.TrimSpace(line))
		}
		name = ""
		checked++
	}
	if checked < 50 {
		t.Errorf("only %d functions were found in:\n%s", checked, out)
	}
}

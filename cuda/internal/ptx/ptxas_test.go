package ptx

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// TestRegisters checks that ptxas of CUDA 11.8 accepts the PTX for every target, and that the functions use only
// registers. Functions that need the interpreter may use at most 3 KB of local memory per thread.
func TestRegisters(t *testing.T) {
	toolkit := os.Getenv("MERCER_CUDA_TOOLKIT")
	if toolkit == "" {
		required.SkipOrFail(t, "ptxas", "MERCER_CUDA_TOOLKIT names no folder with bin/ptxas")
	}
	ptxas := filepath.Join(toolkit, "bin", "ptxas")
	if _, err := os.Stat(ptxas); err != nil {
		required.SkipOrFail(t, "ptxas", err)
	}
	for _, target := range Targets {
		t.Run(fmt.Sprintf("sm_%d", target), func(t *testing.T) { registers(t, ptxas, target) })
	}
}

func registers(t *testing.T, ptxas string, target int) {
	if testing.Short() && target != Targets[0] {
		t.Skip("-short: the newest target has the same functions")
	}
	text, err := For(target/10, target%10)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mercer.ptx")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(ptxas, "-v", "-arch", fmt.Sprintf("sm_%d", target), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	interpreted := regexp.MustCompile(`^(gram|gram_mul|self)_f(32|64)$`)
	// Only functions that can be launched have a line "Compiling entry function".
	entry := regexp.MustCompile(`Compiling entry function '(\w+)'`)
	stack := regexp.MustCompile(`(\d+) bytes stack frame`)
	name, checked := "", 0
	for _, line := range strings.Split(string(out), "\n") {
		if m := entry.FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		m := stack.FindStringSubmatch(line)
		if m == nil || name == "" {
			continue
		}
		frame, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		allowed := 0 // largest number of bytes of spilled registers; on the oldest target the tile product spills four registers
		if target == 70 {
			allowed = 16
		}
		if !interpreted.MatchString(name) && frame > allowed || frame > 3<<10 {
			t.Errorf("%s uses local memory: %s", name, strings.TrimSpace(line))
		}
		name = ""
		checked++
	}
	if checked < 75 {
		t.Errorf("only %d functions were found in:\n%s", checked, out)
	}
}

// TestCode checks that the compiled code has every function of the PTX, and that Code returns nil
// for a GPU that the code does not match.
func TestCode(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		there        bool
	}{{7, 0, false}, {7, 5, false}, {8, 0, true}, {8, 9, true}, {9, 0, true}, {9, 1, true}, {10, 0, false}, {12, 0, false}} {
		code, err := Code(c.major, c.minor)
		if err != nil || (code != nil) != c.there {
			t.Errorf("compute capability %d.%d: %d bytes of code, %v", c.major, c.minor, len(code), err)
		}
	}
	code, err := Code(9, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := For(9, 0)
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`\.visible \.entry (\w+)\(`).FindAllSubmatch(text, -1)
	if len(entries) < 75 {
		t.Errorf("the PTX has %d functions", len(entries))
	}
	for _, m := range entries {
		if !bytes.Contains(code, []byte(".text."+string(m[1])+"\x00")) {
			t.Errorf("the code has no %s", m[1])
		}
	}
}

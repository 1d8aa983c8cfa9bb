package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEncodings checks the encoded arm64 instructions: LLVM's assembler must translate the comment to the same code.
func TestEncodings(t *testing.T) {
	assembler, err := exec.LookPath("llvm-mc")
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("MERCER_REQUIRE"), ","), "llvm") {
			t.Fatalf("MERCER_REQUIRE names llvm: %v", err)
		}
		t.Skipf("without llvm: %v", err)
	}
	text, err := os.ReadFile(filepath.Join("..", target, "neon_arm64.s"))
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`(?m)^\tWORD \$(0x[0-9a-f]{8}) // (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(words) == 0 {
		t.Fatal("no encoded instructions")
	}
	encoded := map[string]string{} // keyed by the text in ARM's syntax
	var source strings.Builder
	var order []string
	for _, w := range words {
		if earlier, ok := encoded[w[2]]; ok {
			if earlier != w[1] {
				t.Errorf("%s is both %s and %s", w[2], earlier, w[1])
			}
			continue
		}
		encoded[w[2]] = w[1]
		order = append(order, w[2])
		fmt.Fprintln(&source, w[2])
	}
	cmd := exec.Command(assembler, "--triple=aarch64", "--show-encoding")
	cmd.Stdin = strings.NewReader(source.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("llvm-mc: %v\n%s", err, stderr.String())
	}
	got := regexp.MustCompile(`encoding: \[0x(..),0x(..),0x(..),0x(..)\]`).FindAllStringSubmatch(string(out), -1)
	if len(got) != len(order) {
		t.Fatalf("%d encodings for %d instructions", len(got), len(order))
	}
	for i, g := range got {
		if word := "0x" + g[4] + g[3] + g[2] + g[1]; word != encoded[order[i]] {
			t.Errorf("%s is %s, not %s", order[i], word, encoded[order[i]])
		}
	}
	t.Logf("%d instructions", len(order))
}

// TestGemmInnerLoop counts the instructions in the inner loop of the matrix product. Each of the four unrolled
// steps has 24 multiply-adds and loads 4 vectors of B and 6 elements of A. The loop also has one prefetch, three
// pointer updates, the counter and the branch.
func TestGemmInnerLoop(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", target, "neon_arm64.s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range precisions {
		_, function, _ := strings.Cut(string(text), "\nTEXT ·gemm"+p.name+"NEON(")
		_, loop, ok := strings.Cut(function, "\nmany")
		loop, _, end := strings.Cut(loop, "\n\n")
		if !ok || !end {
			t.Fatalf("%s: no loop with the label many", p.typ)
		}
		const steps, tile = 4, 6 * 4 // 6 rows of A times 4 registers of a row of B
		want := map[string]int{
			"fmla":  steps * tile,
			"FMOVQ": steps*4 + steps*6*p.bytes/16,
			"PRFM":  1, "ADD": 3, "SUBS": 1, "BGE": 1,
		}
		got := map[string]int{}
		for _, name := range regexp.MustCompile(`(?m)^\t(?:WORD .* // )?(\w+)`).FindAllStringSubmatch(loop, -1) {
			got[name[1]]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", p.typ, got, want)
		}
	}
}

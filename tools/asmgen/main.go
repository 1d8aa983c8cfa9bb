// Command asmgen writes the assembly of the CPU tiers:
//
//	go run ./asmgen            (in folder tools)
//
// For each instruction set it makes ../cpu/internal/ukr/<tier>_amd64.s and the Go declarations <tier>_amd64.go, or
// for NEON <tier>_arm64. The files are checked in; asmgen_test.go fails if they differ from the program's output.
//
// One function of this program emits a micro-kernel for both precisions and all instruction sets; see emitter.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// target is the folder of the generated files.
const target = "../cpu/internal/ukr"

func main() {
	files, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "asmgen:", err)
		os.Exit(1)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(target, name), text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asmgen:", err)
			os.Exit(1)
		}
	}
}

// Package ptx holds the device functions of package cuda: their source in CUDA C++, and the PTX and GPU code that
// tools/ptxgen makes from it. For the compute capabilities in Compiled it has GPU code; otherwise the driver
// translates the PTX, which takes some seconds the first time.
package ptx

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed mercer_*.gz
var compiled embed.FS

// Targets lists the compute capabilities with PTX, newest first.
var Targets = []int{90, 80, 70}

// Compiled lists the compute capabilities with compiled code. A device runs the code of an equal or
// lower capability with the same major number.
var Compiled = []int{90, 80}

//go:embed *.cu *.cuh
var sources embed.FS

// Main is the source file that is compiled; it includes the other source files.
const Main = "mercer.cu"

// Sources returns the text of every source file by its name.
func Sources() map[string]string {
	files := map[string]string{}
	list, err := sources.ReadDir(".")
	if err != nil {
		panic(err) // cannot fail: the files are embedded
	}
	for _, f := range list {
		text, err := sources.ReadFile(f.Name())
		if err != nil {
			panic(err)
		}
		files[f.Name()] = string(text)
	}
	return files
}

// Names lists the source files: the included files in alphabetical order, and then Main.
func Names() []string {
	var names []string
	for name := range Sources() {
		if strings.HasSuffix(name, ".cuh") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(names, Main)
}

// File returns the name of the PTX file for a target.
func File(target int) string { return fmt.Sprintf("mercer_%d.ptx.gz", target) }

// CodeFile returns the name of the file with code for a capability of Compiled.
func CodeFile(target int) string { return fmt.Sprintf("mercer_%d.cubin.gz", target) }

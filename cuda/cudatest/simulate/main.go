// Simulate builds the simulated CUDA libraries in the folder given as its argument, which can then
// be the value of MERCER_CUDA_LIBDIR.
package main

import (
	"fmt"
	"os"

	"github.com/mercer-go/mercer/cuda/cudatest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: simulate FOLDER")
		os.Exit(2)
	}
	if err := cudatest.Build(os.Args[1], cudatest.WithSolver); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

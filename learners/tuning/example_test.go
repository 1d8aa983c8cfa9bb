package tuning_test

import (
	"fmt"
	"log"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/tuning"
)

// The kernels that a grid tries; mercer.Tune finds the best of them, and λ.
func Example() {
	list, err := tuning.Kernels(kernels.Gaussian{Sigma: 1}, nil, 4, 3)
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range list {
		fmt.Println(k)
	}
	// Output:
	// gaussian(sigma=0.25)
	// gaussian(sigma=1)
	// gaussian(sigma=4)
}

package objects_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/kernels/objects"
	_ "github.com/mercer-go/mercer/kernels/strings"
)

// Parse a kernel over texts and compute the points that mercer.Fit accepts with the kernel
// kernels.Precomputed.
func Example() {
	k, err := objects.Parse("spectrum(length=2) + 0.5*spectrum(length=3)")
	if err != nil {
		log.Fatal(err)
	}
	train, err := objects.TrainingPoints(context.Background(), k, []string{"cat", "dog"}, objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Dims())
	fmt.Println(train.Row(0)[2:])
	// Output:
	// 2 4
	// [1.5 0]
}

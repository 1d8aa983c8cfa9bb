package trees_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/trees"
)

// Compute the normalized number of common subtrees of two phrases.
func Example() {
	k, err := trees.Subtree{Decay: 1}.Gram(context.Background(), []string{
		"(NP (DT the) (NN cat))",
		"(NP (DT the) (NN dog))",
	}, objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f %.2f\n", k.At(0, 0), k.At(0, 1))
	// Output:
	// 1.00 0.50
}

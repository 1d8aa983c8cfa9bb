package gram_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Compute the Gram matrix of a user function and test whether it is positive semi-definite.
func Example() {
	ctx := context.Background()
	points := []float64{0, 1, 3}
	k, err := gram.OfFunction(ctx, len(points), func(i, j int) float64 {
		return math.Exp(-math.Abs(points[i] - points[j]))
	}, objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	e, err := gram.Decompose(ctx, k)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d negative, smallest eigenvalue %.3f\n", e.Negative(), e.Values[len(e.Values)-1])
	// Output:
	// 0 negative, smallest eigenvalue 0.622
}

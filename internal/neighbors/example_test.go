package neighbors_test

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
)

// The pairwise distances of 0, 1 and 3 are 1, 2 and 3.
func ExampleMedianDistance() {
	x := backend.Host[float64]{Rows: 3, Cols: 1, Stride: 1, Data: []float64{0, 1, 3}}
	sigma, err := neighbors.MedianDistance(context.Background(), numeric.DensePoints(x), nil, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sigma)
	// Output: 2
}

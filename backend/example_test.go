package backend_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
)

// Open a device, here with two threads, and compute a Gram matrix on it.
func Example() {
	dev, err := backend.Open("cpu", backend.Config{Threads: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	x := backend.Host[float64]{Rows: 2, Cols: 2, Stride: 2, Data: []float64{1, 2, 3, 4}}
	k, err := backend.GramMatrix(context.Background(), dev, kernels.Linear{}, x)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(k.Data)
	// Output:
	// [5 11 11 25]
}

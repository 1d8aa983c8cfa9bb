package host_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/host"
)

// This example passes a matrix of float32 to a function of gonum.
func Example() {
	m := host.Matrix[float32]{Rows: 2, Cols: 2, Stride: 3, Data: []float32{1, 2, 0, 3, 4}}
	fmt.Println(mat.Sum(m), m.View(1, 0, 1, 2).Row(0))
	// Output:
	// 10 [3 4]
}

package ref_test

import (
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref"
)

// Importing the package registers the device "ref", the reference for results of other devices.
func Example() {
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	b := dev.F64()
	x, err := backend.Copy(b, backend.Host[float64]{Rows: 1, Cols: 2, Stride: 2, Data: []float64{3, 4}})
	if err != nil {
		log.Fatal(err)
	}
	product := backend.NewHost[float64](1, 1)
	c, err := b.New(1, 1)
	if err != nil {
		log.Fatal(err)
	}
	b.Gemm(backend.NoTrans, backend.Transpose, 1, x, x, 0, c)
	if err := b.Download(product, c); err != nil {
		log.Fatal(err)
	}
	fmt.Println(product.Data)
	// Output:
	// [25]
}

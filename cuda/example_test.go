package cuda_test

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cuda"
)

// Importing the package registers the devices "cuda/0", "cuda/1", …; on a machine without a GPU,
// backend.Report says why no device can be used.
func Example() {
	dev, err := backend.Open("cuda/0", backend.Config{})
	if err == nil {
		defer func() { _ = dev.Close() }()
	}
	fmt.Println(err == nil || errors.Is(err, backend.ErrUnavailable))
	// Output:
	// true
}

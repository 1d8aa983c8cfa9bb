package tuning_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// This example chooses C and the kernel of a support vector machine by five-fold cross-validation.
func ExampleSearchGrid() {
	x, y := mat.NewDense(40, 1, nil), mat.NewDense(40, 1, nil)
	for i := range 40 { // groups of ten samples, alternately of one class and of the other
		x.Set(i, 0, float64(i))
		y.Set(i, 0, float64(i/10%2))
	}
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	r := validate.Runner{Data: validate.Samples{X: x, Y: y}, Devices: []backend.Device{dev}}
	r.Options.Classes = []string{"even", "odd"}
	settings, err := tuning.SearchGrid(context.Background(), r, tuning.GridParams{
		Learner: "svc", Kernel: kernels.Gaussian{Sigma: 5}, Steps: 3, Reach: 20,
		Axes: []tuning.Axis{{Parameter: "C", Values: []string{"1", "100"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	best, err := tuning.BestSetting(settings)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(settings), "settings, the best with", settings[best].Parameters["kernel"])
	// Output:
	// 6 settings, the best with gaussian(sigma=5)
}

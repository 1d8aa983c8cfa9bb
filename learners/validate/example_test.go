package validate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// This example compares two learners on the same folds of a table. The scale of each column is
// computed from the training rows of the fold.
func Example() {
	x, y := make([]float64, 30), make([]float64, 30)
	for i := range x {
		x[i], y[i] = float64(i), float64((i-15)*(i-15))
	}
	t, err := dataset.NewTable("", dataset.Numbers("x", x), dataset.Numbers("y", y))
	if err != nil {
		log.Fatal(err)
	}
	rows, err := validate.NewTable(t, dataset.Rules{Targets: []string{"y"}, Standardize: true}, nil)
	if err != nil {
		log.Fatal(err)
	}
	folds, err := validate.KFold(rows.Len(), 5, nil, 1)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	r := validate.Runner{Data: rows, Devices: []backend.Device{dev}}
	for _, kernel := range []string{"linear()", "polynomial(degree=2,c=1)"} {
		d, err := learners.Find("kernel-ridge")
		if err != nil {
			log.Fatal(err)
		}
		fit, err := d.Make(learners.Regression, map[string]string{"kernel": kernel, "lambda": "1e-3"})
		if err != nil {
			log.Fatal(err)
		}
		scores, err := r.Scores(context.Background(), fit, 5, folds, nil)
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range validate.Measures(scores) {
			if m.Name == "rmse" {
				fmt.Printf("%s: RMSE %.0f\n", kernel, m.Summary().Mean)
			}
		}
	}
	// Output:
	// linear(): RMSE 71
	// polynomial(degree=2,c=1): RMSE 0
}

package modelfile_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
)

// Save a model and read it again; mercer.Load makes it ready to predict.
func Example() {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	x := mat.NewDense(3, 1, []float64{0, 1, 2})
	m, err := learners.Ridge{Lambda: 1}.Fit(context.Background(), dev, x, x, learners.Options{})
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "mercer")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "model.safetensors")
	if err := modelfile.Save(path, modelfile.Bundle{Model: m}); err != nil {
		log.Fatal(err)
	}
	b, err := modelfile.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Model.Learner())
	// Output:
	// ridge
}

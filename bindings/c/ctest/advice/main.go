// Command advice prints error messages for a test of the Python package. It reads callers and advice as JSON and
// writes, for each caller and each advice, the text of an error with this advice.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref" // registers the device "ref"
	"github.com/mercer-go/mercer/bindings/c/internal/handles"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/learners"
)

type input struct {
	Advice  []string
	Callers []struct {
		Learner string
		Task    learners.Task
		Given   map[string]string
		Names   handles.Names
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "advice:", err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		return err
	}
	defer dev.Close()
	x, y := mat.NewDense(6, 2, []float64{1, 2, 2, 1, 3, 5, 4, 3, 5, 9, 6, 7}), mat.NewDense(6, 1, []float64{0, 1, 0, 1, 0, 1})
	texts := make([][]string, len(in.Callers))
	for i, c := range in.Callers {
		d, err := learners.Find(c.Learner)
		if err != nil {
			return err
		}
		fit, err := d.Make(c.Task, c.Given)
		if err != nil {
			return err
		}
		for _, advice := range in.Advice {
			// The fit returns the cause of a canceled context in the same way as an error of the solver.
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(message.Errorf("fault: " + advice))
			_, err := fit(ctx, dev, x, y, learners.Options{})
			if err == nil {
				return fmt.Errorf("%s: the fit was not canceled", c.Learner)
			}
			texts[i] = append(texts[i], c.Names.Text(err))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(texts)
}

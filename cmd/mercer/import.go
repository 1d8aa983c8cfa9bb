package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/libsvm"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) importCommand() *cobra.Command {
	var model string
	c := &cobra.Command{
		Use:   "import --model FILE [flags] LIBSVM",
		Short: "Read a model of LIBSVM",
		Long: `Read a model that svm-train of LIBSVM wrote, and save it as a model of svc, svr or
one-class-svm, for mercer predict, serve and export. The types can be c_svc, nu_svc,
epsilon_svr, nu_svr and one_class, and the kernels linear, polynomial, rbf and sigmoid.
Probabilities of classes are read, too.

The decision values are those of LIBSVM up to rounding. For two classes, mercer predict
--decision prints values that are positive for the larger label, and svm-predict's are
positive for the label that occurs first in the training file. The columns of tables are
x1, x2, …, as in a file of LIBSVM. A missing cell is 0.

Models of scikit-learn are read in Python: mercer.from_sklearn.`,
		Args: maxArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("import needs LIBSVM: a file that svm-train wrote, or - for standard input")
			case model == "":
				return usagef("import needs --model FILE: where to write the model")
			}
			return a.importModel(ctx, args[0], model)
		}),
	}
	c.Flags().StringVar(&model, "model", "", "`FILE` to write the model to")
	return c
}

// imported is the output of `mercer import --json`.
type imported struct {
	Program  string   `json:"program"` // "import"
	Learner  string   `json:"learner"`
	Kernel   string   `json:"kernel"`
	Support  int      `json:"support_vectors"`
	Features int      `json:"features"`
	Classes  []string `json:"classes,omitempty"`
	Model    string   `json:"model"`
}

func (a *app) importModel(ctx context.Context, path, model string) error {
	if err := a.checkOutput(ctx, "--model", model, path); err != nil {
		return err
	}
	var in io.Reader = a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	b, err := libsvm.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := a.commit(ctx, func() error { return modelfile.Save(model, b) }); err != nil {
		return err
	}
	parts := learners.PartsOf(b.Model)
	v := imported{Program: "import", Learner: b.Model.Learner(), Kernel: parts.Kernel.String(), Model: model, Classes: b.Encoder.Labels}
	v.Support, v.Features = parts.Points.Dims()
	return a.printJSONOrText(ctx, v, func() string {
		return fmt.Sprintf("%s with %s in %s: %s of %s\n", v.Learner, v.Kernel, model, count(v.Support, "support vector"), count(v.Features, "feature"))
	})
}

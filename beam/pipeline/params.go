package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// Params specifies what to fit. Inputs, Targets and Model are required.
type Params struct {
	Inputs  []string // globs of tables
	Targets []string // names of the target columns
	Drop    []string // columns to ignore, such as identifiers; every file must have these columns
	Model   string   // path of the model to write; the report goes to Model + ".json"

	Learner string // "nystrom-ridge" (""), "fourier-ridge" or "ridge"
	// Classify states that the single target names classes, which become targets of ±1.
	Classify bool
	// Kernels lists the candidate kernels, in the syntax of kernels.Parse. If the list is empty, the kernel is the
	// Gaussian whose sigma is half the median distance of 500 rows. The learner ridge has no kernel.
	Kernels []string
	// Lambdas lists the candidates for λ, unscaled. An empty list means λ = 1.
	Lambdas []float64
	// Folds is the number of folds of the cross-validation that chooses among the candidates. 0 means 5 folds, or
	// no cross-validation if there is only one candidate.
	Folds int

	// Std makes the model keep its posterior, for standard deviations, intervals, samples and updates, as
	// learners.NystromRidge.Std does. It needs λ > 0.
	Std       bool
	UnitScale bool // whether s² = 1, so that λ is the variance of the noise; only with Std

	Functions     int  // the number M of centers or random features; 0 means about 10√n for n rows, at most 1000; ridge does not use it
	Intercept     bool // whether the model has an intercept b, which is not penalized
	NoStandardize bool // whether the features are not standardized
	RefuseMissing bool
	Dialect       dataset.Dialect // dialect of CSV files
	Seed          uint64
	Tol           float64 // relative residual to reach; 0 means 1e-6
	// Passes is the number of passes over the samples after the pass that computes the sums. Each measures the
	// residual, and all but the last also correct the solution. If Passes is 0, the residual is computed from the sums.
	Passes int

	Device     string // device of the workers: see backend.Open; "" means the best device
	PieceBytes int64  // number of bytes of a CSV file that one worker reads as a unit; 0 means 32 MiB
	WholeFiles bool   // whether files are not split into pieces
	// Workers, if above 1, is the number of workers among which the pieces are divided. It works on runners that
	// start a worker for each environment of a pipeline, such as Prism, whose worker processes must be the program
	// mercer-beam. 0 leaves the number to the runner; Prism then starts one worker.
	Workers int
}

const (
	mostFunctions     = 1000 // maximum M if Functions is 0
	defaultFolds      = 5
	defaultPieceBytes = 32 << 20
	// fanout is the number of groups of pieces. Sums are merged within each group, and then over the groups.
	fanout = 16
)

// withDefaults returns p with defaults for its zero fields, or an error for an invalid field.
func (p Params) withDefaults() (Params, error) {
	if p.Learner == "" {
		p.Learner = "nystrom-ridge"
	}
	if len(p.Lambdas) == 0 {
		p.Lambdas = []float64{1}
	}
	if p.PieceBytes == 0 {
		p.PieceBytes = defaultPieceBytes
	}
	if p.Tol == 0 {
		p.Tol = 1e-6
	}
	candidates := max(len(p.Kernels), 1) * len(p.Lambdas)
	switch {
	case candidates == 1:
		p.Folds = 1
	case p.Folds == 0:
		p.Folds = defaultFolds
	}
	return p, p.check(candidates)
}

func (p Params) isFeature(name string) bool {
	return !slices.Contains(p.Targets, name) && !slices.Contains(p.Drop, name)
}

func (p Params) check(candidates int) error {
	errorf := func(format string, args ...any) error { return fmt.Errorf("pipeline: "+format, args...) }
	switch {
	case len(p.Inputs) == 0:
		return errors.New("pipeline: no input is named")
	case len(p.Targets) == 0:
		return errors.New("pipeline: no target column is named")
	case p.Classify && len(p.Targets) != 1:
		return errorf("classification needs exactly one target column, not %d", len(p.Targets))
	case p.Classify && p.Std:
		return errorf("std needs numeric targets: a classifier has no posterior")
	case p.UnitScale && !p.Std:
		return errorf("UnitScale concerns only the posterior: set Std, too")
	case p.Model == "":
		return errors.New("pipeline: no path for the model is given")
	case !slices.Contains(Learners(), p.Learner):
		return errorf("unknown learner %q: use one of %q", p.Learner, Learners())
	case p.Learner == "ridge" && len(p.Kernels) > 0:
		return errorf("ridge has no kernel, %q was given", p.Kernels)
	case p.Functions < 0:
		return errorf("the number of functions must be ≥ 1, got %d", p.Functions)
	case candidates > 1 && p.Folds < 2:
		return errorf("choosing among %d candidates needs at least 2 folds, got %d", candidates, p.Folds)
	case p.Folds > 1000:
		return errorf("the number of folds must be ≤ 1000, got %d", p.Folds)
	case !(p.Tol > 0 && p.Tol < 1):
		return errorf("the tolerance must be above 0 and below 1, got %v", p.Tol)
	case p.Passes < 0:
		return errorf("the number of passes must be ≥ 0, got %d", p.Passes)
	case p.PieceBytes < 1<<10:
		return errorf("the size of a piece must be ≥ 1024 bytes, got %d", p.PieceBytes)
	case p.Workers < 0:
		return errorf("the number of workers must be ≥ 0, got %d", p.Workers)
	}
	if err := p.Dialect.Check(); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	for _, v := range p.Lambdas {
		if !(v >= 0) || math.IsInf(v, 1) {
			return errorf("lambda must be a finite number ≥ 0, got %v", v)
		}
		if p.Std && v == 0 {
			return errorf("std needs lambda > 0, because the posterior for lambda = 0 has no prior")
		}
	}
	for _, text := range p.Kernels {
		k, err := kernels.Parse(text)
		if err != nil {
			return fmt.Errorf("pipeline: %w", err)
		}
		if !k.IsPSD() {
			return errorf("the kernel %v is not positive semidefinite: use another", k)
		}
	}
	return nil
}

// Learners lists the learners that Fit supports.
func Learners() []string {
	var names []string
	for _, name := range []string{"nystrom-ridge", "fourier-ridge", "ridge"} {
		if _, err := learners.Find(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

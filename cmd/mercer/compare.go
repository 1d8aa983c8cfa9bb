package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

func (a *app) compareCommand() *cobra.Command {
	f := resampleFlags{learnerFlags: learnerFlags{several: true}}
	var folds int
	c := &cobra.Command{
		Use:   "compare --learner NAME,NAME,… --target COLUMN [flags] TABLE",
		Short: "Score several learners on the same folds",
		Long: `Score several learners on the same folds: the mean and the standard deviation of each
measure, the number of kernel functions or of nonzero weights of a model, and the time of
a fit.

  mercer compare --learner rvm,svr --kernel 'gaussian(sigma=2)' --target y t.csv

Each learner uses the parameters that it has.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.compare(ctx, &f, folds, args[0]) }),
	}
	f.addAll(c, &a.input)
	c.Flags().Lookup("learner").Usage = "`NAMES` of the learners, with commas between them; with --help their flags are shown"
	intFlag(c.Flags(), &folds, "folds", 10, 2, "number of folds; each is predicted by models that are fitted to the others")
	return c
}

// comparedLearner is a learner in the report of compare.
type comparedLearner struct {
	Learner   string             `json:"learner"`
	Measures  []validate.Measure `json:"measures"`
	Functions *float64           `json:"functions"` // mean number of kernel functions of a model, or of its nonzero weights
	Seconds   float64            `json:"seconds"`   // mean time of a fit
}

// functionCount returns the number of a model's kernel functions, or of its nonzero weights.
func functionCount(m learners.Model) float64 {
	parts := learners.PartsOf(m)
	if parts.Points != nil {
		n, _ := parts.Points.Dims()
		return float64(n)
	}
	if parts.Coef == nil {
		return math.NaN()
	}
	n, t := parts.Coef.Dims()
	nonzero := 0.0
	for i := range n {
		if slices.ContainsFunc(parts.Coef.RawRowView(i)[:t], func(v float64) bool { return v != 0 }) {
			nonzero++
		}
	}
	return nonzero
}

func (a *app) compare(ctx context.Context, f *resampleFlags, folds int, file string) error {
	names := strings.Split(f.learner, ",")
	if len(names) < 2 {
		return usagef("--learner: name two learners or more, with commas between them, such as rvm,svr,kernel-ridge")
	}
	if duplicate(names) != "" {
		return usagef("--learner: %s is given twice", duplicate(names))
	}
	fits := make([]resampleFlags, len(names))
	for i, name := range names {
		fits[i] = *f
		fits[i].learner, fits[i].paramTexts = strings.TrimSpace(name), map[string]string{}
	}
	for parameter, text := range f.paramTexts {
		used := false
		for _, flags := range fits {
			if _, has := flags.description().Parameter(parameter); has {
				flags.paramTexts[parameter], used = text, true
			}
		}
		if !used {
			return usagef("--%s: is not a parameter of %s", parameter, strings.Join(names, ", "))
		}
	}
	var list []comparedLearner
	var task learners.Task
	n := 0
	for i := range fits {
		flags := &fits[i]
		flags.table = f.table
		r, err := a.newResampling(ctx, flags, "compare", file)
		if err != nil {
			return err
		}
		result, err := r.compareLearner(ctx, flags, folds)
		r.closeDevices()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", flags.learner, err)
		case task != "" && task != r.task:
			return usagef("--learner: for this target %s does %s, but %s does %s: name learners of one task, or give --task", names[0], task, flags.learner, r.task)
		}
		list, task, n, f.table = append(list, result), r.task, r.table.Rows(), flags.table
	}
	return a.printJSONOrText(ctx, map[string]any{"program": "compare", "task": task, "n": n, "folds": folds, "learners": list}, func() string { return comparedText(list) })
}

// compareLearner scores the learner on the folds.
func (r *resampling) compareLearner(ctx context.Context, f *resampleFlags, folds int) (comparedLearner, error) {
	splits, err := r.kFold(folds, true)
	if err != nil {
		return comparedLearner{}, err
	}
	c, size := comparedLearner{Learner: f.learner}, 0.0
	scores, err := r.scores(ctx, folds, splits, func(m learners.Model, elapsed time.Duration) {
		size += functionCount(m) / float64(folds)
		c.Seconds += elapsed.Seconds() / float64(folds)
	}, ofFolds(folds))
	c.Measures, c.Functions = validate.Measures(scores), numeric.NilIfNaN(size)
	return c, err
}

// spread returns the mean and the standard deviation of a measure over the folds. If some folds have no value, it
// also returns the number of folds with a value.
func spread(m validate.Measure) []string {
	s, suffix := m.Summary(), ""
	if s.N < len(m.Scores) {
		suffix = fmt.Sprintf("(%d of %s)", s.N, count(len(m.Scores), "fold"))
	}
	if s.N == 0 {
		return []string{suffix, ""}
	}
	return []string{strings.TrimSpace(fourDigits(s.Mean) + " " + suffix), fourDigits(s.SD)}
}

// comparedText returns a table with a line for each learner, without the measures that no learner has.
func comparedText(list []comparedLearner) string {
	var columns []string
	for _, c := range list {
		for _, m := range c.Measures {
			if !slices.Contains(columns, m.Name) {
				columns = append(columns, m.Name)
			}
		}
	}
	lines := [][]string{{"learner"}}
	for _, name := range columns {
		lines[0] = append(lines[0], titles[name], "± sd")
	}
	lines[0] = append(lines[0], "functions", "fit")
	for _, c := range list {
		line := []string{c.Learner}
		for _, name := range columns {
			i := slices.IndexFunc(c.Measures, func(m validate.Measure) bool { return m.Name == name })
			if i < 0 {
				line = append(line, "", "")
			} else {
				line = append(line, spread(c.Measures[i])...)
			}
		}
		size := ""
		if c.Functions != nil {
			size = fourDigits(*c.Functions)
		}
		lines = append(lines, append(line, size, seconds(c.Seconds)))
	}
	return texttable.Format("l"+strings.Repeat("r", len(lines[0])-1), lines)
}

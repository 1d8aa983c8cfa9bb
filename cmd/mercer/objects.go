package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/tfidf"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/solvers"
)

// objectFlags are the flags for a column of texts or trees that is the only input of the kernel precomputed().
type objectFlags struct {
	text, tree string
	kernel     objects.Kernel // nil if the input consists of features

	// These fields are for --tfidf, which adds n-grams of a text to the features from other columns.
	analyzer  string
	ngrams    []int
	minDF     float64
	sublinear bool
}

func (o *objectFlags) add(c *cobra.Command) {
	flags := c.Flags()
	refuseFlags(c, func() []refusal {
		return []refusal{{o.analyzer == "", "ngrams min-df sublinear", "needs --tfidf", "tfidf"}, {o.flag() != "", "no-standardize", "has no effect with " + o.flag(), ""}}
	})
	flags.StringVar(&o.text, "text", "", "`COLUMN` of texts: the features of its n-grams with --tfidf, or the whole input of a --kernel on texts: "+strings.Join(objectKernels(objects.Text), ", "))
	flags.StringVar(&o.analyzer, "tfidf", "", "`KIND` of the n-grams of --text that become tf-idf features, as by TfidfVectorizer of scikit-learn: "+strings.Join(analyzers(), ", "))
	flags.IntSliceVar(&o.ngrams, "ngrams", []int{1}, "`NUMBERS` n of the n-grams, or the smallest and the largest, with a comma between them")
	flags.Lookup("ngrams").DefValue = "1" // without this line the help would print "[1]" as the default
	flags.Float64Var(&o.minDF, "min-df", 1, "minimum `NUMBER` of training texts that contain an n-gram; below 1 a fraction of the texts")
	flags.BoolVar(&o.sublinear, "sublinear", false, "replace the number tf of times that an n-gram is in a text by 1 + log(tf)")
	flags.StringVar(&o.tree, "tree", "", "`COLUMN` of trees in brackets that is the whole input, for a --kernel on trees: "+strings.Join(objectKernels(objects.Tree), ", "))
}

// analyzers returns the values of --tfidf.
func analyzers() (names []string) {
	for _, a := range tfidf.Analyzers() {
		names = append(names, string(a))
	}
	return names
}

// objectDescriptions returns the kernels on objects of a kind.
func objectDescriptions(kind objects.Input) []kernels.Description {
	return slices.DeleteFunc(objects.Catalogue(), func(d kernels.Description) bool {
		k, err := objects.Parse(d.Example)
		return err != nil || k.Input() != kind
	})
}

// objectKernels returns an example of each kernel on objects of a kind.
func objectKernels(kind objects.Input) []string {
	var examples []string
	for _, d := range objectDescriptions(kind) {
		examples = append(examples, d.Example)
	}
	return examples
}

// replaceKernel replaces the learner's kernel by precomputed() if the input is a column of objects.
func (o *objectFlags) replaceKernel(f *learnerFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	text, hasKernel := f.paramTexts["kernel"]
	flag := o.flag()
	if flag == "" {
		err := o.checkFeatureKernel(text)
		if err == nil {
			f.gram, err = f.precomputed(text, f.stream)
		}
		return err
	}
	if err := o.checkUnusedFlags(&f.tableFlags); err != nil {
		return err
	}
	if _, has := f.description().Parameter("kernel"); !has && o.text != "" {
		return usagef("--text: %s", needsTFIDF(f.learner))
	} else if !has {
		return usagef("%s: %s has no kernel, and learns from numbers only", flag, f.learner)
	}
	if !hasKernel {
		return o.missingKernelError()
	}
	k, err := o.parse(text)
	if err != nil {
		return err
	}
	o.kernel = k
	f.paramTexts["kernel"] = "precomputed()"
	return nil
}

// needsTFIDF returns an error message for a text column and a learner without a kernel on texts.
func needsTFIDF(learner string) string {
	return "needs --tfidf: " + learner + " learns from features, not from whole texts"
}

// flag returns the flag of the column of objects, or "" if the input consists of features.
func (o *objectFlags) flag() string {
	switch {
	case o.text != "" && o.analyzer == "":
		return "--text"
	case o.tree != "":
		return "--tree"
	}
	return ""
}

// kind returns the kind of the objects in the column, texts or trees.
func (o *objectFlags) kind() objects.Input {
	if o.tree != "" {
		return objects.Tree
	}
	return objects.Text
}

func (o *objectFlags) check() error {
	if o.text != "" && o.tree != "" {
		return usagef("--text and --tree: the whole input is one column; give one of them")
	}
	switch {
	case o.analyzer == "":
		return nil
	case !slices.Contains(analyzers(), o.analyzer):
		return usagef("--tfidf: %q is not known%s; the choices are: %s", o.analyzer, didYouMean("", o.analyzer, analyzers()), strings.Join(analyzers(), ", "))
	case o.text == "":
		return usagef("--tfidf: needs --text COLUMN, the column of the texts")
	case len(o.ngrams) > 2:
		return usagef("--ngrams: want one number, or the smallest and the largest, got %d numbers", len(o.ngrams))
	case len(o.ngrams) == 0 || slices.Min(o.ngrams) < 1:
		return usagef("--ngrams: must be integers ≥ 1, got %s", strings.Trim(fmt.Sprint(o.ngrams), "[]"))
	}
	if err := o.ngramSettings().Check(); err != nil {
		return usagef("--tfidf: %s", oneLine(err))
	}
	return nil
}

// ngramSettings returns the settings of --tfidf.
func (o *objectFlags) ngramSettings() dataset.NGrams {
	g := dataset.NGrams{Analyzer: tfidf.Analyzer(o.analyzer), MinDF: o.minDF, Sublinear: o.sublinear}
	if len(o.ngrams) > 0 {
		g.MinN, g.MaxN = o.ngrams[0], o.ngrams[len(o.ngrams)-1]
	}
	return g
}

// checkUnusedFlags returns an error for flags of features if the input is a column of objects.
func (o *objectFlags) checkUnusedFlags(f *tableFlags) error {
	if o.flag() != "" && f.missing == "impute" {
		return usagef("--missing: with %s no cell is imputed, because an empty text is a value and an empty tree is an error; leave --missing out, or give --missing refuse", o.flag())
	}
	return nil
}

// missingKernelError returns the error for a column of objects if the call has no --kernel.
func (o *objectFlags) missingKernelError() error {
	alternative := ""
	if o.kind() == objects.Text {
		alternative = "; or --tfidf, which makes features of the texts"
	}
	return usagef("%s needs --kernel, such as %s%s", o.flag(), strings.Join(objectKernels(o.kind()), " or "), alternative)
}

// parse returns the kernel on the objects of the column.
func (o *objectFlags) parse(text string) (objects.Kernel, error) {
	k, err := objects.Parse(text)
	if err != nil {
		return nil, usagef("--kernel: %s", oneLine(err))
	}
	if k.Input() != o.kind() {
		return nil, usagef("--kernel: %s is a kernel on %ss; name the column of %[2]ss with --%[2]s", text, k.Input())
	}
	return k, nil
}

// checkFeatureKernel returns an error for a kernel on texts or trees if the rows are features.
func (o *objectFlags) checkFeatureKernel(text string) error {
	if !objects.IsObjectKernel(text) {
		return nil
	}
	if o.analyzer != "" {
		return usagef("--kernel: %s is a kernel on whole texts, not on the features of --tfidf; leave --tfidf out, or give another kernel", text)
	}
	k, err := objects.Parse(text)
	if err != nil {
		return nil // the parser of kernels on numbers will report the error
	}
	return usagef("--kernel: %s is a kernel on %ss; name the column of %[2]ss with --%[2]s COLUMN", text, k.Input())
}

// rules adds the column of texts or trees to the rules of a table.
func (o *objectFlags) rules(r dataset.Rules) dataset.Rules {
	if o.analyzer != "" {
		r.TFIDF, r.NGrams = []string{o.text}, o.ngramSettings()
		return r
	}
	r.Text, r.Tree = o.text, o.tree
	return r
}

// trainingPoints returns the Gram matrix of the training objects as points of precomputed().
func (a *app) trainingPoints(ctx context.Context, source string, k objects.Kernel, o *modelfile.Objects) (*mat.Dense, error) {
	p := a.newProgress()
	defer p.close()
	h, err := objects.TrainingPoints(ctx, k, o.Training, a.objectOptions(p))
	return densePoints(source, h, err)
}

// complete computes, if needsKernel, the kernel values among the training objects of a model of texts or trees.
func (a *app) complete(ctx context.Context, b modelfile.Bundle, needsKernel bool) (modelfile.Bundle, error) {
	if !needsKernel {
		return b, nil
	}
	p := a.newProgress()
	defer p.close()
	return b.Complete(ctx, a.objectOptions(p))
}

// features returns the matrix of a table's rows that the model accepts, and reports unknown texts.
func (a *app) features(ctx context.Context, b modelfile.Bundle, t *dataset.Table) (mat.Matrix, error) {
	p := a.newProgress()
	defer p.close()
	x, err := b.Features(ctx, t, a.objectOptions(p))
	if err == nil && b.Objects == nil {
		a.reportUnknown(t.Source, "row", b.Encoder.Unknown(t))
	}
	return x, err
}

func (a *app) objectOptions(p *progress) objects.Options {
	return objects.Options{Threads: a.threads, Memory: int64(a.memory), Progress: func(fraction float64) { p.report(solvers.Progress{Stage: "kernel", Fraction: fraction}) }}
}

func densePoints(source string, h backend.Host[float64], err error) (*mat.Dense, error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return mat.NewDense(h.Rows, h.Cols, h.Data), nil
}

// encodeScored encodes rows whose predictions will be compared with their targets. names lists the classes of the
// model, followed by the new classes, which occur only in t. It prints a notice with the number of rows of new
// classes, because all predictions for these rows are wrong.
func (a *app) encodeScored(ctx context.Context, b modelfile.Bundle, t *dataset.Table) (x mat.Matrix, y *mat.Dense, names []string, err error) {
	if len(b.Encoder.Outputs) > 0 {
		if y, names, err = b.Encoder.ScoredTargets(t); err != nil {
			return nil, nil, nil, err
		}
		a.reportNewClasses(t.Source, names, len(b.Encoder.Labels), y)
	}
	x, err = a.features(ctx, b, t)
	return x, y, names, err
}

// reportNewClasses prints a notice if y has a class that is not one of names[:knownCount].
func (a *app) reportNewClasses(source string, names []string, knownCount int, y *mat.Dense) {
	if len(names) <= knownCount {
		return
	}
	rows := 0
	for i := range y.RawMatrix().Rows {
		if y.At(i, 0) >= float64(knownCount) {
			rows++
		}
	}
	newNames, remainder := names[knownCount:], ""
	if len(newNames) > 5 {
		newNames, remainder = newNames[:5], fmt.Sprintf(" and %d more", len(newNames)-5)
	}
	quoted := make([]string, len(newNames))
	for i, name := range newNames {
		quoted[i] = strconv.Quote(name)
	}
	affectedRows := "these rows"
	if rows == 1 {
		affectedRows = "this row"
	}
	a.notice("%s: %s of a class that training did not have (%s%s): every prediction of %s counts as wrong", source, count(rows, "row"), strings.Join(quoted, ", "), remainder, affectedRows)
}

// encodeWith encodes a table as encode does, and also supports models of texts or trees.
func (a *app) encodeWith(ctx context.Context, b modelfile.Bundle, t *dataset.Table) (x mat.Matrix, y *mat.Dense, err error) {
	if len(b.Encoder.Outputs) > 0 {
		if y, err = b.Encoder.Targets(t); err != nil {
			return nil, nil, err
		}
	}
	x, err = a.features(ctx, b, t)
	return x, y, err
}

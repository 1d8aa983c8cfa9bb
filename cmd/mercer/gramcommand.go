package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/atomicfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"github.com/spf13/cobra"
)

// featureMaps are the values of --features.
var featureMaps = []string{"exact", "fourier", "nystrom", "principal"}

// gramCommandFlags are the flags of `mercer gram`.
type gramCommandFlags struct {
	learnerFlags         // the flags for the kernel, the targets and the columns; mercer gram fits no learner
	kernel               string
	objects              objectFlags
	train, out, features string
	lambdas              []float64
	count                int
	center, distances    bool
	eigenvalues          bool
}

func (a *app) gramCommand() *cobra.Command {
	var f gramCommandFlags
	c := &cobra.Command{
		Use:   "gram [--kernel TEXT] [--out FILE] [flags] TABLE",
		Short: "Gram matrix, its eigenvalues, distances and features to a file",
		Long: `Compute the Gram matrix K of the rows of a table, k(x_i, x_j), and write it to a file:

  mercer gram --kernel 'gaussian(sigma=2)' --target y --out gram.csv t.csv
  mercer gram --kernel 'gaussian(sigma=2)' --train t.csv --out k.csv test.csv
  mercer fit --kernel 'precomputed()' --target y --model m.safetensors gram.csv
  mercer predict --model m.safetensors k.csv

With --train the matrix has the kernel values of the rows of TABLE with the rows of that
file, by whose means and deviations both are scaled. These flags write other numbers:


  --center             the matrix of φ(x) − mean φ (Schölkopf et al. 1998)
  --distances          ‖φ(x_i) − φ(x_j)‖, from K; to about 1e-8 of ‖φ‖
  --features MAP       a feature map, whose inner products are or approach K:
    exact              φ of a kernel with finitely many features
    fourier            --count random Fourier features of a stationary kernel
    nystrom            features of rank --count, of as many random rows
    principal          UΛ^½ of K = UΛUᵀ; with --center the components of
                       kernel principal component analysis

--eigenvalues tests Mercer's condition on the rows: no eigenvalue of K is below 0 by more
than rounding. --lambda adds the effective dimension tr K(K + λI)⁻¹ at each λ. Both take
a time of the order of n³.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.gram(ctx, &f, args[0]) }),
	}
	refuseFlags(c, f.refusals)
	flags := c.Flags()
	flags.StringVar(&f.kernel, "kernel", "", "`TEXT` of the kernel (default: gaussian, sigma the median distance)")
	flags.StringVar(&f.out, "out", "", "`FILE` to write: .csv, with the columns of --target, or .npy")
	f.tableFlags.add(flags)
	flags.BoolVar(&f.textbook, "textbook", false, "as in the examples of textbooks: numbers are not standardized")
	flags.Lookup("target").Usage = "`COLUMN` that is not a feature but is copied to a CSV file; may be given several times"
	flags.StringVar(&f.train, "train", "", "`FILE` of other rows; K then holds the kernel of each row of TABLE with each row of FILE")
	flags.BoolVar(&f.center, "center", false, "center the rows in the feature space")
	flags.BoolVar(&f.distances, "distances", false, "write distances in the feature space instead of K")
	flags.StringVar(&f.features, "features", "", "write the features of a `MAP` instead of K: "+strings.Join(featureMaps, ", "))
	intFlag(flags, &f.count, "count", 0, 0, "number of features (default: about 10√n; of principal the rank)")
	flags.BoolVar(&f.eigenvalues, "eigenvalues", false, "print the extreme eigenvalues; with --json all")
	flags.Float64SliceVar(&f.lambdas, "lambda", nil, "`NUMBERS` λ at which the effective dimension is printed")
	flags.Lookup("lambda").DefValue = "" // without this line the help would print "[]" as the default
	f.objects.add(c)
	a.input.add(flags)
	return c
}

// refusals lists the flags that have no effect on the result.
func (f *gramCommandFlags) refusals() []refusal {
	return []refusal{
		{f.distances, "features", "cannot be combined with --distances", ""},
		{f.distances, "center", "centering does not change distances", ""},
		{f.features != "" && f.features != "principal", "center", "is for --features principal", ""},
		{f.features == "" || f.features == "exact", "count", "is for --features fourier, nystrom and principal", "features"},
		{f.distances, "count", "is for --features fourier, nystrom and principal", ""},
		{f.train != "", "eigenvalues lambda", "needs the kernel matrix of TABLE with itself; leave --train out", ""},
	}
}

// check returns an error for the first wrong flag.
func (f *gramCommandFlags) check() error {
	if f.eigenvalues = f.eigenvalues || len(f.lambdas) > 0; f.out == "" && !f.eigenvalues {
		return usagef("nothing to do: give --out FILE, --eigenvalues or --lambda")
	}
	if f.out != "" {
		if _, err := extensionOf("--out", f.out, ".csv", ".npy"); err != nil {
			return err
		}
	}
	switch {
	case f.features != "" && !slices.Contains(featureMaps, f.features):
		return usagef("--features: %q is not known%s; the choices are: %s", f.features, didYouMean("", f.features, featureMaps), strings.Join(featureMaps, ", "))
	case f.out == "" && (f.features != "" || f.distances):
		return usagef("--out FILE is needed for --features and --distances")
	}
	if err := f.tableFlags.check(); err != nil {
		return err
	}
	for _, l := range f.lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return usagef("--lambda: each must be a finite number ≥ 0, got %v", l)
		}
	}
	f.paramTexts = map[string]string{}
	if f.kernel != "" {
		f.paramTexts["kernel"] = f.kernel
	}
	f.learner = defaultLearner // the check of the flags needs a learner; this learner accepts every kernel
	if err := f.objects.replaceKernel(&f.learnerFlags); err != nil {
		return err
	}
	if _, err := f.fitter(""); err != nil {
		return err
	}
	matrix := f.gram || f.objects.kernel != nil
	switch {
	case matrix && (f.features == "exact" || f.features == "fourier"):
		return usagef("--features: %s is for kernels on columns of numbers; use principal", f.features)
	case f.gram && f.features == "nystrom":
		return usagef("--features: the table is the kernel matrix itself; use principal")
	case f.gram && f.train != "" && f.distances:
		return usagef("--distances: needs the kernel value of each row with itself, which the table does not have")
	}
	return nil
}

// gramRows holds rows in the form that the kernel accepts: numbers or rows of a Gram matrix in x, or texts.
type gramRows struct {
	table *dataset.Table
	x     numeric.Points
	texts []string
}

func (r gramRows) len() int { return r.table.Rows() }

// selectRows returns the rows with the given indices.
func (r gramRows) selectRows(rows []int) gramRows {
	selected := gramRows{table: r.table.Select(rows)}
	if r.x.Rows > 0 {
		selected.x = r.x.Take(rows)
	}
	for _, i := range rows {
		if r.texts != nil {
			selected.texts = append(selected.texts, r.texts[i])
		}
	}
	return selected
}

// gramWork computes kernel values and features for one call of mercer gram.
type gramWork struct {
	a      *app
	ctx    context.Context
	dev    backend.Device
	f      *gramCommandFlags
	kernel kernels.Kernel
	free   int64 // free memory, in bytes
}

// checkMemory returns an error if an n×d feature matrix exceeds the free memory.
func (w gramWork) checkMemory(rows gramRows, n, d int) error {
	if required := numeric.Bytes(numeric.Elements(n, d)); required > w.free {
		return fmt.Errorf("%s: %w: the features take %s, but only %s may be used", rows.table.Source, backend.ErrMemory, humanBytes(required), humanBytes(w.free))
	}
	return nil
}

// values returns the kernel matrix of rows with cols, or of rows with themselves if cols is nil.
func (w gramWork) values(rows gramRows, cols *gramRows) (k backend.Host[float64], err error) {
	switch {
	case w.f.gram:
		k = rows.x.Kept(nil).Dense // a copy of the rows of the Gram matrix
		if cols == nil {
			err = gram.Check(k)
		}
	case w.f.objects.kernel != nil:
		p := w.a.newProgress()
		defer p.close()
		if cols == nil {
			k, err = w.f.objects.kernel.Gram(w.ctx, rows.texts, w.a.objectOptions(p))
		} else {
			k, err = w.f.objects.kernel.Cross(w.ctx, rows.texts, cols.texts, w.a.objectOptions(p))
		}
	case cols == nil:
		k, err = backend.GramMatrix(w.ctx, w.dev, w.kernel, rows.x.Matrix())
	default:
		k, err = backend.CrossGramMatrix(w.ctx, w.dev, w.kernel, rows.x.Matrix(), cols.x.Matrix())
	}
	if err != nil {
		return k, err
	}
	for i := range k.Rows {
		for j, v := range k.Row(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return k, fmt.Errorf("%s: the kernel value of row %d with row %d is %v: scale the columns down, or leave --no-standardize out", rows.table.Source, i+1, j+1, v)
			}
		}
	}
	return k, nil
}

// diag returns the kernel value of each row with itself.
func (w gramWork) diag(rows gramRows) ([]float64, error) {
	if w.f.objects.kernel != nil {
		return w.f.objects.kernel.Diag(w.ctx, rows.texts, objects.Options{Threads: w.a.threads})
	}
	return rows.x.Diagonal(w.kernel), nil
}

// distances replaces each kernel value k(x, z), with x in rows and z in train, by the distance in the feature space.
func (w gramWork) distances(k backend.Host[float64], rows, train gramRows) (backend.Host[float64], error) {
	if w.f.train == "" {
		d, err := gram.SquaredDistances(k)
		for i, v := range d.Data {
			d.Data[i] = math.Sqrt(v)
		}
		return d, err
	}
	rowDiag, err := w.diag(rows)
	if err != nil {
		return k, err
	}
	trainDiag, err := w.diag(train)
	if err != nil {
		return k, err
	}
	for i := range k.Rows {
		for j, v := range k.Row(i) {
			k.Row(i)[j] = math.Sqrt(max(0, rowDiag[i]+trainDiag[j]-2*v))
		}
	}
	return k, nil
}

// features applies the feature map of --features, which is learned from train, to the rows.
func (w gramWork) features(rows, train gramRows) (out backend.Host[float64], err error) {
	count := w.f.count
	if n := float64(train.len()); count == 0 && w.f.features != "principal" {
		count = int(10 * math.Sqrt(n))
	}
	switch w.f.features {
	case "exact":
		m, err := kernels.NewFeatureMap(w.kernel, rows.x.Cols)
		if err != nil {
			return out, usagef("--features: %s", oneLine(err))
		}
		if err := w.checkMemory(rows, rows.len(), m.Dim()); err != nil {
			return out, err
		}
		out = backend.NewHost[float64](rows.len(), m.Dim())
		for i := range out.Rows {
			if w.ctx.Err() != nil {
				return out, context.Cause(w.ctx)
			}
			m.Apply(out.Row(i), rows.x.Point(i))
		}
		return out, nil
	case "fourier":
		// Memory is needed for count features of each row, and for count/2 frequencies of length d.
		if err := w.checkMemory(rows, count, rows.len()+(rows.x.Cols+1)/2); err != nil {
			return out, err
		}
		omega, scale, err := solvers.FourierProblem{Kernel: w.kernel, Count: count, Seed: w.f.seed}.Basis(w.ctx, rows.x.Cols)
		if err != nil {
			return out, usagef("--features: %s", oneLine(err))
		}
		out = backend.NewHost[float64](rows.len(), 2*omega.Rows)
		for i := range out.Rows {
			if w.ctx.Err() != nil {
				return out, context.Cause(w.ctx)
			}
			for j := range omega.Rows {
				sin, cos := math.Sincos(rows.x.Product(i, omega.Row(j)))
				out.Row(i)[j], out.Row(i)[omega.Rows+j] = scale*cos, scale*sin
			}
		}
		return out, nil
	case "nystrom":
		landmarks := rand.New(rand.NewPCG(w.f.seed, nystromStream)).Perm(train.len())
		landmarks = landmarks[:min(count, len(landmarks))]
		slices.Sort(landmarks)
		train = train.selectRows(landmarks)
	}
	k, err := w.values(train, nil)
	if err != nil {
		return out, err
	}
	var c gram.Centering
	if w.f.center {
		if c, err = gram.Center(k); err != nil {
			return out, err
		}
	}
	e, err := gram.Decompose(w.ctx, k)
	if err != nil {
		return out, err
	}
	if w.f.features == "principal" && w.f.train == "" {
		out = e.Features()
	} else {
		crossKernel, err := w.values(rows, &train)
		if err == nil && w.f.center {
			err = c.Cross(crossKernel)
		}
		if err != nil {
			return out, err
		}
		if out, err = e.Extend(crossKernel); err != nil {
			return out, err
		}
	}
	if w.f.features == "principal" && count > 0 && count < out.Cols {
		out = out.View(0, 0, out.Rows, count)
	}
	return out, nil
}

// nystromStream selects a separate random stream for the choice of rows.
const nystromStream = 0x6e797374 // "nyst"

// gramReport is the output of `mercer gram`.
type gramReport struct {
	Program     string          `json:"program"` // "gram"
	Kernel      string          `json:"kernel"`
	N           int             `json:"n"`
	D           int             `json:"d"`
	Eigenvalues []float64       `json:"eigenvalues,omitempty"` // in decreasing order
	Tolerance   float64         `json:"tolerance,omitempty"`   // eigenvalues with at most this absolute value may be rounding errors
	Rank        *int            `json:"rank,omitempty"`
	Negative    *int            `json:"negative,omitempty"` // number of eigenvalues below −tolerance
	Dimensions  []gramDimension `json:"effective_dimensions,omitempty"`
	Out         string          `json:"out,omitempty"`
	Columns     int             `json:"columns,omitempty"`
	Seconds     float64         `json:"seconds"`
}

type gramDimension struct {
	Lambda float64 `json:"lambda"`
	Value  float64 `json:"value"`
}

func (a *app) gram(ctx context.Context, f *gramCommandFlags, file string) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	if f.out != "" {
		if err := a.checkOutput(ctx, "--out", f.out, file, f.train, a.input.labels); err != nil {
			return err
		}
	}
	dev, err := a.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	memory := a.newBudget(dev)
	rows, train, enc, err := a.gramTables(f, file, memory)
	if err != nil {
		return err
	}
	cells := int64(rows.len()) * int64(train.len())
	if required := 8 * (4*cells + 4*int64(train.len())*int64(train.len())); f.features != "exact" && f.features != "fourier" && required > memory.limit-memory.dataBytes() {
		return fmt.Errorf("%s: %w: the kernel matrix of %s and %s takes about %s, including the matrices computed from it, but only %s may be used", file, backend.ErrMemory, count(rows.len(), "row"), count(train.len(), "training row"), humanBytes(required), humanBytes(memory.limit))
	}
	w := gramWork{a: a, ctx: ctx, dev: dev, f: f, free: memory.limit - memory.dataBytes()}
	r := gramReport{Program: "gram", N: rows.len(), D: enc.Width()}
	switch {
	case f.objects.kernel != nil:
		r.Kernel, r.D = f.objects.kernel.String(), 1
	case f.kernel == "":
		sigma, err := learners.MedianDistance(ctx, train.x.Matrix(), nil, f.seed)
		if err != nil {
			return err
		}
		w.kernel = kernels.Gaussian{Sigma: sigma}
		r.Kernel = w.kernel.String()
	default:
		if w.kernel, err = kernels.Parse(f.kernel); err != nil {
			return err
		}
		r.Kernel = w.kernel.String()
	}
	var out backend.Host[float64]
	name := "k"
	if f.features != "" {
		name = "phi"
		out, err = w.features(rows, train)
	}
	if err == nil && (f.features == "" || f.eigenvalues) {
		err = w.matrix(&r, &out, rows, train)
		if f.distances {
			name = "d"
		}
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := a.writeMatrix(ctx, f, rows.table, out, name); err != nil {
			return err
		}
		r.Out, r.Columns = f.out, out.Cols
	}
	r.Seconds = time.Since(start).Seconds()
	return a.printJSONOrText(ctx, r, func() string { return r.text(f) })
}

// gramTables reads the tables rows and train. Without --train the two are equal.
func (a *app) gramTables(f *gramCommandFlags, file string, memory *budget) (rows, train gramRows, enc *dataset.Encoder, err error) {
	trainFile := file
	if f.train != "" {
		trainFile = f.train
	}
	if train.table, err = a.table(trainFile, memory); err != nil {
		return rows, train, nil, err
	}
	rules := f.objects.rules(f.rules(""))
	// A target that is not a column of the table stays in rules.Targets, so that Learn returns an error for it.
	rules.Targets = slices.DeleteFunc(slices.Clone(rules.Targets), func(name string) bool { return slices.Contains(train.table.Names(), name) })
	for _, name := range f.targets {
		if !slices.Contains(rules.Targets, name) {
			rules.Drop = append(rules.Drop, name)
		}
	}
	if enc, err = dataset.Learn(train.table, rules); err != nil {
		return rows, train, nil, err
	}
	if err = memory.planEncoding(train.table, enc, ""); err != nil {
		return rows, train, nil, err
	}
	enc = a.input.apply(enc)
	encode := func(r *gramRows) error {
		if f.objects.kernel != nil {
			r.texts, err = enc.Texts(r.table)
		} else {
			x, encodeErr := enc.Encode(r.table)
			if err = encodeErr; err == nil {
				r.x, err = numeric.PointsOf(x)
			}
		}
		return err
	}
	if err = encode(&train); err != nil || f.train == "" {
		return train, train, enc, err
	}
	if rows.table, err = a.table(file, memory); err != nil {
		return rows, train, nil, err
	}
	if err = encode(&rows); err == nil {
		a.reportUnknown(file, "row", enc.Unknown(rows.table))
	}
	return rows, train, enc, err
}

// matrix computes K, converts it to the requested form, and computes its eigenvalues.
func (w gramWork) matrix(r *gramReport, out *backend.Host[float64], rows, train gramRows) error {
	cols := &train
	if w.f.train == "" {
		cols = nil
	}
	k, err := w.values(rows, cols)
	if err == nil && w.f.center {
		trainKernel := k
		if cols != nil {
			trainKernel, err = w.values(train, nil)
		}
		var c gram.Centering
		if err == nil {
			c, err = gram.Center(trainKernel)
		}
		if err == nil && cols != nil {
			err = c.Cross(k)
		}
	}
	if err != nil {
		return err
	}
	if w.f.eigenvalues {
		e, err := gram.Decompose(w.ctx, k)
		if err != nil {
			return err
		}
		rank, negative := e.Rank(), e.Negative()
		r.Eigenvalues, r.Tolerance, r.Rank, r.Negative = e.Values, e.Tolerance, &rank, &negative
		for _, l := range w.f.lambdas {
			r.Dimensions = append(r.Dimensions, gramDimension{l, e.EffectiveDim(l)})
		}
	}
	if w.f.features != "" {
		return nil
	}
	if w.f.distances {
		k, err = w.distances(k, rows, train)
	}
	*out = k
	return err
}

func (a *app) writeMatrix(ctx context.Context, f *gramCommandFlags, t *dataset.Table, m backend.Host[float64], name string) error {
	var targets [][]string
	var names []string
	for _, target := range f.targets {
		if slices.Contains(t.Names(), target) { // a table of rows to predict may have no target
			texts, err := t.Texts(target)
			if err != nil {
				return err
			}
			names, targets = append(names, target), append(targets, texts)
		}
	}
	write := func(to io.Writer) error {
		if strings.EqualFold(filepath.Ext(f.out), ".npy") {
			if m.Stride > m.Cols { // after each row, the memory holds values that are not part of m
				for i := range m.Rows {
					copy(m.Data[i*m.Cols:], m.Row(i))
				}
			}
			return dataset.WriteNPY(to, m.Data[:m.Rows*m.Cols], m.Rows, m.Cols)
		}
		c := csv.NewWriter(to)
		var line []string
		for j := range m.Cols {
			line = append(line, name+strconv.Itoa(j+1))
		}
		c.Write(append(line, names...))
		for i := range m.Rows {
			line = line[:0]
			for _, v := range m.Row(i) {
				line = append(line, exact(v))
			}
			for _, texts := range targets {
				line = append(line, texts[i])
			}
			c.Write(line)
		}
		c.Flush()
		return c.Error()
	}
	return a.commit(ctx, func() error {
		if err := atomicfile.Write(f.out, write); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return nil
	})
}

func (r gramReport) text(f *gramCommandFlags) string {
	rows := [][]string{{"kernel", r.Kernel}, {"data", fmt.Sprintf("%s, %s", count(r.N, "row"), count(r.D, "feature"))}}
	if f.center {
		rows = append(rows, []string{"origin", "the mean of the rows in feature space"})
	}
	if n := len(r.Eigenvalues); n > 0 {
		condition := "holds"
		if *r.Negative > 0 {
			condition = fmt.Sprintf("does not hold: %s below 0", count(*r.Negative, "eigenvalue"))
		}
		rows = append(rows, []string{"largest eigenvalue", fourDigits(r.Eigenvalues[0])}, []string{"smallest eigenvalue", fourDigits(r.Eigenvalues[n-1])},
			[]string{"rounding", "±" + fourDigits(r.Tolerance)}, []string{"rank", strconv.Itoa(*r.Rank)}, []string{"Mercer's condition", condition})
	}
	for _, d := range r.Dimensions {
		rows = append(rows, []string{"effective dimension", fourDigits(d.Value) + " at λ = " + fourDigits(d.Lambda)})
	}
	if r.Out != "" {
		rows = append(rows, []string{"file", fmt.Sprintf("%s, %d × %d", r.Out, r.N, r.Columns)})
	}
	return texttable.Format("ll", append(rows, []string{"time", seconds(r.Seconds)}))
}

package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

// MaxBytes is the largest size of a file that ONNX's format, protobuf, allows.
const MaxBytes = 1<<31 - 1

// Write writes b as an ONNX model whose numbers are float64, or float32 if single is true. The
// graph has the input "x" and the following outputs, where n is the number of rows of x:
//
//	prediction     n×t numbers of a regression or of a novelty detector
//	label          n names of classes
//	decision       n×1 decision values for two classes, n×K for K > 2 classes
//	probabilities  n×K, if the classifier has probabilities
//
// If b has an encoder, the columns of x for numeric columns hold the numbers of the table, and NaN for a missing
// cell; the graph replaces NaN and standardizes the numbers. All other columns of x hold the features that the
// encoder makes, such as 0 or 1 for a category. For a model of a Gram matrix, the columns of x are the kernel
// values with the training rows. The metadata "features" lists the names of the columns as JSON.
//
// Write returns an error for a model of texts or trees. For a row that makes learners.Model.Predict
// return an error, the graph returns NaN or an infinity.
func Write(w io.Writer, b modelfile.Bundle, single bool) (s Signature, err error) {
	content, s, err := encode(b, single)
	if err != nil {
		return s, fmt.Errorf("onnx: %w", err)
	}
	_, err = w.Write(content)
	return s, err
}

// A Signature lists the names of the columns of the input "x" and of the outputs.
type Signature struct{ Columns, Outputs []string }

func encode(b modelfile.Bundle, single bool) (content []byte, s Signature, err error) {
	switch {
	case b.Model == nil:
		return nil, s, errors.New("there is no model")
	case b.Objects != nil:
		return nil, s, fmt.Errorf("the model takes %ss, but ONNX has no operators for its kernel %s", b.Encoder.Raw(), b.Objects.Kernel)
	}
	d, outputs := b.Model.Dims()
	if d == 0 {
		return nil, s, errors.New("the model is not fitted")
	}
	if b.Precomputed() {
		d -= 2
	}
	g := &graph{float: float64Type, count: new(int)}
	if single {
		g.float = float32Type
	}
	columns := columnsOf(b, d)
	g.end(inputField, "x", g.float, columns.comment, 0, d)
	x := sample{g.prepared("x", columns), d}
	c, isClassifier := b.Model.(learners.Classifier)
	if !isClassifier {
		g.output("prediction", g.values(b.Model, x), g.float, "the predicted numbers", 0, outputs)
	} else {
		g.classify(c, x)
	}
	if g.err != nil {
		return nil, s, g.err
	}
	metadata := [][2]string{{"learner", b.Model.Learner()}, {"features", jsonText(columns.names)}}
	if k := learners.PartsOf(b.Model).Kernel; k != nil {
		metadata = append(metadata, [2]string{"kernel", k.String()})
	}
	if isClassifier {
		metadata = append(metadata, [2]string{"classes", jsonText(c.Classes().Names)})
	} else if b.Encoder != nil {
		metadata = append(metadata, [2]string{"targets", jsonText(b.Encoder.TargetNames())})
	}
	content = encodeModel(g.encode(b.Model.Learner()), "A model of "+b.Model.Learner()+" that was fitted by Mercer.", metadata)
	if len(content) > MaxBytes {
		return nil, s, fmt.Errorf("the file would have %d bytes, but ONNX allows at most %d: fit a model with fewer points or features, or export in float32", len(content), MaxBytes)
	}
	return content, Signature{columns.names, g.outputs}, nil
}

func jsonText(list []string) string {
	text, _ := json.Marshal(list) // strings cannot fail to encode
	return string(text)
}

// columns holds the names of the columns of "x", and constants that convert columns to features.
type columns struct {
	names   []string
	comment string
	// A feature is (x − mean)/scale, or 0 if |x − mean| ≤ rounding. If x is NaN, fill replaces it.
	mean, scale, rounding, fill []float64
}

func columnsOf(b modelfile.Bundle, d int) columns {
	c := columns{comment: "one row for each sample; a column for each feature"}
	if b.Encoder == nil || b.Encoder.Gram {
		if b.Precomputed() {
			c.comment = "one row for each sample: its kernel values with the training rows, in their order"
		}
		for j := range d {
			c.names = append(c.names, "x"+strconv.Itoa(j+1))
		}
		return c
	}
	c.comment = `one row for each sample; a number as it is in the table, and 0 or 1 for a category: see the metadata "features"`
	c.names = b.Encoder.FeatureNames()
	c.mean, c.scale, c.rounding, c.fill = make([]float64, d), slices.Repeat([]float64{1}, d), make([]float64, d), slices.Repeat([]float64{math.NaN()}, d)
	col := 0
	for _, in := range b.Encoder.Inputs {
		switch {
		case in.Number != nil:
			c.mean[col], c.scale[col], c.rounding[col] = in.Number.Mean, in.Number.Scale, in.Number.Rounding
			if !b.Encoder.RefuseMissing {
				c.fill[col] = in.Number.Fill
			}
			col++
		case in.Sparse != nil:
			copy(c.scale[col:], in.Sparse.Scale)
			col += in.Sparse.Columns
		case in.TFIDF != nil:
			col += in.TFIDF.Len()
		default:
			col += len(in.Text.Categories)
		}
	}
	return c
}

// prepared converts the columns of x to features.
func (g *graph) prepared(x value, c columns) value {
	differs := func(list []float64, from float64) bool {
		return slices.ContainsFunc(list, func(v float64) bool { return v != from })
	}
	if slices.ContainsFunc(c.fill, func(v float64) bool { return v == v }) {
		x = g.op("Where", g.op("IsNaN", x), g.numbers(c.fill, len(c.fill)), x)
	}
	if differs(c.mean, 0) {
		x = g.op("Sub", x, g.numbers(c.mean, len(c.mean)))
	}
	if differs(c.rounding, 0) {
		// A limit of −1 leaves a column unchanged, because no absolute value is ≤ −1.
		limits := slices.Clone(c.rounding)
		for j, v := range limits {
			if v == 0 {
				limits[j] = -1
			}
		}
		x = g.op("Where", g.op("Greater", g.op("Abs", x), g.numbers(limits, len(limits))), x, g.number(0))
	}
	if differs(c.scale, 1) {
		x = g.op("Div", x, g.numbers(c.scale, len(c.scale)))
	}
	return x
}

// values returns the predictions of a regression, or the decision values of a classifier, n×t.
func (g *graph) values(m learners.Model, x sample) value {
	switch m := m.(type) {
	case *learners.ClassifyModel:
		return g.values(m.Regression(), x)
	case *learners.FourierRidgeModel:
		return g.waves(m, x)
	}
	parts := learners.PartsOf(m)
	if parts.Coef == nil && parts.Kernel != nil {
		return g.memberships(m, x)
	}
	if parts.Coef == nil {
		g.fail(fmt.Errorf("ONNX cannot express a model of %s", m.Learner()))
		return x.rows
	}
	return g.machines(parts, x)
}

// machines returns Σ_i k(x_i, x) a_i + b for each output or pair of classes, or xW + b without a kernel.
func (g *graph) machines(parts learners.Parts, x sample) value {
	if parts.Kernel == nil {
		return g.affine(x.rows, parts.Coef, parts.Intercept)
	}
	if features, w := parts.Weights(); w != nil { // use the weights of sparse points, because the points would be a large dense constant
		index := make([]int64, len(features))
		for i, j := range features {
			index[i] = int64(j)
		}
		columns := g.node("Gather", []attribute{intAttribute("axis", 1)}, x.rows, g.integers(index...))
		return g.affine(columns, w, parts.Intercept)
	}
	if m, d := parts.Points.Dims(); float64(m)*float64(d) > MaxBytes/4 {
		g.fail(fmt.Errorf("the model has %d points of %d features, but ONNX allows at most %d bytes: fit a model with fewer points or features", m, d, MaxBytes))
		return x.rows
	}
	return g.affine(g.gram(parts.Kernel, x, densePoints(parts.Points)), parts.Machines(), parts.Intercept)
}

// affine returns xW + b.
func (g *graph) affine(x value, w *mat.Dense, b []float64) value {
	return g.product(x, g.matrix(w), false, g.numbers(b, len(b)))
}

func (g *graph) matrix(m *mat.Dense) value {
	rows, cols := m.Dims()
	return g.numbers(slices.Concat(gonumRows(m)...), rows, cols)
}

func gonumRows(m *mat.Dense) [][]float64 {
	rows, _ := m.Dims()
	list := make([][]float64, rows)
	for i := range list {
		list[i] = m.RawRowView(i)
	}
	return list
}

func densePoints(x mat.Matrix) backend.Host[float64] {
	h, err := gonum.Host("points", mat.DenseCopyOf(x))
	if err != nil {
		panic(err) // cannot occur, because the points of a model are finite
	}
	return h
}

// waves returns cos(xωᵀ)β + sin(xωᵀ)β′ + b for the frequencies ω, the coefficients β and β′, and the intercept b.
func (g *graph) waves(m *learners.FourierRidgeModel, x sample) value {
	cosines, sines := m.Coef()
	angles := g.product(x.rows, g.matrix(m.Frequencies()), true)
	return g.op("Add", g.affine(g.op("Cos", angles), cosines, m.Intercept()), g.product(g.op("Sin", angles), g.matrix(sines), false))
}

func (g *graph) classify(c learners.Classifier, x sample) {
	classes := c.Classes()
	var decision, probabilities, index value
	switch m := c.(type) {
	case *learners.SVCModel:
		pairs := g.machines(learners.PartsOf(m), x)
		decision = g.votes(pairs, classes.Len())
		index = g.decide(classes, decision)
		if s := m.State().Arrays["sigmoid"]; s.Rows > 0 {
			probabilities = g.coupled(pairs, s, classes.Len())
			index = g.mostProbable(probabilities, index)
		}
	case *learners.VotedModel:
		decision = g.votedValues(m, x)
	case *learners.KernelKNNClassModel, *learners.KernelVoteClassModel:
		sums := g.memberships(c, x)
		decision, probabilities = sums, g.op("Div", sums, g.sum(sums, 1, true))
		if classes.Len() == 2 {
			decision = g.product(sums, g.numbers([]float64{-1, 1}, 2, 1), false)
		}
	default:
		decision = g.values(c, x)
		if _, ok := learners.As[learners.Prober](c); ok {
			probabilities = g.probabilities(decision, classes.Len(), c.Learner() == "rvc")
		}
	}
	if index == "" {
		index = g.decide(classes, decision)
	}
	g.output("label", g.op("Gather", g.texts(classes.Names), index), stringType, "the predicted class", 0)
	g.output("decision", decision, g.float, "the decision values", 0, classes.Columns())
	if probabilities != "" {
		g.output("probabilities", probabilities, g.float, "the probabilities of the classes", 0, classes.Len())
	}
}

// decide returns the n indices of the classes that decision values imply: see learners.Classes.Decide.
func (g *graph) decide(c learners.Classes, decision value) value {
	if c.Len() > 2 {
		return g.node("ArgMax", []attribute{intAttribute("axis", 1), intAttribute("keepdims", 0)}, decision)
	}
	index := g.node("Cast", []attribute{intAttribute("to", int64Type)}, g.positive(c, decision))
	return g.op("Squeeze", index, g.integers(1))
}

// positive returns, for each value of f, whether it predicts the second of two classes.
func (g *graph) positive(c learners.Classes, f value) value {
	if c.ZeroIsPositive {
		return g.op("Not", g.op("Less", f, g.number(0)))
	}
	return g.op("Greater", f, g.number(0))
}

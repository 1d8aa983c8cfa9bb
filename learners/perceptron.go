package learners

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/online"
	"github.com/mercer-go/mercer/kernels"
)

const perceptronName = "perceptron"

func init() {
	for name, d := range map[string]struct{ formula, source string }{
		perceptronName: {"on a mistake w ← w + rate y x, b ← b + rate y R², R = max ‖x‖; K classes: w_y ← w_y + x, w_ŷ ← w_ŷ − x; two separable classes take at most (2R/γ)² mistakes, without an intercept (R/γ)² (Novikoff 1962); the report has this bound for the margin γ that was found",
			"Rosenblatt (1958), The perceptron; Cristianini and Shawe-Taylor (2000), table 2.1"},
		"averaged-perceptron": {"the perceptron's w and b averaged over all steps",
			"Freund and Schapire (1999), Large margin classification using the perceptron algorithm; Collins (2002)"},
		"voted-perceptron": {"sgn Σ_k c_k sgn(w_kᵀx + b_k) over all hypotheses w_k of the perceptron; c_k counts the samples that w_k classified correctly, plus 1 for each w_k but the first, w = 0",
			"Freund and Schapire (1999), Large margin classification using the perceptron algorithm"},
	} {
		register(Description{
			Name: name, Grid: "epochs=1,3,10,30,100", traces: true, Sparse: true, Tasks: []Task{Classification}, Formula: d.formula, Source: d.source,
			model: func(State) (fielded, error) {
				if name == "voted-perceptron" {
					return &VotedModel{}, nil
				}
				return &PerceptronModel{}, nil
			},
		}, func(l *Perceptron) []Parameter {
			l.Kind = perceptronKinds[name]
			return l.parameters()
		}, Perceptron.Fit)
	}
}

func (l *Perceptron) parameters() []Parameter {
	list := append([]Parameter{
		intercept(&l.NoIntercept, "learn the intercept b"),
		number("rate", &l.Rate, "1", positive, "step η; without b and batches it does not change the predictions"),
	}, loopParameters(&l.ZeroIsPositive, &l.Epochs, "100", &l.Batch, &l.NoShuffle, &l.Replace, &l.Seed)...)
	switch l.Kind {
	case LastPerceptron:
		return append(list, startNumber(&l.Start))
	case AveragedPerceptron:
		return append(list, startNumber(&l.Start), averageFrom(&l.AverageFrom))
	}
	return list
}

func loopParameters(zeroIsPositive *bool, epochs *int, defaultEpochs string, batch *int, noShuffle, replace *bool, seed *uint64) []Parameter {
	return []Parameter{
		twoChoices("zero", zeroIsPositive, "-1", "+1", "sgn(0) for two classes, in training and in predictions"),
		intParam("epochs", epochs, defaultEpochs, atLeast(0), "maximum number of passes over the samples; training stops after a pass without mistakes. 0: 100000").zeroAs(maxEpochs),
		intParam("batch", batch, "1", atLeast(0), "number of samples that are classified by the same hypothesis, and whose changes are averaged; 0: all").zeroAs(math.MaxInt),
		inverted("shuffle", noShuffle, "classify the samples in a new random order in each epoch; otherwise in their order"),
		boolParam("replacement", replace, "false", "draw the samples with replacement; after n draws without a mistake, all samples are classified in order").onlyWith("shuffle", "true"),
		seedNumber(seed),
	}
}

func startNumber(field *float64) Parameter {
	return number("bias", field, "0", anyNumber, "b at the start, which remains b if b is not learned; for two classes")
}

func averageFrom(field *int) Parameter {
	return intParam("average-from", field, "0", atLeast(0), "number of epochs before averaging starts")
}

const maxEpochs = 100000

// PerceptronKind selects which hypotheses of the training make the predictions.
type PerceptronKind string

const (
	LastPerceptron     PerceptronKind = ""         // the last hypothesis, as in Rosenblatt's perceptron
	AveragedPerceptron PerceptronKind = "averaged" // the average of all hypotheses over all steps, including steps without a mistake
	VotedPerceptron    PerceptronKind = "voted"    // all hypotheses; each has one vote plus one for each sample that it classified correctly
)

var perceptronKinds = map[string]PerceptronKind{
	perceptronName: LastPerceptron, "averaged-perceptron": AveragedPerceptron, "voted-perceptron": VotedPerceptron,
}

func (k PerceptronKind) name() string {
	if k == LastPerceptron {
		return perceptronName
	}
	return string(k) + "-perceptron"
}

// Perceptron learns f(x) = wᵀx + b from mistakes. For two classes, y_i = ±1, a mistake is a sample with sgn f(x_i) ≠
// y_i. It changes the model by
//
//	w ← w + η y_i x_i,  b ← b + η y_i R²,  R = max_i ‖x_i‖
//
// For K > 2 classes, each class has its own w and b, and the first class with the largest f is predicted. A mistake
// adds η x_i and η R² to w and b of the observed class, and subtracts them from w and b of the predicted class. With
// Batch, all samples of a batch are evaluated with the same w, which then changes by the mean of their changes. The
// weight of a sample multiplies its change; a sample of weight 0 is ignored.
//
// Training stops after an epoch without mistakes. On separable samples this happens after at most (2R/γ)² mistakes, or
// (R/γ)² without an intercept, where γ is the margin of the best w of length 1 (Novikoff, 1962). These bounds are
// multiplied by the batch size and by the ratio of the largest weight to the smallest. If the samples are not
// separable, the fit ends after Epochs epochs, and the averaged or voted kind predicts better than the last w.
//
// An epoch takes O(n d C) operations for n samples, d features and C columns of w: one column for two classes, and
// otherwise K columns. Sources: Rosenblatt (1958); Freund and Schapire (1999).
type Perceptron struct {
	Kind        PerceptronKind
	NoIntercept bool    // keep b at Start; by default b is learned
	Rate        float64 // η > 0; 0 means 1
	Epochs      int     // maximum number of epochs; 0 means 100
	Batch       int     // number of samples in a batch; 0 means 1, and n or more means all samples
	NoShuffle   bool    // keep the order of x in each epoch; by default each epoch has a new random order
	Replace     bool    // draw n samples with replacement in each epoch; a last epoch in order verifies that there are no mistakes
	Seed        uint64  // seed of the order

	ZeroIsPositive bool // sgn(0) = +1 instead of −1, in training and in predictions

	Start       float64    // b at the start, for two classes; with NoIntercept b keeps this value
	Coef        mat.Matrix // w at the start, d×C; nil means 0
	AverageFrom int        // number of epochs before the averaged kind starts to average; if the fit has no more epochs, the model has the last w
}

// Fit fits the n×d samples x to the n×1 labels y. The model is a
// *PerceptronModel, or a *VotedModel for VotedPerceptron.
func (l Perceptron) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m Classifier, err error) {
	defer wrapError(l.Kind.name(), l.parameters(), &m, &err)
	switch {
	case l.Kind != LastPerceptron && l.Kind != AveragedPerceptron && l.Kind != VotedPerceptron:
		return nil, fmt.Errorf("no kind is called %q; the kinds are %q, %q and %q", l.Kind, LastPerceptron, AveragedPerceptron, VotedPerceptron)
	case l.AverageFrom != 0 && l.Kind != AveragedPerceptron:
		return nil, fmt.Errorf("average-from must be 0 except for the averaged kind, got %d", l.AverageFrom)
	case l.Kind == VotedPerceptron && (l.Start != 0 || l.Coef != nil):
		return nil, errors.New("the voted kind always starts with w = 0 and b = 0: give no start values")
	}
	f := newFitting(ctx, dev, l.Kind.name(), l.parameters(), x, y, o)
	run, classes := l.loop(f)
	if f.err != nil {
		return nil, f.err
	}
	square := run.Square() // R²
	if !l.NoIntercept {
		run.Bias = square
	}
	var start backend.Host[float64]
	if l.Coef != nil {
		if start, err = gonum.Host("coef", l.Coef); err != nil {
			return nil, err
		}
		if start.Rows != run.X.Cols || start.Cols != run.Outputs {
			return nil, fmt.Errorf("coef must be %d×%d, got %d×%d", run.X.Cols, run.Outputs, start.Rows, start.Cols)
		}
		if err := checkFinite("coef", start); err != nil {
			return nil, err
		}
	}
	points, features := run.X, []int32(nil)
	if l.Coef == nil {
		run.X, features = points.Used()
	}
	t := f.task(run.X.Rows, run.LinearBytes)
	if f.err != nil {
		return nil, f.err
	}
	w, b, err := run.Linear(t, start)
	if err != nil {
		return nil, err
	}
	w = numeric.Restored(w, features, points.Cols)
	last := &PerceptronModel{linearClassifier{linear{model{learner: l.Kind.name()}, w, b}, classified{classes}}}
	if err := diverged(last); err != nil {
		return nil, message.Errorf("the weights overflow: {lower $rate|scale the features down}")
	}
	var samples mat.Matrix
	if samples = points.Sparse; points.Sparse == nil {
		samples = denseOf(points.Dense)
	}
	values, err := last.predictor().run(ctx, dev, samples)
	if err != nil {
		return nil, err
	}
	norm := 0.0
	for _, v := range w.Data {
		norm = math.Hypot(norm, v)
	}
	last.facts = perceptronFacts(run, dense(values), norm, math.Sqrt(square))
	if l.Kind == VotedPerceptron {
		return newVoted(l.Kind.name(), kernels.Linear{}, points, classes, run, last.facts), nil
	}
	return last, nil
}

// loop checks the samples and prepares the loop of all perceptrons over the samples of weight > 0.
func (l *Perceptron) loop(f *fitting) (*online.Loop, Classes) {
	if f.o.Weights != nil {
		f.y, f.points, f.o.Weights = f.keptRows(f.y), f.keptPoints(), selectPositive(f.o.Weights, f.o.Weights)
	}
	classes, index := f.classes()
	classes.ZeroIsPositive = l.ZeroIsPositive
	if l.Start != 0 && classes.Columns() > 1 {
		f.fail(fmt.Errorf("bias must be 0 for more than two classes, because adding the same number to all decision values changes no prediction; got %v", l.Start))
	}
	return &online.Loop{
		X: f.points, Outputs: classes.Columns(), Class: index, Weights: f.o.Weights,
		Rate: l.Rate, Batch: min(max(l.Batch, 1), f.points.Rows), Epochs: l.Epochs, Shuffle: !l.NoShuffle, Replace: l.Replace, Seed: l.Seed,
		Average: l.Kind == AveragedPerceptron, From: l.AverageFrom * f.points.Rows, Remember: l.Kind == VotedPerceptron,
		Start: l.Start, Started: l.Start != 0 || l.Coef != nil, ZeroIsPositive: l.ZeroIsPositive,
	}, classes
}

// perceptronFacts returns the facts of the fit of a perceptron that has the decision values f at
// its samples. The argument norm is ‖w‖, and radius is the largest ‖φ(x)‖.
func perceptronFacts(l *online.Loop, f backend.Host[float64], norm, radius float64) []Fact {
	functional, criterion := l.Margin(f)
	facts := []Fact{{"epochs", l.Used}, {"mistakes", l.Mistakes}, {"last epoch without mistakes", l.Clean}, {"criterion", criterion}}
	if l.Epochs == maxEpochs && !l.Clean {
		facts = append(facts, Fact{"warning", fmt.Sprintf("there were mistakes in each of %d epochs: the samples may not be separable", l.Used)})
	}
	if norm == 0 {
		return facts
	}
	functional += 0 // −0 becomes 0
	geometric := functional / norm
	facts = append(facts, Fact{squaredNorm, norm * norm}, Fact{"functional margin", functional}, Fact{"geometric margin", geometric}, Fact{"largest norm", radius})
	if l.Outputs == 1 && geometric > 0 && !l.Started {
		ratio := radius / geometric
		if l.Bias > 0 {
			ratio *= 2
		}
		facts = append(facts, Fact{"novikoff bound", ratio * ratio * l.Slack()})
	}
	return facts
}

// PerceptronModel is a fitted Perceptron, with the last or the averaged w. Its facts are epochs,
// mistakes, margins and Novikoff's bound.
type PerceptronModel struct{ linearClassifier }

// State implements Model. Its arrays are "coef", d×C, "intercept", 1×C, and "labels".
func (m *PerceptronModel) State() State { return stateOf(m) }

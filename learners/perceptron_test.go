package learners_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

func TestPerceptron(t *testing.T) {
	for name, l := range map[string]learners.Perceptron{
		"perceptron":          {NoShuffle: true},
		"perceptron/batch":    {Batch: 4, Rate: 0.5, Seed: 3},
		"averaged-perceptron": {Kind: learners.AveragedPerceptron, NoIntercept: true, NoShuffle: true},
		"voted-perceptron":    {Kind: learners.VotedPerceptron, Epochs: 20, NoShuffle: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := learnertest.Suite{
				Learner:  map[learners.PerceptronKind]string{"": "perceptron", "averaged": "averaged-perceptron", "voted": "voted-perceptron"}[l.Kind],
				Task:     learners.Classification,
				Fit:      fitter(l.Fit),
				Unfitted: []learners.Model{&learners.PerceptronModel{}},
				Steps:    true,
			}
			if l.Kind == learners.VotedPerceptron {
				s.Unfitted = []learners.Model{&learners.VotedModel{}}
			}
			learnertest.Run(t, s)
		})
	}
}

// rosenblatt is the perceptron of the textbooks. It returns the last w, the average of w over all steps, all
// values of w with their votes, and the number of mistakes. The bias is the last row of w.
func rosenblatt(x, y *mat.Dense, classes, epochs int, bias bool) (w, average *mat.Dense, votes []float64, hypotheses []*mat.Dense, mistakes int) {
	n, d := x.Dims()
	constant := 0.0
	if bias {
		for i := range n {
			constant = max(constant, mat.Dot(x.RowView(i), x.RowView(i)))
		}
	}
	cols := classes
	if classes == 2 {
		cols = 1
	}
	w, average = mat.NewDense(d+1, cols, nil), mat.NewDense(d+1, cols, nil)
	hypotheses, votes = []*mat.Dense{mat.DenseCopyOf(w)}, []float64{0}
	steps := 0.0
	for range epochs {
		previous := mistakes
		for i := range n {
			f := make([]float64, cols)
			for c := range f {
				f[c] = mat.Dot(x.RowView(i), w.ColView(c).(*mat.VecDense).SliceVec(0, d)) + w.At(d, c)
			}
			add := func(c int, v float64) {
				for p := range d {
					w.Set(p, c, w.At(p, c)+v*x.At(i, p))
				}
				w.Set(d, c, w.At(d, c)+v*constant)
			}
			label, mistaken := int(y.At(i, 0)), false
			if cols == 1 {
				if sign := 2*float64(label) - 1; (f[0] > 0) != (sign > 0) {
					add(0, sign)
					mistaken = true
				}
			} else if predicted := slices.Index(f, slices.Max(f)); predicted != label {
				add(label, 1)
				add(predicted, -1)
				mistaken = true
			}
			if mistaken { // Freund and Schapire (1999), figure 1
				mistakes++
				hypotheses, votes = append(hypotheses, mat.DenseCopyOf(w)), append(votes, 1)
			} else {
				votes[len(votes)-1]++
			}
			steps++
			average.Add(average, w)
		}
		if mistakes == previous {
			break
		}
	}
	average.Scale(1/steps, average)
	return w, average, votes, hypotheses, mistakes
}

// wholeNumbers returns samples of small integers, whose sums are exact in any order.
func wholeNumbers(n, d, classes int, seed uint64) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sum := 0
		for p := range d {
			v := r.IntN(15) - 7
			x.Set(i, p, float64(v))
			sum += (p + 1) * v
		}
		noise := r.IntN(9) - 4
		y.Set(i, 0, float64(min(max((sum+noise+20)*classes/40, 0), classes-1)))
	}
	return x, y
}

// TestPerceptronIsRosenblatts checks that the perceptron, which computes inner products for blocks
// of samples, gives the result of rosenblatt.
func TestPerceptronIsRosenblatts(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, classes := range []int{2, 5} {
			for _, bias := range []bool{false, true} {
				t.Logf("seed 7, %d classes, bias %t", classes, bias)
				x, y := wholeNumbers(201, 4, classes, 7)
				const epochs = 6
				w, average, votes, hypotheses, mistakes := rosenblatt(x, y, classes, epochs, bias)
				if mistakes < 20 {
					t.Fatalf("only %d mistakes: the test shows nothing", mistakes)
				}
				l := learners.Perceptron{NoIntercept: !bias, Epochs: epochs, NoShuffle: true}
				last, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				m := last.(*learners.PerceptronModel)
				rows, cols := w.Dims()
				for c := range cols {
					for p := range rows - 1 {
						checkClose(t, "w", m.Coef().At(p, c), w.At(p, c), 0)
					}
					checkClose(t, "b", m.Intercept()[c], w.At(rows-1, c), 0)
				}
				if got := fact(t, m, "mistakes"); got != mistakes {
					t.Errorf("%v mistakes, want %d", got, mistakes)
				}
				l.Kind = learners.AveragedPerceptron
				averaged, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				m = averaged.(*learners.PerceptronModel)
				// The bound covers one division of each sum of integers, and the weighted sum of the changes of w.
				bound := 8 * 0x1p-52 * mat.Max(w) * float64(rows)
				for c := range cols {
					for p := range rows - 1 {
						checkClose(t, "averaged w", m.Coef().At(p, c), average.At(p, c), bound)
					}
					checkClose(t, "averaged b", m.Intercept()[c], average.At(rows-1, c), bound*float64(mistakes))
				}
				testVotes(t, dev, l, x, y, votes, hypotheses)
			}
		}
	})
}

// testVotes compares the votes that a model returns with votes that are counted over all hypotheses.
func testVotes(t *testing.T, dev backend.Device, l learners.Perceptron, x, y *mat.Dense, votes []float64, hypotheses []*mat.Dense) {
	t.Helper()
	l.Kind = learners.VotedPerceptron
	voted, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := voted.Decision(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	n, d := x.Dims()
	_, cols := f.Dims()
	total := 0.0
	for _, v := range votes {
		total += v
	}
	for i := range n {
		want := make([]float64, cols)
		for k, w := range hypotheses {
			g := make([]float64, cols)
			for c := range g {
				g[c] = mat.Dot(x.RowView(i), w.ColView(c).(*mat.VecDense).SliceVec(0, d)) + w.At(d, c)
			}
			switch {
			case cols > 1:
				want[slices.Index(g, slices.Max(g))] += votes[k]
			case g[0] > 0:
				want[0] += votes[k]
			default:
				want[0] -= votes[k]
			}
		}
		for c := range want {
			// The bound is the rounding error of the sum of the votes of all hypotheses.
			checkClose(t, "votes", f.At(i, c), want[c]/total, float64(len(hypotheses))*0x1p-52)
		}
	}
}

// TestVotesOfTwoPoints checks votes computed by hand by the algorithm of Freund and Schapire (1999), figure 1, for
// x = 1 of class +1, x = −1 of class −1, and a third sample x = 1 of class −1.
func TestVotesOfTwoPoints(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x := mat.NewDense(3, 1, []float64{1, -1, 1})
		y := mat.NewDense(3, 1, []float64{1, -1, -1})
		for n, want := range map[int][]float64{2: {1, -1}, 3: {1.0 / 3, -1, 1.0 / 3}} {
			for name, fit := range map[string]func(x, y mat.Matrix) (learners.Classifier, error){
				"linear": func(x, y mat.Matrix) (learners.Classifier, error) {
					return learners.Perceptron{Kind: learners.VotedPerceptron, NoIntercept: true, Epochs: 1, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				},
				"kernel": func(x, y mat.Matrix) (learners.Classifier, error) {
					return learners.KernelPerceptron{Kernel: kernels.Linear{}, Kind: learners.VotedPerceptron, Epochs: 1, NoIntercept: true, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				},
			} {
				m, err := fit(x.Slice(0, n, 0, 1), y.Slice(0, n, 0, 1))
				if err != nil {
					t.Fatal(err)
				}
				f, err := m.Decision(t.Context(), dev, x.Slice(0, n, 0, 1))
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range want {
					checkClose(t, name, f.At(i, 0), v, 4*0x1p-52) // sums of at most three fractions
				}
			}
		}
	})
}

// fact returns the value of the fact of a model with the given name.
func fact(t *testing.T, m learners.Model, name string) any {
	t.Helper()
	for _, f := range m.(learners.Describer).Facts() {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("there is no fact %q among %v", name, m.(learners.Describer).Facts())
	return nil
}

// TestNovikoff checks Novikoff's bound: for separable samples in any order, the number of mistakes
// is at most (R/γ)², or (2R/γ)² with an intercept, where γ is the margin of the fitted hyperplane.
func TestNovikoff(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, y := mat.NewDense(80, 3, nil), mat.NewDense(80, 1, nil)
		offset := float64(seed%2) * 0.7
		for i := range 80 {
			for f := 0.0; f < 0.2 && f > -0.2; {
				for p := range 3 {
					x.Set(i, p, r.NormFloat64())
				}
				f = x.At(i, 0) - 2*x.At(i, 1) + 0.5*x.At(i, 2) - offset
				y.Set(i, 0, -1)
				if f > 0 {
					y.Set(i, 0, 1)
				}
			}
		}
		m, err := learners.Perceptron{NoIntercept: offset == 0, Seed: seed, Epochs: 10000}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		mistakes, bound := fact(t, m, "mistakes").(int), fact(t, m, "novikoff bound").(float64)
		if separated := fact(t, m, "last epoch without mistakes").(bool); !separated || float64(mistakes) > bound {
			t.Errorf("seed %d: separated %t, %d mistakes, at most %v are possible", seed, separated, mistakes, bound)
		}
		score, err := validate.ScoreClassification(m.Classes(), nil, y, validate.Outcome{Values: labels(t, dev, m, x)}, nil)
		if err != nil || *score.Accuracy != 1 {
			t.Errorf("seed %d: accuracy %v, %v", seed, score.Accuracy, err)
		}
	}
}

func labels(t *testing.T, dev backend.Device, m learners.Model, x mat.Matrix) *mat.Dense {
	t.Helper()
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPerceptronAgainstScikitLearn compares w with the w of scikit-learn. Both programs take the same steps for
// two classes, without a bias and shuffling, if the first sample is of the second class.
func TestPerceptronAgainstScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := wholeNumbers(150, 5, 2, 17)
	t.Log("seed 17")
	for i := range 150 { // ensures that no product wᵀx is 0 after the first sample
		x.Set(i, 0, x.At(i, 0)+1.0/1024+float64(i)/4096)
	}
	if y.At(0, 0) == 0 {
		for i := range 150 {
			y.Set(i, 0, 1-y.At(i, 0))
		}
	}
	var want struct {
		Last, Average []float64
	}
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y)}, `
from sklearn.linear_model import Perceptron, SGDClassifier
same = dict(fit_intercept=False, shuffle=False, tol=None, max_iter=7)
out["Last"] = Perceptron(**same).fit(a["x"], a["y"]).coef_[0]
out["Average"] = SGDClassifier(loss="perceptron", penalty=None, learning_rate="constant", eta0=1, average=True, **same).fit(a["x"], a["y"]).coef_[0]
`, &want)
	for kind, coef := range map[learners.PerceptronKind][]float64{learners.LastPerceptron: want.Last, learners.AveragedPerceptron: want.Average} {
		m, err := learners.Perceptron{Kind: kind, NoIntercept: true, Epochs: 7, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for p, w := range coef {
			// The bound is the rounding error of 7·150 sums of numbers up to 8.
			checkClose(t, "w "+string(kind), m.(*learners.PerceptronModel).Coef().At(p, 0), w, 7*150*0x1p-52*7*150*8)
		}
	}
}

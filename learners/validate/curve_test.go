package validate_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// normals returns n standard normal samples of d columns, with the targets y = 2·(first column) + 1
// + noise·N(0, 1).
func normals(t *testing.T, n, d int, noise float64) validate.Samples {
	rng := rand.New(rand.NewPCG(5, 5))
	t.Log("seed 5, 5")
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = rng.NormFloat64()
		}
		y.Data[i] = 2*x.Row(i)[0] + 1 + noise*rng.NormFloat64()
	}
	return validate.Samples{X: x, Y: mat.NewDense(n, 1, y.Data)}
}

// TestLearningCurve compares the point of the curve for all samples with the errors of k-fold cross-validation,
// and checks that each model is fitted once.
func TestLearningCurve(t *testing.T) {
	const n, folds = 20, 4
	r := validate.Runner{Data: normals(t, n, 1, 0.1), Devices: []backend.Device{backendtest.Device(t, "ref")}}
	fit := fitter(t, "ridge", map[string]string{"lambda": "0.5"})
	fits := 0
	points, err := r.LearningCurve(t.Context(), fit, folds, []float64{0.01, 0.5, 1}, 7, func(learners.Model, time.Duration) { fits++ })
	if err != nil {
		t.Fatal(err)
	}
	if fits != 3*folds || len(points) != 3 || points[0].N != 1 || points[1].N != 8 || points[2].N != 15 {
		t.Fatalf("%d fits, points %+v", fits, points)
	}
	// A model that was fitted to one sample predicts its target.
	if points[0].TrainError.Mean > 10*0x1p-52 {
		t.Errorf("one sample is learned with an error of %v", points[0].TrainError.Mean)
	}
	splits, err := validate.KFold(n, folds, nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got    validate.Summary
		splits validate.Splits
	}{
		"held":    {points[2].TestError, splits},
		"trained": {points[2].TrainError, func(i int) (train, test []int) { train, _ = splits(i); return train, train }},
	} {
		scores, err := r.Scores(t.Context(), fit, folds, c.splits, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for _, s := range scores {
			want = append(want, s.Error())
		}
		// The tolerance allows for sums of n terms of size ≤ 10 in another order.
		checkClose(t, name+": mean", c.got.Mean, validate.NewSummary(want).Mean, 100*n*0x1p-52)
		checkClose(t, name+": deviation", c.got.SD, validate.NewSummary(want).SD, 100*n*0x1p-52)
	}
	for _, fractions := range [][]float64{{0}, {1.5}, {math.NaN()}} {
		if _, err := r.LearningCurve(t.Context(), fit, folds, fractions, 7, nil); err == nil {
			t.Errorf("fractions %v are accepted", fractions)
		}
	}
}

// TestImportance compares the importances for the model y = 2x + 1 with closed forms: a permutation π of the first
// column reduces R² to 1 − Σ(x_i − x_π(i))²/Σ(x_i − x̄)², and one of the second column does not change it.
func TestImportance(t *testing.T) {
	const n = 30
	dev, s := backendtest.Device(t, "ref"), normals(t, n, 2, 0)
	x, y := mat.DenseCopyOf(s.X), s.Y
	m, err := fitter(t, "least-squares", nil)(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	p := validate.ImportanceParams{Repeats: 3, Seed: 9, Options: learners.Options{Progress: func(q solvers.Progress) { last = q.Fraction }}}
	drops, err := validate.Importance(t.Context(), dev, m, x, y, p)
	if err != nil {
		t.Fatal(err)
	}
	p.Widths = []int{2}
	together, err := validate.Importance(t.Context(), dev, m, x, y, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(drops) != 2 || len(together) != 1 || last != 1 {
		t.Fatalf("%v %v, progress %v", drops, together, last)
	}
	mean, sumSquares := mat.Sum(x.ColView(0))/n, 0.0
	for i := range n {
		sumSquares += (x.At(i, 0) - mean) * (x.At(i, 0) - mean)
	}
	rng := rand.New(rand.NewPCG(9, 0))
	for r := range 3 {
		want := 0.0
		for i, from := range rng.Perm(n) {
			d := x.At(i, 0) - x.At(from, 0)
			want += d * d / sumSquares
		}
		// The tolerance allows for the rounding errors of the fitted weights 2 and 0.
		const bound = 1000 * n * 0x1p-52
		checkClose(t, "first column", drops[0][r], want, bound)
		checkClose(t, "second column", drops[1][r], 0, bound)
		checkClose(t, "both together", together[0][r], want, bound)
	}
}

// TestSparseSamplesHaveTheScoresOfDenseSamples checks that sparse and dense samples give scores with the same
// bits.
func TestSparseSamplesHaveTheScoresOfDenseSamples(t *testing.T) {
	const n, d = 40, 6
	dense := normals(t, n, d, 1)
	x := dense.X.(backend.Host[float64])
	for i := range x.Data {
		if i%3 > 0 {
			x.Data[i] = 0
		}
	}
	sparse := dense
	sparse.X = x.CSR()
	dev := backendtest.Device(t, "ref")
	fit := fitter(t, "kernel-knn", map[string]string{"k": "2", "kernel": "gaussian(sigma=2)"})
	y := dense.Y
	type results struct {
		points []validate.CurvePoint
		drops  [][]float64
	}
	compute := func(s validate.Samples) (f results) {
		part, err := s.Split([]int{0}, nil)
		if err != nil || part.Test.X != nil || reflect.TypeOf(part.Train.X) != reflect.TypeOf(s.X) {
			t.Fatalf("a part of %T: %T, %v, %v", s.X, part.Train.X, part.Test.X, err)
		}
		r := validate.Runner{Data: s, Devices: []backend.Device{dev}}
		if f.points, err = r.LearningCurve(t.Context(), fit, 4, []float64{0.5, 1}, 7, nil); err != nil {
			t.Fatal(err)
		}
		m, err := fit(t.Context(), dev, s.X, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := validate.ImportanceParams{Repeats: 2, Seed: 3, Widths: []int{1, 2, 3}}
		if f.drops, err = validate.Importance(t.Context(), dev, m, s.X, y, p); err != nil {
			t.Fatal(err)
		}
		return f
	}
	if got, want := compute(sparse), compute(dense); !reflect.DeepEqual(got, want) {
		t.Errorf("sparse %+v, dense %+v", got, want)
	}
}

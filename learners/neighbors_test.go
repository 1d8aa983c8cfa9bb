package learners_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

func TestKernelKNN(t *testing.T) {
	l := learners.KernelKNN{Kernel: kernels.Gaussian{Sigma: 2}, K: 3}
	t.Run("regression", func(t *testing.T) {
		learnertest.Run(t, learnertest.Suite{
			Learner: "kernel-knn", Fit: fitter(l.Fit), Condition: 1,
			Unfitted: []learners.Model{&learners.KernelKNNModel{}},
		})
	})
	t.Run("classification", func(t *testing.T) {
		learnertest.Run(t, learnertest.Suite{
			Learner: "kernel-knn", Task: learners.Classification, Fit: fitter(l.FitClasses), Condition: 1,
			Unfitted: []learners.Model{&learners.KernelKNNClassModel{}},
		})
	})
}

func TestKernelVote(t *testing.T) {
	l := learners.KernelVote{Kernel: kernels.Gaussian{Sigma: 0.5}}
	t.Run("regression", func(t *testing.T) {
		learnertest.Run(t, learnertest.Suite{
			Learner: "kernel-vote", Fit: fitter(l.Fit), Condition: 1,
			Unfitted: []learners.Model{&learners.KernelVoteModel{}},
		})
	})
	t.Run("classification", func(t *testing.T) {
		learnertest.Run(t, learnertest.Suite{
			Learner: "kernel-vote", Task: learners.Classification, Fit: fitter(l.FitClasses), Condition: 1,
			Unfitted: []learners.Model{&learners.KernelVoteClassModel{}},
		})
	})
}

// TestVoteByHand compares votes and weighted means with values computed by hand, for samples on a
// line and the kernel k = exp(−|x − z|).
func TestVoteByHand(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x := mat.NewDense(3, 1, []float64{0, 1, 3})
		y := mat.NewDense(3, 1, []float64{-1, 1, -1})
		l := learners.KernelVote{Kernel: kernels.Laplacian{Sigma: 1}}
		m, err := l.FitClasses(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		queries := mat.NewDense(2, 1, []float64{0.75, 2})
		d, err := m.Decision(t.Context(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "vote", d.At(0, 0), -math.Exp(-0.75)+math.Exp(-0.25)-math.Exp(-2.25), 1e-15)
		checkClose(t, "vote", d.At(1, 0), -math.Exp(-2), 1e-15) // the votes of the other two samples cancel
		r, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: []float64{1, 3, 0}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := r.Predict(t.Context(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "mean", f.At(0, 0), (-math.Exp(-0.75)+3*math.Exp(-0.25))/(math.Exp(-0.75)+3*math.Exp(-0.25)), 1e-15)
		// Row 2 is so far from all samples that every k is 0 and there is no mean.
		if _, err := r.Predict(t.Context(), dev, mat.NewDense(2, 1, []float64{1, 1e4})); err == nil || !strings.Contains(err.Error(), "row 2: the kernel values sum to 0") {
			t.Errorf("got %v", err)
		}
		if _, err := m.Proba(t.Context(), dev, mat.NewDense(1, 1, []float64{1e4})); err == nil || !strings.Contains(err.Error(), "row 1: the kernel is 0") {
			t.Errorf("got %v", err)
		}
		if _, err := (learners.KernelKNN{K: 4}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "k must be an integer from 1 to 3, the number of samples, got 4") {
			t.Errorf("got %v", err)
		}
	})
}

// TestNeighborsAgainstScikitLearn compares the neighbors, their order and distances, the means and
// the votes with those of scikit-learn.
func TestNeighborsAgainstScikitLearn(t *testing.T) {
	t.Log("seed 41")
	r := rand.New(rand.NewPCG(41, 0))
	const n, q, d, k = 500, 100, 6, 7
	x, z := mat.NewDense(n, d, nil), mat.NewDense(q, d, nil)
	y, c := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range d {
			x.Set(i, j, r.NormFloat64())
		}
		y.Set(i, 0, x.At(i, 0)+math.Abs(x.At(i, 1)))
		c.Set(i, 0, float64(i%4))
	}
	for i := range q {
		for j := range d {
			z.Set(i, j, r.NormFloat64())
		}
	}
	var want struct {
		Near  [][]int
		Dist  [][]float64
		Mean  []float64
		Votes [][]float64
		Class []float64
	}
	scikit(t, map[string]any{"x": rowsOf(x), "z": rowsOf(z), "y": mat.Col(nil, 0, y), "c": mat.Col(nil, 0, c), "k": k}, `
from sklearn.neighbors import KNeighborsRegressor, KNeighborsClassifier
r = KNeighborsRegressor(a["k"]).fit(a["x"], a["y"])
m = KNeighborsClassifier(a["k"]).fit(a["x"], a["c"])
dist, near = r.kneighbors(a["z"])
out.update(near=near, dist=dist, mean=r.predict(a["z"]), votes=m.predict_proba(a["z"]), **{"class": m.predict(a["z"])})
`, &want)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, kernel := range []kernels.Kernel{nil, kernels.Gaussian{Sigma: 2}} {
			l := learners.KernelKNN{Kernel: kernel, K: k}
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			samples, squares, err := m.Neighbors(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Predict(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			b, err := l.FitClasses(t.Context(), dev, x, c, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := b.Proba(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			labels, err := b.Predict(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			for i := range q {
				for j, index := range want.Near[i] {
					if samples[i][j] != index {
						t.Fatalf("row %d, neighbor %d: %d, want %d", i, j, samples[i][j], index)
					}
					square := want.Dist[i][j] * want.Dist[i][j]
					if kernel != nil { // for the Gaussian kernel and the Euclidean distance d, d² in the feature space is 2 − 2exp(−d²/8)
						square = -2 * math.Expm1(-square/8)
					}
					// The tolerance is the rounding error of a difference of numbers up to ‖x‖², about 30.
					checkClose(t, "d²", squares[i][j], square, 1e-13)
				}
				checkClose(t, "mean", f.At(i, 0), want.Mean[i], 1e-14)
				for j, v := range want.Votes[i] {
					checkClose(t, "share", p.At(i, j), v, 1e-15*k)
				}
				if labels.At(i, 0) != want.Class[i] {
					t.Errorf("row %d: class %v, want %v", i, labels.At(i, 0), want.Class[i])
				}
			}
		}
	})
}

// TestVoteDefaultWidth checks that no sigma of a grid has a smaller leave-one-out error than the default sigma, for
// targets that are pure noise and for a sine wave whose length is less than the median distance.
func TestVoteDefaultWidth(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, seed = 60, 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, waves, noise := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		x.Set(i, 0, r.NormFloat64())
		waves.Set(i, 0, math.Sin(4*x.At(i, 0))+0.1*r.NormFloat64())
		noise.Set(i, 0, r.NormFloat64())
	}
	sigmaOf := func(y mat.Matrix) float64 {
		m, err := learners.KernelVote{}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Kernel().(kernels.Gaussian).Sigma
	}
	// looMSE fits n models, each with weight 0 for the row that it predicts.
	looMSE := func(y mat.Matrix, sigma float64) float64 {
		sum := 0.0
		for i := range n {
			w := slices.Repeat([]float64{1}, n)
			w[i] = 0
			m, err := learners.KernelVote{Kernel: kernels.Gaussian{Sigma: sigma}}.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Predict(t.Context(), dev, x.Slice(i, i+1, 0, 1))
			if err != nil {
				return math.Inf(1)
			}
			d := f.At(0, 0) - y.At(i, 0)
			sum += d * d / n
		}
		return sum
	}
	median, err := learners.MedianDistance(t.Context(), x, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, y := range map[string]*mat.Dense{"waves": waves, "noise": noise} {
		sigma := sigmaOf(y)
		minMSE := looMSE(y, sigma)
		mean, variance := stat.PopMeanVariance(mat.Col(nil, 0, y), nil)
		t.Logf("%s: sigma %v of median %v: %v; mean %v: variance %v", name, sigma, median, minMSE, mean, variance)
		for g := range 15 {
			if candidate := median * 8 * math.Pow(2, -float64(g)/2); looMSE(y, candidate) < minMSE*(1-1e-9) {
				t.Errorf("%s: sigma %v has %v, sigma %v has %v", name, sigma, minMSE, candidate, looMSE(y, candidate))
			}
		}
		// The limit is the leave-one-out error of the mean, with a margin for weights that are not exactly equal.
		if limit := variance * math.Pow(n/(n-1.), 2) * (1 + 2./64); minMSE > limit {
			t.Errorf("%s: %v, the mean has %v", name, minMSE, limit)
		}
	}
	// A kernel mean explains more than half of the variance only if its sigma is less than the wavelength.
	_, variance := stat.PopMeanVariance(mat.Col(nil, 0, waves), nil)
	if got, medianMSE := looMSE(waves, sigmaOf(waves)), looMSE(waves, median); got > variance/2 || medianMSE < variance {
		t.Errorf("waves: %v, at the median distance %v, variance %v", got, medianMSE, variance)
	}
}

// TestNeighborsOfUnevenWeights checks that the neighbors are the nearest samples whose weights sum to k, for any
// order of the samples and for weights of any size.
func TestNeighborsOfUnevenWeights(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	rng := rand.New(rand.NewPCG(5, 6))
	t.Log("seed 5, 6")
	sizes := []float64{1, 2, 3, 0.5, 1e16, 1e300, 1e-300}
	for round := range 200 {
		const n = 8
		x, y, weights := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), make([]float64, n)
		order := rng.Perm(n)
		for i, position := range order {
			x.Set(i, 0, float64(position+1))
			y.Set(i, 0, float64(i))
			weights[i] = sizes[rng.IntN(len(sizes))]
		}
		weights[rng.IntN(n)] = 1e16 // ensures that the weights sum to at least k
		k := 1 + rng.IntN(4)
		m, err := learners.KernelKNN{K: k}.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := m.Neighbors(t.Context(), dev, mat.NewDense(1, 1, nil)) // the neighbors of x = 0
		if err != nil {
			t.Fatal(err)
		}
		rank := make([]int, n)
		for i, p := range order {
			rank[p] = i
		}
		sum := 0.0
		var want []int
		for _, i := range rank {
			if sum < float64(k) {
				want = append(want, i)
				sum += weights[i]
			}
		}
		if !slices.Equal(got[0], want) {
			t.Errorf("round %d, k = %d, points %v, weights %v: %v, want %v", round, k, order, weights, got[0], want)
		}
		if _, err := m.Predict(t.Context(), dev, mat.NewDense(1, 1, nil)); err != nil {
			t.Error(err)
		}
	}
}

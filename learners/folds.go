package learners

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Folds divides n samples into k parts for cross-validation: fold[i] is that of
// sample i. The parts differ by one sample at most. strata[i] names a stratum,
// such as the class of the sample, of which every part gets its share, to one
// sample; nil: all samples are one. The same numbers and seed give the same
// parts.
func Folds(n, k int, strata []int, seed uint64) ([]int, error) {
	if k < 2 || k > n {
		return nil, fmt.Errorf("learners: folds: %s can be divided into 2 to %d parts, not into %d", count.Of(n, "sample"), n, k)
	}
	if strata != nil && len(strata) != n {
		return nil, fmt.Errorf("learners: folds: %d strata for %s", len(strata), count.Of(n, "sample"))
	}
	r := rand.New(rand.NewPCG(seed, foldStream))
	members := map[int][]int{}
	var order []int // the strata in the order in which they come
	for i := range n {
		s := 0
		if strata != nil {
			s = strata[i]
		}
		if members[s] == nil {
			order = append(order, s)
		}
		members[s] = append(members[s], i)
	}
	// Dealt like cards, one stratum after the other, so that the parts are as
	// even as the strata.
	fold, next := make([]int, n), 0
	for _, s := range order {
		list := members[s]
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, i := range list {
			fold[i] = next % k
			next++
		}
	}
	return fold, nil
}

// The numbers of Folds and Resample are kept apart from other uses of a seed.
const (
	foldStream     = 0x666f6c64 // "fold"
	resampleStream = 0x626f6f74 // "boot"
)

// Resample draws n of n samples with replacement: how often each was drawn. Those
// drawn 0 times, a part of about 1/e, are out of the bag.
func Resample(n int, seed uint64, round int) []int {
	r := rand.New(rand.NewPCG(seed, resampleStream+uint64(round)<<32))
	counts := make([]int, n)
	for range n {
		counts[r.IntN(n)]++
	}
	return counts
}

// Summary is the mean of some scores and how far they are apart.
type Summary struct {
	Mean float64
	SD   float64 // with the divisor n − 1; 0 for one score
	N    int
}

// NewSummary returns the summary of scores; NaN are left out.
func NewSummary(scores []float64) Summary {
	scores = slices.DeleteFunc(slices.Clone(scores), math.IsNaN)
	s := Summary{Mean: stat.Mean(scores, nil), N: len(scores)}
	if s.N > 1 {
		s.SD = stat.StdDev(scores, nil)
	}
	return s
}

// Variance is what BiasVariance finds, each a mean over the test points:
//
//	E[(f − y)²] = Bias2 + Variance + Noise
//
// where f is fitted to random samples, and y = truth + noise at a test point.
type Variance struct {
	Bias2    float64 // (mean f − truth)², less what the mean of so few fits adds to it
	Variance float64 // of f over the fits, with the divisor fits − 1
	Noise    float64 // mean (y − truth)² of the test points
	Error    float64 // mean (f − y)² over fits and test points
}

// BiasVariance estimates bias, variance and noise of a learner of regression on
// simulated data. draw returns samples x, their n×1 observations y, and the
// n×1 truth without noise; it is called with 0 for the test points and with
// 1, 2, …, fits for what the learner is fitted to, and must depend on nothing
// else. It has no wrapper in package mercer, as it is for the study of learners and not
// for data of one's own: backend.Open("", backend.Config{}) opens a device. Source: Geman, Bienenstock and Doursat (1992), Neural networks and the
// bias/variance dilemma.
func BiasVariance(ctx context.Context, dev backend.Device, fit Fitter, fits int, draw func(round int) (x, y, truth *mat.Dense), o Options) (Variance, error) {
	if fits < 2 {
		return Variance{}, fmt.Errorf("learners: bias-variance: at least 2 fits are needed, got %d", fits)
	}
	x, y, truth := draw(0)
	n, _ := x.Dims()
	if r, c := y.Dims(); r != n || c != 1 {
		return Variance{}, fmt.Errorf("learners: bias-variance: the test points are %d, their y is %d×%d", n, r, c)
	}
	mean, square := make([]float64, n), make([]float64, n) // Welford's sums
	v := Variance{}
	for k := range fits {
		tx, ty, _ := draw(k + 1)
		m, err := fit(ctx, dev, tx, ty, o)
		if err != nil {
			return v, err
		}
		f, err := m.Predict(ctx, dev, x)
		if err != nil {
			return v, err
		}
		for i := range n {
			e := f.At(i, 0) - y.At(i, 0)
			v.Error += e * e / float64(n*fits)
			d := f.At(i, 0) - mean[i]
			mean[i] += d / float64(k+1)
			square[i] += d * (f.At(i, 0) - mean[i])
		}
	}
	for i := range n {
		variance := square[i] / float64(fits-1)
		bias, noise := mean[i]-truth.At(i, 0), y.At(i, 0)-truth.At(i, 0)
		v.Variance += variance / float64(n)
		v.Bias2 += (bias*bias - variance/float64(fits)) / float64(n)
		v.Noise += noise * noise / float64(n)
	}
	return v, nil
}

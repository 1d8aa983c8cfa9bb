package validate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
)

// Folds divides n samples into k parts for cross-validation: fold[i] is the part of sample i. The
// sizes of the parts differ by at most one. strata[i] names the stratum of sample i, such as its
// class; for each stratum, the numbers of its samples in the parts also differ by at most one. If
// strata is nil, all samples are in one stratum. Equal arguments give equal parts.
func Folds(n, k int, strata []int, seed uint64) ([]int, error) {
	if k < 2 || k > n {
		return nil, fmt.Errorf("validate: folds: %s can be divided into 2 to %d folds, not into %d", count.Of(n, "sample"), n, k)
	}
	if strata != nil && len(strata) != n {
		return nil, fmt.Errorf("validate: folds: strata has %d entries for %s", len(strata), count.Of(n, "sample"))
	}
	r := rand.New(rand.NewPCG(seed, foldStream))
	members := map[int][]int{}
	var order []int // the strata in the order of their first occurrence
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
	// The samples are assigned to the folds cyclically, one stratum after the other.
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

// Folds and Bootstrap have independent streams of random numbers.
const (
	foldStream     = 0x666f6c64 // the letters "fold"
	resampleStream = 0x626f6f74 // the letters "boot"
)

// Splits returns division i of samples: the indices of the samples to which a model is fitted,
// which may repeat, and of the samples on which the model is scored.
type Splits func(i int) (train, test []int)

// KFold returns the divisions of k-fold cross-validation: division i holds out fold i mod k. After every k
// divisions the samples are divided into new random folds. n, k, strata and seed are as for Folds.
func KFold(n, k int, strata []int, seed uint64) (Splits, error) {
	fold, err := Folds(n, k, strata, seed)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	last := 0 // index of the division for which fold was computed
	return func(i int) (train, test []int) {
		mu.Lock()
		if i/k != last {
			last = i / k
			fold, _ = Folds(n, k, strata, seed+uint64(last)<<32)
		}
		current := fold
		mu.Unlock()
		return holdOut(current, i%k)
	}, nil
}

// PredefinedSplits returns divisions that each hold out one fold, in the order of the fold numbers,
// and the number of folds. fold[i] is the fold of sample i.
func PredefinedSplits(fold []int) (Splits, int) {
	numbers := slices.Compact(slices.Sorted(slices.Values(fold)))
	return func(i int) (train, test []int) { return holdOut(fold, numbers[i]) }, len(numbers)
}

func holdOut(fold []int, number int) (train, test []int) {
	for i, f := range fold {
		if f == number {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	return train, test
}

// Bootstrap returns the rounds of the bootstrap. The training samples of a round are n of n samples, drawn with
// replacement; the test samples are the samples that were not drawn, about n/e of them and possibly none.
func Bootstrap(n int, seed uint64) Splits {
	return func(round int) (train, test []int) {
		r := rand.New(rand.NewPCG(seed, resampleStream+uint64(round)<<32))
		counts := make([]int, n)
		for range n {
			counts[r.IntN(n)]++
		}
		for i, times := range counts {
			for range times {
				train = append(train, i)
			}
			if times == 0 {
				test = append(test, i)
			}
		}
		return train, test
	}
}

// Summary holds the mean and the standard deviation of some scores.
type Summary struct {
	Mean float64
	SD   float64 // with the divisor n − 1; 0 for one score
	N    int
}

// NewSummary returns the summary of the scores that are not NaN.
func NewSummary(scores []float64) Summary {
	scores = slices.DeleteFunc(slices.Clone(scores), math.IsNaN)
	s := Summary{Mean: numeric.Mean(scores, nil), N: len(scores)}
	if s.N > 1 {
		s.SD = numeric.Norm(s.N, func(i int) float64 { return scores[i] - s.Mean }) / math.Sqrt(float64(s.N-1))
	}
	return s
}

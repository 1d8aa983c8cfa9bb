package solvers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// TestSampleIsUniform checks by a χ² test over many seeds that each ordered choice of 3 of 8 different rows is equally
// likely, even if the data repeat some of the rows. With random seeds, the test would fail with probability 1e-6.
func TestSampleIsUniform(t *testing.T) {
	const rows, count, choices, expected = 8, 3, 8 * 7 * 6, 60
	limit := distuv.ChiSquared{K: choices - 1}.Quantile(1 - 1e-6)
	for name, repeat := range map[string]func(i int) int{
		"different": func(int) int { return 1 },
		"repeated":  func(i int) int { return 1 + i*i },
	} {
		var values []float64
		for i := range rows {
			for range repeat(i) {
				values = append(values, float64(i))
			}
		}
		x := backend.Host[float64]{Rows: len(values), Cols: 1, Stride: 1, Data: values}
		counts := map[[count]float64]int{}
		for seed := range uint64(choices * expected) {
			sampled, err := CenterChoice{Count: count, Seed: seed}.Sample(t.Context(), InMemory(x, x, nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			counts[[count]float64(sampled.Data)]++
		}
		statistic := 0.0
		for _, n := range counts {
			statistic += float64((n-expected)*(n-expected)) / expected
		}
		statistic += float64((choices - len(counts)) * expected) // adds the choices that were never drawn
		t.Logf("%s: χ² = %.1f, below %.1f for 1 − 1e-6; %d degrees of freedom", name, statistic, limit, choices-1)
		if statistic > limit {
			t.Errorf("%s: χ² = %.1f, more than %.1f", name, statistic, limit)
		}
	}
}

// TestEachSampleIsEquallyLikelyToBeCenter counts how often each of 60 samples is a center, with keys computed from
// the features and with given keys, and tests the counts by χ² with 59 degrees of freedom.
func TestEachSampleIsEquallyLikelyToBeCenter(t *testing.T) {
	const n, m, seeds = 60, 12, 4000
	x := backendtest.Normal(1, n, 2)
	small := make([]uint64, n)
	for i := range small {
		small[i] = uint64(i)
	}
	limit := distuv.ChiSquared{K: n - 1}.Quantile(1 - 1e-6)
	for name, keys := range map[string][]uint64{"numbers": nil, "given": small} {
		position := map[float64]int{}
		for i := range n {
			position[x.Row(i)[0]] = i
		}
		counts := make([]float64, n)
		for seed := range uint64(seeds) {
			sampled, err := CenterChoice{Count: m, Seed: seed}.Sample(t.Context(), InMemory(x, x, nil, keys))
			if err != nil {
				t.Fatal(err)
			}
			for i := range sampled.Rows {
				counts[position[sampled.Row(i)[0]]]++
			}
		}
		// Because samples are drawn without replacement, the covariance matrix of the counts is seeds·p(1−p)·n/(n−1)
		// times the centering matrix. The statistic is divided by this factor.
		p, statistic := float64(m)/n, 0.0
		for _, c := range counts {
			statistic += (c - seeds*p) * (c - seeds*p) / (seeds * p * (1 - p)) * (n - 1) / n
		}
		t.Logf("%s: χ² = %.1f, below %.1f for 1 − 1e-6", name, statistic, limit)
		if statistic > limit {
			t.Errorf("%s: χ² = %.1f, more than %.1f", name, statistic, limit)
		}
	}
}

// TestCentersDoNotDependOnOrder checks that the centers depend on the keys and not on the order of the samples.
func TestCentersDoNotDependOnOrder(t *testing.T) {
	const seed, n = 23, 300
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 3)
	y := targets(seed, x)
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	order := rand.New(rand.NewPCG(seed, 1)).Perm(n)
	permutedKeys := make([]uint64, n)
	for i, r := range order {
		permutedKeys[i] = keys[r]
	}
	px, py := stream.SelectRows(x, order), stream.SelectRows(y, order)
	dev := backendtest.Device(t, "ref")
	centers := func(rule CenterRule, data Rows) backend.Host[float64] {
		t.Helper()
		res, err := SolveNystrom(t.Context(), dev, NystromProblem{
			Kernel: kernels.Gaussian{Sigma: 1}, Data: data, Choice: CenterChoice{Rule: rule, Count: 20, pool: 100, Seed: 5}, Lambda: 0.1,
		}, StreamParams{Method: Normal})
		if err != nil {
			t.Fatal(err)
		}
		return res.Centers
	}
	for _, rule := range CenterRules() {
		dense, keyed := centers(rule, InMemory(x, y, nil, nil)), centers(rule, InMemory(x, y, nil, keys))
		if !slices.Equal(dense.Data, centers(rule, InMemory(px, py, nil, nil)).Data) || !slices.Equal(keyed.Data, centers(rule, InMemory(px, py, nil, permutedKeys)).Data) {
			t.Errorf("%s: the centers depend on the order of the samples", rule)
		}
		if slices.Equal(dense.Data, keyed.Data) {
			t.Errorf("%s: the keys do not matter", rule)
		}
	}
	_, err := SolveNystrom(t.Context(), dev, NystromProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: InMemory(x, y, nil, keys[1:]), Lambda: 1}, StreamParams{})
	if want := "solvers: there are 299 keys for 300 rows: give one key for each row"; fmt.Sprint(err) != want {
		t.Errorf("got the error %v, want %q", err, want)
	}
}

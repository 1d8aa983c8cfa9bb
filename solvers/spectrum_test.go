package solvers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// TestSpectrum: of a whole sample the trace is exact; of a part it is the
// diagonal's, and the estimate of the largest eigenvalue is near that of K.
func TestSpectrum(t *testing.T) {
	const seed, n, d = 4, 900, 6
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p := Problem{Kernel: kernels.Gaussian{Sigma: 4}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 1e-3}
	for i := range p.X.Data {
		p.X.Data[i] = r.NormFloat64()
	}
	e := newSpectrum(t.Context(), newSamples(p))
	if len(e.sigma) != sampleRows(n) || math.Abs(e.tail[0]-n) > 1e-9*n {
		t.Errorf("%d values, trace %v, want %v", len(e.sigma), e.tail[0], n)
	}
	// The mean of k(x, z) is the largest eigenvalue over n, but for what the
	// eigenvector differs from a constant.
	mean := 0.0
	for i := range n {
		mean += kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row((i*7+1)%n)) / n
	}
	if !(e.largest() > 0.9*n*mean && e.largest() < 1.3*n*mean) {
		t.Errorf("the largest is %v, n times the mean of K is %v", e.largest(), n*mean)
	}
	last := math.MaxInt
	for _, k := range []int{0, 10, 50, 100, 300, 899} {
		now := e.iterations(k, 1e-8)
		if now > last || now < 1 {
			t.Errorf("rank %d: %d iterations, fewer ranks %d", k, now, last)
		}
		last = now
	}
}

// TestSpectrumSumsToTrace: all n eigenvalues that are estimated sum to about the trace, n,
// which the first few hundred of them nearly have: those that the sample cannot show are
// small. Iterations grow as the root of the eigenvalues: half of the trace off is within the
// third that TestIterations allows.
func TestSpectrumSumsToTrace(t *testing.T) {
	const seed, n, d = 6, 100000, 50
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: normal(seed, n, d), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
	e, sum := newSpectrum(t.Context(), newSamples(p)), 0.0
	for j := range n {
		sum += e.eigenvalue(j)
	}
	if !(sum > 0.5*n && sum < 1.5*n) {
		t.Errorf("the sum is %v times the trace", sum/n)
	}
}

// TestSpectrumOfFiniteRank: a cubic kernel of 8 features is a sum of C(11, 3) = 165
// products of functions, so that no more eigenvalues than that are estimated above
// rounding, and a preconditioner of twice the rank is seen to leave nothing to do.
func TestSpectrumOfFiniteRank(t *testing.T) {
	const seed, n, d, rank = 8, 5000, 8, 165
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Polynomial{Degree: 3, C: 1}, X: normal(seed, n, d), Y: backend.NewHost[float64](n, 1), Lambda: 1e-3}
	e := newSpectrum(t.Context(), newSamples(p))
	if e.eigenvalue(rank-1) <= 0 || e.eigenvalue(rank) != 0 {
		t.Errorf("eigenvalues %d and %d are estimated as %g and %g", rank-1, rank, e.eigenvalue(rank-1), e.eigenvalue(rank))
	}
	if its := e.iterations(2*rank, 1e-8); its > 1 {
		t.Errorf("%d iterations are predicted with all of K in the preconditioner", its)
	}
}

// TestSpectrumOfRepeatedRows: with a kernel that is 0 between rows that differ, K has an
// eigenvalue of 1 for each of them, and one that is the number of the rows that are equal.
// Iterations grow as the root of eigenvalues: a factor of 3 is less than 2 of them.
func TestSpectrumOfRepeatedRows(t *testing.T) {
	const seed, n, d = 9, 6000, 8
	t.Logf("seed %d", seed)
	for _, equal := range []int{1500, 2000, 3000, 4000} {
		x := normal(seed, n, d)
		clear(x.Data[:equal*d])
		e := newSpectrum(t.Context(), newSamples(Problem{Kernel: kernels.Gaussian{Sigma: 0.01}, X: x, Y: backend.NewHost[float64](n, 1), Lambda: 1e-3}))
		if v := e.eigenvalue((n - equal) / 2); !(v > 1.0/3 && v < 3) {
			t.Errorf("%d of %d rows are equal: the eigenvalue in the middle of the others is estimated as %g", equal, n, v)
		}
		if v := e.eigenvalue(n - equal/2); v > 1.0/3 {
			t.Errorf("%d of %d rows are equal: an eigenvalue of 0 is estimated as %g", equal, n, v)
		}
	}
}

// TestSpectrumOfRareRows: with two rows that repeat, one of them rarely, K has two
// eigenvalues, wherever in the sample the rare one is first.
func TestSpectrumOfRareRows(t *testing.T) {
	const n, rare = 6000, 20
	for first := 0; first < 25*rare; first += rare {
		x := backend.NewHost[float64](n, 1)
		for i := range rare {
			x.Data[first+i] = 1
		}
		e := newSpectrum(t.Context(), newSamples(Problem{Kernel: kernels.Gaussian{Sigma: 0.01}, X: x, Y: backend.NewHost[float64](n, 1), Lambda: 1e-3}))
		if v := e.eigenvalue(5); v > n*n*numeric.Epsilon {
			t.Errorf("rows from %d on are rare: eigenvalue 5 is estimated as %g", first, v)
		}
	}
}

// TestIterations: what conjugate gradients take is within a third of what is predicted,
// without a preconditioner too, where rounding makes them many more than their condition
// and the eigenvalues outside say.
func TestIterations(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 5, 1200, 5
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: normal(seed, n, d), Y: normal(seed+1, n, 1)}
	for _, lambda := range []float64{0.1, 1} {
		p.Lambda = lambda
		e := newSpectrum(t.Context(), newSamples(p))
		for _, rank := range []int{0, 30} {
			par := Params{Method: CG, Operator: Stored64, Rank: rank}
			if rank == 0 {
				par.Preconditioner = "none"
			}
			res, err := Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			if ratio := float64(e.iterations(rank, par.tol())) / float64(res.Iters); !(ratio > 2.0/3 && ratio < 4.0/3) {
				t.Errorf("lambda %g, rank %d: %.2f times %d iterations are predicted", lambda, rank, ratio, res.Iters)
			}
		}
	}
}

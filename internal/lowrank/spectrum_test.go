package lowrank

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// TestSpectrum checks that the trace is that of K, and that the estimated largest eigenvalue is near that of K.
func TestSpectrum(t *testing.T) {
	const seed, n, d = 4, 900, 6
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x := backend.NewHost[float64](n, d)
	for i := range x.Data {
		x.Data[i] = r.NormFloat64()
	}
	p := samplesOf(kernels.Gaussian{Sigma: 4}, x, 1e-3)
	e := NewSpectrum(t.Context(), p)
	if len(e.sigma) != sampleRows(n) || math.Abs(e.tail[0]-n) > 1e-9*n {
		t.Errorf("%d values, trace %v, want %v", len(e.sigma), e.tail[0], n)
	}
	// For a nearly constant first eigenvector, the largest eigenvalue is n times the mean of k(x, z).
	mean := 0.0
	for i := range n {
		mean += kernels.Eval(p.Kernel, x.Row(i), x.Row((i*7+1)%n)) / n
	}
	if !(e.Largest() > 0.9*n*mean && e.Largest() < 1.3*n*mean) {
		t.Errorf("the largest is %v, n times the mean of K is %v", e.Largest(), n*mean)
	}
	last := math.MaxInt
	for _, k := range []int{0, 10, 50, 100, 300, 899} {
		iterations := e.Iterations(k, 1e-8)
		if iterations > last || iterations < 1 {
			t.Errorf("rank %d: %d iterations, fewer ranks %d", k, iterations, last)
		}
		last = iterations
	}
}

// TestSpectrumSumsToTrace checks that the sum of the n estimated eigenvalues is within n/2 of the trace, n. Such
// an error changes the number of iterations by less than a third, which TestIterations allows.
func TestSpectrumSumsToTrace(t *testing.T) {
	const seed, n, d = 6, 100000, 50
	t.Logf("seed %d", seed)
	p := samplesOf(kernels.Gaussian{Sigma: math.Sqrt(d)}, backendtest.Normal(seed, n, d), 0.1)
	e, sum := NewSpectrum(t.Context(), p), 0.0
	for j := range n {
		sum += e.eigenvalue(j)
	}
	if !(sum > 0.5*n && sum < 1.5*n) {
		t.Errorf("the sum is %v times the trace", sum/n)
	}
}

// TestSpectrumOfFiniteRank checks a cubic kernel of 8 features, of rank C(11, 3) = 165. At most 165 estimated
// eigenvalues may exceed rounding errors, and a preconditioner of twice this rank must lead to at most one
// iteration.
func TestSpectrumOfFiniteRank(t *testing.T) {
	const seed, n, d, rank = 8, 5000, 8, 165
	t.Logf("seed %d", seed)
	p := samplesOf(kernels.Polynomial{Degree: 3, C: 1}, backendtest.Normal(seed, n, d), 1e-3)
	e := NewSpectrum(t.Context(), p)
	if e.eigenvalue(rank-1) <= 0 || e.eigenvalue(rank) != 0 {
		t.Errorf("eigenvalues %d and %d are estimated as %g and %g", rank-1, rank, e.eigenvalue(rank-1), e.eigenvalue(rank))
	}
	if iterations := e.Iterations(2*rank, 1e-8); iterations > 1 {
		t.Errorf("%d iterations are predicted with all of K in the preconditioner", iterations)
	}
}

// TestSpectrumOfRepeatedRows checks a kernel that is 0 for different rows. K has the eigenvalue 1 for each single
// row, and one eigenvalue equal to the number of copies of the repeated row. The tolerance of a factor of 3
// changes the number of iterations by less than a factor of 2.
func TestSpectrumOfRepeatedRows(t *testing.T) {
	const seed, n, d = 9, 6000, 8
	t.Logf("seed %d", seed)
	for _, equal := range []int{1500, 2000, 3000, 4000} {
		x := backendtest.Normal(seed, n, d)
		clear(x.Data[:equal*d])
		e := NewSpectrum(t.Context(), samplesOf(kernels.Gaussian{Sigma: 0.01}, x, 1e-3))
		if v := e.eigenvalue((n - equal) / 2); !(v > 1.0/3 && v < 3) {
			t.Errorf("%d of %d rows are equal: the eigenvalue in the middle of the others is estimated as %g", equal, n, v)
		}
		if v := e.eigenvalue(n - equal/2); v > 1.0/3 {
			t.Errorf("%d of %d rows are equal: an eigenvalue of 0 is estimated as %g", equal, n, v)
		}
	}
}

// TestSpectrumOfRareRows checks copies of two rows, of which one is rare, at several positions of the rare rows.
// The estimated eigenvalues from the sixth on must be 0.
func TestSpectrumOfRareRows(t *testing.T) {
	const n, rare = 6000, 20
	for first := 0; first < 25*rare; first += rare {
		x := backend.NewHost[float64](n, 1)
		for i := range rare {
			x.Data[first+i] = 1
		}
		e := NewSpectrum(t.Context(), samplesOf(kernels.Gaussian{Sigma: 0.01}, x, 1e-3))
		if v := e.eigenvalue(5); v > n*n*numeric.Epsilon {
			t.Errorf("rows from %d on are rare: eigenvalue 5 is estimated as %g", first, v)
		}
	}
}

// samplesOf returns the rows of x with weights of 1.
func samplesOf(k kernels.Kernel, x backend.Host[float64], lambda float64) Samples {
	return Samples{N: x.Rows, D: x.Cols, Kernel: k, Lambda: lambda, Row: func(dst []float64, i int) { copy(dst, x.Row(i)) }, Weight: func(int) float64 { return 1 }}
}

// TestSmallest compares the estimated smallest eigenvalue with the smallest eigenvalue of K. The tolerance, a
// factor of 4, changes the number of iterations by a factor of 2.
func TestSmallest(t *testing.T) {
	const seed, n = 12, 640
	t.Logf("seed %d", seed)
	const d = 20
	x := backendtest.Normal(seed, n, d)
	for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: math.Sqrt(d)}, kernels.Laplacian{Sigma: d}} {
		a, prog := mat.NewSymDense(n, nil), kernels.Compile(k)
		for i := range n {
			for j := range i + 1 {
				a.SetSym(i, j, prog.Run([]float64{prog.Stats[0].Eval(x.Row(i), x.Row(j))}))
			}
		}
		var e mat.EigenSym
		if !e.Factorize(a, false) {
			t.Fatal("no eigenvalues")
		}
		want, got := e.Values(nil)[0], NewSpectrum(t.Context(), samplesOf(k, x, 1)).Smallest()
		if !(got > want/4 && got < 4*want) {
			t.Errorf("%v: the smallest eigenvalue is %g, and %g is estimated", k, want, got)
		}
	}
}

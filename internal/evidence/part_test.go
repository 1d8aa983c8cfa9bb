package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// partProblem returns n samples whose targets ignore the third feature. Every fifth sample has the weight 0.
func partProblem(n int) solvers.Problem {
	r := rand.New(rand.NewPCG(4, 0))
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigmas: []float64{2, 2, 2}}, X: backend.NewHost[float64](n, 3), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
	for i := range n {
		x := p.X.Row(i)
		for j := range x {
			x[j] = r.NormFloat64()
		}
		p.Y.Row(i)[0] = math.Sin(2*x[0]) + 0.5*x[1] + 0.1*r.NormFloat64()
		p.Weights = append(p.Weights, float64(min(i%5, 1)))
	}
	return p
}

// TestStartsPerKernel checks the range of random starts for kernels with several length scales in a sum.
func TestStartsPerKernel(t *testing.T) {
	k := kernels.Sum{kernels.Gaussian{Sigmas: []float64{1, 1, 1}}, kernels.Gaussian{Sigmas: []float64{1, 1}}, kernels.Gaussian{Sigma: 1}}
	h := &search{params: kernels.Params(k), start: make([]float64, 7), par: Params{Restarts: 20}}
	for _, start := range h.starts()[1:] {
		for i, v := range start {
			shift, halfWidth := 0.0, math.Ln10 // bounds for λ and for a length scale of all features
			if i < 5 {
				d := 3.0
				if i >= 3 {
					d = 2
				}
				shift, halfWidth = math.Log(d)/2, math.Ln10/2
			}
			if !(math.Abs(v+shift) <= halfWidth) {
				t.Errorf("parameter %d of a restart is multiplied by %v", i, math.Exp(v))
			}
		}
	}
}

// TestPartFindsTheSameMaximum checks that a search with a part of the samples reaches the log likelihood of other
// searches within 10⁻³, with at most half as many evaluations on all samples.
func TestPartFindsTheSameMaximum(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	p := partProblem(1000)
	par := Params{EvidenceParams: solvers.EvidenceParams{FitScale: true}, Seed: 1}
	h, err := newSearch(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.climb(h.start, 1e-4); err != nil {
		t.Fatal(err)
	}
	want := math.Inf(-1)
	for _, c := range h.candidates {
		want = max(want, c.Log)
	}
	fullCount, partCount := 0, 0
	par.Report = func(a, b int) { fullCount, partCount = a, b }
	candidates, err := Maximize(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("log likelihood %v with %d evaluations of all samples and %d of a part; %v with %d of all", candidates[0].Log, fullCount, partCount, want, h.evaluations)
	if !(candidates[0].Log > want-1e-3) {
		t.Errorf("the log likelihood is %v, less than %v of a search with all samples", candidates[0].Log, want)
	}
	if partCount == 0 || 2*fullCount > h.evaluations {
		t.Errorf("%d evaluations of all samples and %d of a part; a search with all samples takes %d", fullCount, partCount, h.evaluations)
	}
}

// TestFinishReachesAnAsymptote maximizes −e⁻²ᵘ − ½v² − ½w² for the logarithms u and v of two length scales and w
// of λ. finish must end within 10⁻³ of the supremum.
func TestFinishReachesAnAsymptote(t *testing.T) {
	p := partProblem(10)
	p.Kernel = kernels.Gaussian{Sigmas: []float64{1, 1}}
	value := func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error) {
		sigma := k.(kernels.Gaussian).Sigmas
		u, v, w := math.Log(sigma[0]), math.Log(sigma[1]), math.Log(lambda)
		return &solvers.Evidence{Log: -math.Exp(-2*u) - v*v/2 - w*w/2, Gradient: []float64{2 * math.Exp(-2*u), -v, -w}}, nil
	}
	h, err := newSearch(t.Context(), backendtest.Device(t, "cpu"), p, Params{Evaluate: value})
	if err != nil {
		t.Fatal(err)
	}
	curvature := numeric.NewSmall(3, 3)
	for i, v := range []float64{-13, 2, 2} {
		curvature.Set(i, i, v)
	}
	if err := h.finish([]float64{2, 0.5, -0.5}, curvature); err != nil {
		t.Fatal(err)
	}
	best := math.Inf(-1)
	for _, c := range h.candidates {
		best = max(best, c.Log)
	}
	if !(best > -1e-3) {
		t.Errorf("the largest value is %v after %d evaluations; the supremum is 0", best, h.evaluations)
	}
}

// TestPartWithoutInformation checks that the search uses all samples if all targets of the part are 0.
func TestPartWithoutInformation(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	p := partProblem(1000)
	h, err := newSearch(t.Context(), dev, p, Params{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	inPart := map[float64]bool{}
	for _, v := range h.partSearch().problem.X.Data {
		inPart[v] = true
	}
	for i := range p.Y.Rows {
		if inPart[p.X.Row(i)[0]] {
			p.Y.Row(i)[0] = 0
		}
	}
	if h.partSearch() != nil {
		t.Error("the search begins with a part whose targets are 0")
	}
}

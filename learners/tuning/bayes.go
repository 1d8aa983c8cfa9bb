package tuning

import (
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// bayes runs a Bayesian search (Jones, Schonlau and Welch 1998). The next trial is the point with the largest
// expected improvement on the best trial, by a Gaussian process of the earlier scores. The first trials are the
// start of the search and points of a Halton sequence.
func (s *search) bayes() error {
	dims := len(s.space.vary)
	s.planned = s.steps(10 + 10*dims)
	initialTrials := min(s.planned, 2+3*dims)
	rng := rand.New(rand.NewPCG(s.par.Seed, 7))
	log := elementary.Log(s.space.reach)
	var points [][]float64 // points in the cube [−1, 1]^dims
	var scores []float64
	for i := range s.planned {
		u := make([]float64, dims)
		switch {
		case i == 0: // the start of the search
		case i < initialTrials:
			for k := range u {
				u[k] = 2*halton(i, k) - 1
			}
		default:
			var err error
			if u, err = s.proposePoint(rng, points, scores, dims); err != nil {
				return err
			}
		}
		x := make([]float64, dims)
		for k, v := range u {
			x[k] = v * log
		}
		score, err := s.try(x)
		if err != nil {
			return err
		}
		if !math.IsInf(score, 1) {
			points, scores = append(points, u), append(scores, score)
		}
	}
	return nil
}

// proposePoint returns the point with the largest expected improvement (Jones, Schonlau and Welch 1998) among 2,000
// random points, half of them near the best point.
func (s *search) proposePoint(rng *rand.Rand, points [][]float64, scores []float64, dims int) ([]float64, error) {
	random := func() []float64 {
		u := make([]float64, dims)
		for k := range u {
			u[k] = 2*rng.Float64() - 1
		}
		return u
	}
	if len(points) < 3 {
		return random(), nil
	}
	n := len(points)
	x, y := mat.NewDense(n, dims, nil), mat.NewDense(n, 1, nil)
	best := 0
	for i, u := range points {
		x.SetRow(i, u)
		y.Set(i, 0, s.processTarget(scores[i]))
		if scores[i] < scores[best] {
			best = i
		}
	}
	sigmas := make([]float64, dims)
	for k := range sigmas {
		sigmas[k] = 0.5
	}
	var k kernels.Kernel = kernels.Gaussian{Sigmas: sigmas}
	model, err := learners.GaussianProcess{Kernel: k, Lambda: 1e-3, Restarts: 1, Seed: s.par.Seed}.Fit(s.ctx, s.dev, x, y, learners.Options{})
	if err != nil {
		return s.fallback(random(), err)
	}
	const numCandidates = 2000
	candidates := mat.NewDense(numCandidates, dims, nil)
	for i := range numCandidates {
		u := random()
		if i%2 == 1 {
			for k, v := range points[best] {
				u[k] = min(1, max(-1, v+0.15*elementary.Normal(rng)))
			}
		}
		candidates.SetRow(i, u)
	}
	mean, err := model.Predict(s.ctx, s.dev, candidates)
	if err != nil {
		return s.fallback(random(), err)
	}
	variance, err := model.Variance(s.ctx, s.dev, candidates)
	if err != nil {
		return s.fallback(random(), err)
	}
	noise := model.Lambda() * model.Scale()[0]
	choice, maxGain := 0, math.Inf(-1)
	for i := range numCandidates {
		deviation := math.Sqrt(max(variance.At(i, 0)-noise, 0)) // standard deviation of the score without noise
		gain := y.At(best, 0) - mean.At(i, 0)
		if deviation > 0 {
			z := gain / deviation
			gain = deviation * (z*0.5*math.Erfc(-z/math.Sqrt2) + elementary.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
		}
		if gain > maxGain {
			choice, maxGain = i, gain
		}
	}
	return candidates.RawRowView(choice), nil
}

// fallback handles err, an error of the Gaussian process of the scores. It returns err if the context was
// canceled, and otherwise the random point u.
func (s *search) fallback(u []float64, err error) ([]float64, error) {
	if s.ctx.Err() != nil {
		return nil, err
	}
	return u, nil
}

// processTarget returns the logarithm of a score that is a squared error, and a score of the criterion Evidence
// unchanged.
func (s *search) processTarget(score float64) float64 {
	if s.par.Criterion == Evidence {
		return score
	}
	return elementary.Log(max(score, math.SmallestNonzeroFloat64))
}

// halton returns coordinate k of element i of the Halton sequence.
func halton(i, k int) float64 {
	primes := [...]int{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53}
	base := primes[k%len(primes)]
	f, sum := 1.0, 0.0
	for ; i > 0; i /= base {
		f /= float64(base)
		sum += f * float64(i%base)
	}
	return sum
}

package tuning

import (
	"math"
	"time"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// gradient finds all parameters and λ by the learner gaussian-process, which
// climbs the likelihood by its derivatives.
func (s *search) gradient() error {
	start := time.Now()
	p := s.p
	lambda := p.Lambda
	if !(lambda > 0) {
		lambda = 0.1
	}
	s.planned = 1
	m, err := learners.GaussianProcess{Kernel: p.Kernel, Lambda: lambda, Restarts: 2, NoIntercept: true, Seed: s.par.Seed}.
		Fit(s.ctx, s.dev, p.X, p.Y, learners.Options{Weights: p.Weights, Memory: s.par.Memory, Progress: s.inside})
	if err != nil {
		return err
	}
	t := Trial{Kernel: m.Kernel(), Points: []Point{{Lambda: m.Lambda(), Score: -m.LogLikelihood() / s.samples()}}, Seconds: time.Since(start).Seconds()}
	s.res.Vary = nil
	for i, q := range kernels.Params(m.Kernel()) {
		s.res.Vary = append(s.res.Vary, q.Name)
		factor := 1.0
		if before := s.space.params[i].Value; before != 0 {
			factor = math.Abs(q.Value / before)
		}
		t.Factors = append(t.Factors, factor)
	}
	s.res.Trials = append(s.res.Trials, t)
	return nil
}

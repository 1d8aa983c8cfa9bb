package tuning

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// gradient maximizes the likelihood over all parameters and λ by its derivatives. Each evaluated
// point becomes a trial with one λ. The best trial comes first.
func (s *search) gradient() error {
	s.planned = 1
	const restarts = 2
	candidates, err := evidence.Maximize(s.ctx, s.dev, s.p, evidence.Params{
		EvidenceParams: solvers.EvidenceParams{FitScale: true, Memory: s.par.Memory}, Restarts: restarts, Seed: s.par.Seed,
		Report: func(full, partial int) {
			s.reportTrial(solvers.Progress{Fraction: 1 - elementary.Exp(-float64(full+partial)/30/(restarts+1))})
		},
	})
	if err != nil {
		return err
	}
	s.res.Warning = message.Expand(candidates[0].Warning, message.Plain)
	s.res.Params.Vary = nil
	for _, q := range s.space.params {
		s.res.Params.Vary = append(s.res.Params.Vary, q.Name)
	}
	for _, c := range candidates {
		t := Trial{Kernel: c.Kernel, Points: []Point{{Lambda: c.Lambda, Score: -c.Log / s.samples()}}, Seconds: c.Seconds}
		for i, q := range kernels.Params(c.Kernel) {
			factor := 1.0
			if initial := s.space.params[i].Value; initial != 0 {
				factor = math.Abs(q.Value / initial)
			}
			t.Factors = append(t.Factors, factor)
		}
		s.res.Trials = append(s.res.Trials, t)
	}
	return nil
}

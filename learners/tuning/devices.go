package tuning

import (
	"math"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/pool"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// splitProgress divides the progress function total among n concurrent parts. report(i) returns the function of part i.
func splitProgress(n int, total func(solvers.Progress)) (report func(i int) func(solvers.Progress)) {
	partReport := run.Parts(n, func(fraction float64) { total(solvers.Progress{Fraction: fraction}) })
	return func(i int) func(solvers.Progress) {
		reportFraction := partReport(i)
		return func(q solvers.Progress) { reportFraction(q.Fraction) }
	}
}

// job holds the devices that compute a score.
type job struct {
	devices  []backend.Device // one device, or all devices if the score is a sum over folds
	progress func(solvers.Progress)
}

// tryAll returns, for each kernel, the best score over all λ, or +Inf if no λ has a score.
func (s *search) tryAll(list [][]float64) ([]float64, error) {
	trials, lastErrs := make([]Trial, len(list)), make([]error, len(list))
	scoreKernel := func(x []float64, j job) (t Trial, lastErr, err error) {
		start := time.Now()
		p := s.p
		if p.Kernel, err = s.space.kernelAt(x); err != nil {
			return t, nil, err
		}
		points, err := s.score(p, j)
		if attempt.Numeric(err) {
			return Trial{bestPoint: -1}, err, nil
		}
		if err != nil {
			return t, nil, err
		}
		t = Trial{Kernel: p.Kernel, Points: points, bestPoint: -1, Seconds: time.Since(start).Seconds()}
		for _, v := range x {
			t.Factors = append(t.Factors, elementary.Exp(v))
		}
		for i, point := range points {
			if point.Err != nil {
				lastErr = point.Err
			} else if t.bestPoint < 0 || point.Score < points[t.bestPoint].Score {
				t.bestPoint = i
			}
		}
		return t, lastErr, nil
	}
	devices := append([]backend.Device{s.dev}, s.par.Devices...)
	report := splitProgress(len(list), func(q solvers.Progress) {
		s.reportTrial(solvers.Progress{Fraction: q.Fraction * float64(len(list))})
	})
	scoreOn := func(devices []backend.Device, i int) (err error) {
		trials[i], lastErrs[i], err = scoreKernel(list[i], job{devices, report(i)})
		return err
	}
	var err error
	if len(list) == 1 {
		err = scoreOn(devices, 0)
	} else {
		err = pool.Each(devices, len(list), func(dev backend.Device, i int) error { return scoreOn([]backend.Device{dev}, i) })
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(list))
	for i, t := range trials {
		s.finished++
		if lastErrs[i] != nil {
			s.lastErr = lastErrs[i]
		}
		if scores[i] = math.Inf(1); t.bestPoint >= 0 {
			s.res.Trials = append(s.res.Trials, t)
			scores[i] = t.Score()
		}
	}
	return scores, nil
}

package tuning

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// grid multiplies the parameters by one common factor, for factors equally spaced on a logarithmic scale.
func (s *search) grid() error {
	s.planned = s.steps(15)
	_, err := s.tryAll(s.space.line(s.planned))
	return err
}

// line returns the logarithms of `steps` factors from 1/reach to reach, or only the logarithm 0 if steps is 1.
func (s *space) line(steps int) [][]float64 {
	list := make([][]float64, steps)
	for i := range list {
		f := 0.0
		if steps > 1 {
			f = 2*float64(i)/float64(steps-1) - 1
		}
		list[i] = []float64{f * elementary.Log(s.reach)}
	}
	return list
}

// kernelsOf returns the kernels that the strategy Grid tries from the start k, or only k if nothing varies.
func kernelsOf(k kernels.Kernel, vary []string, reach float64, steps int) ([]kernels.Kernel, error) {
	s, err := newSpace(k, vary, reach)
	if err != nil || len(s.vary) == 0 {
		return []kernels.Kernel{k}, err
	}
	var list []kernels.Kernel
	for _, x := range s.line(steps) {
		kernel, err := s.kernelAt(x)
		if err != nil {
			return nil, err
		}
		list = append(list, kernel)
	}
	return list, nil
}

// golden tries a coarse grid with a third of the steps, at least five, and then narrows the interval around the
// best point by at least seven golden sections (Kiefer 1953).
func (s *search) golden() error {
	s.planned = max(s.steps(15), 7)
	coarse := max(5, s.planned/3)
	logFactors, list := make([]float64, coarse), make([][]float64, coarse)
	for i := range logFactors {
		logFactors[i] = (2*float64(i)/float64(coarse-1) - 1) * elementary.Log(s.space.reach)
		list[i] = logFactors[i : i+1]
	}
	scores, err := s.tryAll(list)
	if err != nil {
		return err
	}
	best := 0
	for i := range scores {
		if scores[i] < scores[best] {
			best = i
		}
	}
	const ratio = 0.6180339887498949
	low, high := logFactors[max(best-1, 0)], logFactors[min(best+1, coarse-1)]
	x1, x2 := high-ratio*(high-low), low+ratio*(high-low)
	f1, f2 := math.NaN(), math.NaN() // NaN means not computed yet
	for s.finished < s.planned {
		if math.IsNaN(f1) {
			f1, err = s.try([]float64{x1})
		} else {
			f2, err = s.try([]float64{x2})
		}
		if err != nil {
			return err
		}
		if math.IsNaN(f2) {
			continue
		}
		if f1 <= f2 {
			high, x2, f2 = x2, x1, f1
			x1, f1 = high-ratio*(high-low), math.NaN()
		} else {
			low, x1, f1 = x1, x2, f2
			x2, f2 = low+ratio*(high-low), math.NaN()
		}
	}
	return nil
}

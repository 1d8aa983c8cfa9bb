package validate

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// Variance is the result of BiasVariance. Its fields are means over the test points:
//
//	E[(f − y)²] = Bias2 + Variance + Noise
//
// where f is fitted to random samples, and y = truth + noise at a test point.
type Variance struct {
	Bias2    float64 // (f̄ − truth)² − Variance/fits, where f̄ is the mean of f over the fits
	Variance float64 // variance of f over the fits, with the divisor fits − 1
	Noise    float64 // mean (y − truth)² of the test points
	Error    float64 // mean (f − y)² over fits and test points
}

// BiasVariance estimates the bias, the variance and the noise of a regression learner on simulated data (Geman,
// Bienenstock and Doursat 1992, Neural networks and the bias/variance dilemma). The function draw returns samples x,
// their n×1 observations y, and the n×1 values of y without noise. BiasVariance calls draw(0) for the test points
// and draw(1), …, draw(fits) for the training samples. The result of draw must depend only on its argument.
func BiasVariance(ctx context.Context, dev backend.Device, fit learners.Fitter, fits int, draw func(round int) (x, y, truth *mat.Dense), o learners.Options) (Variance, error) {
	if fits < 2 {
		return Variance{}, fmt.Errorf("validate: bias-variance: at least 2 fits are needed, got %d", fits)
	}
	x, y, truth := draw(0)
	n, _ := x.Dims()
	if r, c := y.Dims(); r != n || c != 1 {
		return Variance{}, fmt.Errorf("validate: bias-variance: draw(0) returned %s, but a y of %d×%d", count.Of(n, "row"), r, c)
	}
	mean, square := make([]float64, n), make([]float64, n) // sums of Welford's algorithm, for each test point
	v := Variance{}
	for k := range fits {
		tx, ty, _ := draw(k + 1)
		m, err := fit(ctx, dev, tx, ty, o)
		if err != nil {
			return v, err
		}
		f, err := m.Predict(ctx, dev, x)
		if err != nil {
			return v, err
		}
		for i := range n {
			e := f.At(i, 0) - y.At(i, 0)
			v.Error += e * e / float64(n*fits)
			d := f.At(i, 0) - mean[i]
			mean[i] += d / float64(k+1)
			square[i] += d * (f.At(i, 0) - mean[i])
		}
	}
	for i := range n {
		variance := square[i] / float64(fits-1)
		bias, noise := mean[i]-truth.At(i, 0), y.At(i, 0)-truth.At(i, 0)
		v.Variance += variance / float64(n)
		v.Bias2 += (bias*bias - variance/float64(fits)) / float64(n)
		v.Noise += noise * noise / float64(n)
	}
	return v, nil
}

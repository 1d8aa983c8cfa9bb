package kerneltest

import (
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// checkPointGradient checks the derivatives with respect to x and z by finite differences.
func checkPointGradient(t *testing.T, k kernels.Kernel, points [][]float64) {
	if usesEntry(k) {
		if err := kernels.CheckGrad(k, len(points[0])); err == nil {
			t.Error("precomputed values pass for a function of coordinates")
		}
		return
	}
	checkBounded(t, k, points)
	d := len(points[0])
	dx, dz := make([]float64, d), make([]float64, d)
	for a, x := range points {
		for b := a % 4; b <= a; b += 4 {
			z := points[b]
			if !smooth(k, x) || !smooth(k, z) {
				continue
			}
			if err := kernels.EvalGrad(k, x, z, dx, dz); err != nil {
				t.Fatal(err)
			}
			for p := range d {
				checkDerivative(t, k, x, z, p, dx[p], 0)
				checkDerivative(t, k, x, z, p, dz[p], 1)
			}
		}
	}
}

// checkBounded checks that StatDerivative.Bounded is true exactly if the derivatives with respect
// to the statistics are finite where points coincide.
func checkBounded(t *testing.T, k kernels.Kernel, points [][]float64) {
	finite, bounded := true, true
	for _, s := range kernels.StatDerivatives(k) {
		bounded = bounded && s.Bounded()
		for _, x := range points {
			if !smooth(k, x) {
				continue
			}
			if v := kernels.Eval(s, x, x); v-v != 0 {
				finite = false
			}
		}
	}
	if finite != bounded {
		t.Errorf("derivatives with respect to statistics are finite where points coincide: %t; Bounded returns %t", finite, bounded)
	}
}

// step is the step of the finite differences.
const step = 0x1p-9

// checkDerivative checks got, the derivative with respect to feature p of x (argument = 0) or of z (argument = 1).
func checkDerivative(t *testing.T, k kernels.Kernel, x, z []float64, p int, got float64, argument int) {
	t.Helper()
	featureDistance := math.Abs(x[p] - z[p])
	for _, s := range kernels.Compile(k).Stats {
		switch s.Kind {
		case kernels.L1:
			if featureDistance < 4*step { // the difference would have points on both sides of the corner of |x − z|
				return
			}
		case kernels.SqDist:
			if slices.ContainsFunc(kernels.StatDerivatives(k), func(s kernels.StatDerivative) bool { return !s.Bounded() }) && distance(x, z) < 64*step {
				return // so near to the corner, the differences do not converge
			}
		case kernels.Chi2:
			if [][]float64{x, z}[argument][p] < 8*step { // the difference would have points with negative features
				return
			}
		}
	}
	rounding := 0.0
	value := func(h float64) float64 {
		ends := [2][]float64{x, z}
		ends[argument] = slices.Clone(ends[argument])
		ends[argument][p] += h
		rounding = max(rounding, Rounding(k, ends[0], ends[1]))
		return kernels.Eval(k, ends[0], ends[1])
	}
	estimate := (8*(value(step)-value(-step)) - (value(2*step) - value(-2*step))) / (12 * step)
	coarse := (8*(value(2*step)-value(-2*step)) - (value(4*step) - value(-4*step))) / (24 * step)
	// As in checkGradient, doubling the step estimates the truncation error of the differences. The tolerance also
	// allows for the rounding errors of the kernel values and of the derivative.
	derivativeError := 0.0
	for i, s := range kernels.StatDerivatives(k) {
		v, stat := kernels.Eval(s, x, z), kernels.Compile(k).Stats[i]
		if size := math.Abs(v); !math.IsInf(size, 0) {
			derivativeError += (Rounding(s, x, z) + 8*size*0x1p-53) * derivativeBound(stat, x, z, p)
		}
	}
	tol := math.Abs(estimate-coarse) + 4*rounding/step + derivativeError + 0x1p-1022
	if !(math.Abs(got-estimate) <= tol) {
		t.Errorf("seed %d: the derivative of %v with respect to feature %d of point %d of %v and %v is %v, finite differences give %v, and the tolerance is %g", seed, k, p+1, argument+1, x, z, got, estimate, tol)
	}
}

// derivativeBound bounds the absolute derivative of a statistic with respect to feature p.
func derivativeBound(s kernels.Stat, x, z []float64, p int) float64 {
	if s.Kind.OnePoint() {
		sum := 0.0
		for _, point := range [][]float64{x, z} {
			g, err := s.PointGradient(point)
			if err != nil {
				panic(err)
			}
			sum += math.Abs(g[p])
		}
		return sum
	}
	dx, dz := s.TermGradient(p, x[p], z[p])
	bound := math.Abs(dx) + math.Abs(dz)
	for _, w := range s.Freqs {
		bound += math.Abs(w) * (1 + math.Abs(w*(x[p]-z[p])))
	}
	if s.Kind == kernels.Sinc {
		bound += 4 * math.Pi * math.Pi
	}
	return bound
}

// smooth reports whether the statistics of one point, such as 1/√k(x, x), are smooth at x: k(x, x) must not be near 0.
func smooth(k kernels.Kernel, x []float64) bool {
	return !slices.ContainsFunc(kernels.Compile(k).Stats, func(s kernels.Stat) bool {
		return s.Of != nil && (!smooth(s.Of, x) || kernels.Diag(s.Of, x) < 0x1p-10)
	})
}

func distance(x, z []float64) float64 {
	return math.Sqrt(kernels.Stat{Kind: kernels.SqDist}.Eval(x, z))
}

package kerneltest

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// checkFeatureMap checks that φ(x)ᵀφ(z) = k(x, z) if k has a finite feature map.
func checkFeatureMap(t *testing.T, k kernels.Kernel, points [][]float64) {
	f, err := kernels.NewFeatureMap(k, len(points[0]))
	if err != nil {
		return
	}
	phi := make([][]float64, len(points))
	for i, x := range points {
		phi[i] = make([]float64, f.Dim())
		f.Apply(phi[i], x)
	}
	for i, a := range phi {
		for j, b := range phi[:i+1] {
			sum, size := 0.0, 0.0
			for p, v := range a {
				sum += v * b[p]
				size += math.Abs(v * b[p])
			}
			want := kernels.Eval(k, points[i], points[j])
			// A coordinate of φ is a product of up to about ten rounded numbers. The error of a sine or cosine is
			// proportional to its angle. The sum has one rounding per term.
			maxAngle := 0.0
			for _, s := range kernels.Compile(k).Stats {
				for _, w := range s.Freqs {
					for p := range points[i] {
						maxAngle = max(maxAngle, w*math.Abs(points[i][p]), w*math.Abs(points[j][p]))
					}
				}
			}
			tol := (float64(f.Dim())+40+4*maxAngle)*0x1p-53*max(size, kernels.Diag(k, points[i]), kernels.Diag(k, points[j])) + Rounding(k, points[i], points[j])
			if !(math.Abs(sum-want) <= tol) {
				t.Errorf("seed %d, d = %d: φᵀφ of points %d and %d is %v, k is %v: off by %g, allowed %g", seed, len(points[i]), i, j, sum, want, sum-want, tol)
			}
		}
	}
}

package learners_test

import (
	"fmt"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// BenchmarkSparse times fits to samples of two rings by learners of sparse models.
func BenchmarkSparse(b *testing.B) {
	dev := backendtest.Device(b, "cpu")
	k := kernels.Gaussian{Sigma: 0.5}
	for _, test := range []struct {
		name string
		n    int
		fit  learners.Fitter
	}{
		{"svc", 2000, fitter(learners.SVC{Kernel: k, C: 10}.Fit)},
		{"svr", 2000, fitter(learners.SVR{Kernel: k, NoStandardize: true}.Fit)},
		{"one-class-svm", 2000, fitter(learners.OneClassSVM{Kernel: k, Nu: 0.1}.Fit)},
		{"rvm", 1000, fitter(learners.RVM{Kernel: k}.Fit)},
		{"rvc", 500, fitter(learners.RVC{Kernel: k}.Fit)},
	} {
		x, y := rings(test.n, 0.3, 91)
		b.Run(fmt.Sprintf("%s/n=%d", test.name, test.n), func(b *testing.B) {
			for b.Loop() {
				if _, err := test.fit(b.Context(), dev, x, y, learners.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLasso times the fit of a path of 100 penalties to 1000 samples of 100 features.
func BenchmarkLasso(b *testing.B) {
	dev := backendtest.Device(b, "cpu")
	x, y := rings(1000, 0.3, 93)
	padded := mat.NewDense(1000, 100, nil)
	padded.Apply(func(i, j int, _ float64) float64 { return x.At((i+7*j)%1000, j%2) }, padded)
	for b.Loop() {
		if _, err := (learners.Lasso{}).Path(b.Context(), dev, padded, y, nil, learners.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

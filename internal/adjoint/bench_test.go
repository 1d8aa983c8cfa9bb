package adjoint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/adjoint"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkRidge measures the time of a training step: a fit and its gradient.
func BenchmarkRidge(b *testing.B) {
	dev := backendtest.Device(b, "cpu")
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 6))
	const n, d = 2000, 20
	x, y, z := random(r, n, d), random(r, n, 1), random(r, n, d)
	f := backend.NewHost[float64](n, 1)
	for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 4}, kernels.Matern{Nu: 2.5, Sigma: 4}, kernels.Matern{Nu: 0.5, Sigma: 4}, kernels.Laplacian{Sigma: 20}} {
		fit := func() *adjoint.Ridge {
			ridge, err := adjoint.NewRidge(ctx, dev, k, x, y, 1)
			if err != nil {
				b.Fatal(err)
			}
			return ridge
		}
		b.Run(fmt.Sprintf("kernel=%v/there", k), func(b *testing.B) {
			for b.Loop() {
				ridge := fit()
				if err := ridge.Predict(ctx, z, f); err != nil {
					b.Fatal(err)
				}
				ridge.Close()
			}
		})
		b.Run(fmt.Sprintf("kernel=%v/back", k), func(b *testing.B) {
			ridge := fit()
			defer ridge.Close()
			for b.Loop() {
				if _, err := ridge.Gradient(ctx, z, y, adjoint.WantX|adjoint.WantZ|adjoint.WantTheta); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

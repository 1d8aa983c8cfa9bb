package stream

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Fourier is the basis √(k(0)/D) (cos ω_1ᵀx, …, cos ω_Dᵀx, sin ω_1ᵀx, …), whose inner products
// have the expectation k(x, z). S is I.
type Fourier struct {
	Frequencies backend.Host[float64] // D×d
	Scale       float64

	kernel kernels.Kernel // with seed, for derivatives; nil in the basis of FourierOf
	seed   uint64
	b      backend.Backend[float64]
	w      backend.Matrix[float64]
}

// NewFourier draws m/2 frequencies of the kernel for samples of d features.
func NewFourier(ctx context.Context, k kernels.Kernel, seed uint64, m, d int) (*Fourier, error) {
	s, err := spectralOf(k, d)
	if err != nil {
		return nil, err
	}
	omega, err := s.frequencies(ctx, rand.New(rand.NewPCG(seed, 1)), m/2, d)
	if err != nil {
		return nil, err
	}
	f := FourierOf(k, omega)
	f.kernel, f.seed = k, seed
	return f, nil
}

// FourierOf returns the basis of frequencies that were drawn for the kernel k.
func FourierOf(k kernels.Kernel, omega backend.Host[float64]) *Fourier {
	s, _ := spectralOf(k, omega.Cols)
	return &Fourier{Frequencies: omega, Scale: math.Sqrt(s.height / float64(omega.Rows))}
}

// CheckFourier returns an error if the distribution of the frequencies of a kernel is not known.
func CheckFourier(k kernels.Kernel, d int) error {
	_, err := spectralOf(k, d)
	return err
}

// CheckFourierGradient returns an error if the frequencies for a given seed are not a
// differentiable function of the parameters of the kernel k, or if the method derivative does not
// support k.
func CheckFourierGradient(k kernels.Kernel) error {
	switch k := k.(type) {
	case kernels.Gaussian, kernels.Matern, kernels.Laplacian, kernels.Constant:
		return nil
	case kernels.Columns:
		return CheckFourierGradient(k.Kernel)
	case kernels.Scaled:
		return CheckFourierGradient(k.Kernel)
	case kernels.Product:
		for _, factor := range k {
			if err := CheckFourierGradient(factor); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("solvers: the random frequencies of the kernel %v are not a differentiable function of its parameters: use gaussian, laplacian, exponential, matern32, matern52 or their products", k)
}

// derivative returns the derivatives of the frequencies, D×d, and of ln Scale with respect to the
// logarithm of parameter i of the kernel, for a kernel that CheckFourierGradient accepts. The
// parameter θ is a length or a factor of the height Scale². For a length, ω = u/θ + v, where u and
// v depend only on the random numbers. The frequencies for cθ then give −u/θ = (ω(cθ) − ω(θ)) c/(c
// − 1). For c = 2 the difference is exact, unless frequencies are added.
func (f *Fourier) derivative(ctx context.Context, i int) (omega backend.Host[float64], scale float64, err error) {
	var values []float64
	params := kernels.Params(f.kernel)
	for _, q := range params {
		values = append(values, q.Value)
	}
	c := 2.0
	if params[i].Value > params[i].Max/c {
		c = 0.5
	}
	values[i] *= c
	k, err := kernels.WithParams(f.kernel, values)
	if err != nil {
		return omega, 0, err
	}
	other, err := NewFourier(ctx, k, f.seed, f.Size(), f.Frequencies.Cols)
	if err != nil {
		return omega, 0, err
	}
	omega = other.Frequencies
	for j, v := range f.Frequencies.Data {
		omega.Data[j] = (omega.Data[j] - v) * (c / (c - 1))
	}
	if f.Scale > 0 {
		ratio := other.Scale / f.Scale
		scale = (ratio*ratio - 1) / (c - 1) / 2
	}
	return omega, scale, nil
}

func (f *Fourier) Size() int { return 2 * f.Frequencies.Rows }

func (f *Fourier) Place(b backend.Backend[float64], mem *run.Arena) (err error) {
	f.b = b
	if f.w, err = mem.New(f.Frequencies.Rows, f.Frequencies.Cols); err != nil {
		return err
	}
	return b.Upload(f.w, f.Frequencies)
}

// Cosines and Sines are cos(xᵀω) and sin(xᵀω) = cos(xᵀω + 3π/2) as functions of a sample x and a
// frequency ω. They are declared as kernels, so that a backend can evaluate them.
var (
	Cosines kernels.Kernel = kernels.CosOf{Kernel: kernels.Linear{}}
	Sines   kernels.Kernel = kernels.CosOf{Kernel: kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 1.5 * math.Pi}}}
)

func (f *Fourier) Self(numeric.Points) []float64 { return nil }

func (f *Fourier) Fill(dst, x backend.Matrix[float64]) {
	r, m := dst.Dims()
	f.b.Gram(dst.View(0, 0, r, m/2), kernels.Scaled{Weight: f.Scale, Kernel: Cosines}, x, f.w)
	f.b.Gram(dst.View(0, m/2, r, m/2), kernels.Scaled{Weight: f.Scale, Kernel: Sines}, x, f.w)
}

func (f *Fourier) Penalty(dst backend.Matrix[float64], lambda float64) {
	numeric.ClearLower(f.b, dst)
	f.b.AddDiag([]float64{lambda}, dst)
}

func (f *Fourier) Penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	f.b.ColAxpy(numeric.Repeated(lambda, t), v, out)
}

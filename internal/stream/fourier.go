package stream

import (
	"context"
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

	b backend.Backend[float64]
	w backend.Matrix[float64]
}

// NewFourier draws m/2 frequencies of the kernel for samples of d features.
func NewFourier(ctx context.Context, k kernels.Kernel, seed uint64, m, d int) (*Fourier, error) {
	s, err := spectralOf(k, d)
	if err != nil {
		return nil, err
	}
	list, err := s.frequencies(ctx, rand.New(rand.NewPCG(seed, 1)), m/2, d)
	if err != nil {
		return nil, err
	}
	f := FourierOf(k, backend.NewHost[float64](m/2, d))
	for i, omega := range list {
		copy(f.Frequencies.Row(i), omega)
	}
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

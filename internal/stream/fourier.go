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

// Fourier is the basis φ = √(k(0)/D) (cos ω_1ᵀx, …, cos ω_Dᵀx, sin ω_1ᵀx, …) with S = I. The
// expectation of φ(x)ᵀφ(z) is k(x, z).
type Fourier struct {
	Frequencies backend.Host[float64] // one ω in each of D rows
	Scale       float64

	kernel kernels.Kernel // kernel and seed are for derivatives; FourierOf leaves them empty
	seed   uint64
	b      backend.Backend[float64]
	w      backend.Matrix[float64] // ω, or for sparse samples ωᵀ
	// For sparse samples, identity is the identity matrix of order D, and products holds ω_jᵀx for a piece (r×D).
	identity, products backend.Matrix[float64]
}

// NewFourier draws m/2 frequencies of the kernel for samples of d features.
func NewFourier(ctx context.Context, k kernels.Kernel, seed uint64, m, d int) (*Fourier, error) {
	s, err := spectralOf(k, d)
	if err != nil {
		return nil, err
	}
	omega, err := s.frequencies(ctx, rand.New(rand.NewPCG(seed, 1)), m/2, d, backend.Host[float64]{}, nil)
	if err != nil {
		return nil, err
	}
	f := FourierOf(k, omega)
	f.kernel, f.seed = k, seed
	return f, nil
}

// FourierOf returns the basis for given frequencies omega of the kernel k.
func FourierOf(k kernels.Kernel, omega backend.Host[float64]) *Fourier {
	s, _ := spectralOf(k, omega.Cols)
	return &Fourier{Frequencies: omega, Scale: math.Sqrt(s.height / float64(omega.Rows))}
}

// CheckFourier returns an error if the distribution of the frequencies of a kernel is not known.
func CheckFourier(k kernels.Kernel, d int) error {
	_, err := spectralOf(k, d)
	return err
}

// CheckFourierGradient returns an error unless the frequencies for a given seed are a differentiable function of
// the parameters of the kernel k, and addDerivatives supports k.
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

// addDerivatives adds to sums the derivatives with respect to the logarithms of the parameters of the kernel, from
// the derivatives byOmega with respect to the frequencies, d×D, and byScale with respect to ln Scale.
// CheckFourierGradient must have accepted the kernel.
func (f *Fourier) addDerivatives(ctx context.Context, byOmega backend.Host[float64], byScale float64, sums []float64) error {
	s, err := spectralOf(f.kernel, f.Frequencies.Cols)
	if err != nil {
		return err
	}
	for i, q := range kernels.Params(f.kernel) {
		if q.Min == 0 && s.height > 0 { // a parameter that may be 0 is a factor of Scale²
			sums[i] += byScale / 2
		}
	}
	_, err = s.frequencies(ctx, rand.New(rand.NewPCG(f.seed, 1)), f.Frequencies.Rows, f.Frequencies.Cols, byOmega, sums)
	return err
}

func (f *Fourier) Size() int { return 2 * f.Frequencies.Rows }

// PlaceSparse is Place for sparse samples, with blocks of at most the given number of rows.
func (f *Fourier) PlaceSparse(b backend.Backend[float64], mem *run.Arena, rows int) (err error) {
	f.b = b
	if f.w, err = mem.Place(numeric.Transpose(f.Frequencies)); err != nil {
		return err
	}
	d := f.Frequencies.Rows
	if f.identity, err = mem.New(d, d); err != nil {
		return err
	}
	numeric.Zero(b, f.identity)
	b.AddDiag([]float64{1}, f.identity)
	f.products, err = mem.New(rows, d)
	return err
}

// SparseBytes returns the memory of PlaceSparse for m functions of samples of d features, in bytes.
func SparseBytes(rows, m, d int) int64 {
	pairs := (m + 1) / 2
	return numeric.Bytes(numeric.Total(numeric.Elements(d, pairs), numeric.Elements(pairs+rows, pairs)))
}

func (f *Fourier) Place(b backend.Backend[float64], mem *run.Arena) (err error) {
	f.b = b
	if f.w, err = mem.New(f.Frequencies.Rows, f.Frequencies.Cols); err != nil {
		return err
	}
	return b.Upload(f.w, f.Frequencies)
}

// Cosines and Sines are cos(xᵀω) and sin(xᵀω) = cos(xᵀω + 3π/2) as kernels of a sample x and a frequency ω, so
// that a backend can evaluate them.
var (
	Cosines kernels.Kernel = kernels.CosOf{Kernel: kernels.Linear{}}
	Sines   kernels.Kernel = kernels.CosOf{Kernel: kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 1.5 * math.Pi}}}
)

func (f *Fourier) KernelDiagonal(numeric.Points) []float64 { return nil }

func (f *Fourier) Fill(dst, x backend.Matrix[float64]) {
	r, m := dst.Dims()
	w := f.w
	if f.products != nil { // Gram takes no sparse x with a dense ω
		products := f.products.View(0, 0, r, m/2)
		f.b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, f.w, 0, products)
		x, w = products, f.identity
	}
	f.b.Gram(dst.View(0, 0, r, m/2), kernels.Scaled{Weight: f.Scale, Kernel: Cosines}, x, w)
	f.b.Gram(dst.View(0, m/2, r, m/2), kernels.Scaled{Weight: f.Scale, Kernel: Sines}, x, w)
}

func (f *Fourier) Penalty(dst backend.Matrix[float64], lambda float64) {
	numeric.ClearLower(f.b, dst)
	f.b.AddDiag([]float64{lambda}, dst)
}

func (f *Fourier) Penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	f.b.ColAxpy(numeric.Repeated(lambda, t), v, out)
}

package solvers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// FourierProblem is ridge regression on random Fourier features (Rahimi and
// Recht 2007): f(x) = Σ_j β_j cos(ω_jᵀx) + β′_j sin(ω_jᵀx) + b, whose penalized
// squares approach those of Problem as the frequencies become many. λ is
// unscaled.
type FourierProblem struct {
	// Kernel is translation invariant: gaussian, also with a length scale for
	// each feature, laplacian, the Matérn kernels, rationalquadratic, or their
	// sums and products. It gives the distribution of the ω_j.
	Kernel kernels.Kernel
	Data   Rows
	// Count is the number of features, M; two belong to a frequency, so that an
	// odd number is raised by one. 0 is about 10√n.
	Count int
	// Orthogonal draws frequencies with orthogonal directions, which approach
	// the kernel sooner; not for kernels with an L1 distance.
	Orthogonal bool
	Seed       uint64
	Lambda     float64 // ≥ 0
	Intercept  bool    // an unpenalized b; otherwise b = 0
}

// FourierResult is a solved FourierProblem. Residual is that of the normal
// equations, as in NystromResult, with S = I.
type FourierResult struct {
	Result
	Frequencies backend.Host[float64] // ω, M/2×d
	// Beta, M×t, is of the cosines in its first half and of the sines in its
	// second.
	Beta backend.Host[float64]
}

// SolveFourier solves p on dev in passes over its samples: one for the normal
// equations of M features and one for each step of refinement. Errors are those
// of SolveNystrom.
func SolveFourier(ctx context.Context, dev backend.Device, p FourierProblem, par StreamParams) (*FourierResult, error) {
	r, err := newStreamRun(ctx, dev, par, p.Plan)
	if err != nil {
		return nil, err
	}
	defer r.Mem.FreeAll()

	n, d, t := p.Data.Dims()
	basis, err := p.basis(ctx, n, d)
	if err != nil {
		return nil, r.fail(err)
	}
	s, err := r.solve(p.Data, basis, sampled{}, p.Lambda, p.Intercept)
	if err != nil {
		return nil, r.fail(err)
	}
	err = r.finish(s)
	res := &FourierResult{Result: *r.res, Frequencies: basis.omega, Beta: backend.NewHost[float64](basis.size(), t)}
	for i, v := range s.beta.Data {
		res.Beta.Data[i] = basis.scale * v
	}
	return res, err
}

// Plan returns what SolveFourier would do and take, without reading a sample.
func (p FourierProblem) Plan(dev backend.Device, par StreamParams) (Plan, error) {
	if err := checkStream(dev, p.Kernel, p.Data, p.Lambda, par); err != nil {
		return Plan{}, err
	}
	n, d, t := p.Data.Dims()
	s, err := spectralOf(p.Kernel, d)
	if err != nil {
		return Plan{}, err
	}
	if p.Orthogonal && !s.isotropic {
		return Plan{}, fmt.Errorf("solvers: the frequencies of the kernel %v have no orthogonal directions: use one of gaussian, exponential, matern32, matern52 and rationalquadratic", p.Kernel)
	}
	if p.Count < 0 {
		return Plan{}, fmt.Errorf("solvers: the number of features must be ≥ 0, got %d", p.Count)
	}
	if par.Method == Falkon {
		return Plan{}, fmt.Errorf("solvers: the method %s preconditions the equations of kernel functions: use %s for Fourier features", Falkon, Normal)
	}
	if par.Checkpoint.Dir != "" {
		return Plan{}, fmt.Errorf("solvers: checkpoint: the method %s, which solves for Fourier features, writes none: leave the checkpoint out", Normal)
	}
	par.Method = Normal
	z := streamSizes{n: n, d: d, t: t, m: p.size(n), basis: 2 * float64(d)}
	return z.plan(dev, par, stage{"features", 0}, func(m int) (alone, basis int64) { return 0, numeric.Bytes(numeric.Elements((m+1)/2, d)) })
}

func (p FourierProblem) size(n int) int {
	m := p.Count
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	return (m + 1) / 2 * 2
}

// basis draws the frequencies.
func (p FourierProblem) basis(ctx context.Context, n, d int) (*trigonometric, error) {
	m := p.size(n)
	s, err := spectralOf(p.Kernel, d)
	if err != nil {
		return nil, err
	}
	list, err := s.frequencies(ctx, rand.New(rand.NewPCG(p.Seed, 1)), m/2, d, p.Orthogonal)
	if err != nil {
		return nil, err
	}
	f := &trigonometric{omega: backend.NewHost[float64](m/2, d), scale: math.Sqrt(s.height / float64(m/2))}
	for i, omega := range list {
		copy(f.omega.Row(i), omega)
	}
	return f, nil
}

// trigonometric is the basis √(k(0)/D) (cos ω_1ᵀx, …, cos ω_Dᵀx, sin ω_1ᵀx, …),
// whose products have the mean k(x, z). S is I.
type trigonometric struct {
	omega backend.Host[float64] // D×d
	scale float64

	b backend.Backend[float64]
	w backend.Matrix[float64]
}

func (f *trigonometric) size() int { return 2 * f.omega.Rows }

func (f *trigonometric) place(w *streamed) (err error) {
	f.b = w.b
	if f.w, err = w.mem.New(f.omega.Rows, f.omega.Cols); err != nil {
		return err
	}
	return w.b.Upload(f.w, f.omega)
}

// Cosines and Sines are cos(xᵀω) and sin(xᵀω) = cos(xᵀω + 3π/2) of a sample x and
// a frequency ω, as what a backend evaluates.
var (
	Cosines kernels.Kernel = kernels.CosOf{Kernel: kernels.Linear{}}
	Sines   kernels.Kernel = kernels.CosOf{Kernel: kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 1.5 * math.Pi}}}
)

func (f *trigonometric) fill(dst, x backend.Matrix[float64]) {
	r, m := dst.Dims()
	f.b.Gram(dst.View(0, 0, r, m/2), kernels.Scaled{Weight: f.scale, Kernel: Cosines}, x, f.w)
	f.b.Gram(dst.View(0, m/2, r, m/2), kernels.Scaled{Weight: f.scale, Kernel: Sines}, x, f.w)
}

func (f *trigonometric) penalty(dst backend.Matrix[float64], lambda float64) {
	numeric.ClearLower(f.b, dst)
	f.b.AddDiag([]float64{lambda}, dst)
}

func (f *trigonometric) penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	f.b.ColAxpy(numeric.Repeated(lambda, t), v, out)
}

package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// FourierProblem is ridge regression on random Fourier features (Rahimi and Recht 2007): f(x) = Σ_j β_j cos(ω_jᵀx)
// + β′_j sin(ω_jᵀx) + b. With more frequencies, the solution approaches that of Problem. λ is unscaled.
type FourierProblem struct {
	// Kernel determines the distribution of the ω_j. It must be translation invariant: Gaussian (also with a length
	// scale for each feature), Laplacian, Matérn, rational quadratic, or sums and products of these kernels.
	Kernel kernels.Kernel
	Data   Rows
	// Sparse has the meaning of NystromProblem.Sparse. It cannot be combined with StreamParams.Gradient.
	Sparse *backend.CSR[float64]
	// Count is the number of features, M, rounded up to an even number. 0 means about 10√n.
	Count     int
	Seed      uint64
	Lambda    float64 // ≥ 0
	Intercept bool    // an unpenalized b; otherwise b = 0
}

// SolveFourier solves p on dev: one pass over the samples sums the normal equations of M features, and each step of
// refinement takes another pass. It returns errors under the same conditions as SolveNystrom.
func SolveFourier(ctx context.Context, dev backend.Device, p FourierProblem, par StreamParams) (*StreamResult, error) {
	if p.Data != nil { // report the host memory of a piece of samples, of the frequencies, and of packed samples
		n, d := p.dims()
		m := max(p.size(n), 0)
		rows := stream.PieceRows(n, m)
		if p.Sparse != nil {
			ctx = run.Beside(ctx, numeric.Bytes(numeric.Elements(m/2, max(d, 0))))
		} else {
			ctx = run.Beside(run.Packing(ctx, dev, rows, d), numeric.Bytes(numeric.Elements(max(rows, 0)+m/2, max(d, 0))))
		}
	}
	r, err := newStreamRun(ctx, dev, par, p.Plan)
	if err != nil {
		return nil, err
	}
	defer r.Mem.FreeAll()

	if p.Sparse != nil {
		if err := numeric.SparsePoints(*p.Sparse).CheckFinite("x"); err != nil {
			return nil, fmt.Errorf("solvers: %w", err)
		}
	}
	n, d := p.dims()
	_, _, t := p.Data.Dims()
	basis, err := p.basis(ctx, n, d)
	if err != nil {
		return nil, r.fail(err)
	}
	s, err := r.solve(p.Data, p.Sparse, basis, stream.Sampled{}, p.Lambda, p.Intercept)
	if err != nil {
		return nil, r.fail(err)
	}
	if s.Sums != nil {
		s.Sums.Scale = basis.Scale
	}
	err = r.finish(s)
	res := &StreamResult{Result: *r.res, Frequencies: basis.Frequencies, Beta: backend.NewHost[float64](basis.Size(), t), Posterior: r.posterior, Gradient: r.gradient, Sums: s.Sums}
	for i, v := range s.Beta.Data {
		res.Beta.Data[i] = basis.Scale * v
	}
	return res, err
}

// dims returns the numbers of samples and of their features.
func (p FourierProblem) dims() (n, d int) {
	n, d, _ = p.Data.Dims()
	if p.Sparse != nil {
		d = p.Sparse.Cols
	}
	return n, d
}

// Plan returns the plan of SolveFourier without reading a sample.
func (p FourierProblem) Plan(dev backend.Device, par StreamParams) (Plan, error) {
	if err := checkStream(dev, p.Kernel, p.Data, p.Sparse, p.Lambda, par); err != nil {
		return Plan{}, err
	}
	n, d := p.dims()
	_, _, t := p.Data.Dims()
	if err := stream.CheckFourier(p.Kernel, d); err != nil {
		return Plan{}, err
	}
	if par.Gradient {
		if p.Sparse != nil {
			return Plan{}, errors.New("solvers: the gradient needs dense samples")
		}
		if err := stream.CheckFourierGradient(p.Kernel); err != nil {
			return Plan{}, err
		}
	}
	if p.Count < 0 {
		return Plan{}, fmt.Errorf("solvers: the number of features must be ≥ 0, got %d", p.Count)
	}
	if par.Method == Falkon {
		return Plan{}, fmt.Errorf("solvers: the method %s preconditions the equations of kernel functions: use %s for Fourier features", Falkon, Normal)
	}
	if par.Checkpoint.Dir != "" {
		return Plan{}, fmt.Errorf("solvers: checkpoint: the method %s, which solves for Fourier features, writes no checkpoint: leave it out", Normal)
	}
	par.Method = Normal
	z := streamSizes{n: n, d: d, t: t, m: p.size(n), basis: 2 * float64(d)}
	if p.Sparse != nil {
		x := numeric.SparsePoints(*p.Sparse)
		z.d, z.stored, z.basis = 1, 1, 2*sparseFeature*float64(Problem{Sparse: p.Sparse}.width())+float64(z.m)
		return z.plan(dev, par, stage{"features", 0}, func(m int) (stageBytes, basis int64) {
			rows := stream.PieceRows(n, m)
			return 0, numeric.Total(stream.SparseBytes(rows, m, d), x.PlacedBytes(dev.F64(), rows), x.CopyBytes(rows))
		})
	}
	return z.plan(dev, par, stage{"features", 0}, func(m int) (stageBytes, basis int64) { return 0, numeric.Bytes(numeric.Elements((m+1)/2, d)) })
}

func (p FourierProblem) size(n int) int {
	m := p.Count
	if m == 0 {
		m = int(10 * math.Sqrt(float64(n)))
	}
	return (m + 1) / 2 * 2
}

// basis draws the frequencies for n samples of d features.
func (p FourierProblem) basis(ctx context.Context, n, d int) (*stream.Fourier, error) {
	return stream.NewFourier(ctx, p.Kernel, p.Seed, p.size(n), d)
}

// Basis returns the random features of p for samples of d features: omega, the M/2×d frequencies that SolveFourier
// draws from Kernel and Seed, and scale, the factor of the basis
//
//	scale · (cos ω_1ᵀx, …, cos ω_Dᵀx, sin ω_1ᵀx, …, sin ω_Dᵀx),  D = M/2
//
// StreamResult.Beta already includes the scale. Count must be > 0.
func (p FourierProblem) Basis(ctx context.Context, d int) (omega backend.Host[float64], scale float64, err error) {
	switch {
	case p.Kernel == nil:
		return omega, 0, errors.New("solvers: the kernel is missing")
	case p.Count <= 0 || d <= 0:
		return omega, 0, fmt.Errorf("solvers: the numbers of random features and of features must be ≥ 1, got %d and %d", p.Count, d)
	}
	if err := p.Kernel.Check(d); err != nil {
		return omega, 0, fmt.Errorf("solvers: %w", err)
	}
	if err := stream.CheckFourier(p.Kernel, d); err != nil {
		return omega, 0, err
	}
	f, err := p.basis(ctx, p.Count, d)
	if err != nil {
		return omega, 0, fmt.Errorf("solvers: %w", err)
	}
	return f.Frequencies, f.Scale, nil
}

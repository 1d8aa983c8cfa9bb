package adjoint

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// Gram sets the n×m matrix dst to k(X, Z) for the rows of x, n×d, and z, m×d. If z has no rows or is x itself, Gram
// computes k(X, X), exactly symmetric and with distances of exactly 0 on the diagonal.
func Gram(ctx context.Context, dev backend.Device, k kernels.Kernel, x, z, dst host) error {
	return wrapError("gram", gram(ctx, dev, k, x, z, dst))
}

func gram(ctx context.Context, dev backend.Device, k kernels.Kernel, x, z, dst host) error {
	// If x and z are the same matrix, a backend computes only the lower triangle.
	symmetric := z.Rows == 0 || z.Rows == x.Rows && z.Cols == x.Cols && z.Stride == x.Stride && len(z.Data) > 0 && len(x.Data) > 0 && &z.Data[0] == &x.Data[0]
	if symmetric {
		z = x
	}
	if err := checkPoints(k, "x", x, x.Cols); err != nil {
		return err
	}
	if err := checkPoints(k, "z", z, x.Cols); err != nil {
		return err
	}
	if dst.Rows != x.Rows || dst.Cols != z.Rows {
		return fmt.Errorf("dst is %d×%d, k(X, Z) is %d×%d", dst.Rows, dst.Cols, x.Rows, z.Rows)
	}
	w, err := newWork(ctx, dev)
	if err != nil {
		return err
	}
	defer w.Mem.FreeAll()
	out, err := w.buffer(dst)
	if err != nil {
		return err
	}
	mx, err := w.Mem.Place(x)
	if err != nil {
		return err
	}
	mz := mx
	if !symmetric {
		if mz, err = w.Mem.Place(z); err != nil {
			return err
		}
	}
	w.B.Gram(out.m, k, mx, mz)
	if err := out.download(); err != nil {
		return err
	}
	if symmetric {
		mirror(dst)
	}
	return nil
}

func mirror(h host) {
	const tile = 64
	for i := 0; i < h.Rows; i += tile {
		for j := 0; j <= i; j += tile {
			for r := i; r < min(i+tile, h.Rows); r++ {
				row := h.Row(r)
				for c := j; c < min(j+tile, r); c++ {
					h.Data[c*h.Stride+r] = row[c]
				}
			}
		}
	}
}

// Weights is the gradient of a loss with respect to an n×m Gram matrix: either the matrix Dense, or
// the product U Vᵀ with U n×t and V m×t, which is never formed.
type Weights struct {
	Dense host
	U, V  host
}

// Want selects the gradients to compute.
type Want uint8

const (
	WantX     Want = 1 << iota // gradient with respect to the rows of X
	WantZ                      // gradient with respect to the rows of Z
	WantTheta                  // gradient with respect to the kernel's parameters
	WantShift                  // the field Shift of Gradients
)

const wantPoints = WantX | WantZ | WantShift

// GramLoss describes a loss that depends on K = k(X, Z). Weights is its gradient with respect to K.
// If Z has no rows, the loss depends on K = k(X, X). The gradient with respect to X then includes
// both arguments of k, and Weights need not be symmetric.
type GramLoss struct {
	Kernel  kernels.Kernel
	X, Z    host
	Weights Weights
}

// Gradients holds the results of GramGradient; gradients that were not requested are empty.
type Gradients struct {
	X, Z host
	// Theta holds the derivatives with respect to the parameters of kernels.Params, in their order:
	// with respect to ln θ for a parameter whose Log is set, and to θ otherwise.
	Theta []float64
	// Shift is m×d. Row j is Σ_i W_ij ∂k(x_i, z_j)/∂x_i. This is the derivative of Σ_i W_ij k(x_i + s, z_j) with
	// respect to s at s = 0.
	Shift host
}

// GramGradient returns the gradients of a loss with respect to the points and the kernel's parameters θ, given its
// gradient W = l.Weights with respect to K:
//
//	∂loss/∂x_i = Σ_j W_ij ∂k(x_i, z_j)/∂x_i   ∂loss/∂θ = Σ_ij W_ij ∂k(x_i, z_j)/∂θ
//
// At corners of a kernel it uses the subgradient 0, as kernels.EvalGrad does. It works in blocks of rows of X. For
// kernels of xᵀz and ‖x−z‖² the device takes 4nmd operations. For other kernels the host sums over the features.
func GramGradient(ctx context.Context, dev backend.Device, l GramLoss, want Want) (*Gradients, error) {
	g, err := gramGradient(ctx, dev, l, want)
	return g, wrapError("gradient of a gram matrix", err)
}

func gramGradient(ctx context.Context, dev backend.Device, l GramLoss, want Want) (*Gradients, error) {
	k, x, z, weights := l.Kernel, l.X, l.Z, l.Weights
	symmetric := z.Rows == 0
	if symmetric {
		z = x
	}
	if err := checkPoints(k, "x", x, x.Cols); err != nil {
		return nil, err
	}
	if err := checkPoints(k, "z", z, x.Cols); err != nil {
		return nil, err
	}
	if err := weights.check(x.Rows, z.Rows); err != nil {
		return nil, err
	}
	if want&wantPoints != 0 {
		if err := kernels.CheckGrad(k, x.Cols); err != nil {
			return nil, err
		}
	}
	w, err := newWork(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer w.Mem.FreeAll()
	s := &gramSums{work: w, k: k, x: x, z: z, weights: weights, want: want}
	if symmetric && want&WantX != 0 {
		s.want |= WantZ
	}
	// Divide equal X and Z into at least two blocks, because the backend computes only one triangle of k(X, X).
	s.block = min(max(s.blockPairs()/z.Rows, 16), x.Rows)
	if x.Rows == z.Rows && s.block == x.Rows {
		s.block = (x.Rows + 1) / 2
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	for first := 0; first < x.Rows; first += s.block {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := s.add(first, min(s.block, x.Rows-first)); err != nil {
			return nil, err
		}
	}
	g := &Gradients{Theta: s.theta}
	gx, gz, err := s.finish()
	if err != nil {
		return nil, err
	}
	if want&WantShift != 0 {
		if g.Shift, err = s.shift(); err != nil {
			return nil, err
		}
	}
	if want&WantX != 0 {
		if symmetric {
			for i, v := range gz.Data {
				gx.Data[i] += v
			}
		}
		g.X = gx
	}
	if want&WantZ != 0 && !symmetric {
		g.Z = gz
	}
	return g, nil
}

// A block has at most blockElements pairs. If the host sums over features, it has at most blockTerms terms, so
// that the work stops within about 0.1 s after its context is done.
const (
	blockElements = 1 << 21
	blockTerms    = 1 << 25
)

func (s *gramSums) blockPairs() int {
	if s.want&wantPoints != 0 {
		for _, stat := range kernels.Compile(s.k).Stats {
			if !productStat(s.k, stat) && !stat.Kind.OnePoint() {
				return min(blockElements, blockTerms/(s.x.Cols*max(1, len(stat.Freqs))))
			}
		}
	}
	return blockElements
}

func (w Weights) check(n, m int) error {
	switch {
	case w.Dense.Rows > 0:
		if err := checkMatrix("the weights", w.Dense); err != nil {
			return err
		}
		if w.Dense.Rows != n || w.Dense.Cols != m {
			return fmt.Errorf("the weights are %d×%d, k(X, Z) is %d×%d", w.Dense.Rows, w.Dense.Cols, n, m)
		}
		return nil
	case w.U.Cols != w.V.Cols:
		return fmt.Errorf("u has %s, v has %d", count.Of(w.U.Cols, "column"), w.V.Cols)
	}
	if err := checkRows("u", w.U, n, "x"); err != nil {
		return err
	}
	return checkRows("v", w.V, m, "z")
}

// productStat reports whether the sums over pairs for the statistic s can be computed by matrix products.
func productStat(k kernels.Kernel, s kernels.Stat) bool {
	return s.Kind == kernels.Dot || s.Kind == kernels.SqDist && kernels.StatDerivatives(k)[0].Bounded()
}

// centered returns copies of x and z minus the mean of z: products of points far from 0 would cancel.
func centered(x, z host) (cx, cz host) {
	mean := make([]float64, z.Cols)
	for i := range z.Rows {
		for p, v := range z.Row(i) {
			mean[p] += v / float64(z.Rows)
		}
	}
	subtractMean := func(h host) host {
		c := backend.NewHost[float64](h.Rows, h.Cols)
		for i := range h.Rows {
			row := c.Row(i)
			for p, v := range h.Row(i) {
				row[p] = v - mean[p]
			}
		}
		return c
	}
	return subtractMean(x), subtractMean(z)
}

package stream

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Basis consists of M functions φ of a sample, with f(x) = φ(x)ᵀβ, and of the M×M matrix S of the penalty βᵀSβ.
// Only one caller may use a Basis after Place.
type Basis interface {
	// Size returns M.
	Size() int
	// Place copies the basis to the device.
	Place(b backend.Backend[float64], mem *run.Arena) error
	// KernelDiagonal returns k(x, x) for the rows of x. It returns nil if the basis represents k exactly, so that
	// k(x, x) = φ(x)ᵀS⁻¹φ(x).
	KernelDiagonal(x numeric.Points) []float64
	// Fill queues dst ← Φ for the r×d samples x.
	Fill(dst, x backend.Matrix[float64])
	// Penalty queues dst ← λS. Only the lower triangle of dst need be set.
	Penalty(dst backend.Matrix[float64], lambda float64)
	// Penalize queues the update of out to out + λSv. out and v are M×t.
	Penalize(out, v backend.Matrix[float64], lambda float64)
}

// Centers is the basis k(x, c_j) with centers c_j, as in the method of Nyström. S is k(c, c), so
// that βᵀSβ is the squared norm of f in the space of k.
type Centers struct {
	Kernel  kernels.Kernel
	Points  numeric.Points // the centers, M×d
	Columns int            // the number t of outputs

	b   backend.Backend[float64]
	c   backend.Matrix[float64]
	tmp backend.Matrix[float64] // M×t scratch matrix of Penalize
}

func (c *Centers) Size() int { return c.Points.Rows }

func (c *Centers) Place(b backend.Backend[float64], mem *run.Arena) (err error) {
	c.b = b
	if c.tmp, err = mem.New(c.Points.Rows, c.Columns); err != nil {
		return err
	}
	if c.Points.Sparse != nil {
		if c.c, err = c.Points.Place(b); err == nil {
			mem.Keep(c.c)
		}
		return err
	}
	if c.c, err = mem.New(c.Points.Rows, c.Points.Cols); err != nil {
		return err
	}
	return b.Upload(c.c, c.Points.Dense)
}

func (c *Centers) KernelDiagonal(x numeric.Points) []float64 { return x.Diagonal(c.Kernel) }

func (c *Centers) Fill(dst, x backend.Matrix[float64]) { c.b.Gram(dst, c.Kernel, x, c.c) }

func (c *Centers) Penalty(dst backend.Matrix[float64], lambda float64) {
	c.b.Gram(dst, kernels.Scaled{Weight: lambda, Kernel: c.Kernel}, c.c, c.c)
}

func (c *Centers) Penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	tmp := c.tmp.View(0, 0, c.Points.Rows, t)
	c.b.GramMul(tmp, c.Kernel, c.c, c.c, v)
	c.b.ColAxpy(numeric.Repeated(lambda, t), tmp, out)
}

// Features is the basis φ(x) = x of the d features, with S = I.
type Features struct {
	Columns int // the number d of features

	b backend.Backend[float64]
}

func (f *Features) Size() int { return f.Columns }

func (f *Features) Place(b backend.Backend[float64], _ *run.Arena) error {
	f.b = b
	return nil
}

func (f *Features) KernelDiagonal(numeric.Points) []float64 { return nil }

func (f *Features) Fill(dst, x backend.Matrix[float64]) { numeric.Copy(f.b, dst, x) }

func (f *Features) Penalty(dst backend.Matrix[float64], lambda float64) {
	numeric.Zero(f.b, dst)
	f.b.AddDiag(numeric.Repeated(lambda, f.Columns), dst)
}

func (f *Features) Penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	f.b.ColAxpy(numeric.Repeated(lambda, t), v, out)
}

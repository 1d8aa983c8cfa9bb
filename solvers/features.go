package solvers

import (
	"fmt"
	"hash"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

var anyKernel kernels.Kernel = kernels.Linear{}

// basis is M functions φ of a sample and the M×M matrix S of
// the penalty βᵀSβ of f(x) = φ(x)ᵀβ. Once placed it is for one caller.
type basis interface {
	// size is M.
	size() int
	// place puts the basis on the device.
	place(w *streamed) error
	// fill queues dst ← Φ for the r×d samples x.
	fill(dst, x backend.Matrix[float64])
	// penalty queues dst ← λS, its lower triangle.
	penalty(dst backend.Matrix[float64], lambda float64)
	// penalize queues out ← out + λSv, both M×t.
	penalize(out, v backend.Matrix[float64], lambda float64)
}

// centered is the basis k(x, c_j) of centers c: the method of Nyström. S is
// k(c, c), so that βᵀSβ is the norm of f in the space of k.
type centered struct {
	kernel kernels.Kernel
	host   backend.Host[float64] // M×d
	t      int

	b   backend.Backend[float64]
	c   backend.Matrix[float64]
	tmp backend.Matrix[float64] // M×t
}

func (c *centered) size() int { return c.host.Rows }

// hash writes all that Φ depends on beside the samples.
func (c *centered) hash(h hash.Hash) {
	fmt.Fprintf(h, "centers %v\n", c.kernel)
	hashHost(h, c.host)
}

func (c *centered) place(w *streamed) (err error) {
	c.b = w.b
	if c.c, err = w.mem.New(c.host.Rows, c.host.Cols); err != nil {
		return err
	}
	if c.tmp, err = w.mem.New(c.host.Rows, c.t); err != nil {
		return err
	}
	return w.b.Upload(c.c, c.host)
}

func (c *centered) fill(dst, x backend.Matrix[float64]) { c.b.Gram(dst, c.kernel, x, c.c) }

func (c *centered) penalty(dst backend.Matrix[float64], lambda float64) {
	c.b.Gram(dst, kernels.Scaled{Weight: lambda, Kernel: c.kernel}, c.c, c.c)
}

func (c *centered) penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	tmp := c.tmp.View(0, 0, c.host.Rows, t)
	c.b.GramMul(tmp, c.kernel, c.c, c.c, v)
	c.b.ColAxpy(numeric.Repeated(lambda, t), tmp, out)
}

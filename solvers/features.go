package solvers

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

var anyKernel kernels.Kernel = kernels.Linear{}

// basis is M functions φ of a sample, on the device, and the M×M matrix S of
// the penalty βᵀSβ of f(x) = φ(x)ᵀβ. Once placed it is for one caller.
type basis interface {
	// size is M.
	size() int
	// bytes is what the basis takes on the device, for pieces of r rows.
	bytes(r int) int64
	// place puts the basis on the device, for pieces of up to r rows.
	place(w *streamed, r int) error
	// fill queues dst ← Φ for the r×d samples x.
	fill(dst, x backend.Matrix[float64])
	// penalty queues dst ← λS, its lower triangle.
	penalty(dst backend.Matrix[float64], lambda float64)
	// penalize queues out ← out + λSv, both M×t.
	penalize(out, v backend.Matrix[float64], lambda float64)
	// flops of filling r rows.
	flops(r int) float64
}

// centred is the basis k(x, c_j) of centers c: the method of Nyström. S is
// k(c, c), so that βᵀSβ is the norm of f in the space of k.
type centred struct {
	kernel kernels.Kernel
	host   backend.Host[float64] // M×d
	t      int

	b   backend.Backend[float64]
	c   backend.Matrix[float64]
	tmp backend.Matrix[float64] // M×t
}

func (c *centred) size() int           { return c.host.Rows }
func (c *centred) flops(r int) float64 { return backend.GramFlops(r, c.host.Rows, c.host.Cols, false) }
func (c *centred) bytes(int) int64     { return bytes(elements(c.host.Rows, c.host.Cols+c.t)) }

func (c *centred) place(w *streamed, _ int) (err error) {
	c.b = w.b
	if c.c, err = w.mem.new(c.host.Rows, c.host.Cols); err != nil {
		return err
	}
	if c.tmp, err = w.mem.new(c.host.Rows, c.t); err != nil {
		return err
	}
	return w.b.Upload(c.c, c.host)
}

func (c *centred) fill(dst, x backend.Matrix[float64]) { c.b.Gram(dst, c.kernel, x, c.c) }

func (c *centred) penalty(dst backend.Matrix[float64], lambda float64) {
	c.b.Gram(dst, kernels.Scaled{Weight: lambda, Kernel: c.kernel}, c.c, c.c)
}

func (c *centred) penalize(out, v backend.Matrix[float64], lambda float64) {
	_, t := v.Dims()
	tmp := c.tmp.View(0, 0, c.host.Rows, t)
	c.b.GramMul(tmp, c.kernel, c.c, c.c, v)
	c.b.ColAxpy(repeated(lambda, t), tmp, out)
}

// repeated returns count times v.
func repeated(v float64, count int) []float64 {
	list := make([]float64, count)
	for i := range list {
		list[i] = v
	}
	return list
}

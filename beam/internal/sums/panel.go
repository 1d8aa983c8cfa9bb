package sums

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

const (
	// PanelRows is the number of rows of a panel: enough for a Syrk to run at full speed.
	PanelRows = 512
	// PlainRows is the number of rows whose products are summed in float64 on the device. Adding this sum to the pairs
	// of float64 takes as long as the products of about 10 rows.
	PlainRows = 8 * PanelRows
)

// A Gatherer computes the inner products of all pairs of columns of
//
//	Z = [Φ | Y − y₀ | 1],  q = M + t + 1 columns
//
// The sums are ΦᵀΦ, ΦᵀY, YᵀY, Φᵀ1, Yᵀ1 and n: the lower triangle of ZᵀZ, packed by rows. If the basis has a Root,
// the last sum is Σ k(x, x). Only one goroutine at a time may use a Gatherer.
type Gatherer struct {
	b       backend.Backend[float64]
	phi     *deviceBasis
	rule    func([]float64) error // the kernel's check of a point; nil if the kernel has no check
	m, t, q int

	panel   panel // buffered rows; its targets are y − y₀
	ones    backend.Host[float64]
	z, c    backend.Matrix[float64] // z: a panel of Z, 512×q; c: the sum of the products since the last call of fold, q×q
	rowsInC int                     // number of rows whose products are in c
	host    backend.Host[float64]
	sums    *Sums
}

// panel buffers rows until there are PanelRows of them.
type panel struct {
	x, y   backend.Host[float64]
	filled int
	shift  []float64 // subtracted from each row of y; nil means zeros
}

func newPanel(d, t int, shift []float64) panel {
	return panel{x: backend.NewHost[float64](PanelRows, d), y: backend.NewHost[float64](PanelRows, t), shift: shift}
}

// add checks each row and adds it to the panel. It calls multiply, which must empty the panel, when it is full.
func (p *panel) add(x, y backend.Host[float64], check func(row []float64) error, multiply func() error) error {
	if x.Cols != p.x.Cols || y.Cols != p.y.Cols || x.Rows != y.Rows {
		return fmt.Errorf("sums: features are %d×%d and targets %d×%d, but rows must have %d features and %d targets", x.Rows, x.Cols, y.Rows, y.Cols, p.x.Cols, p.y.Cols)
	}
	for i := range x.Rows {
		row := x.Row(i)
		if check != nil {
			if err := check(row); err != nil {
				return fmt.Errorf("sums: row %d: %w", i+1, err)
			}
		}
		copy(p.x.Row(p.filled), row)
		to := p.y.Row(p.filled)
		copy(to, y.Row(i))
		for j, v := range p.shift {
			to[j] -= v
		}
		if p.filled++; p.filled == PanelRows {
			if err := multiply(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows returns the buffered rows.
func (p *panel) rows() (x, y backend.Host[float64]) {
	return p.x.View(0, 0, p.filled, p.x.Cols), p.y.View(0, 0, p.filled, p.y.Cols)
}

// GathererBytes returns the bytes of a Gatherer for q columns of Z and d features, without the basis.
func GathererBytes(q, d int) int64 {
	return 16*int64(q)*int64(q) + 8*PanelRows*int64(q+2*d+1) + Bytes(Triangle(q))
}

// NewGatherer allocates a Gatherer for rows with t targets. targetShift, y₀, is subtracted from the targets of each
// row to avoid cancellation; nil means zeros. Free releases the memory.
func NewGatherer(dev backend.Device, basis Basis, t int, targetShift []float64) (*Gatherer, error) {
	if err := basis.Check(); err != nil {
		return nil, err
	}
	if t <= 0 || targetShift != nil && len(targetShift) != t {
		return nil, fmt.Errorf("sums: there are %d targets, but the shift has %d elements", t, len(targetShift))
	}
	g := &Gatherer{b: dev.F64(), m: basis.Size(), t: t, panel: newPanel(basis.Features, t, targetShift)}
	g.q = g.m + t + 1
	if basis.Kernel != nil {
		g.rule = kernels.PointRule(basis.Kernel)
	}
	g.ones = backend.NewHost[float64](PanelRows, 1)
	for i := range g.ones.Data {
		g.ones.Data[i] = 1
	}
	g.host = backend.NewHost[float64](g.q, g.q)
	g.sums = NewSums(basis.Sums(t))
	var err error
	if g.phi, err = basis.toDevice(g.b, PanelRows); err != nil {
		return nil, fmt.Errorf("sums: %w", err)
	}
	if g.z, err = g.b.New(PanelRows, g.q); err == nil {
		g.c, err = g.b.New(g.q, g.q)
	}
	if err != nil {
		g.Free()
		return nil, fmt.Errorf("sums: %w", err)
	}
	return g, nil
}

// Free releases the memory on the device.
func (g *Gatherer) Free() {
	g.phi.free()
	for _, m := range []backend.Matrix[float64]{g.z, g.c} {
		if m != nil {
			m.Free()
		}
	}
}

// Add copies and adds the rows of x, r×d, and y, r×t, whose elements must be finite.
func (g *Gatherer) Add(x, y backend.Host[float64]) error {
	return g.panel.add(x, y, g.rule, g.multiply)
}

// multiply adds the products of the buffered rows to c.
func (g *Gatherer) multiply() error {
	r := g.panel.filled
	if r == 0 {
		return nil
	}
	x, y := g.panel.rows()
	if g.phi.root != nil {
		for _, v := range numeric.DensePoints(x).Diagonal(g.phi.Kernel) {
			g.sums.Add(Triangle(g.q), v)
		}
	}
	z := g.z.View(0, 0, r, g.q)
	if err := g.phi.fill(z.View(0, 0, r, g.m), x); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	if err := g.b.Upload(z.View(0, g.m, r, g.t), y); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	if err := g.b.Upload(z.View(0, g.m+g.t, r, 1), g.ones.View(0, 0, r, 1)); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	beta := 1.0
	if g.rowsInC == 0 {
		beta = 0
	}
	g.b.Syrk(backend.Lower, backend.Transpose, 1, z, beta, g.c)
	if err := g.b.Sync(); err != nil { // wait, because the buffer and the panel will be reused
		return fmt.Errorf("sums: %w", err)
	}
	g.panel.filled = 0
	if g.rowsInC += r; g.rowsInC >= PlainRows {
		return g.fold()
	}
	return nil
}

// fold adds the products in g.c to g.sums.
func (g *Gatherer) fold() error {
	if g.rowsInC == 0 {
		return nil
	}
	if err := g.b.Download(g.host, g.c); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	high, low := g.sums.high, g.sums.low
	for i := range g.q {
		first := packedIndex(i, 0)
		for j, v := range g.host.Row(i)[:i+1] {
			high[first+j], low[first+j] = addOne(high[first+j], low[first+j], v)
		}
	}
	g.sums.Rows += int64(g.rowsInC)
	g.rowsInC = 0
	return nil
}

// Take returns the sums over the rows added since the last Take and resets them. Their bits depend only on these
// rows and their order.
func (g *Gatherer) Take() (*Sums, error) {
	if err := g.multiply(); err != nil {
		return nil, err
	}
	if err := g.fold(); err != nil {
		return nil, err
	}
	s := g.sums
	g.sums = NewSums(s.Len())
	return s, nil
}

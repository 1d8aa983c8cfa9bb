package sums

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Kind is the family of the functions of a Basis.
type Kind string

const (
	Linear  Kind = "linear"  // φ(x) = x − shift
	Centers Kind = "centers" // φ_j(x) = k(c_j, x): Nyström
	Fourier Kind = "fourier" // scaled cosines and sines of ω_jᵀx
)

// Basis holds M functions φ of a sample of d features. A model is f(x) = φ(x)ᵀβ + b.
type Basis struct {
	Kind     Kind
	Features int                   // d
	Kernel   kernels.Kernel        // the kernel, for Centers and Fourier
	Points   backend.Host[float64] // the centers, M×d, or the frequencies, M/2×d
	Scale    float64               // for Fourier: see solvers.FourierProblem.Basis
	Shift    []float64             // for Linear: subtracted from each sample to avoid cancellation; nil means 0
	// Root, for Centers, is the upper triangle T with TᵀT = k(c, c), M×M, or empty. With a Root the functions are ψ
	// = T⁻ᵀφ instead of φ, the penalty of ψ is the identity, and the sums include Σ k(x, x).
	Root backend.Host[float64]
}

// LinearBasis returns the basis φ(x) = x − shift of d features; shift may be nil.
func LinearBasis(d int, shift []float64) Basis { return Basis{Kind: Linear, Features: d, Shift: shift} }

// CentersBasis returns the basis of the functions k(c, ·) for the given centers c.
func CentersBasis(k kernels.Kernel, centers backend.Host[float64]) Basis {
	return Basis{Kind: Centers, Features: centers.Cols, Kernel: k, Points: centers}
}

// Whitened returns the basis b, of kind Centers, with a Root and thus with the functions ψ.
func (b Basis) Whitened(ctx context.Context, dev backend.Device) (Basis, error) {
	var err error
	b.Root, err = (&stream.Centers{Kernel: b.Kernel, Points: numeric.DensePoints(b.Points), Columns: 1}).Root(ctx, dev)
	return b, err
}

// Coef converts coefficients gamma of the functions of b to coefficients of the functions k(c, ·), T⁻¹γ if b has a
// Root.
func (b Basis) Coef(gamma backend.Host[float64]) backend.Host[float64] {
	beta := numeric.Clone(gamma)
	for i := b.Root.Rows - 1; i >= 0; i-- {
		row := b.Root.Row(i)
		for j := range beta.Cols {
			v := beta.Row(i)[j]
			for k := i + 1; k < beta.Rows; k++ {
				v -= row[k] * beta.Row(k)[j]
			}
			beta.Row(i)[j] = v / row[i]
		}
	}
	return beta
}

// Sums returns the number of sums that a Gatherer of this basis accumulates for t targets.
func (b Basis) Sums(t int) int {
	count := Triangle(b.Size() + t + 1)
	if b.Root.Rows > 0 {
		count++
	}
	return count
}

// FourierBasis returns the basis of solvers.FourierProblem for the given kernel, Count and Seed.
func FourierBasis(ctx context.Context, k kernels.Kernel, d, count int, seed uint64) (Basis, error) {
	p := solvers.FourierProblem{Kernel: k, Count: count, Seed: seed}
	omega, scale, err := p.Basis(ctx, d)
	return Basis{Kind: Fourier, Features: d, Kernel: k, Points: omega, Scale: scale}, err
}

// Size returns the number M of functions.
func (b Basis) Size() int {
	switch b.Kind {
	case Linear:
		return b.Features
	case Fourier:
		return 2 * b.Points.Rows
	}
	return b.Points.Rows
}

// Check returns nil if b is valid.
func (b Basis) Check() error {
	switch {
	case b.Features <= 0:
		return errors.New("sums: the basis has no features")
	case b.Kind == Linear && b.Shift != nil && len(b.Shift) != b.Features:
		return fmt.Errorf("sums: the basis has %d shifts for %d features", len(b.Shift), b.Features)
	case b.Kind == Linear:
		return nil
	case b.Kind != Centers && b.Kind != Fourier:
		return fmt.Errorf("sums: unknown kind of basis %q", b.Kind)
	case b.Kernel == nil:
		return errors.New("sums: the kernel of the basis is missing")
	case b.Root.Rows > 0 && (b.Kind != Centers || b.Root.Rows != b.Points.Rows || b.Root.Cols != b.Points.Rows):
		return fmt.Errorf("sums: a factor of order %d does not fit a basis of %d points", b.Root.Rows, b.Points.Rows)
	case b.Points.Rows <= 0 || b.Points.Cols != b.Features:
		return fmt.Errorf("sums: a basis of %d×%d points does not fit %d features", b.Points.Rows, b.Points.Cols, b.Features)
	}
	if err := b.Kernel.Check(b.Features); err != nil {
		return fmt.Errorf("sums: %w", err)
	}
	return backend.CheckPoints(b.Kernel, "points of the basis", b.Points)
}

// header holds the fields of a Basis that are not arrays.
type header struct {
	Kind     Kind
	Features int
	Kernel   string `json:",omitempty"`
	Points   int
	Scale    uint64 // the bits of Basis.Scale
	Shifted  bool
	Rooted   bool
}

// MarshalBinary returns the length of a JSON header, the header, the points, the shift, and the upper triangle of
// Root by rows.
func (b Basis) MarshalBinary() ([]byte, error) {
	h := header{Kind: b.Kind, Features: b.Features, Points: b.Points.Rows, Scale: math.Float64bits(b.Scale), Shifted: b.Shift != nil, Rooted: b.Root.Rows > 0}
	if b.Kernel != nil {
		h.Kernel = b.Kernel.String()
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("sums: %w", err)
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	out = append(out, head...)
	write := func(row []float64) {
		for _, v := range row {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	for i := range b.Points.Rows {
		write(b.Points.Row(i))
	}
	write(b.Shift)
	for i := range b.Root.Rows {
		write(b.Root.Row(i)[i:])
	}
	return out, nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (b *Basis) UnmarshalBinary(data []byte) error {
	var h header
	size := uint64(0)
	if len(data) >= 8 {
		size = binary.LittleEndian.Uint64(data)
		data = data[8:]
	}
	if size == 0 || size > uint64(len(data)) {
		return errors.New("sums: the encoding of a basis is truncated")
	}
	if err := json.Unmarshal(data[:size], &h); err != nil {
		return fmt.Errorf("sums: the encoding of a basis: %w", err)
	}
	data = data[size:]
	count := numeric.Elements(h.Points, h.Features)
	if h.Shifted {
		count = numeric.Total(count, int64(h.Features))
	}
	if h.Rooted {
		count = numeric.Total(count, numeric.Elements(h.Points, h.Points+1)/2)
	}
	if h.Features <= 0 || h.Points < 0 || len(data)%8 != 0 || int64(len(data)/8) != count {
		return fmt.Errorf("sums: the encoding of a basis: %d bytes do not hold %d numbers", len(data), count)
	}
	numbers := make([]float64, len(data)/8)
	for i := range numbers {
		numbers[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	*b = Basis{Kind: h.Kind, Features: h.Features, Scale: math.Float64frombits(h.Scale)}
	if h.Kernel != "" {
		k, err := kernels.Parse(h.Kernel)
		if err != nil {
			return fmt.Errorf("sums: the encoding of a basis: %w", err)
		}
		b.Kernel = k
	}
	next := func(n int) []float64 {
		values := numbers[:n:n]
		numbers = numbers[n:]
		return values
	}
	b.Points = backend.Host[float64]{Rows: h.Points, Cols: h.Features, Stride: h.Features, Data: next(h.Points * h.Features)}
	if h.Shifted {
		b.Shift = next(h.Features)
	}
	if h.Rooted {
		b.Root = backend.NewHost[float64](h.Points, h.Points)
		for i := range h.Points {
			copy(b.Root.Row(i)[i:], next(h.Points-i))
		}
	}
	return b.Check()
}

type deviceBasis struct {
	Basis
	b       backend.Backend[float64]
	points  backend.Matrix[float64]
	root    backend.Matrix[float64] // T, or nil
	x       backend.Matrix[float64] // the samples of one panel
	shifted backend.Host[float64]   // the samples of one panel minus the shift
}

// toDevice copies b to the device and allocates panels of the given number of rows.
func (b Basis) toDevice(q backend.Backend[float64], rows int) (*deviceBasis, error) {
	p := &deviceBasis{Basis: b, b: q}
	if b.Kind == Linear {
		if b.Shift != nil {
			p.shifted = backend.NewHost[float64](rows, b.Features)
		}
		return p, nil
	}
	var err error
	if p.points, err = backend.Place(q, b.Points); err == nil {
		p.x, err = q.New(rows, b.Features)
	}
	if err == nil && b.Root.Rows > 0 {
		p.root, err = backend.Place(q, b.Root)
	}
	if err != nil {
		p.free()
		return nil, err
	}
	return p, nil
}

func (p *deviceBasis) free() {
	for _, m := range []backend.Matrix[float64]{p.points, p.root, p.x} {
		if m != nil {
			m.Free()
		}
	}
}

// fill queues dst ← Φ, where row i of Φ is φ of row i of x. x may be changed after the next Sync.
func (p *deviceBasis) fill(dst backend.Matrix[float64], x backend.Host[float64]) error {
	if p.Kind == Linear {
		if p.Shift != nil {
			shifted := p.shifted.View(0, 0, x.Rows, x.Cols)
			for i := range x.Rows {
				to := shifted.Row(i)
				for j, v := range x.Row(i) {
					to[j] = v - p.Shift[j]
				}
			}
			x = shifted
		}
		return p.b.Upload(dst, x)
	}
	samples := p.x.View(0, 0, x.Rows, x.Cols)
	if err := p.b.Upload(samples, x); err != nil {
		return err
	}
	if p.Kind == Centers {
		p.b.Gram(dst, p.Kernel, samples, p.points)
		if p.root != nil {
			p.b.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, p.root, dst)
		}
		return nil
	}
	half := p.Points.Rows
	p.b.Gram(dst.View(0, 0, x.Rows, half), kernels.Scaled{Weight: p.Scale, Kernel: stream.Cosines}, samples, p.points)
	p.b.Gram(dst.View(0, half, x.Rows, half), kernels.Scaled{Weight: p.Scale, Kernel: stream.Sines}, samples, p.points)
	return nil
}

// Penalty returns the matrix S of the penalty βᵀSβ: the lower triangle of k(C, C) for Centers without a Root,
// otherwise an empty matrix, which means the identity.
func (b Basis) Penalty(q backend.Backend[float64]) (backend.Host[float64], error) {
	if b.Kind != Centers || b.Root.Rows > 0 {
		return backend.Host[float64]{}, nil
	}
	m := b.Points.Rows
	points, err := backend.Place(q, b.Points)
	if err != nil {
		return backend.Host[float64]{}, fmt.Errorf("sums: %w", err)
	}
	defer points.Free()
	s, err := q.New(m, m)
	if err != nil {
		return backend.Host[float64]{}, fmt.Errorf("sums: %w", err)
	}
	defer s.Free()
	q.Gram(s, b.Kernel, points, points)
	h := backend.NewHost[float64](m, m)
	if err := q.Download(h, s); err != nil {
		return h, fmt.Errorf("sums: %w", err)
	}
	return h, nil
}

package lowrank

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Task specifies a low-rank approximation of a Gram matrix.
type Task[T backend.Float] struct {
	Ctx    context.Context
	B      backend.Backend[T]
	Mem    *run.Arena // arena for temporary memory, which the maker frees
	Kernel kernels.Kernel
	X      backend.Matrix[T] // n×d, on the device
	Seed   uint64
	// Stop ends the factorization when the trace of K − FFᵀ is at most Stop. If Stop is 0, all columns of F are
	// computed.
	Stop float64
}

// A maker computes F with K = k(X, X) ≈ F Fᵀ and stores F in columns 0 … rank−1 of f, an n×k matrix of zeros with
// k ≥ rank. K − F Fᵀ is positive semidefinite up to rounding. The same task gives the same bits. In addition to f,
// a maker allocates at most the device memory that scratch returns.
type maker[T backend.Float] func(task Task[T], f backend.Matrix[T]) (approximation, error)

// An approximation describes the accuracy of K ≈ F Fᵀ.
type approximation struct {
	rank  int
	trace float64 // trace of K − F Fᵀ
	// diagonal is the diagonal of K − F Fᵀ, or nil if a preconditioner should not include it.
	diagonal []float64
}

// makers maps the name of each preconditioner to the function that computes its factor F.
func makers[T backend.Float]() map[string]maker[T] {
	return map[string]maker[T]{
		"rpcholesky": rpCholesky[T],
		Taylor:       taylorFeatures[T],
	}
}

// Names returns the names of the preconditioners.
func Names() []string { return slices.Sorted(maps.Keys(makers[float64]())) }

// scratch returns the device memory, in bytes, that the named maker allocates in addition to the n×k matrix F. The
// function points returns the size of the given number of rows of X.
func scratch[T backend.Float](name string, k int, points func(rows int) int64) int64 {
	if name == Taylor {
		return 0
	}
	return PivotBytes[T](k, points)
}

// Preconditioner is P = F Fᵀ + D, where D is λW⁻¹, possibly plus the diagonal of K − F Fᵀ. By the Woodbury identity,
//
//	P⁻¹ = D^{-½} (I − G L⁻ᵀ L⁻¹ Gᵀ) D^{-½},  G = D^{-½} F,  L Lᵀ = I + GᵀG
//
// Apply omits a common factor of P⁻¹, because conjugate gradients do not depend on this factor.
type Preconditioner[T backend.Float] struct {
	Rank   int     // number of columns of F
	Raised float64 // number that was added to the largest element of D

	b       backend.Backend[T]
	mem     *run.Arena
	g       backend.Matrix[T] // G, n×k, in the memory of the field storage
	inverse backend.Matrix[T] // L⁻¹, k×k
	scale   []float64         // D^{-½} up to a common factor; nil if all elements are equal
	t       backend.Matrix[T] // k×2c, for Apply to at most c columns
	storage run.Releaser
}

// Bytes returns the device memory of a preconditioner, in bytes: peakBytes during its computation, and finalBytes
// afterwards. The function points returns the size of the given number of rows of X.
func Bytes[T backend.Float](name string, n, rank, columns int, points func(rows int) int64) (peakBytes, finalBytes int64) {
	f, square, t := numeric.ElementBytes[T](numeric.Elements(n, rank)), numeric.Elements(rank, rank), numeric.ElementBytes[T](numeric.Elements(rank, 2*columns))
	squares := numeric.Bytes(2 * square) // GᵀG and L⁻¹
	if numeric.UnitOf[T]() == numeric.EpsilonSingle {
		squares = numeric.Total(squares, numeric.ElementBytes[T](square))
	}
	finalBytes = numeric.Total(f, numeric.ElementBytes[T](square), t)
	return numeric.Total(f, max(scratch[T](name, rank, points), squares, numeric.Total(numeric.Bytes(square), numeric.ElementBytes[T](square), t))), finalBytes
}

// Params specifies a preconditioner.
type Params struct {
	Name    string // one of Names
	Kernel  kernels.Kernel
	Rank    int // maximum number of columns of F
	Seed    uint64
	Shift   []float64 // the diagonal λW⁻¹, of length 1 or n
	Columns int       // maximum number of columns of the operands of Apply
}

// New returns the preconditioner of k(X, X) + λW⁻¹ in the precision of b, or nil if k(X, X) is 0. x
// is on the device in the same precision.
func New[T backend.Float](f *run.Frame, b backend.Backend[T], x backend.Matrix[T], par Params) (*Preconditioner[T], error) {
	n, _ := x.Dims()
	columns, err := run.NewMatrix(f.Mem, b, n, par.Rank)
	if err != nil {
		return nil, err
	}
	task := Task[T]{Ctx: f.Ctx, B: b, Mem: f.Mem, Kernel: par.Kernel, X: x, Seed: par.Seed}
	a, err := makers[T]()[par.Name](task, columns)
	if err != nil || a.rank == 0 {
		f.Mem.Free(columns)
		return nil, err
	}
	d, trace := par.Shift, a.trace
	if a.diagonal != nil {
		d, trace = sumOfDiagonals(a.diagonal, d), 0
	}
	return newPreconditioner(f, b, columns, a.rank, d, trace, par.Columns)
}

// newPreconditioner computes the preconditioner for operands with up to c columns. It overwrites columns 0 …
// rank−1 of f with G. The argument d is the diagonal of D; it has length 1 or n and is ≥ 0. The argument trace is
// the trace of K − F Fᵀ. If P⁻¹ would consist of rounding errors, the function increases D and sets Raised. An
// increase of up to trace/n slows convergence little.
func newPreconditioner[T backend.Float](frame *run.Frame, b backend.Backend[T], f backend.Matrix[T], rank int, d []float64, trace float64, c int) (p *Preconditioner[T], err error) {
	mem, dev, b64 := frame.Mem, frame.Dev, frame.B
	n, _ := f.Dims()
	p = &Preconditioner[T]{Rank: rank, b: b, mem: mem, g: f.View(0, 0, n, rank), storage: f}
	smallest := d[0]
	if len(d) > 1 && slices.Min(d) > 0 {
		p.scale = make([]float64, n)
		for i, v := range d {
			p.scale[i] = 1 / math.Sqrt(v)
		}
		if err := numeric.ScaleRows(b, p.g, p.g, p.scale); err != nil {
			return nil, err
		}
		smallest, trace = 1, trace/slices.Max(d)
		largest := slices.Max(d)
		for i, v := range d { // the common factor makes the smallest element 1
			p.scale[i] = math.Sqrt(largest / v)
		}
	}
	s, err := mem.New(rank, rank)
	if err != nil {
		return nil, err
	}
	defer mem.Free(s)
	squares := func() error { return setSquares(mem, dev, b64, b, p.g, s) }
	if err := squares(); err != nil {
		return nil, err
	}
	diag, err := numeric.Diagonal(b64, s)
	if err != nil {
		return nil, err
	}
	total := smallest + numeric.Trace(diag)
	const digits = 1e4 // with D at least `digits` times the rounding error, P⁻¹ has four correct digits or more
	unit := numeric.UnitOf[T]()
	j := numeric.NewJitter(max(smallest, unit*total, min(trace/float64(n), digits*unit*total)), total, numeric.Epsilon)
	fill := func() error { return nil } // at the first attempt, s already holds GᵀG
	if err := numeric.FactorJittered(j, b64, s, func() error { err := fill(); fill = squares; return err }); err != nil {
		return nil, fmt.Errorf("preconditioner of rank %d: %w", rank, err)
	}
	inverse, err := mem.New(rank, rank)
	if err != nil {
		return nil, err
	}
	b64.AddDiag([]float64{1}, inverse)
	b64.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, s, inverse)
	if p.inverse, err = rounded(mem, dev, b64, b, inverse); err != nil {
		return nil, err
	}
	if p.t, err = run.NewMatrix(mem, b, rank, 2*c); err != nil {
		return nil, err
	}
	p.Raised = j.Added - smallest
	if p.scale != nil {
		p.Raised *= slices.Max(d)
	}
	return p, b.Sync()
}

// squareRows is the number of rows over which setSquares sums in float32.
const squareRows = 8192

// setSquares sets s to the lower triangle of GᵀG. It adds float32 sums over squareRows rows in float64, because a
// float32 sum over all rows would have an error above λ.
func setSquares[T backend.Float](mem *run.Arena, dev backend.Device, b64 backend.Backend[float64], b backend.Backend[T], g backend.Matrix[T], s backend.Matrix[float64]) error {
	if g, double := any(g).(backend.Matrix[float64]); double {
		b64.Syrk(backend.Lower, backend.Transpose, 1, g, 0, s)
		return nil
	}
	n, k := g.Dims()
	partial, err := run.NewMatrix(mem, b, k, k)
	if err != nil {
		return err
	}
	defer mem.Free(partial)
	widened, err := mem.New(k, k)
	if err != nil {
		return err
	}
	defer mem.Free(widened)
	numeric.Zero(b64, s)
	for i := 0; i < n; i += squareRows {
		b.Syrk(backend.Lower, backend.Transpose, 1, g.View(i, 0, min(squareRows, n-i), k), 0, partial)
		if err := b.Sync(); err != nil {
			return err
		}
		dev.Widen(widened, any(partial).(backend.Matrix[float32]))
		b64.ColAxpy(numeric.Repeated(1.0, k), widened, s)
		if err := b64.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// rounded returns m in the precision T. For float32, a copy replaces m.
func rounded[T backend.Float](mem *run.Arena, dev backend.Device, b64 backend.Backend[float64], b backend.Backend[T], m backend.Matrix[float64]) (backend.Matrix[T], error) {
	if same, double := any(m).(backend.Matrix[T]); double {
		return same, nil
	}
	rows, cols := m.Dims()
	to, err := run.NewMatrix(mem, b, rows, cols)
	if err != nil {
		return nil, err
	}
	if err := b64.Sync(); err != nil {
		return nil, err
	}
	dev.Narrow(any(to).(backend.Matrix[float32]), m)
	mem.Free(m)
	return to, dev.Sync()
}

// Apply queues z ← P⁻¹ r for n×c matrices that do not overlap. It does not wait for the device,
// unless a step runs on the host.
func (p *Preconditioner[T]) Apply(z, r backend.Matrix[T]) error {
	_, k := p.g.Dims()
	_, c := r.Dims()
	if err := p.scaled(z, r); err != nil {
		return err
	}
	t, u := p.t.View(0, 0, k, c), p.t.View(0, c, k, c)
	p.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.g, z, 0, t)
	p.b.Gemm(backend.NoTrans, backend.NoTrans, 1, p.inverse, t, 0, u)
	p.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.inverse, u, 0, t)
	p.b.Gemm(backend.NoTrans, backend.NoTrans, -1, p.g, t, 1, z)
	if p.scale == nil {
		return nil
	}
	return numeric.ScaleRows(p.b, z, z, p.scale)
}

// Free frees the memory on the device.
func (p *Preconditioner[T]) Free() {
	for _, m := range []run.Releaser{p.inverse, p.t, p.storage} {
		p.mem.Free(m)
	}
}

func (p *Preconditioner[T]) scaled(z, r backend.Matrix[T]) error {
	if p.scale == nil {
		numeric.Copy(p.b, z, r)
		return nil
	}
	return numeric.ScaleRows(p.b, z, r, p.scale)
}

// sumOfDiagonals adds b, of length 1 or n, to a and returns a.
func sumOfDiagonals(a, b []float64) []float64 {
	for i := range a {
		a[i] += b[i%len(b)]
	}
	return a
}

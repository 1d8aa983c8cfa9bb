package lowrank

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// pivoting is a partial Cholesky factorization K ≈ FFᵀ of a Gram matrix that is never stored. FFᵀ is the Nyström
// approximation K_nS K_SS⁻¹ K_Sn with the rows S of the pivots, and 0 ⪯ FFᵀ ⪯ K up to rounding. K is evaluated
// only in the rows of candidates for S, and F takes O(nk²) operations.
type pivoting[T backend.Float] struct {
	Task[T]
	f      backend.Matrix[T] // n×k; its first len(pivots) columns are F
	pivots []int             // S: rows of X in the order of the elimination
	diag   []float64         // the diagonal of K − FFᵀ
	trace  float64           // the sum of diag
	n, d   int
	rank   int     // maximum number of columns
	floor  float64 // rounding error of a diagonal element of K − FFᵀ
}

// newPivoting returns a factorization without pivots that stores F in f.
func newPivoting[T backend.Float](task Task[T], f backend.Matrix[T]) (*pivoting[T], error) {
	p := &pivoting[T]{Task: task, f: f}
	p.n, p.rank = f.Dims()
	_, p.d = task.X.Dims()
	p.rank = min(p.rank, p.n)
	if err := p.diagonal(); err != nil {
		return nil, err
	}
	largest := 0.0
	for i, v := range p.diag {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("k(x, x) is %v at row %d: a low-rank factor needs a positive semidefinite kernel", v, i+1)
		}
		p.trace += v
		largest = max(largest, v)
	}
	// The rounding error of the k squares that are subtracted from a diagonal element grows as √k.
	p.floor = 8 * numeric.UnitOf[T]() * math.Sqrt(float64(p.rank)) * largest
	return p, nil
}

func (p *pivoting[T]) diagonal() error {
	prog := kernels.Compile(p.Kernel)
	stats := make([]float64, len(prog.Stats))
	p.diag = make([]float64, p.n)
	if x, ok := p.X.(backend.SparseMatrix[T]); ok {
		rows := x.CSR()
		for i := range p.diag {
			columns, values := rows.Row(i)
			point := kernels.SparsePoint[T]{Columns: columns, Values: values}
			for j, s := range prog.Stats {
				stats[j] = kernels.EvalSparse(s, p.d, point, point)
			}
			p.diag[i] = prog.Run(stats)
		}
		return nil
	}
	point := make([]float64, p.d)
	return numeric.EachRow(p.B, p.X, func(i int, row []T) {
		numeric.Widen(point, row)
		for j, s := range prog.Stats {
			stats[j] = s.Eval(point, point)
		}
		p.diag[i] = prog.Run(stats)
	})
}

// canExtend reports whether F may have another column and the trace of K − FFᵀ still exceeds Stop.
func (p *pivoting[T]) canExtend() bool {
	return len(p.pivots) < p.rank && p.trace > max(p.Stop, float64(p.n)*p.floor)
}

// width returns the number of candidates that are evaluated together. It is small compared with the rank, because
// most candidates that are near each other are rejected.
func (p *pivoting[T]) width() int { return pivotingWidth(p.rank) }

func pivotingWidth(rank int) int { return min(rank, max(8, min(256, rank/4))) }

// PivotBytes returns the device memory, in bytes, of the rows of X, K and F for the candidates of a round.
// points(rows) is the size of the given number of rows of X.
func PivotBytes[T backend.Float](rank int, points func(rows int) int64) int64 {
	b := pivotingWidth(rank)
	return numeric.Total(points(b), numeric.ElementBytes[T](numeric.Elements(b, b+rank)))
}

// gatherRows returns a copy of the rows s of m on the host.
func (p *pivoting[T]) gatherRows(m backend.Matrix[T], s []int) (backend.Host[T], error) {
	_, c := m.Dims()
	h := backend.NewHost[T](len(s), c)
	for j, i := range s {
		if err := p.B.Download(h.View(j, 0, 1, c), m.View(i, 0, 1, c)); err != nil {
			return h, err
		}
	}
	return h, nil
}

// upload copies h to the device. The caller frees it.
func (p *pivoting[T]) upload(h backend.Host[T]) (backend.Matrix[T], error) {
	m, err := run.NewMatrix(p.Mem, p.B, h.Rows, h.Cols)
	if err != nil {
		return nil, err
	}
	if err := p.B.Upload(m, h); err != nil {
		p.Mem.Free(m)
		return nil, err
	}
	return m, nil
}

// computedColumns returns the columns of F computed so far.
func (p *pivoting[T]) computedColumns() backend.Matrix[T] { return p.f.View(0, 0, p.n, len(p.pivots)) }

// residual returns (K − FFᵀ)_SS for the rows S in s, as a lower triangle on the host.
func (p *pivoting[T]) residual(s []int) (h backend.Host[T], err error) {
	xs, err := p.gatherOnDevice(p.X, s)
	if err != nil {
		return h, err
	}
	defer p.Mem.Free(xs)
	m, err := run.NewMatrix(p.Mem, p.B, len(s), len(s))
	if err != nil {
		return h, err
	}
	defer p.Mem.Free(m)
	p.B.Gram(m, p.Kernel, xs, xs)
	if len(p.pivots) > 0 {
		fs, err := p.gatherOnDevice(p.computedColumns(), s)
		if err != nil {
			return h, err
		}
		defer p.Mem.Free(fs)
		p.B.Syrk(backend.Lower, backend.NoTrans, -1, fs, 1, m)
	}
	h = backend.NewHost[T](len(s), len(s))
	return h, p.B.Download(h, m)
}

// gatherOnDevice returns a copy of the rows s of m on the device. The caller frees the copy.
func (p *pivoting[T]) gatherOnDevice(m backend.Matrix[T], s []int) (backend.Matrix[T], error) {
	if x, ok := m.(backend.SparseMatrix[T]); ok {
		rows, err := backend.PlaceSparse(p.B, x.CSR().TakeRows(s))
		if err == nil {
			p.Mem.Keep(rows)
		}
		return rows, err
	}
	h, err := p.gatherRows(m, s)
	if err != nil {
		return nil, err
	}
	return p.upload(h)
}

// extend adds the columns (K_S − F F_Sᵀ)L⁻ᵀ to F. K_S has the columns s of K, and F_S the rows s of F. The argument
// factor is L in LLᵀ = (K − FFᵀ)_SS. extend updates the fields diag and trace.
func (p *pivoting[T]) extend(s []int, factor backend.Host[T]) error {
	if len(s) == 0 {
		return nil
	}
	xs, err := p.gatherOnDevice(p.X, s)
	if err != nil {
		return err
	}
	defer p.Mem.Free(xs)
	l, err := p.upload(factor)
	if err != nil {
		return err
	}
	defer p.Mem.Free(l)
	columns := p.f.View(0, len(p.pivots), p.n, len(s))
	p.B.Gram(columns, p.Kernel, p.X, xs)
	if len(p.pivots) > 0 {
		fs, err := p.gatherOnDevice(p.computedColumns(), s)
		if err != nil {
			return err
		}
		defer p.Mem.Free(fs)
		p.B.Gemm(backend.NoTrans, backend.Transpose, -1, p.computedColumns(), fs, 1, columns)
	}
	p.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, columns)
	p.trace = 0
	err = numeric.EachRow(p.B, columns, func(i int, row []T) {
		p.diag[i] = max(p.diag[i]-numeric.Squared(row), 0)
		p.trace += p.diag[i]
	})
	if err != nil {
		return err
	}
	for _, i := range s {
		p.trace -= p.diag[i]
		p.diag[i] = 0 // only rounding errors remain at a pivot
	}
	p.pivots = append(p.pivots, s...)
	if math.IsNaN(p.trace) || math.IsInf(p.trace, 0) {
		return kernels.Overflow(fmt.Errorf("values of the kernel %v overflow: scale the features down", p.Kernel))
	}
	return nil
}

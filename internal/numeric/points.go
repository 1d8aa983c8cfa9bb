package numeric

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Points holds the points of a kernel in Go memory, one for each row of a dense or a sparse matrix.
type Points struct {
	Rows, Cols int
	Dense      backend.Host[float64] // empty if the points are sparse
	Sparse     *backend.CSR[float64] // nil if the points are dense
}

// DensePoints returns the rows of h as points.
func DensePoints(h backend.Host[float64]) Points {
	return Points{Rows: h.Rows, Cols: h.Cols, Dense: h}
}

// SparsePoints returns the rows of x as points. x must obey the rules of CSR.
func SparsePoints(x backend.CSR[float64]) Points {
	return Points{Rows: x.Rows, Cols: x.Cols, Sparse: &x}
}

// PointsOf returns the rows of m as points. It copies the elements of a mat.Matrix that is not a backend.Host, a
// backend.CSR or a *mat.Dense. For a type that is not a mat.Matrix it returns an error.
func PointsOf(m backend.Points) (Points, error) {
	switch m := m.(type) {
	case backend.Host[float64]:
		return DensePoints(m), nil
	case backend.CSR[float64]:
		return SparsePoints(m), m.Check()
	case mat.RawMatrixer:
		r := m.RawMatrix()
		return DensePoints(backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}), nil
	case mat.Matrix:
		rows, cols := m.Dims()
		h := backend.NewHost[float64](rows, cols)
		for i := range rows {
			mat.Row(h.Row(i), i, m)
		}
		return DensePoints(h), nil
	}
	return Points{}, fmt.Errorf("a matrix of the type %T is not supported: use a mat.Matrix, a backend.Host or a backend.CSR of float64", m)
}

// Matrix returns the points as a backend.Host or a backend.CSR.
func (p Points) Matrix() mat.Matrix {
	if p.Sparse != nil {
		return *p.Sparse
	}
	return p.Dense
}

// Place returns the points on b's device, for reading only. The caller frees them.
func (p Points) Place(b backend.Backend[float64]) (backend.Matrix[float64], error) {
	if p.Sparse != nil {
		return backend.PlaceSparse(b, *p.Sparse)
	}
	return backend.Place(b, p.Dense)
}

// PlacedBytes returns the memory, in bytes, that Place takes on the device of b for n points that store as many
// elements on average as the points of p.
func (p Points) PlacedBytes(b backend.Backend[float64], n int) int64 {
	if p.Sparse != nil {
		return backend.SparseBytes(b, n, p.Cols, p.Elements(n))
	}
	if _, ok := b.(backend.Wrapper[float64]); ok {
		return 0
	}
	return Bytes(Elements(n, p.Cols))
}

// Evaluating returns a context for work that evaluates a kernel at the points. Plans that are
// reported through this context include the memory in which the device packs the points.
func (p Points) Evaluating(ctx context.Context, dev backend.Device) context.Context {
	if p.Sparse != nil { // the device packs only the columns that most points store
		return ctx
	}
	return run.Packing(ctx, dev, p.Rows, p.Cols)
}

// CopyBytes returns the Go memory, in bytes, of a copy of n points that store as many elements on average as those
// of p.
func (p Points) CopyBytes(n int) int64 {
	if p.Sparse != nil {
		return 12*int64(p.Elements(n)) + 8*(int64(n)+1)
	}
	return Bytes(Elements(n, p.Cols))
}

// Elements returns the number of elements that n points store, rounded up, if they store as many on average as p.
func (p Points) Elements(n int) int {
	if p.Sparse == nil {
		return n * p.Cols
	}
	if n == p.Rows {
		return p.Sparse.NNZ()
	}
	return int(float64(p.Sparse.NNZ())/float64(max(p.Rows, 1))*float64(n)) + 1
}

// Slice returns points first … first+rows−1. They share the memory of p.
func (p Points) Slice(first, rows int) Points {
	if p.Sparse != nil {
		return SparsePoints(p.Sparse.SliceRows(first, first+rows))
	}
	return DensePoints(p.Dense.View(first, 0, rows, p.Cols))
}

// Take returns a copy of the points with the given indices.
func (p Points) Take(list []int) Points {
	if p.Sparse == nil {
		h := backend.NewHost[float64](len(list), p.Cols)
		for r, i := range list {
			copy(h.Row(r), p.Dense.Row(i))
		}
		return DensePoints(h)
	}
	return SparsePoints(p.Sparse.TakeRows(list))
}

// Without returns a copy of the points without point i, or of all points if i is −1.
func (p Points) Without(i int) Points {
	list := make([]int, 0, p.Rows)
	for j := range p.Rows {
		if j != i {
			list = append(list, j)
		}
	}
	return p.Take(list)
}

// With returns the points followed by the point x of p.Cols features. The result may share the
// memory of p, so that afterwards only the result may be extended.
func (p Points) With(x []float64) Points {
	if p.Sparse == nil {
		h := p.Dense
		h.Data = append(h.Data[:h.Rows*h.Cols], x...)
		h.Rows++
		return DensePoints(h)
	}
	s := *p.Sparse
	for j, v := range x {
		if v != 0 {
			s.Indices, s.Data = append(s.Indices, int32(j)), append(s.Data, v)
		}
	}
	s.Rows, s.Indptr = s.Rows+1, append(s.Indptr, len(s.Data))
	return SparsePoints(s)
}

// Shuffled returns a copy of the points in which features first … first+width−1 of point i are from point from[i].
func (p Points) Shuffled(from []int, first, width int) Points {
	if p.Sparse == nil {
		h := backend.NewHost[float64](p.Rows, p.Cols)
		for i, j := range from {
			copy(h.Row(i), p.Dense.Row(i))
			copy(h.Row(i)[first:first+width], p.Dense.Row(j)[first:first+width])
		}
		return DensePoints(h)
	}
	x := backend.CSR[float64]{Rows: p.Rows, Cols: p.Cols, Indptr: make([]int, p.Rows+1), Indices: make([]int32, 0, p.Sparse.NNZ()), Data: make([]float64, 0, p.Sparse.NNZ())}
	add := func(i, low, high int) { // adds the elements of row i in the columns low … high−1
		columns, values := p.Sparse.Row(i)
		begin, _ := slices.BinarySearch(columns, int32(low))
		end, _ := slices.BinarySearch(columns, int32(high))
		x.Indices, x.Data = append(x.Indices, columns[begin:end]...), append(x.Data, values[begin:end]...)
	}
	for i, j := range from {
		add(i, 0, first)
		add(j, first, first+width)
		add(i, first+width, p.Cols)
		x.Indptr[i+1] = len(x.Data)
	}
	return SparsePoints(x)
}

// Kept returns a copy of the points with weight > 0. Nil weights are all 1.
func (p Points) Kept(weights []float64) Points {
	list := make([]int, 0, p.Rows)
	for i := range p.Rows {
		if weights == nil || weights[i] > 0 {
			list = append(list, i)
		}
	}
	return p.Take(list)
}

// Stored returns the stored features of point i, for dense points all features, in the memory of p.
func (p *Points) Stored(i int) []float64 {
	if p.Sparse != nil {
		_, values := p.Sparse.Row(i)
		return values
	}
	return p.Dense.Row(i)
}

// Point returns all features of point i, for reading only.
func (p Points) Point(i int) []float64 {
	if p.Sparse == nil {
		return p.Dense.Row(i)
	}
	x := make([]float64, p.Cols)
	p.CopyPoint(x, i)
	return x
}

// CopyPoint sets dst to all features of point i.
func (p Points) CopyPoint(dst []float64, i int) {
	if p.Sparse == nil {
		copy(dst, p.Dense.Row(i))
		return
	}
	clear(dst)
	columns, values := p.Sparse.Row(i)
	for k, c := range columns {
		dst[c] = values[k]
	}
}

// Dot returns the product of point i with column j of w.
func (p Points) Dot(i int, w backend.Host[float64], j int) (sum float64) {
	if w.Stride == 1 {
		return p.Product(i, w.Data)
	}
	if p.Sparse == nil {
		for c, v := range p.Dense.Row(i) {
			sum += v * w.Row(c)[j]
		}
		return sum
	}
	columns, values := p.Sparse.Row(i)
	for k, c := range columns {
		sum += values[k] * w.Row(int(c))[j]
	}
	return sum
}

// Product returns the product of point i with v.
func (p Points) Product(i int, v []float64) (sum float64) {
	if p.Sparse == nil {
		return Dot(p.Dense.Row(i), v)
	}
	columns, values := p.Sparse.Row(i)
	for k, c := range columns {
		sum += values[k] * v[c]
	}
	return sum
}

// AddTo adds a times point i to dst.
func (p Points) AddTo(dst []float64, a float64, i int) {
	if p.Sparse == nil {
		Axpy(a, p.Dense.Row(i), dst)
		return
	}
	columns, values := p.Sparse.Row(i)
	for k, c := range columns {
		dst[c] += a * values[k]
	}
}

// Weights returns the d×t weights Σ_i x_i a_i for the n×t coefficients a of the linear kernel.
func (p Points) Weights(a backend.Host[float64]) backend.Host[float64] {
	w := backend.NewHost[float64](p.Cols, a.Cols)
	for i := range p.Rows {
		for k, v := range p.Stored(i) {
			c := k
			if p.Sparse != nil {
				c = int(p.Sparse.Indices[p.Sparse.Indptr[i]+k])
			}
			Axpy(v, a.Row(i), w.Row(c))
		}
	}
	return w
}

// Used returns the points without the features that no point stores. The result features holds the indices of the
// remaining features, or is nil if all features remain. The points share the values of p.
func (p Points) Used() (used Points, features []int32) {
	if p.Sparse == nil {
		return p, nil
	}
	index := make([]int32, p.Cols) // index of each feature among the used features, counted from 1; 0 for an unused feature
	columns := p.Sparse.Indices[p.Sparse.Indptr[0]:p.Sparse.Indptr[p.Rows]]
	for _, c := range columns {
		index[c] = 1
	}
	for c, n := range index {
		if n > 0 {
			features = append(features, int32(c))
			index[c] = int32(len(features))
		}
	}
	if len(features) == p.Cols || len(features) == 0 {
		return p, nil
	}
	x := *p.Sparse
	x.Cols, x.Indices = len(features), make([]int32, len(x.Indices))
	for k := p.Sparse.Indptr[0]; k < p.Sparse.Indptr[p.Rows]; k++ {
		x.Indices[k] = index[p.Sparse.Indices[k]] - 1
	}
	return SparsePoints(x), features
}

// Restored converts weights of the features of Used to weights of all d features. The rows of w
// become the rows with the indices in features, and all other rows are 0.
func Restored(w backend.Host[float64], features []int32, d int) backend.Host[float64] {
	if features == nil {
		return w
	}
	restored := backend.NewHost[float64](d, w.Cols)
	for k, c := range features {
		copy(restored.Row(int(c)), w.Row(k))
	}
	return restored
}

// Difference returns the elements of the difference of points i and j in the memory of dst. It
// omits elements that neither of two sparse points stores.
func (p Points) Difference(dst []float64, i, j int) []float64 {
	dst = dst[:0]
	if p.Sparse == nil {
		dst = slices.Grow(dst, p.Cols)[:p.Cols]
		x, z := p.Dense.Row(i), p.Dense.Row(j)
		for k := range dst {
			dst[k] = x[k] - z[k]
		}
		return dst
	}
	a, x := p.Sparse.Row(i)
	b, z := p.Sparse.Row(j)
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			dst, a, x = append(dst, x[0]), a[1:], x[1:]
		case len(a) == 0 || b[0] < a[0]:
			dst, b, z = append(dst, -z[0]), b[1:], z[1:]
		default:
			dst, a, x, b, z = append(dst, x[0]-z[0]), a[1:], x[1:], b[1:], z[1:]
		}
	}
	return dst
}

// Diag returns k(x, x) for point i.
func (p Points) Diag(k kernels.Kernel, i int) float64 {
	if p.Sparse == nil {
		return kernels.Diag(k, p.Dense.Row(i))
	}
	return kernels.DiagSparse(k, p.Cols, p.sparsePoint(i))
}

// Diagonal returns k(x, x) for each point.
func (p Points) Diagonal(k kernels.Kernel) []float64 {
	value := p.Values(k)
	diag := make([]float64, p.Rows)
	for i := range diag {
		diag[i] = value(i, i)
	}
	return diag
}

// Values returns a function that evaluates k at points i and j. Only one goroutine may call it at a time.
func (p Points) Values(k kernels.Kernel) func(i, j int) float64 {
	prog := kernels.Compile(k)
	stats := make([]float64, len(prog.Stats))
	return func(i, j int) float64 {
		for index, s := range prog.Stats {
			if p.Sparse != nil {
				stats[index] = kernels.EvalSparse(s, p.Cols, p.sparsePoint(i), p.sparsePoint(j))
			} else {
				stats[index] = s.Eval(p.Dense.Row(i), p.Dense.Row(j))
			}
		}
		return prog.Run(stats)
	}
}

func (p *Points) sparsePoint(i int) kernels.SparsePoint[float64] {
	columns, values := p.Sparse.Row(i)
	return kernels.SparsePoint[float64]{Columns: columns, Values: values}
}

// CheckFinite returns an error that names the first feature that is NaN or infinite.
func (p Points) CheckFinite(name string) error {
	firstInvalid := atomic.Int64{}
	firstInvalid.Store(int64(p.Rows))
	run.Parallel(p.Rows, func(first, last int) {
		for i := first; i < last; i++ {
			if !Finite(p.Stored(i)) {
				for current := firstInvalid.Load(); int64(i) < current && !firstInvalid.CompareAndSwap(current, int64(i)); current = firstInvalid.Load() {
				}
				return
			}
		}
	})
	i := int(firstInvalid.Load())
	if i == p.Rows {
		return nil
	}
	values := p.Stored(i)
	index := slices.IndexFunc(values, func(v float64) bool { return v-v != 0 })
	column := index
	if p.Sparse != nil {
		columns, _ := p.Sparse.Row(i)
		column = int(columns[index])
	}
	return fmt.Errorf("%s: row %d, column %d is %v", name, i+1, column+1, values[index])
}

// CheckRule checks the points by backend.CheckPoints.
func (p Points) CheckRule(k kernels.Kernel, name string) error {
	if p.Sparse == nil {
		return backend.CheckPoints(k, name, p.Dense)
	}
	return backend.CheckPoints(k, name, *p.Sparse)
}

// PlaceAll returns the points of a list on b's device. FreeAll frees them.
func PlaceAll(b backend.Backend[float64], list ...Points) (placed []backend.Matrix[float64], err error) {
	for _, p := range list {
		m, err := p.Place(b)
		if err != nil {
			FreeAll(placed)
			return nil, err
		}
		placed = append(placed, m)
	}
	return placed, nil
}

// FreeAll frees the matrices that PlaceAll has returned.
func FreeAll(list []backend.Matrix[float64]) {
	for _, m := range list {
		m.Free()
	}
}

package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/kernels"
)

// sparseMatrix is a sparse matrix, or a range of rows of a sparse matrix.
type sparseMatrix[T backend.Float] struct {
	device *device
	csr    backend.CSR[T]
	first  int // index of the first row in the whole matrix
	lists  *lists[T]
	view   bool
}

// lists contains the stored elements of a sparse matrix: for each window of consecutive rows and each column, a
// list of the rows and values of the elements.
type lists[T backend.Float] struct {
	csr        backend.CSR[T]
	window     int // number of rows of a window, at most 2¹⁶
	rows, cols int
	starts     []int    // for each window, the index of its first element
	ends       []uint32 // for each window the cols+1 bounds of its lists, relative to starts[w]
	localRows  []uint16 // row of each element, counted from the first row of its window
	values     []T
	denseCols  []int32   // columns stored by more than the fraction denseFraction of the rows
	position   []int32   // position of each column in denseCols, or −1 for a column that is not in denseCols
	nonfinite  []int32   // rows with an element that is not finite
	negative   []int32   // rows with an element that is negative or not finite
	squares    []float64 // ‖x‖² of each row
	sums       []float64 // ‖x‖₁ of each row
	bytes      int64
	freed      bool

	mu         sync.Mutex
	pointStats []onePointValues[T] // the most recently computed statistics of single points
}

// onePointValues holds a statistic that depends on a single point, evaluated for all rows.
type onePointValues[T backend.Float] struct {
	stat   kernels.Stat
	values []T
}

const (
	// minWindow is the minimum number of rows of a window, so small that a row of a tile fits in the first-level
	// cache. It is a multiple of every NR and of the length of a chunk of 16-bit storage.
	minWindow = 512
	maxWindow = 1 << 15
	// denseFraction is the fraction of stored elements above which a column is multiplied in dense form. A
	// multiply-add takes about 20 times as long with lists as in dense form.
	denseFraction = 0.2
)

// windowFor returns a number of rows of a window for which, if possible, each of the lists has about one element.
func windowFor(rows, cols, nnz int) int {
	size := math.MaxInt
	if nnz > 0 {
		size = int(min(float64(rows)*float64(cols)/float64(nnz), maxWindow))
	}
	return max(minWindow, min(size, maxWindow, rows)/minWindow*minWindow)
}

func (q *queue[T]) SparseBytes(rows, cols, nnz int) int64 {
	windows, size := int64(panels(rows, windowFor(rows, cols, nnz))), int64(unsafe.Sizeof(T(0)))
	return int64(nnz)*(2+size) + windows*(4*(int64(cols)+1)+8) + 8*int64(cols) + 16*int64(rows)
}

func (q *queue[T]) NewSparse(x backend.CSR[T]) (backend.Matrix[T], error) {
	check.NewSparse(x)
	d := q.engine.device
	if d.closed.Load() {
		return nil, fmt.Errorf("cpu: new sparse matrix: the device has been closed")
	}
	l := &lists[T]{csr: x, window: windowFor(x.Rows, x.Cols, x.NNZ()), rows: x.Rows, cols: x.Cols, bytes: q.SparseBytes(x.Rows, x.Cols, x.NNZ())}
	if err := d.memory.reserve(l.bytes); err != nil {
		return nil, err
	}
	if err := q.list(l, x); err != nil {
		d.memory.release(l.bytes)
		return nil, err
	}
	return &sparseMatrix[T]{device: d, csr: x, lists: l}, nil
}

// list fills l with the elements of x. It orders each window with a counting sort.
func (q *queue[T]) list(l *lists[T], x backend.CSR[T]) error {
	windows := panels(l.rows, l.window)
	l.starts = make([]int, windows+1)
	for w := range windows {
		l.starts[w+1] = x.Indptr[min((w+1)*l.window, l.rows)] - x.Indptr[0]
		if int64(l.starts[w+1]-l.starts[w]) > math.MaxUint32 {
			return fmt.Errorf("cpu: new sparse matrix: %d consecutive rows store %d elements; the maximum is %d", l.window, l.starts[w+1]-l.starts[w], int64(math.MaxUint32))
		}
	}
	l.ends = make([]uint32, windows*(l.cols+1))
	l.localRows, l.values = make([]uint16, x.NNZ()), make([]T, x.NNZ())
	l.squares, l.sums = make([]float64, l.rows), make([]float64, l.rows)
	nonfinite, negative := make([][]int32, windows), make([][]int32, windows)
	q.parallel(windows, copyFlops(x.NNZ()), func(_ *scratch[T], w int) {
		first, last := w*l.window, min((w+1)*l.window, l.rows)
		ends := l.ends[w*(l.cols+1):][:l.cols+1]
		for _, c := range x.Indices[x.Indptr[first]:x.Indptr[last]] {
			ends[c]++
		}
		end := uint32(0)
		for c, n := range ends {
			ends[c], end = end, end+n
		}
		localRows, list := l.localRows[l.starts[w]:l.starts[w+1]], l.values[l.starts[w]:l.starts[w+1]]
		for i := first; i < last; i++ {
			columns, values := x.Row(i)
			finite, positive := true, true
			square, sum := 0.0, 0.0
			for p, c := range columns {
				pos := ends[c]
				ends[c] = pos + 1
				localRows[pos], list[pos] = uint16(i-first), values[p]
				v := float64(values[p])
				finite = finite && v-v == 0
				positive = positive && v >= 0
				square += v * v
				sum += math.Abs(v)
			}
			l.squares[i], l.sums[i] = square, sum
			if !finite {
				nonfinite[w] = append(nonfinite[w], int32(i))
			}
			if !finite || !positive {
				negative[w] = append(negative[w], int32(i))
			}
		}
		// ends[c] has been advanced to the end of list c, which is the start of list c+1.
		copy(ends[1:], ends)
		ends[0] = 0
	})
	l.nonfinite, l.negative = slices.Concat(nonfinite...), slices.Concat(negative...)
	l.position = make([]int32, l.cols)
	for c := range l.position {
		count := 0
		for w := range windows {
			ends := l.ends[w*(l.cols+1)+c:]
			count += int(ends[1] - ends[0])
		}
		l.position[c] = -1
		if float64(count) > denseFraction*float64(l.rows) {
			l.position[c] = int32(len(l.denseCols))
			l.denseCols = append(l.denseCols, int32(c))
		}
	}
	return q.wait()
}

func (x *sparseMatrix[T]) Dims() (rows, cols int) { return x.csr.Dims() }

// CSR implements backend.SparseMatrix.
func (x *sparseMatrix[T]) CSR() backend.CSR[T] { return x.csr }

func (x *sparseMatrix[T]) View(i, j, rows, cols int) backend.Matrix[T] {
	check.ViewSparse(i, j, rows, cols, x.csr.Rows, x.csr.Cols)
	return &sparseMatrix[T]{device: x.device, csr: x.csr.SliceRows(i, i+rows), first: x.first + i, lists: x.lists, view: true}
}

func (x *sparseMatrix[T]) Free() {
	l := x.lists
	if x.view || l.freed {
		return
	}
	x.device.memory.release(l.bytes)
	l.freed, l.csr = true, backend.CSR[T]{}
	l.ends, l.localRows, l.values, l.squares, l.sums, l.pointStats = nil, nil, nil, nil, nil, nil
}

// sameMatrix reports whether x and z consist of the same rows of one matrix.
func (x *sparseMatrix[T]) sameMatrix(z *sparseMatrix[T]) bool {
	return x.lists == z.lists && x.first == z.first && x.csr.Rows == z.csr.Rows
}

func (x *sparseMatrix[T]) point(i int) kernels.SparsePoint[T] {
	columns, values := x.csr.Row(i)
	return kernels.SparsePoint[T]{Columns: columns, Values: values}
}

// rowsWithin returns the part of list, an ascending list of rows, that contains the rows lo … hi−1.
func rowsWithin(list []int32, lo, hi int) []int32 {
	from, _ := slices.BinarySearch(list, int32(lo))
	to, _ := slices.BinarySearch(list, int32(hi))
	return list[from:to]
}

// asSparse returns x as a sparse matrix of this device that has not been freed, or nil if x is not sparse.
func (q *queue[T]) asSparse(op string, x backend.Matrix[T]) *sparseMatrix[T] {
	sparse, ok := x.(*sparseMatrix[T])
	if !ok {
		return nil
	}
	if sparse.device != q.engine.device {
		check.Foreign(op)
	}
	if sparse.lists.freed {
		check.Freed(op)
	}
	return sparse
}

// sparsePair returns x and z as sparse matrices, or nil if neither is sparse, and panics if only one is.
func (q *queue[T]) sparsePair(op string, x, z backend.Matrix[T]) (sx, sz *sparseMatrix[T]) {
	sx, sz = q.asSparse(op, x), q.asSparse(op, z)
	if (sx == nil) != (sz == nil) {
		q.asMatrix(op, x)
		q.asMatrix(op, z)
	}
	return sx, sz
}

// onePoint evaluates a statistic of one point for all rows of x. It caches the most recently computed statistics.
func (q *queue[T]) onePoint(stat kernels.Stat, x *sparseMatrix[T]) []T {
	const cacheSize = 4
	l := x.lists
	switch stat.Kind {
	case kernels.SelfZ:
		stat.Kind = kernels.SelfX
	case kernels.RootZ:
		stat.Kind = kernels.RootX
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	index := slices.IndexFunc(l.pointStats, func(s onePointValues[T]) bool { return s.stat.Equal(stat) })
	if index < 0 {
		values := make([]T, l.rows)
		full := &sparseMatrix[T]{csr: l.csr}
		q.rows(l.rows, 8*panels(l.csr.NNZ(), max(l.rows, 1)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				point := full.point(i)
				values[i] = T(kernels.EvalSparse(stat, l.csr.Cols, point, point))
			}
		})
		if q.stopped() {
			return values[x.first:] // incomplete values, which are not cached
		}
		index = min(len(l.pointStats), cacheSize-1)
		l.pointStats = append(l.pointStats[:index:index], onePointValues[T]{})
		copy(l.pointStats[1:], l.pointStats)
		l.pointStats[0] = onePointValues[T]{stat, values}
		index = 0
	}
	return l.pointStats[index].values[x.first:]
}

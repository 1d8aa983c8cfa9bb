package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/kernels"
)

// Gram matrices of sparse points. A statistic that is a sum Σ_p f(x_p, z_p) with f(0, 0) = 0 is
//
//	Σ_p f(x_p, 0) + Σ_p f(0, z_p) + Σ_p (f(x_p, z_p) − f(x_p, 0) − f(0, z_p)),
//
// where the last sum is over the columns that both points store:
//
//	         f(x, 0)  in common
//	xᵀz      0        xz
//	‖x−z‖²   x²       −2xz
//	‖x−z‖₁   |x|      |x−z| − |x| − |z|
//	χ²       x        −4xz/(x+z)
//
// A row of a tile is computed from one point x and the lists of Z (csr.go): for each column that x stores, the
// terms of the column's list are added to the values of the row. If column j has c_j elements in X and in Z, this
// takes Σ c_j² multiply-adds, or half as many if Z is X. Columns stored by more than the fraction denseFraction of
// the rows are multiplied in dense form by the micro-kernel instead.
//
// For points x and z close to each other, all these statistics except xᵀz suffer from cancellation. Let n_x and n_z
// be the first and the second sum, and let γ be a bound on the relative error of a sum of positive terms. The error
// of the statistic is at most 4γ(n_x + n_z). Values below (n_x + n_z)/1024 are computed again from the differences,
// so that every value has a relative error of at most 2¹²γ. Points whose features are not finite, or negative for χ²,
// are always summed by the definition.

// minDenseRows is the minimum number of rows of X for which making the dense form of columns saves time.
const minDenseRows = 16

// newSparseGram is newGram for sparse points.
func (q *queue[T]) newSparseGram(k kernels.Kernel, x, z *sparseMatrix[T]) *gram[T] {
	u := q.engine.ukr
	g := &gram[T]{q: q, prog: kernels.Compile(k), d: x.csr.Cols}
	var denseCols, position []int32
	if x.csr.Rows >= minDenseRows && len(z.lists.denseCols) > 0 {
		denseCols, position = z.lists.denseCols, z.lists.position
	}
	g.x = q.denseColumns(x.csr, denseCols, position)
	g.z = g.x
	if !x.sameMatrix(z) {
		g.z = q.denseColumns(z.csr, denseCols, position)
	}
	for _, s := range g.prog.Stats {
		s.Scale = scales(s, g.d)
		st, p := pairwise[T]{factor: 1}, packing[T]{}
		switch s.Kind {
		case kernels.Dot, kernels.SqDist:
			st.kernel, st.product = u.Gemm, true
		case kernels.L1:
			st.kernel = u.L1
		case kernels.Chi2:
			st.kernel, p.positive = u.Chi2, true
		default:
			st.fill = q.sparseFiller(s, x, z)
		}
		if st.fill == nil {
			st.add = q.newCommonTerms(s, x, z, position).add
			if s.Scale != nil {
				p.scale = make([]float64, len(denseCols))
				for i, c := range denseCols {
					p.scale[i] = s.Scale[c]
				}
			}
		}
		p.empty = st.fill != nil || denseCols == nil
		st.packing, st.features = len(g.packs), p.features(len(denseCols))
		g.stats, g.packs = append(g.stats, st), append(g.packs, p)
	}
	// A tile begins at the first row of a window, and a block at the first row of a tile.
	const tileElements = 1 << 16
	window := z.lists.window
	g.rows, g.cols = max(1, tileElements/window/u.MR)*u.MR, window
	g.size = max(1, gramBlock(len(denseCols), int(unsafe.Sizeof(*new(T))))/window) * window
	return g.fuse(k)
}

// denseColumns returns columns of x as a dense matrix. position[j] is the index of column j in this
// matrix, or −1 if the column is not in it.
func (q *queue[T]) denseColumns(x backend.CSR[T], columns, position []int32) *matrix[T] {
	d := len(columns)
	m := &matrix[T]{device: q.engine.device, rows: x.Rows, cols: d, stride: d}
	if d == 0 {
		return m
	}
	m.data = pages.Zeros[T](x.Rows * d)
	q.rows(x.Rows, d, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := m.row(i)
			columns, values := x.Row(i)
			for p, c := range columns {
				if index := position[c]; index >= 0 {
					row[index] = values[p]
				}
			}
		}
	})
	return m
}

// otherColumns returns a copy of x with scaled values, without each column c in dense form, for which position[c] ≥ 0.
func otherColumns[T backend.Float](x backend.CSR[T], position []int32, scale []float64) backend.CSR[T] {
	if position == nil && scale == nil {
		return x
	}
	other := backend.CSR[T]{Rows: x.Rows, Cols: x.Cols, Indptr: make([]int, x.Rows+1)}
	other.Indices, other.Data = make([]int32, 0, x.NNZ()), make([]T, 0, x.NNZ())
	for i := range x.Rows {
		columns, values := x.Row(i)
		for p, c := range columns {
			if position != nil && position[c] >= 0 {
				continue
			}
			v := values[p]
			if scale != nil {
				v = T(float64(v) * scale[c])
			}
			other.Indices, other.Data = append(other.Indices, c), append(other.Data, v)
		}
		other.Indptr[i+1] = len(other.Data)
	}
	return other
}

// sparseFiller returns a filler for a statistic of one point, or a statistic that is computed by its definition.
func (q *queue[T]) sparseFiller(stat kernels.Stat, x, z *sparseMatrix[T]) filler[T] {
	switch stat.Kind {
	case kernels.SelfX, kernels.RootX:
		values := q.onePoint(stat, x)
		return func(_ *scratch[T], i, _ int, out []T) {
			for c := range out {
				out[c] = values[i]
			}
		}
	case kernels.SelfZ, kernels.RootZ:
		values := q.onePoint(stat, z)[:z.csr.Rows]
		return func(_ *scratch[T], _, j int, out []T) {
			clear(out[copy(out, values[j:]):])
		}
	}
	pairs := &commonTerms[T]{stat: stat, x: x, z: z}
	return func(_ *scratch[T], i, j int, out []T) {
		clear(out)
		for c := range out[:min(len(out), z.csr.Rows-j)] {
			if q.stopped() {
				return
			}
			out[c] = pairs.byDefinition(i, j+c)
		}
	}
}

// A commonTerms adds the columns that are not in dense form to a statistic, such as xᵀz, of the columns in dense form.
type commonTerms[T backend.Float] struct {
	stat               kernels.Stat
	x, z               *sparseMatrix[T]
	points             backend.CSR[T] // the scaled elements of X, without the columns in dense form
	values             []T            // the elements of Z, in the order of z.lists, multiplied by the kernel's scale of their feature
	product            bool           // whether the statistic is xᵀz
	factor             T              // factor by which the tile's values are multiplied at the end
	sizesX, sizesZ     []T            // Σ_p f(x_p, 0) for the rows of X, and Σ_p f(0, z_p) for the rows of Z: see sizes
	definedX, definedZ []int32        // rows of X and Z, as indices into the whole matrices, to evaluate by definition
}

func (q *queue[T]) newCommonTerms(stat kernels.Stat, x, z *sparseMatrix[T], position []int32) *commonTerms[T] {
	o := &commonTerms[T]{stat: stat, x: x, z: z, product: stat.Kind == kernels.Dot, factor: 1}
	o.points, o.values = otherColumns(x.csr, position, stat.Scale), z.lists.values
	if stat.Scale != nil {
		o.values = z.lists.scaled(stat.Scale)
	}
	list := func(m *sparseMatrix[T]) []int32 {
		if stat.Kind == kernels.Chi2 {
			return rowsWithin(m.lists.negative, m.first, m.first+m.csr.Rows)
		}
		return rowsWithin(m.lists.nonfinite, m.first, m.first+m.csr.Rows)
	}
	o.definedX, o.definedZ = list(x), list(z)
	if stat.Kind == kernels.SqDist {
		o.factor, position = -2, nil // for the features in dense form, the micro-kernel also computes xᵀz
	}
	if !o.product {
		o.sizesX = o.sizes(x, position)
		o.sizesZ = o.sizesX
		if !x.sameMatrix(z) {
			o.sizesZ = o.sizes(z, position)
		}
	}
	return o
}

// scaled returns the values of the lists, times the scale of their columns.
func (l *lists[T]) scaled(scale []float64) []T {
	values := make([]T, len(l.values))
	for w := range len(l.starts) - 1 {
		ends := l.ends[w*(l.cols+1):][:l.cols+1]
		for c, factor := range scale {
			for p := l.starts[w] + int(ends[c]); p < l.starts[w]+int(ends[c+1]); p++ {
				values[p] = T(float64(l.values[p]) * factor)
			}
		}
	}
	return values
}

// sizes returns for each row x the sum of the terms f(x_p, 0) of the statistic, over the columns p not in dense form.
func (o *commonTerms[T]) sizes(x *sparseMatrix[T], position []int32) []T {
	sizes := make([]T, x.csr.Rows)
	square, rowSums := o.stat.Kind == kernels.SqDist, x.lists.sums
	if square {
		rowSums = x.lists.squares
	}
	if position == nil && o.stat.Scale == nil {
		for i := range sizes {
			sizes[i] = T(rowSums[x.first+i])
		}
		return sizes
	}
	for i := range sizes {
		columns, values := x.csr.Row(i)
		sum := 0.0
		for p, c := range columns {
			if position != nil && position[c] >= 0 {
				continue
			}
			v := math.Abs(float64(values[p]))
			if o.stat.Scale != nil {
				v = math.Abs(float64(T(v * o.stat.Scale[c])))
			}
			if square {
				v *= v
			}
			sum += v
		}
		sizes[i] = T(sum)
	}
	return sizes
}

// byDefinition returns the statistic of a pair of points, computed by its definition.
func (o *commonTerms[T]) byDefinition(i, j int) T {
	return T(kernels.EvalSparse(o.stat, o.x.csr.Cols, o.x.point(i), o.z.point(j)))
}

// add completes the statistics of row i of X and the rows of Z from j on. out holds the terms of the dense columns.
func (o *commonTerms[T]) add(_ *scratch[T], i, j int, out []T) {
	out = out[:min(len(out), o.z.csr.Rows-j)]
	if _, ok := slices.BinarySearch(o.definedX, int32(o.x.first+i)); ok {
		for c := range out {
			out[c] = o.byDefinition(i, j+c)
		}
		return
	}
	o.gather(i, o.z.first+j, out)
	if !o.product {
		size, sizes := o.sizesX[i], o.sizesZ[j:][:len(out)]
		for c, v := range out {
			sizeSum := size + sizes[c]
			v = o.factor*v + sizeSum
			// The condition is also true for NaN and Inf, which result from overflow.
			if !(v >= sizeSum*canceled) || v-v != 0 {
				v = o.byDefinition(i, j+c)
			}
			out[c] = v
		}
	}
	for _, row := range rowsWithin(o.definedZ, o.z.first+j, o.z.first+j+len(out)) {
		c := int(row) - o.z.first - j
		out[c] = o.byDefinition(i, j+c)
	}
}

// gather adds to out the terms of the columns that row i of X shares with each row of Z from row lo on.
func (o *commonTerms[T]) gather(i, lo int, out []T) {
	columns, values := o.points.Row(i)
	l, hi := o.z.lists, lo+len(out)
	for w := lo / l.window; w*l.window < hi; w++ {
		first := w * l.window
		last := min(first+l.window, l.rows)
		ends := l.ends[w*(l.cols+1):][:l.cols+1]
		localRows, list := l.localRows[l.starts[w]:l.starts[w+1]], o.values[l.starts[w]:l.starts[w+1]]
		partial := first < lo || last > hi
		for p, c := range columns {
			from, to := ends[c], ends[c+1]
			if from == to {
				continue
			}
			rows, z := localRows[from:to], list[from:to]
			if partial {
				a, b := bounds(rows, lo-first, hi-first)
				rows, z = rows[a:b], z[a:b]
			}
			switch o.stat.Kind {
			case kernels.L1:
				addL1(out, first-lo, rows, z, values[p])
			case kernels.Chi2:
				addChi2(out, first-lo, rows, z, values[p])
			default:
				addDot(out, first-lo, rows, z, values[p])
			}
		}
	}
}

// addDot adds xz to out[offset + row] for each row of a list.
func addDot[T backend.Float](out []T, offset int, rows []uint16, z []T, x T) {
	z = z[:len(rows)]
	for k, r := range rows {
		out[offset+int(r)] += x * z[k]
	}
}

// addL1 adds |x−z| − |x| − |z| to out[offset + row] for each row of a list.
func addL1[T backend.Float](out []T, offset int, rows []uint16, z []T, x T) {
	z = z[:len(rows)]
	size := T(math.Abs(float64(x)))
	for k, r := range rows {
		v := z[k]
		out[offset+int(r)] += T(math.Abs(float64(x-v))) - (size + T(math.Abs(float64(v))))
	}
}

// addChi2 adds −4xz/(x+z), for x, z ≥ 0, to out[offset + row] for each row of a list.
func addChi2[T backend.Float](out []T, offset int, rows []uint16, z []T, x T) {
	z = z[:len(rows)]
	for k, r := range rows {
		if v := z[k]; v > 0 && x > 0 {
			out[offset+int(r)] -= 4 * (x / (x + v)) * v // the product may overflow
		}
	}
}

// sparsePacked implements GramPacked for sparse points. A tile may cross column n1, where the two parts of packed
// storage meet.
func (q *queue[T]) sparsePacked(p *packedMatrix[T], k kernels.Kernel, x *sparseMatrix[T]) {
	n := x.csr.Rows
	g := q.newSparseGram(k, x, x)
	tm, tn := g.tileSize()
	g.blocks(func(i0, j0 int, bx, bz []packedPoints[T]) {
		rows, cols := min(g.size, n-i0), min(g.size, n-j0)
		tiles := evenGrid(rows, cols, tm, tn)
		q.parallel(tiles.tasks(), g.flops(rows, cols), func(s *scratch[T], task int) {
			i, j, rows, cols := tiles.block(task)
			elements := lower.count(rows, cols, j0+j-i0-i)
			if elements == 0 {
				return
			}
			g.tile(s, bx, bz, i0, j0, i, j, rows, cols, lower, func(r, from int, values []T) {
				left, right := p.row(i0 + i + r)
				column := j0 + j + from
				if column < len(left) {
					values = values[copy(left[column:], values):]
					column = len(left)
				}
				for c, v := range values {
					*right.at(column-p.n1+c, 0) = v
				}
			})
			q.count(2 * float64(elements) * float64(g.d))
		})
	})
}

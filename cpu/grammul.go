package cpu

import (
	"math/bits"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// GramMul evaluates tiles of k(X, Z) in scratch memory and multiplies each tile immediately. If Z is X and V has
// at most symmetricColumns columns, it evaluates only the lower triangle of k(X, X).
func (q *queue[T]) GramMul(dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) {
	n, m, _, t := check.GramMul(dst, k, x, z, v)
	out, mv := q.asMatrix("GramMul", dst), q.asMatrix("GramMul", v)
	empty := n == 0 || m == 0 || t == 0
	if sx, sz := q.sparsePair("GramMul", x, z); sx != nil {
		q.scale(0, out.view(), whole)
		if !empty {
			q.newSparseGram(k, sx, sz).times(mv, out, sx.sameMatrix(sz))
		}
		return
	}
	mx, mz := q.asMatrix("GramMul", x), q.asMatrix("GramMul", z)
	q.scale(0, out.view(), whole)
	if empty {
		return
	}
	q.newGram(k, mx, mz).useIntegers().times(mv, out, mx.sameMatrix(mz))
}

// GramMulRoundings implements backend.RoundingBackend. With V in strips, the products k(x, z_j)v_j are summed in
// groups of at most PanelTerms, then the groups of each block of packed points, and then the blocks. With V by
// columns, a group consists of the products of a tile. Each addition rounds.
func (q *queue[T]) GramMulRoundings(m, t int) int {
	const smallest = 256 // smallest number of points of a block, see gramBlock
	blocks := panels(m, smallest)
	_, tileCols := (&gram[T]{q: q}).tileSize()
	if t >= minStripColumns { // additions to 0 are exact; all blocks and tiles except the last have multiples of PanelTerms points
		return min(m, ukr.PanelTerms) + panels(m, ukr.PanelTerms) + blocks - 2
	}
	lanes := 1
	if q.engine.device.tier.Name != "generic" {
		lanes = q.engine.ukr.NR / 2 // a vector has NR/2 lanes; each lane sums a part of a row of the tile
	}
	// The last elements of a row may be summed in shorter vectors, and then the lanes are added. Each of the two
	// adds at most one rounding per halving of the vector. The last tile of a block may be narrower than the others.
	return 1 + panels(min(m, tileCols), lanes) + 2*bits.Len(uint(lanes)) + panels(m, tileCols) + 2*blocks
}

// times computes out ← k(X, Z) v for the points of g. If symmetric is true, Z is X. No matrix may be empty.
func (g *gram[T]) times(v, out *matrix[T], symmetric bool) {
	packedV, free := g.q.engine.multipliersOf(v.view(), g.q.engine.shared)
	defer free()
	product := &gramMul[T]{gram: g, t: v.cols, multipliers: packedV}
	if symmetric && v.cols <= symmetricColumns {
		product.symmetric(out.view())
	} else {
		product.general(out.view())
	}
}

// minStripColumns is the smallest number of columns of V for which packed strips are faster than separate columns.
const minStripColumns = 3

// symmetricColumns is the largest number of columns of V for which the symmetry of k(X, X) is used. Each group of
// blocks of rows then needs a matrix of sums as large as dst.
const symmetricColumns = 16

// gramMul multiplies the tiles of a Gram matrix by V.
type gramMul[T backend.Float] struct {
	*gram[T]
	t int
	multipliers[T]
}

// multipliers hold V in the layout for products.
type multipliers[T backend.Float] struct {
	columns [][]T     // V by columns, for a small number of columns
	strips  strips[T] // V in packed strips, for a larger number of columns; see minStripColumns
}

func (e *engine[T]) multipliersOf(v view[T], lend allocator[T]) (multipliers[T], func()) {
	if v.cols < minStripColumns {
		columns, free := columnsOf(v, lend)
		return multipliers[T]{columns: columns}, free
	}
	strips, free := e.stripsOf(v, lend)
	return multipliers[T]{strips: strips}, free
}

// partial is a matrix to which the products of tiles are added. It is stored by columns or in strips.
type partial[T backend.Float] struct {
	rows    int
	columns []T // the columns, stored consecutively
	strips  strips[T]
}

// add adds rows lo … hi−1 of o to p.
func (p partial[T]) add(e *engine[T], o partial[T], lo, hi int) {
	if p.columns == nil {
		for c := range p.strips.count() {
			w := p.strips.width
			e.axpy(1, o.strips.strip(c)[lo*w:hi*w], p.strips.strip(c)[lo*w:hi*w])
		}
		return
	}
	for c := range len(p.columns) / p.rows {
		e.axpy(1, o.column(c)[lo:hi], p.column(c)[lo:hi])
	}
}

// partialElements returns the number of elements of a partial with the given number of rows.
func (g *gramMul[T]) partialElements(rows int) int {
	if g.columns != nil {
		return rows * g.t
	}
	return g.q.engine.stripElements(rows, g.t)
}

// zeros returns a partial of zeros that uses the given memory.
func (g *gramMul[T]) zeros(memory []T, rows int) partial[T] {
	clear(memory)
	if g.columns != nil {
		return partial[T]{rows: rows, columns: memory}
	}
	return partial[T]{rows: rows, strips: g.q.engine.stripsIn(memory, rows, g.t)}
}

func (p partial[T]) column(c int) []T { return p.columns[c*p.rows:][:p.rows] }

func (p partial[T]) at(i, j int) T {
	if p.columns != nil {
		return p.column(j)[i]
	}
	return p.strips.at(i, j)
}

// general computes out ← k(X, Z) V. Each task computes some rows of out.
func (g *gramMul[T]) general(out view[T]) {
	n, m := out.rows, g.z.rows
	tm, _ := g.tileSize()
	g.blocks(func(i0, j0 int, bx, bz []packedPoints[T]) {
		rows, cols := min(g.size, n-i0), min(g.size, m-j0)
		g.q.chunks(rows, tm, g.flops(rows, cols), func(s *scratch[T], i, count int) {
			g.addRows(s, bx, bz, i0, j0, i, count, out)
		})
	})
}

// flops returns the number of operations of rows × cols kernel values and their product with V.
func (g *gramMul[T]) flops(rows, cols int) float64 {
	return g.gram.flops(rows, cols) + flop.Gemm(rows, g.t, cols)
}

// addRows adds k(X, Z) V to rows of out, for count points of bx from point i on and all points of bz.
func (g *gramMul[T]) addRows(s *scratch[T], bx, bz []packedPoints[T], i0, j0, i, count int, out view[T]) {
	cols := min(g.size, g.z.rows-j0)
	_, tn := g.tileSize()
	sum := g.zeros(s.sums(g.partialElements(count)), count)
	for j := 0; j < cols && !g.q.stopped(); j += tn {
		width := min(tn, cols-j)
		tile := g.values(s, bx, bz, i0, j0, i, j, count, width)
		g.multiply(s, tile, 0, j0+j, sum)
		g.q.count(2 * float64(count) * float64(width) * float64(g.d+g.t))
	}
	for r := range count {
		for c := range g.t {
			*out.at(i0+i+r, c) += sum.at(r, c)
		}
	}
}

// symmetric computes out ← k(X, X) V from the lower triangle of k(X, X). Each group of blocks of rows is a task
// with its own sums, so that the order of additions does not depend on the number of workers.
func (g *gramMul[T]) symmetric(out view[T]) {
	n := out.rows
	_, tn := g.tileSize()
	tm := g.squareSize()
	size := groups(n)
	partials := make([]partial[T], size)
	elements := g.partialElements(n)
	memory, free := g.q.engine.sharedSums(size * elements)
	defer free()
	g.q.parallel(size, copyFlops(len(memory)), func(_ *scratch[T], group int) {
		partials[group] = g.zeros(memory[group*elements:][:elements], n)
	})
	if g.q.stopped() {
		return
	}
	g.blocks(func(i0, j0 int, bx, bz []packedPoints[T]) {
		if j0 > i0 {
			return
		}
		rows := min(g.size, n-i0)
		g.q.parallel(size, g.flops(rows, rows), func(s *scratch[T], group int) {
			sum := partials[group]
			for i := group * tm; i < rows; i += size * tm {
				count := min(tm, rows-i)
				offDiagCols := min(g.size, n-j0) // number of columns in this block that are left of the diagonal tile
				if j0 == i0 {
					offDiagCols = i
				}
				for j := 0; j < offDiagCols && !g.q.stopped(); j += tn {
					width := min(tn, offDiagCols-j)
					tile := g.values(s, bx, bz, i0, j0, i, j, count, width)
					g.multiplyBoth(s, tile, i0+i, j0+j, sum)
					g.q.count(4 * float64(count) * float64(width) * float64(g.d+g.t))
				}
				if j0 == i0 && !g.q.stopped() {
					tile := g.values(s, bx, bz, i0, j0, i, i, count, count)
					g.multiply(s, tile, i0+i, i0+i, sum)
					g.q.count(2 * float64(count) * float64(count) * float64(g.d+g.t))
				}
			}
		})
	})
	g.q.rows(n, g.t*size, func(lo, hi int) {
		for _, p := range partials[1:] {
			partials[0].add(g.q.engine, p, lo, hi)
		}
		for i := lo; i < hi; i++ {
			for c := range g.t {
				*out.at(i, c) = partials[0].at(i, c)
			}
		}
	})
}

// squareSize returns the order of a tile on the diagonal: about 96, and a multiple of both MR and NR.
func (g *gramMul[T]) squareSize() int {
	mr, nr := g.q.engine.ukr.MR, g.q.engine.ukr.NR
	multiple := mr
	for multiple%nr != 0 {
		multiple += mr
	}
	return panels(96, multiple) * multiple
}

// values returns a tile of the Gram matrix in scratch memory, with contiguous rows.
func (g *gramMul[T]) values(s *scratch[T], bx, bz []packedPoints[T], i0, j0, i, j, rows, cols int) view[T] {
	width := panels(cols, g.q.engine.ukr.NR) * g.q.engine.ukr.NR
	stride := width + cacheLine/int(unsafe.Sizeof(*new(T))) // a stride that is a power of two would map the rows to a small number of cache sets
	tile := view[T]{rows: rows, cols: width, rs: stride, cs: 1}
	if g.inPlace {
		tile.data = s.grow(rows * stride)
		g.tileInPlace(s, bx, bz, i0, j0, i, j, cols, tile)
	} else {
		tile.data = s.growSecond(rows * stride)
		g.tile(s, bx, bz, i0, j0, i, j, rows, cols, whole, func(r, from int, values []T) {
			copy(tile.data[r*stride+from:], values)
		})
	}
	return tile.block(0, 0, rows, cols)
}

// multiply adds tile · V_j to the rows of sum from row i on, where V_j holds the rows of V from row j on.
func (g *gramMul[T]) multiply(s *scratch[T], tile view[T], i, j int, sum partial[T]) {
	e := g.q.engine
	if g.columns == nil {
		e.addStrips(s, tile, i, j, g.strips, sum.strips, false)
		return
	}
	for r := 0; r < tile.rows; r += 4 {
		for c, column := range g.columns { // for the second column, the four rows of the tile are in the L1 cache
			total := sum.column(c)[i:]
			for k, d := range e.dots(s, tile, r, min(4, tile.rows-r), column[j:j+tile.cols]) {
				total[r+k] += d
			}
		}
	}
}

// multiplyBoth adds tile · V_j to the rows of sum from row i on, and tileᵀ · V_i to the rows from
// row j on, where V_i holds the rows of V from row i on.
func (g *gramMul[T]) multiplyBoth(s *scratch[T], tile view[T], i, j int, sum partial[T]) {
	e := g.q.engine
	if g.columns == nil {
		e.addStrips(s, tile, i, j, g.strips, sum.strips, true)
		return
	}
	for c, column := range g.columns {
		total := sum.column(c)
		e.dotAxpys(s, tile, column[j:], total[j:], column[i:], total[i:])
	}
}

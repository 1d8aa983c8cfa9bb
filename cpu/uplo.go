package cpu

// uplo is the part of C that a product writes: its lower or upper triangle, or all of it. For a block of C, offset
// is the offset of the diagonal: element (i, j) of the block is on the diagonal if i = j + offset.
type uplo uint8

const (
	whole uplo = iota
	lower      // i ≥ j + offset
	upper      // i ≤ j + offset
)

// transposed returns the part of Cᵀ that corresponds to the part r of C.
func (r uplo) transposed() uplo {
	switch r {
	case lower:
		return upper
	case upper:
		return lower
	}
	return whole
}

// columns returns the range of columns, within 0 … n−1, in which the elements of row i lie in r, if
// offset = 0. For another offset, pass i − offset instead of i.
func (r uplo) columns(i, n int) (from, to int) {
	switch r {
	case lower:
		return 0, clamp(i+1, n)
	case upper:
		return clamp(i, n), n
	}
	return 0, n
}

// rows returns the range of rows, within 0 … m−1, that have at least one element of r in the columns j … j+n−1.
func (r uplo) rows(m, j, n, offset int) (first, last int) {
	switch r {
	case lower:
		return clamp(j+offset, m), m
	case upper:
		return 0, clamp(j+n+offset, m)
	}
	return 0, m
}

// fullRows returns the range of rows, within 0 … m−1, whose elements in the columns j … j+n−1 all lie in r.
func (r uplo) fullRows(m, j, n, offset int) (first, last int) {
	switch r {
	case lower:
		return clamp(j+n-1+offset, m), m
	case upper:
		return 0, clamp(j+1+offset, m)
	}
	return 0, m
}

// count returns the number of elements of an m × n block that lie in r.
func (r uplo) count(m, n, offset int) int {
	if r == whole {
		return m * n
	}
	sum := 0
	for i := range m {
		from, to := r.columns(i-offset, n)
		sum += to - from
	}
	return sum
}

// clamp returns x, limited to the range 0 … limit.
func clamp(x, limit int) int { return max(0, min(x, limit)) }

// grid divides an m × n part of C into blocks of tn columns and varying numbers of rows, one block for each task.
type grid struct {
	starts []int // the first rows of the blocks
	m, n   int
	tn     int
	cols   int // number of blocks in each row of the grid
}

// evenGrid returns a grid with blocks of mc × tn.
func evenGrid(m, n, mc, tn int) grid {
	return cutRows(m, n, tn, func(int) int { return mc })
}

// newGrid divides a part of C into tasks of a product, if possible at least four tasks for each worker. The last
// tasks have fewer rows, so that the workers finish at about the same time. Every block begins at the edge of a
// register tile, so that the rounding of an element does not depend on the grid.
func newGrid(m, n int, size blocking, threads int) grid {
	mc, tn := min(size.mc, panels(m, size.mr)*size.mr), panels(n, size.nr)*size.nr
	tooFewTasks := func() bool { return threads > 1 && panels(m, mc)*panels(n, tn) < 4*threads }
	for mc >= 4*size.mr && tooFewTasks() {
		mc = panels(mc/2, size.mr) * size.mr
	}
	for tn >= 2*size.kc && tooFewTasks() {
		tn = panels(tn/2, size.nr) * size.nr
	}
	if threads == 1 {
		return evenGrid(m, n, mc, tn)
	}
	minRows := min(mc, panels(minTaskRows, size.mr)*size.mr)
	return cutRows(m, n, tn, func(remaining int) int {
		return min(mc, max(minRows, panels(remaining/(2*threads), size.mr)*size.mr))
	})
}

// minTaskRows is the approximate number of rows of the smallest task; smaller tasks would read packed B too often.
const minTaskRows = 48

// cutRows divides the m rows: while some rows remain, the next block has rows(remaining) rows.
func cutRows(m, n, tn int, rows func(remaining int) int) grid {
	g := grid{starts: make([]int, 0, 16), m: m, n: n, tn: tn, cols: panels(n, tn)}
	for i := 0; i < m; i += rows(m - i) {
		g.starts = append(g.starts, i)
	}
	return g
}

func (g grid) tasks() int { return len(g.starts) * g.cols }

func (g grid) block(task int) (i, j, rows, cols int) {
	k := task / g.cols
	i, j = g.starts[k], task%g.cols*g.tn
	end := g.m
	if k+1 < len(g.starts) {
		end = g.starts[k+1]
	}
	return i, j, end - i, min(g.tn, g.n-j)
}

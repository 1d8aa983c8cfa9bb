package cpu

import (
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Points of images, counts and indicators have many features that are 0. Features that are 0 in all points of a
// group of ukr.SparseRows points of X are omitted from products. The other features are summed in the same order,
// so that the sums have the same bits. Features are omitted only for ‖x−z‖² computed from the norms: a NaN or
// infinite feature of z also makes the norm of z NaN or infinite.

// Omitting features saves time if the remaining fraction of features is at most sparseFraction.
const sparseFraction = 0.6

// keptFraction estimates, from some groups of points, the fraction of features that are not omitted. It returns 1 if
// this exceeds sparseFraction. Otherwise it sets center[j] to 0 for each feature j that is 0 in at least half of
// the sampled points, so that centering does not destroy these zeros.
func keptFraction[T backend.Float](m *matrix[T], center []T, nr int) float64 {
	const samples, groupRows = 16, ukr.SparseRows
	groups := m.rows / groupRows
	count := min(samples, groups)
	if count == 0 || m.cols > math.MaxInt32/nr {
		return 1
	}
	zeros, keptCount := make([]int, m.cols), 0
	for k := range count {
		first := k * groups / count * groupRows
		for j := range m.cols {
			zeroCount := 0
			for r := range groupRows {
				if m.row(first + r)[j] == 0 {
					zeroCount++
				}
			}
			zeros[j] += zeroCount
			if zeroCount < groupRows {
				keptCount++
			}
		}
	}
	fraction := float64(keptCount) / (float64(count) * float64(m.cols))
	if !(fraction <= sparseFraction) {
		return 1
	}
	for j, n := range zeros {
		if 2*n >= groupRows*count {
			center[j] = 0
		}
	}
	return fraction
}

// packSparse packs X without the omitted features. For each group, the field positions has d+1 elements: the
// positions of the remaining features in a panel of Z, and in the last element their number.
func (g *gram[T]) packSparse(p packing[T], m *matrix[T], first, rows int, lend allocator[T]) (packedPoints[T], func()) {
	const w = ukr.SparseRows
	d, groups := m.cols, panels(rows, w)
	positionsSize := panels(groups*(d+1)*4, int(unsafe.Sizeof(*new(T))))
	memory, free := lend(groups*w*(d+1) + positionsSize)
	b := packedPoints[T]{panels: memory[:groups*w*d], norms: memory[groups*w*d:][:groups*w], first: first}
	b.positions = unsafe.Slice((*int32)(unsafe.Pointer(&memory[groups*w*(d+1)])), groups*(d+1))
	g.q.chunks(rows, 8*w, copyFlops(rows*d), func(_ *scratch[T], r, count int) {
		for k := r; k < r+count; k += w {
			var group [w][]T
			n := min(w, rows-k)
			for i := range group {
				group[i] = m.row(first + k + min(i, n-1))
			}
			p.finishSparse(group, n, b.panels[k*d:], b.norms[k:], b.positions[k/w*(d+1):][:d+1], g.q.engine.ukr.NR)
		}
	})
	return b, free
}

// finishSparse packs a group with n points and computes the squared norms of the points.
func (p packing[T]) finishSparse(group [ukr.SparseRows][]T, n int, dst, norms []T, positions []int32, nr int) {
	count := 0
	var sums [ukr.SparseRows]float64
	a, b, c, d := group[0], group[1], group[2], group[3]
	for j, shift := range p.center {
		if shift == 0 && a[j] == 0 && b[j] == 0 && c[j] == 0 && d[j] == 0 {
			continue
		}
		to := dst[count*len(group):][:len(group)]
		for r := range to {
			v := group[r][j] - shift
			if p.scale != nil {
				v = T(float64(v) * p.scale[j])
			}
			if r >= n {
				v = 0
			}
			to[r] = v
			sums[r] += float64(v) * float64(v)
		}
		positions[count] = int32(j * nr)
		count++
	}
	positions[len(positions)-1] = int32(count)
	for r, sum := range sums {
		norms[r] = T(sum)
	}
}

// fillSparse is the method fill for xᵀz of points packed by packSparse. i must be a multiple of the group size.
func (g *gram[T]) fillSparse(s *scratch[T], x, z packedPoints[T], i, j, rows, width int, out []T, stride int) {
	const w, panelsPerPass = ukr.SparseRows, 2 // panels of Z at a time, which stay in the second-level cache
	u, d := g.q.engine.ukr, g.x.cols
	for c := 0; c < width && !g.q.stopped(); c += panelsPerPass * u.NR {
		for r := 0; r < rows; r += w {
			positions := x.positions[(i+r)/w*(d+1):][:d+1]
			s.sparse = ukr.Sparse[T]{
				A: &x.panels[(i+r)*d], B: &z.panels[(j+c)*d], C: &out[r*stride+c],
				K: int(positions[d]), M: min(w, rows-r), N: min(panelsPerPass, (width-c)/u.NR), Ldc: stride, Ldb: u.NR * d, At: &positions[0],
			}
			u.Sparse(&s.sparse)
		}
	}
}

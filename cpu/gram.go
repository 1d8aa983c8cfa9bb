package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	n, m, _ := check.Gram(dst, k, x, z)
	a, region := q.asMatrix("Gram", dst), whole
	if sx, sz := q.sparsePair("Gram", x, z); sx != nil {
		if sx.sameMatrix(sz) {
			region = lower
		}
		if n > 0 && m > 0 {
			q.newSparseGram(k, sx, sz).evaluateTo(a, region)
		}
		return
	}
	mx, mz := q.asMatrix("Gram", x), q.asMatrix("Gram", z)
	if mx.sameMatrix(mz) {
		region = lower
	}
	q.gram(a, k, mx, mz, region)
}

// gram computes A ← k(X, Z) on a region of A.
func (q *queue[T]) gram(a *matrix[T], k kernels.Kernel, x, z *matrix[T], region uplo) {
	n, m := a.rows, a.cols
	if n == 0 || m == 0 {
		return
	}
	q.newGram(k, x, z).useIntegers().evaluateTo(a, region)
}

// evaluateTo stores the kernel's values in a region of a, which is not empty.
func (g *gram[T]) evaluateTo(a *matrix[T], region uplo) {
	q, n, m := g.q, a.rows, a.cols
	stream := g.gaussian && q.streams(a)
	tm, tn := g.tileSize()
	g.blocks(func(i0, j0 int, bx, bz []packedPoints[T]) {
		rows, cols := min(g.size, n-i0), min(g.size, m-j0)
		tiles := evenGrid(rows, cols, tm, tn)
		q.parallel(tiles.tasks(), g.flops(rows, cols), func(s *scratch[T], task int) {
			i, j, rows, cols := tiles.block(task)
			elements := region.count(rows, cols, j0+j-i0-i)
			if elements == 0 {
				return
			}
			fullTile := elements == rows*cols && cols%q.engine.ukr.NR == 0
			if fullTile && stream {
				g.tileStreamed(s, bx, bz, i0, j0, i, j, cols, a.view().block(i0+i, j0+j, rows, cols))
			} else if fullTile && g.inPlace {
				g.tileInPlace(s, bx, bz, i0, j0, i, j, cols, a.view().block(i0+i, j0+j, rows, cols))
			} else {
				g.tile(s, bx, bz, i0, j0, i, j, rows, cols, region, func(r, from int, values []T) {
					copy(a.row(i0 + i + r)[j0+j+from:], values)
				})
			}
			q.count(2 * float64(elements) * float64(g.d))
		})
	})
}

// gram evaluates a kernel on tiles of pairs of points.
type gram[T backend.Float] struct {
	q       *queue[T]
	x, z    *matrix[T] // dense points, or for sparse points a dense copy of the columns that many rows store (see sparsegram.go)
	d       int        // number of features of a point
	prog    *kernels.Program
	stats   []pairwise[T]
	packs   []packing[T]
	size    int                 // number of points packed at a time
	packedZ [][]packedPoints[T] // the packed blocks of Z, if they are packed once for all blocks of X; otherwise nil
	ones    []T                 // a vector of ones: the scale factors of rows and columns for products of integers
	// rows and cols are the size of a tile, or 0 for the default size.
	rows, cols int
	// inPlace reports whether the program has one statistic and overwrites it by the kernel value.
	inPlace bool
	// gaussian reports whether the kernel is exp(a‖x−z‖²), a ≤ 0, with ‖x−z‖² computed from the norms.
	gaussian bool
	// matern holds the three coefficients of a Matérn kernel (see maternCoeffs), and is nil for other kernels.
	matern *[3]T
}

// flops returns the number of operations for rows × cols values, of which the program takes about 20 for each value.
func (g *gram[T]) flops(rows, cols int) float64 {
	return flop.Gemm(rows, cols, g.d*len(g.stats)+10)
}

// gramBlock returns the number of points of X and of Z packed at a time: about 8 MiB, but at least 256 points.
func gramBlock(d, size int) int {
	const maxPoints, minPoints, bytes = 4096, 256, 8 << 20
	return max(minPoints, min(maxPoints, bytes/(max(d, 1)*size)/minPoints*minPoints))
}

// tileSize returns the number of rows and columns of a task, whose tile usually fits in the second-level cache.
func (g *gram[T]) tileSize() (rows, cols int) {
	if g.rows > 0 {
		return g.rows, g.cols
	}
	u := g.q.engine.ukr
	return max(112/u.MR, 1) * u.MR, max(256/u.NR, 1) * u.NR
}

// blocks packs X and Z block by block and calls f with each pair of blocks, which begin at points i0 and j0.
func (g *gram[T]) blocks(f func(i0, j0 int, bx, bz []packedPoints[T])) {
	e := g.q.engine
	for j0 := 0; j0 < g.z.rows && !g.q.stopped(); j0 += g.size {
		bz, freeZ := g.packed(j0)
		for i0 := 0; i0 < g.x.rows && !g.q.stopped(); i0 += g.size {
			bx, freeX := g.pack(g.x, i0, true, e.shared)
			f(i0, j0, bx, bz)
			freeX()
		}
		freeZ()
	}
}

// packed returns the block of Z that begins at j0, and a function that frees its memory.
func (g *gram[T]) packed(j0 int) ([]packedPoints[T], func()) {
	if g.packedZ != nil {
		return g.packedZ[j0/g.size], func() {}
	}
	return g.pack(g.z, j0, false, g.q.engine.shared)
}

// streams reports whether non-temporal stores to m are faster: m exceeds the caches and its rows are aligned.
func (q *queue[T]) streams(m *matrix[T]) bool {
	size := int(unsafe.Sizeof(*new(T)))
	return m.stride*size%cacheLine == 0 && uintptr(unsafe.Pointer(&m.data[0]))%cacheLine == 0 &&
		m.rows*m.cols*size > q.engine.device.caches.L3
}

// tileStreamed evaluates a Gaussian kernel for a whole tile and stores it in the view a with non-temporal stores.
func (g *gram[T]) tileStreamed(s *scratch[T], bx, bz []packedPoints[T], i0, j0, i, j, cols int, a view[T]) {
	st := g.stats[0]
	width := a.cols
	memory := s.grow(a.rows * width)
	g.fill(s, st, bx[0], bz[0], i, j, a.rows, width, memory, width)
	for r := range a.rows {
		if g.q.stopped() {
			return
		}
		row := memory[r*width:][:width]
		if !g.gaussiansTo(s, a.at(r, 0), row, bx[0], bz[0], i+r, j) {
			g.gaussians(s, st, row, bx[0], bz[0], i0, j0, i+r, j, cols)
			copy(a.data[a.offset+r*a.rs:][:width], row)
		}
	}
}

// tileInPlace evaluates the kernel for a whole tile in the memory of the result. The columns of the tile are
// padded to whole vectors; only the first cols columns belong to points.
func (g *gram[T]) tileInPlace(s *scratch[T], bx, bz []packedPoints[T], i0, j0, i, j, cols int, a view[T]) {
	st := g.stats[0]
	g.fill(s, st, bx[0], bz[0], i, j, a.rows, a.cols, a.data[a.offset:], a.rs)
	stack := s.growSecond(g.prog.Depth * a.cols)
	for r := range a.rows {
		if g.q.stopped() {
			return
		}
		row := a.data[a.offset+r*a.rs:][:a.cols]
		if g.gaussian {
			g.gaussians(s, st, row, bx[0], bz[0], i0, j0, i+r, j, cols)
			continue
		}
		if st.norms {
			g.distances(s, st, row, bx[0], bz[0], i0, j0, i+r, j, cols)
		}
		g.run(s, stack, row, 0, 0, a.cols)
	}
}

// tile evaluates the kernel for the rows × cols pairs that begin at point i of the packed block bx
// and at point j of bz. It passes each row of values to the function visit.
func (g *gram[T]) tile(s *scratch[T], bx, bz []packedPoints[T], i0, j0, i, j, rows, cols int, region uplo, visit func(r, from int, values []T)) {
	u := g.q.engine.ukr
	// Rows are padded to whole vectors; the padding is not used.
	width := panels(cols, u.NR) * u.NR
	size := rows * width
	group := max(spanLength/width, 1) // number of rows that one run of the program evaluates
	memory := s.grow(len(g.stats)*size + g.prog.Depth*group*width)
	for n, st := range g.stats {
		g.fill(s, st, bx[st.packing], bz[st.packing], i, j, rows, width, memory[n*size:][:size], width)
	}
	stack := memory[len(g.stats)*size:]
	for first := 0; first < rows; first += group {
		count := min(group, rows-first)
		if g.q.stopped() {
			return
		}
		if region.count(count, cols, j0+j-i0-i-first) == 0 {
			continue
		}
		for n, st := range g.stats {
			if !st.norms {
				continue
			}
			for r := first; r < first+count; r++ {
				row := memory[n*size+r*width:][:width]
				g.distances(s, st, row, bx[st.packing], bz[st.packing], i0, j0, i+r, j, cols)
			}
		}
		values := g.run(s, stack, memory, first*width, size, count*width)
		for r := range count {
			from, last := region.columns(i0+i+first+r-j0-j, cols)
			visit(first+r, from, values[r*width+from:r*width+last])
		}
	}
}

// spanLength is about the number of kernel values that one run of a program computes. The stack of the program then
// fits in the first-level cache.
const spanLength = 1024

// For at most maxDirectPoints rows of X, the direct micro-kernel is faster than whole register tiles.
const maxDirectPoints = 4

// fill computes a statistic for rows × width elements of out, whose rows are stride elements apart.
func (g *gram[T]) fill(s *scratch[T], st pairwise[T], x, z packedPoints[T], i, j, rows, width int, out []T, stride int) {
	g.sum(s, st, x, z, i, j, rows, width, out, stride)
	if st.add != nil {
		for r := 0; r < rows && !g.q.stopped(); r++ {
			st.add(s, x.first+i+r, z.first+j, out[r*stride:][:width])
		}
	}
}

// sum implements fill for the packed features. It runs the micro-kernel on KC features at a time.
func (g *gram[T]) sum(s *scratch[T], st pairwise[T], x, z packedPoints[T], i, j, rows, width int, out []T, stride int) {
	if st.fill != nil {
		for r := 0; r < rows && !g.q.stopped(); r++ {
			st.fill(s, x.first+i+r, z.first+j, out[r*stride:][:width])
		}
		return
	}
	u, d, kc := g.q.engine.ukr, st.features, g.q.engine.block.kc
	if d == 0 {
		for r := range rows {
			clear(out[r*stride:][:width])
		}
		return
	}
	if x.pairs != nil {
		g.fillIntegers(s, st.factor, x, z, i, j, rows, width, out, stride)
		return
	}
	if x.positions != nil {
		g.fillSparse(s, x, z, i, j, rows, width, out, stride)
		return
	}
	if st.product && rows <= maxDirectPoints {
		// A panel of X is column-major, so that Ars is 1.
		s.direct = ukr.Direct[T]{A: &x.panels[i*d], M: rows, N: u.NR, K: d, Ars: 1, Acs: u.MR, Ldb: u.NR, Ldc: stride, Alpha: st.factor}
		for c := 0; c < width; c += u.NR {
			s.direct.B, s.direct.C = &z.panels[(j+c)*d], &out[c]
			u.GemmDirect(&s.direct)
		}
		return
	}
	for p := 0; p < d && !g.q.stopped(); p += kc {
		beta := T(1)
		if p == 0 {
			beta = 0
		}
		for c := 0; c < width; c += u.NR {
			s.tile = ukr.Tile[T]{
				A: &x.panels[i*d+p*u.MR], B: &z.panels[(j+c)*d+p*u.NR], C: &out[c],
				K: min(kc, d-p), M: rows, N: u.NR, Ldc: stride, Lda: u.MR * d,
				Alpha: st.factor, Beta: beta,
			}
			st.kernel(&s.tile)
		}
	}
}

// pairwise describes how to compute one statistic of a program: a micro-kernel and the packing of its points.
type pairwise[T backend.Float] struct {
	kernel  func(*ukr.Tile[T])
	packing int // index of the packing in gram.packs
	scale   []float64
	product bool // whether the micro-kernel is Gemm
	norms   bool // whether the micro-kernel computes xᵀz, and the norms give ‖x−z‖²
	// features is the number of original or derived features of a packed point.
	features int
	fill     filler[T] // computes the statistic if there is no micro-kernel; otherwise nil
	add      filler[T] // adds the contribution of the features that are not packed, or nil
	factor   T         // the multiplier of the micro-kernel's sums
}

// For at most directDistance features, ‖x−z‖² is summed from the differences of the features. This takes two
// operations per feature instead of one, but has no cancellation.
const directDistance = 16

// If ‖x‖²+‖z‖²−2xᵀz is less than canceled·(‖x‖²+‖z‖²), cancellation has destroyed more than ten
// bits. ‖x−z‖² is then summed from the differences.
const canceled = 1.0 / 1024

func (q *queue[T]) newGram(k kernels.Kernel, x, z *matrix[T]) *gram[T] {
	g := &gram[T]{q: q, x: x, z: z, d: x.cols, prog: kernels.Compile(k), size: gramBlock(x.cols, int(unsafe.Sizeof(*new(T))))}
	for _, s := range g.prog.Stats {
		s.Scale = scales(s, x.cols)
		st := pairwise[T]{factor: 1}
		var p packing[T]
		u := q.engine.ukr
		switch {
		case s.Kind == kernels.L1:
			st.kernel = u.L1
		case s.Kind == kernels.Dot:
			st.kernel, st.product = u.Gemm, true
		case s.Kind == kernels.CosSum:
			st.kernel, st.product, p.freqs = u.Gemm, true, s.Freqs
		case s.Kind == kernels.Entry:
			st.fill = g.entries()
		case s.Kind == kernels.Chi2:
			st.kernel, p.positive = u.Chi2, true
		case s.Kind == kernels.Sinc, s.Kind == kernels.SinSum:
			st.fill = g.sines(s)
		case s.Kind.OnePoint():
			st.fill = g.onePoint(s)
		case s.Scale == nil && x.cols <= directDistance:
			st.kernel = u.SqDist
		default:
			st.kernel, st.product, st.norms, p.norms = u.Gemm, true, true, true
		}
		st.scale, p.scale = s.Scale, s.Scale
		if c, ok := onlyNonzero(s.Scale); ok && s.Kind == kernels.SqDist {
			// The statistic depends on a single feature, as in the derivative with respect to a length scale.
			st.kernel, st.factor, st.product, st.norms = u.SqDist, inRange[T](s.Scale[c]*s.Scale[c]), false, false
			p = packing[T]{oneFeature: true, column: c}
		}
		p.empty = st.fill != nil
		if s.Kind.TranslationInvariant() && !p.oneFeature && (s.Scale != nil || st.norms || p.freqs != nil) {
			p.center = center(z)
		}
		if st.norms {
			p.keptFraction = keptFraction(z, p.center, u.NR)
			p.sparse = p.keptFraction < 1
		}
		st.packing, st.features = len(g.packs), p.features(x.cols)
		g.size = min(g.size, gramBlock(st.features, int(unsafe.Sizeof(*new(T)))))
		g.stats, g.packs = append(g.stats, st), append(g.packs, p)
	}
	return g.fuse(k)
}

// fuse sets the fields of g for the kernels that have faster code than their programs.
func (g *gram[T]) fuse(k kernels.Kernel) *gram[T] {
	g.inPlace = len(g.stats) == 1 && inPlace(g.prog)
	code := g.prog.Code
	g.gaussian = g.inPlace && g.stats[0].norms && len(code) == 3 &&
		code[1].Op == kernels.Affine && code[1].A <= 0 && code[1].B == 0 && code[2].Op == kernels.Exp
	if m, ok := k.(kernels.Matern); ok {
		g.inPlace, g.matern = true, maternCoeffs[T](m)
	}
	return g
}

// maternCoeffs returns a, b and c of a Matérn kernel, (1 + b·t + c·t²) exp(−t) with t = a‖x−z‖.
func maternCoeffs[T backend.Float](k kernels.Matern) *[3]T {
	d := &[3]T{inRange[T](math.Sqrt(2*k.Nu) / k.Sigma)}
	if k.Nu > 0.5 {
		d[1] = 1
	}
	if k.Nu > 1.5 {
		d[2] = T(1.0 / 3)
	}
	return d
}

// inRange returns v, clamped to the finite range of T, so that 0 times a large scale of a kernel is 0.
func inRange[T backend.Float](v float64) T {
	if unsafe.Sizeof(T(0)) == 4 {
		v = max(-math.MaxFloat32, min(v, math.MaxFloat32))
	}
	return T(max(-math.MaxFloat64, min(v, math.MaxFloat64)))
}

// scales returns the scales of all d features, or nil if they are all 1.
func scales(s kernels.Stat, d int) []float64 {
	if s.Scale == nil || len(s.Scale) == d {
		return s.Scale
	}
	return append(slices.Clone(s.Scale), make([]float64, d-len(s.Scale))...)
}

// onlyNonzero returns the index of the single nonzero element, and true if there is exactly one.
func onlyNonzero(scale []float64) (column int, ok bool) {
	for c, v := range scale {
		if v != 0 {
			if ok {
				return 0, false
			}
			column, ok = c, true
		}
	}
	return column, ok
}

// inPlace reports whether a program loads only one statistic, whose stack slot then receives the result.
func inPlace(p *kernels.Program) bool {
	loads := 0
	for _, in := range p.Code {
		if in.Op == kernels.Load {
			loads++
		}
	}
	return loads == 1 && p.Code[0].Op == kernels.Load
}

// distances replaces a row of xᵀz by ‖x−z‖², for point i of the block bx and the cols points of bz from j on.
func (g *gram[T]) distances(s *scratch[T], st pairwise[T], row []T, bx, bz packedPoints[T], i0, j0, i, j, cols int) {
	norm, norms := bx.norms[i], bz.norms[j:j+len(row)]
	s.span = ukr.Span[T]{X: &row[0], Y: &norms[0], N: len(row), A: norm, B: canceled}
	g.q.engine.ukr.Distance(&s.span)
	if s.span.Flag == 0 {
		return
	}
	for c, sq := range row[:cols] {
		// The condition is also true for NaN, which results from an infinite feature or an overflow of the norms.
		if !(sq >= (norm+norms[c])*canceled) {
			row[c] = squaredDistance(g.x.row(i0+i), g.z.row(j0+j+c), st.scale)
		}
	}
}

// gaussians replaces a row of inner products xᵀz by the values of the Gaussian kernel.
func (g *gram[T]) gaussians(s *scratch[T], st pairwise[T], row []T, bx, bz packedPoints[T], i0, j0, i, j, cols int) {
	u := g.q.engine.ukr
	s.span = ukr.Span[T]{X: &row[0], Y: &bz.norms[j], N: len(row), A: bx.norms[i], B: canceled, C: inRange[T](g.prog.Code[1].A)}
	u.DistanceExp(&s.span)
	if s.span.Flag == 0 {
		return
	}
	// Values that lost too much precision are marked by −1; they are recomputed in batches.
	marked := s.block[:0]
	for c := 0; c < cols; {
		first := c
		marked = marked[:0]
		for ; c < cols && len(marked) < u.NR; c++ {
			if row[c] == -1 {
				marked = append(marked, squaredDistance(g.x.row(i0+i), g.z.row(j0+j+c), st.scale))
			}
		}
		s.span = ukr.Span[T]{X: &s.block[0], N: u.NR, A: inRange[T](g.prog.Code[1].A)}
		u.Exp(&s.span)
		for k := 0; first < c; first++ {
			if row[first] == -1 {
				row[first] = marked[k]
				k++
			}
		}
	}
}

// gaussiansTo is like gaussians, but stores the results at the address `to` with non-temporal stores and does not
// change row. It returns false if a distance lost too much precision; the results are then undefined.
func (g *gram[T]) gaussiansTo(s *scratch[T], to *T, row []T, bx, bz packedPoints[T], i, j int) bool {
	s.span = ukr.Span[T]{X: &row[0], Y: &bz.norms[j], Z: to, N: len(row), A: bx.norms[i], B: canceled, C: inRange[T](g.prog.Code[1].A)}
	g.q.engine.ukr.DistanceExpTo(&s.span)
	return s.span.Flag == 0
}

// squaredDistance returns Σ ((x_p−z_p)·scale_p)², computed from the differences.
func squaredDistance[T backend.Float](x, z []T, scale []float64) T {
	sum := 0.0
	for p, v := range x {
		diff := float64(v) - float64(z[p])
		if scale != nil {
			diff *= scale[p]
		}
		sum += diff * diff
	}
	return T(sum)
}

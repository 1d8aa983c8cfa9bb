package cpu

import (
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// pairwise is how one statistic of a program is computed: a micro-kernel on
// points packed in one way.
type pairwise[T backend.Float] struct {
	kernel  func(*ukr.Tile[T])
	packing int // index into gram.packs
	scale   []float64
	product bool // the kernel is Gemm
	norms   bool // it gives xᵀz; ‖x−z‖² follows by the norms
	// features is what a packed point has: those of the points, or others.
	features int
	fill     filler[T] // instead of a micro-kernel
	factor   T         // what the micro-kernel's sums are multiplied by
}

// A packing is a transformation of the points before they are packed:
// (x − center)·scale, feature by feature.
type packing[T backend.Float] struct {
	center []T       // nil: zeros
	scale  []float64 // nil: ones
	norms  bool      // squared norms are wanted
	sparse bool      // features of X that are 0 are left out; see sparse.go
	freqs  []float64 // instead: cosines and sines of these frequencies
	none   bool      // nothing is packed
	single bool      // only this feature is, as it is
	column int
	// positive says that a feature below 0 is not allowed, and becomes NaN.
	positive bool
}

// features is what a packed point has of d features.
func (p packing[T]) features(d int) int {
	switch {
	case p.none:
		return 0
	case p.single:
		return 1
	}
	return d * max(1, 2*len(p.freqs))
}

// packedPoints is a block of packed points.
type packedPoints[T backend.Float] struct {
	panels []T
	norms  []T     // squared, one for each point
	first  int     // number of the first point in its matrix
	places []int32 // of the features in panels where some are left out; see sparse.go
}

// directDistance is the number of features up to which ‖x−z‖² is summed from
// the differences. That is two operations instead of one on each feature, but
// exact, and with few features the rest costs more.
const directDistance = 16

// cancelled is the share of ‖x‖²+‖z‖² below which ‖x‖²+‖z‖²−2xᵀz has lost more
// than ten bits to cancellation and ‖x−z‖² is summed from the differences.
const cancelled = 1.0 / 1024

func (q *queue[T]) newGram(k kernels.Kernel, x, z *matrix[T]) *gram[T] {
	g := &gram[T]{q: q, x: x, z: z, prog: kernels.Compile(k), size: gramBlock(x.cols, int(unsafe.Sizeof(*new(T))))}
	for _, s := range g.prog.Stats {
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
			st.fill = g.sines(s.Freqs)
		case s.Kind.OnePoint():
			st.fill = g.onePoint(s)
		case s.Scale == nil && x.cols <= directDistance:
			st.kernel = u.SqDist
		default:
			st.kernel, st.product, st.norms, p.norms = u.Gemm, true, true, true
		}
		st.scale, p.scale = s.Scale, s.Scale
		if c, ok := only(s.Scale); ok && s.Kind == kernels.SqDist {
			// Of one feature, in the derivative by its length scale.
			st.kernel, st.factor, st.product, st.norms = u.SqDist, inRange[T](s.Scale[c]*s.Scale[c]), false, false
			p = packing[T]{single: true, column: c}
		}
		p.none = st.fill != nil
		if s.Kind.TranslationInvariant() && !p.single && (s.Scale != nil || st.norms || p.freqs != nil) {
			p.center = center(z)
		}
		if st.norms {
			p.sparse = manyZeros(z, p.center, u.NR)
		}
		st.packing, st.features = len(g.packs), p.features(x.cols)
		g.size = min(g.size, gramBlock(st.features, int(unsafe.Sizeof(*new(T)))))
		g.stats, g.packs = append(g.stats, st), append(g.packs, p)
	}
	g.inPlace = len(g.stats) == 1 && inPlace(g.prog)
	code := g.prog.Code
	g.gaussian = g.inPlace && g.stats[0].norms && len(code) == 3 &&
		code[1].Op == kernels.Affine && code[1].A <= 0 && code[1].B == 0 && code[2].Op == kernels.Exp
	if m, ok := k.(kernels.Matern); ok {
		g.inPlace, g.matern = true, maternCoeffs[T](m)
	}
	return g
}

// maternCoeffs is a Matérn kernel as (1 + b·t + c·t²) exp(−t), t = a‖x−z‖.
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

// inRange is v, or the finite number of T next to it: the scale of a kernel may
// be too large for float32, and 0 times it is 0.
func inRange[T backend.Float](v float64) T {
	if unsafe.Sizeof(T(0)) == 4 {
		v = max(-math.MaxFloat32, min(v, math.MaxFloat32))
	}
	return T(max(-math.MaxFloat64, min(v, math.MaxFloat64)))
}

// only returns the one number of scale that is not 0, if there is just one.
func only(scale []float64) (column int, ok bool) {
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

// inPlace reports whether a program ends with its result where its only load was.
func inPlace(p *kernels.Program) bool {
	loads := 0
	for _, in := range p.Code {
		if in.Op == kernels.Load {
			loads++
		}
	}
	return loads == 1 && p.Code[0].Op == kernels.Load
}

// center is a point amid the data: the mean of the finite values of each column
// over at most 64 rows, evenly spaced, or 0. Distances do not change when both
// points are moved by it, but lose fewer digits.
func center[T backend.Float](m *matrix[T]) []T {
	const rows = 64
	mean, count := make([]float64, m.cols), make([]float64, m.cols)
	for k := range min(rows, m.rows) {
		for j, v := range m.row(k * m.rows / min(rows, m.rows)) {
			if x := float64(v); !math.IsNaN(x) && !math.IsInf(x, 0) {
				count[j]++
				mean[j] += (x - mean[j]) / count[j]
			}
		}
	}
	c := make([]T, m.cols)
	for j, v := range mean {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			c[j] = T(v)
		}
	}
	return c
}

// pack packs the block of points that begins at first, in every way that the
// statistics need, into memory that is allocated so: those of X by MR, those of Z by
// NR. The second result gives it back.
func (g *gram[T]) pack(m *matrix[T], first int, ofX bool, lend allocator[T]) ([]packedPoints[T], func()) {
	rows := min(g.size, m.rows-first)
	packerFor := g.q.engine.packerB
	if ofX {
		packerFor = g.q.engine.packerA
	}
	w := packerFor(&scratch[T]{}).Width
	out := make([]packedPoints[T], len(g.packs))
	frees := make([]func(), 0, 2*len(g.packs))
	for i, p := range g.packs {
		if p.sparse && ofX {
			var free func()
			out[i], free = g.packSparse(p, m, first, rows, lend)
			frees = append(frees, free)
			continue
		}
		padded, d := panels(rows, w)*w, p.features(m.cols)
		memory, free := lend(padded * (d + 1))
		frees = append(frees, free)
		out[i] = packedPoints[T]{panels: memory[:padded*d], norms: memory[padded*d : padded*(d+1)], first: first}
		if p.none {
			continue
		}
		g.q.chunks(rows, 8*w, moved(rows*d), func(s *scratch[T], r, count int) {
			if p.freqs != nil {
				expanded := view[T]{data: s.grow(count * d), rows: count, cols: d, rs: d, cs: 1}
				p.cosinesAndSines(m, first+r, count, expanded.data)
				packerFor(s).view(out[i].panels[r*d:], expanded)
				return
			}
			if p.single {
				packerFor(s).view(out[i].panels[r:], m.view().part(first+r, p.column, count, 1))
				return
			}
			packerFor(s).view(out[i].panels[r*m.cols:], m.view().part(first+r, 0, count, m.cols))
			for k := r; k < r+count; k += w {
				p.finish(out[i].panels[k*m.cols:], out[i].norms[k:], m.cols, min(w, rows-k), w)
			}
		})
	}
	return out, func() {
		for _, free := range frees {
			free()
		}
	}
}

// finish transforms one packed panel of w points with d features, of which rows
// exist, and sums up their squared norms.
func (p packing[T]) finish(dst, norms []T, d, rows, w int) {
	if p.center != nil {
		for c, shift := range p.center {
			column := dst[c*w : c*w+rows]
			for r := range column {
				column[r] -= shift
			}
		}
	}
	if p.scale != nil {
		for c, factor := range p.scale {
			column := dst[c*w : c*w+rows]
			for r := range column {
				column[r] = T(float64(column[r]) * factor)
			}
		}
	}
	if p.positive {
		for i, v := range dst[:d*w] {
			if v < 0 {
				dst[i] = T(math.NaN())
			}
		}
	}
	if !p.norms {
		return
	}
	// Four points at a time: the sums do not wait for each other. They stay 0 for the
	// padding.
	r := 0
	for ; r+4 <= w; r += 4 {
		var a, b, c, e float64
		for from := r; from < d*w; from += w {
			v := dst[from : from+4 : from+4]
			a += float64(v[0]) * float64(v[0])
			b += float64(v[1]) * float64(v[1])
			c += float64(v[2]) * float64(v[2])
			e += float64(v[3]) * float64(v[3])
		}
		norms[r], norms[r+1], norms[r+2], norms[r+3] = T(a), T(b), T(c), T(e)
	}
	for ; r < w; r++ {
		sum := 0.0
		for from := r; from < d*w; from += w {
			sum += float64(dst[from]) * float64(dst[from])
		}
		norms[r] = T(sum)
	}
}

// distances turns a row of xᵀz into ‖x−z‖²: point i of the block bx against the
// points of bz from j on, of which cols exist.
func (g *gram[T]) distances(s *scratch[T], st pairwise[T], row []T, bx, bz packedPoints[T], i0, j0, i, j, cols int) {
	norm, norms := bx.norms[i], bz.norms[j:j+len(row)]
	s.span = ukr.Span[T]{X: &row[0], Y: &norms[0], N: len(row), A: norm, B: cancelled}
	g.q.engine.ukr.Distance(&s.span)
	if s.span.Flag == 0 {
		return
	}
	for c, sq := range row[:cols] {
		// Also true for NaN: an infinite feature, or an overflow of the norms.
		if !(sq >= (norm+norms[c])*cancelled) {
			row[c] = squaredDistance(g.x.row(i0+i), g.z.row(j0+j+c), st.scale)
		}
	}
}

// gaussians turns a row of xᵀz into exp(factor·‖x−z‖²), as distances and then
// Exp would.
func (g *gram[T]) gaussians(s *scratch[T], st pairwise[T], row []T, bx, bz packedPoints[T], i0, j0, i, j, cols int) {
	u := g.q.engine.ukr
	s.span = ukr.Span[T]{X: &row[0], Y: &bz.norms[j], N: len(row), A: bx.norms[i], B: cancelled, C: inRange[T](g.prog.Code[1].A)}
	u.DistanceExp(&s.span)
	if s.span.Flag == 0 {
		return
	}
	// Those that have lost too much are marked by −1: a few at a time.
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

// gaussiansTo is gaussians with the results in to, past the caches; row stays as
// it was. It returns false, and to is of no use, when a distance has lost too
// much.
func (g *gram[T]) gaussiansTo(s *scratch[T], to *T, row []T, bx, bz packedPoints[T], i, j int) bool {
	s.span = ukr.Span[T]{X: &row[0], Y: &bz.norms[j], Z: to, N: len(row), A: bx.norms[i], B: cancelled, C: inRange[T](g.prog.Code[1].A)}
	g.q.engine.ukr.DistanceExpTo(&s.span)
	return s.span.Flag == 0
}

// squaredDistance is Σ ((x_p−z_p)·scale_p)² from the differences.
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

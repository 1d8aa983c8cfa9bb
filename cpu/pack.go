package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// panels returns the number of panels of w rows that cover n rows.
func panels(n, w int) int { return (n + w - 1) / w }

// packer packs panels of one width for one worker.
type packer[T backend.Float] struct {
	*ukr.Packer[T]
	s *scratch[T]
}

// packerA and packerB return packers of panels of MR and of NR rows, with the worker's scratch memory.
func (e *engine[T]) packerA(s *scratch[T]) packer[T] { return packer[T]{&e.ukr.PackA, s} }
func (e *engine[T]) packerB(s *scratch[T]) packer[T] { return packer[T]{&e.ukr.PackB, s} }

// view writes the rows of v to dst as panels of Width rows. The last panel is padded with zeros.
func (p packer[T]) view(dst []T, v view[T]) {
	w := p.Width
	fullPanels := v.rows / w
	if v.cols == 0 {
		return
	}
	switch {
	case fullPanels == 0:
	case v.rs == 1:
		p.s.tile = ukr.Tile[T]{A: v.at(0, 0), C: &dst[0], K: v.cols, M: fullPanels, Lda: v.cs, Ldc: w * v.cols}
		p.Copy(&p.s.tile)
	default:
		for i := range fullPanels {
			p.panel(dst[i*w*v.cols:], v.block(i*w, 0, w, v.cols))
		}
	}
	if remaining := v.rows - fullPanels*w; remaining > 0 {
		p.panel(dst[fullPanels*w*v.cols:], v.block(fullPanels*w, 0, remaining, v.cols))
	}
}

// panel writes v, which has at most Width rows, as one panel.
func (p packer[T]) panel(dst []T, v view[T]) {
	w, blockCols := p.Width, 0
	if v.rows < w {
		clear(dst[:w*v.cols])
	} else if v.cs == 1 && v.cols >= 8 {
		blockCols = v.cols / 8 * 8
		p.s.tile = ukr.Tile[T]{A: v.at(0, 0), C: &dst[0], K: blockCols, Lda: v.rs}
		p.Transpose(&p.s.tile)
	}
	// The elements that are not transposed in blocks are copied one at a time.
	dst = dst[blockCols*w : w*v.cols]
	if v.rs == 1 {
		for offset := v.offset + blockCols*v.cs; len(dst) >= w; dst = dst[w:] {
			copy(dst, v.data[offset:offset+v.rows])
			offset += v.cs
		}
		return
	}
	for i := range v.rows {
		offset := v.offset + i*v.rs + blockCols*v.cs
		for c := i; c < len(dst); c += w {
			dst[c] = v.data[offset]
			offset += v.cs
		}
	}
}

// An operand is the left factor of a product, or the transpose of the right factor. pack writes its
// rows i … i+rows−1 and columns p … p+cols−1 as panels of w rows.
type operand[T backend.Float] interface {
	pack(to packer[T], dst []T, i, p, rows, cols int)
}

func (v view[T]) pack(to packer[T], dst []T, i, p, rows, cols int) {
	to.view(dst, v.block(i, p, rows, cols))
}

// symmetric is a symmetric matrix given by the lower triangle of the view.
type symmetric[T backend.Float] struct{ view[T] }

func (s symmetric[T]) pack(to packer[T], dst []T, i, p, rows, cols int) {
	w := to.Width
	for r := 0; r < rows; r += w {
		n := min(w, rows-r)
		panel := dst[r*cols : (r+w)*cols]
		// Columns 0 … colsBefore−1 of the panel are in the stored triangle, and columns from colsEnd on in the
		// transposed triangle. The columns between cross the diagonal and are packed element by element.
		colsBefore, colsEnd := clamp(i+r-p, cols), clamp(i+r+n-p, cols)
		to.panel(panel, s.block(i+r, p, n, colsBefore))
		to.packElements(panel[colsBefore*w:], n, colsEnd-colsBefore, func(k, c int) T {
			k, c = i+r+k, p+colsBefore+c
			return *s.at(max(k, c), min(k, c))
		})
		to.panel(panel[colsEnd*w:], s.t().block(i+r, p+colsEnd, n, cols-colsEnd))
	}
}

// packElements packs the elements that the function element returns, one by one.
func (p packer[T]) packElements(dst []T, rows, cols int, element func(r, c int) T) {
	w := p.Width
	for r := 0; r < rows; r += w {
		n := min(w, rows-r)
		panel := dst[r*cols : (r+w)*cols]
		if n < w {
			clear(panel)
		}
		for k := range n {
			for c := range cols {
				panel[c*w+k] = element(r+k, c)
			}
		}
	}
}

// A packing is a transformation of the points before they are packed: (x − center)·scale, feature by feature.
type packing[T backend.Float] struct {
	center       []T       // nil means the origin
	scale        []float64 // nil means a scale of 1 for each feature
	norms        bool      // whether to compute squared norms too
	sparse       bool      // omit features of X that are 0; see sparse.go
	keptFraction float64   // if sparse: approximate fraction of features that are not omitted
	freqs        []float64 // pack cosines and sines of these frequencies instead of the features
	empty        bool      // pack nothing
	step         T         // if not 0, the features are integers times step; see integers.go
	oneFeature   bool      // pack only the feature with index column, unchanged
	column       int
	// If positive is true, packing replaces features below 0, for which χ² is not defined, by NaN.
	positive bool
}

// features returns the number of features of a packed point of d original features.
func (p packing[T]) features(d int) int {
	switch {
	case p.empty:
		return 0
	case p.oneFeature:
		return 1
	}
	return d * max(1, 2*len(p.freqs))
}

// packedPoints is a block of packed points.
type packedPoints[T backend.Float] struct {
	panels    []T
	norms     []T      // squared norms of the points
	first     int      // index of the first point in its matrix
	positions []int32  // if sparse: positions of the features not omitted; see sparse.go
	pairs     []uint32 // pairs of integers, instead of panels; see integers.go
}

// center returns for each column the mean of the finite values in at most 64 evenly spaced rows, or 0 if there are
// none. Subtracting this point from both points of a pair reduces the cancellation in their distance.
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

// pack packs the block of points that begins at point first, once for each element of g.packs, in memory from
// lend: in panels of MR points of X, or of NR points of Z. The second result frees the memory.
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
		if p.step != 0 {
			var free func()
			out[i], free = g.packIntegers(p, m, first, rows, w, lend)
			frees = append(frees, free)
			continue
		}
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
		if p.empty {
			continue
		}
		g.q.chunks(rows, 8*w, copyFlops(rows*d), func(s *scratch[T], r, count int) {
			p.rows(packerFor(s), out[i], m, r, count)
		})
	}
	return out, func() {
		for _, free := range frees {
			free()
		}
	}
}

// rows packs count points of m into the block out, beginning at its point r, the first point of a panel.
func (p packing[T]) rows(to packer[T], out packedPoints[T], m *matrix[T], r, count int) {
	w, d, first := to.Width, p.features(m.cols), out.first+r
	switch {
	case p.freqs != nil:
		expanded := view[T]{data: to.s.grow(count * d), rows: count, cols: d, rs: d, cs: 1}
		p.cosinesAndSines(m, first, count, expanded.data)
		to.view(out.panels[r*d:], expanded)
	case p.oneFeature:
		to.view(out.panels[r:], m.view().block(first, p.column, count, 1))
	default:
		to.view(out.panels[r*d:], m.view().block(first, 0, count, d))
		for k := r; k < r+count; k += w {
			p.finish(out.panels[k*d:], out.norms[k:], d, min(w, r+count-k), w)
		}
	}
}

// finish transforms the d features of the points in a packed panel, and computes the squared norms
// of the points. The panel has w points; the last w − rows points are padding.
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
	// Process four points at a time, so that the sums are independent. The sums of the padding remain 0.
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

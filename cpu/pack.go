package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// panels is how many panels of w rows cover n rows.
func panels(n, w int) int { return (n + w - 1) / w }

// packer packs panels of one width for one worker.
type packer[T backend.Float] struct {
	*ukr.Packer[T]
	s *scratch[T]
}

// packerA and packerB pack panels of MR and of NR with the worker's scratch
// memory.
func (e *engine[T]) packerA(s *scratch[T]) packer[T] { return packer[T]{&e.ukr.PackA, s} }
func (e *engine[T]) packerB(s *scratch[T]) packer[T] { return packer[T]{&e.ukr.PackB, s} }

// view writes v as panels, column after column, padded with zeros to whole
// panels; see the package documentation. dst has panels·Width·v.cols elements.
func (p packer[T]) view(dst []T, v view[T]) {
	w := p.Width
	whole := v.rows / w // panels
	if v.cols == 0 {
		return
	}
	switch {
	case whole == 0:
	case v.rs == 1:
		p.s.tile = ukr.Tile[T]{A: v.at(0, 0), C: &dst[0], K: v.cols, M: whole, Lda: v.cs, Ldc: w * v.cols}
		p.Copy(&p.s.tile)
	default:
		for i := range whole {
			p.panel(dst[i*w*v.cols:], v.part(i*w, 0, w, v.cols))
		}
	}
	if left := v.rows - whole*w; left > 0 {
		p.panel(dst[whole*w*v.cols:], v.part(whole*w, 0, left, v.cols))
	}
}

// panel writes the ≤ Width rows of v as one panel.
func (p packer[T]) panel(dst []T, v view[T]) {
	w, done := p.Width, 0
	if v.rows < w {
		clear(dst[:w*v.cols])
	} else if v.cs == 1 && v.cols >= 8 {
		done = v.cols / 8 * 8
		p.s.tile = ukr.Tile[T]{A: v.at(0, 0), C: &dst[0], K: done, Lda: v.rs}
		p.Transpose(&p.s.tile)
	}
	// What is left, an element at a time: at an edge, in small problems.
	dst = dst[done*w : w*v.cols]
	if v.rs == 1 {
		for at := v.off + done*v.cs; len(dst) >= w; dst = dst[w:] {
			copy(dst, v.data[at:at+v.rows])
			at += v.cs
		}
		return
	}
	for i := range v.rows {
		at := v.off + i*v.rs + done*v.cs
		for c := i; c < len(dst); c += w {
			dst[c] = v.data[at]
			at += v.cs
		}
	}
}

// An operand is a factor of a product as the packing sees it: the left one, or
// the transpose of the right one. pack writes its rows i … i+rows−1 and columns
// p … p+cols−1 as panels of w rows.
type operand[T backend.Float] interface {
	pack(to packer[T], dst []T, i, p, rows, cols int)
}

func (v view[T]) pack(to packer[T], dst []T, i, p, rows, cols int) {
	to.view(dst, v.part(i, p, rows, cols))
}

// symmetric is a symmetric matrix of which the view's lower triangle is read.
type symmetric[T backend.Float] struct{ view[T] }

func (s symmetric[T]) pack(to packer[T], dst []T, i, p, rows, cols int) {
	w := to.Width
	for r := 0; r < rows; r += w {
		n := min(w, rows-r)
		panel := dst[r*cols : (r+w)*cols]
		// Columns before and behind the panel's own square are in one piece,
		// stored as they are or transposed.
		before := clamp(i+r-p, cols)
		behind := clamp(i+r+n-p, cols)
		to.panel(panel, s.part(i+r, p, n, before))
		to.each(panel[before*w:], n, behind-before, func(k, c int) T {
			k, c = i+r+k, p+before+c
			return *s.at(max(k, c), min(k, c))
		})
		to.panel(panel[behind*w:], s.t().part(i+r, p+behind, n, cols-behind))
	}
}

// each packs elements that are not simply there.
func (p packer[T]) each(dst []T, rows, cols int, element func(r, c int) T) {
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

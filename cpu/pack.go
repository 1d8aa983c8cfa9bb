package cpu

import "github.com/mercer-go/mercer/backend"

// panels is how many panels of w rows cover n rows.
func panels(n, w int) int { return (n + w - 1) / w }

// pack writes v as panels of w rows, column after column, padded with zeros to
// whole panels; see the package documentation. dst has panels·w·v.cols
// elements.
func pack[T backend.Float](dst []T, v view[T], w int) {
	for i := 0; i < v.rows; i += w {
		packPanel(dst[i*v.cols:], v.part(i, 0, min(w, v.rows-i), v.cols), w)
	}
}

// packPanel writes the ≤ w rows of v as one panel.
func packPanel[T backend.Float](dst []T, v view[T], w int) {
	if v.cols == 0 {
		return
	}
	dst = dst[:w*v.cols]
	if v.rows < w {
		clear(dst)
	}
	if v.rs == 1 {
		// Columns lie in one piece.
		for p := range v.cols {
			at := v.off + p*v.cs
			copy(dst[p*w:p*w+v.rows], v.data[at:at+v.rows])
		}
		return
	}
	for i := range v.rows {
		at := v.off + i*v.rs
		if v.cs == 1 {
			row := v.data[at : at+v.cols]
			d := dst[i:]
			for p, x := range row {
				d[p*w] = x
			}
			continue
		}
		for p := range v.cols {
			dst[i+p*w] = v.data[at+p*v.cs]
		}
	}
}

// An operand is a factor of a product as the packing sees it: the left one, or
// the transpose of the right one. pack writes its rows i … i+rows−1 and columns
// p … p+cols−1 as panels of w rows.
type operand[T backend.Float] interface {
	pack(dst []T, i, p, rows, cols, w int)
}

func (v view[T]) pack(dst []T, i, p, rows, cols, w int) { pack(dst, v.part(i, p, rows, cols), w) }

// symmetric is a symmetric matrix of which the view's lower triangle is read.
type symmetric[T backend.Float] struct{ view[T] }

func (s symmetric[T]) pack(dst []T, i, p, rows, cols, w int) {
	packEach(dst, i, p, rows, cols, w, func(r, c int) T {
		if c > r {
			r, c = c, r
		}
		return *s.at(r, c)
	})
}

// triangular is a triangular matrix: the other triangle counts as zeros, and a
// unit diagonal as ones, and neither is read.
type triangular[T backend.Float] struct {
	view[T]
	part region // lower or upper
	unit bool
}

func (t triangular[T]) pack(dst []T, i, p, rows, cols, w int) {
	packEach(dst, i, p, rows, cols, w, func(r, c int) T {
		switch {
		case r == c && t.unit:
			return 1
		case (t.part == lower) == (r >= c) || r == c:
			return *t.at(r, c)
		}
		return 0
	})
}

// packEach packs elements that are not simply there.
func packEach[T backend.Float](dst []T, i, p, rows, cols, w int, element func(r, c int) T) {
	for r := 0; r < rows; r += w {
		n := min(w, rows-r)
		panel := dst[r*cols : (r+w)*cols]
		if n < w {
			clear(panel)
		}
		for k := range n {
			for c := range cols {
				panel[c*w+k] = element(i+r+k, p+c)
			}
		}
	}
}

package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// strips is a matrix cut into strips of columns, as many as fill a vector
// register, each with its rows in one piece: one row is one vector. The last
// strip is filled up with zeros.
type strips[T backend.Float] struct {
	data              []T
	rows, cols, width int
}

func (e *engine[T]) newStrips(rows, cols int) strips[T] {
	w := e.ukr.NR / 2
	return strips[T]{make([]T, rows*panels(cols, w)*w), rows, cols, w}
}

// stripsOf is a copy of v.
func (e *engine[T]) stripsOf(v view[T]) strips[T] {
	p := e.newStrips(v.rows, v.cols)
	for j := range v.cols {
		to := p.strip(j / p.width)[j%p.width:]
		for i := range v.rows {
			to[i*p.width] = *v.at(i, j)
		}
	}
	return p
}

func (p strips[T]) count() int { return panels(p.cols, p.width) }

// strip is strip c, row after row.
func (p strips[T]) strip(c int) []T { return p.data[c*p.rows*p.width:][:p.rows*p.width] }

func (p strips[T]) at(i, j int) T { return p.strip(j / p.width)[i*p.width+j%p.width] }

// addStrips is Y ← Y + tile · V for rows i … of Y and rows j … of V, and, if
// both, also Y ← Y + tileᵀ · V for rows j … of Y and rows i … of V.
func (e *engine[T]) addStrips(s *scratch[T], tile view[T], i, j int, v, y strips[T], both bool) {
	rows, w := e.ukr.StripRows, v.width
	f := e.ukr.Strip
	if both {
		f = e.ukr.StripBoth
	}
	// The last rows are done in scratch memory, with zeros below.
	left := tile.rows % rows
	corner := s.block[:2*rows*w]
	x, sum := corner[:rows*w], corner[rows*w:]
	for c := range v.count() {
		vc, yc := v.strip(c), y.strip(c)
		s.strip = ukr.Strip[T]{V: &vc[j*w], N: tile.cols, Ldz: tile.rs}
		if both {
			s.strip.Sum = &yc[j*w]
		}
		r := 0
		for ; r+rows <= tile.rows; r += rows {
			s.strip.Z, s.strip.Y = tile.at(r, 0), &yc[(i+r)*w]
			if both {
				s.strip.X = &vc[(i+r)*w]
			}
			f(&s.strip)
		}
		if left == 0 {
			continue
		}
		zeros := s.last(rows * tile.cols)
		for k := range left {
			copy(zeros[k*tile.cols:], tile.data[tile.off+(r+k)*tile.rs:][:tile.cols])
		}
		clear(zeros[left*tile.cols:])
		clear(corner)
		if both {
			copy(x, vc[(i+r)*w:][:left*w])
		}
		copy(sum, yc[(i+r)*w:][:left*w])
		s.strip.Z, s.strip.X, s.strip.Y, s.strip.Ldz = &zeros[0], &x[0], &sum[0], tile.cols
		f(&s.strip)
		copy(yc[(i+r)*w:][:left*w], sum)
	}
}

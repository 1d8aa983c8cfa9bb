package cpu

import (
	"slices"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// strips is a matrix divided into strips of columns, with contiguous rows that fill one vector register, or half
// of one for a small number of columns. The last strip is padded with zeros.
type strips[T backend.Float] struct {
	data              []T
	rows, cols, width int
	kernels           *ukr.GemvPanels[T]
}

// stripKernels returns the functions for the narrowest strips that hold all columns, or else for the widest.
func (e *engine[T]) stripKernels(cols int) *ukr.GemvPanels[T] {
	kernels := e.ukr.GemvPanels
	i := slices.IndexFunc(kernels, func(k ukr.GemvPanels[T]) bool { return k.Width >= cols })
	if i < 0 {
		i = len(kernels) - 1
	}
	return &kernels[i]
}

// stripElements returns the number of elements of the strips of a rows × cols matrix.
func (e *engine[T]) stripElements(rows, cols int) int {
	w := e.stripKernels(cols).Width
	return rows * panels(cols, w) * w
}

// stripsIn returns strips that use the given memory, whose contents do not change.
func (e *engine[T]) stripsIn(memory []T, rows, cols int) strips[T] {
	k := e.stripKernels(cols)
	return strips[T]{memory, rows, cols, k.Width, k}
}

// stripsOf returns a copy of v in strips.
func (e *engine[T]) stripsOf(v view[T], lend allocator[T]) (strips[T], func()) {
	memory, free := lend(e.stripElements(v.rows, v.cols))
	p := e.stripsIn(memory, v.rows, v.cols)
	clear(p.strip(p.count() - 1))
	for j := range v.cols {
		to := p.strip(j / p.width)
		for i := range v.rows {
			to[i*p.width+j%p.width] = *v.at(i, j)
		}
	}
	return p, free
}

func (p strips[T]) count() int { return panels(p.cols, p.width) }

// strip returns strip c, in row-major order.
func (p strips[T]) strip(c int) []T { return p.data[c*p.rows*p.width:][:p.rows*p.width] }

func (p strips[T]) at(i, j int) T { return p.strip(j / p.width)[i*p.width+j%p.width] }

// stripBytes is the number of bytes of a strip that are processed at a time. These bytes, their sums and the
// current rows of the tile fit in the first-level cache.
const stripBytes = 8 << 10

// addStrips adds tile · V_j to the rows of Y from row i on, where V_j is the rows of V from row j
// on. If symmetric is true, it also adds tileᵀ · V_i to the rows of Y from row j on.
func (e *engine[T]) addStrips(s *scratch[T], tile view[T], i, j int, v, y strips[T], symmetric bool) {
	rows, w := v.kernels.Rows, v.width
	span := stripBytes / (w * int(unsafe.Sizeof(*new(T))))
	f := v.kernels.Apply
	if symmetric {
		f = v.kernels.ApplyPair
	}
	// The remaining rows of the tile are padded with zeros in scratch memory.
	fullRows := tile.rows / rows * rows
	remaining := tile.rows - fullRows
	corner := s.block[:2*rows*w]
	x, sum := corner[:rows*w], corner[rows*w:]
	for c := range v.count() {
		vc, yc := v.strip(c), y.strip(c)
		for first := 0; first < tile.cols; first += span {
			n := min(span, tile.cols-first)
			s.strip = ukr.GemvPanel[T]{V: &vc[(j+first)*w], N: n, Ldz: tile.rs}
			if symmetric {
				s.strip.Sum = &yc[(j+first)*w]
			}
			for r := 0; r < fullRows; r += rows {
				s.strip.Z, s.strip.Y = tile.at(r, first), &yc[(i+r)*w]
				if symmetric {
					s.strip.X = &vc[(i+r)*w]
				}
				f(&s.strip)
			}
			if remaining == 0 {
				continue
			}
			zeros := s.growThird(rows * n)
			for k := range remaining {
				copy(zeros[k*n:], tile.data[tile.offset+(fullRows+k)*tile.rs+first*tile.cs:][:n])
			}
			clear(zeros[remaining*n:])
			clear(corner)
			if symmetric {
				copy(x, vc[(i+fullRows)*w:][:remaining*w])
			}
			copy(sum, yc[(i+fullRows)*w:][:remaining*w])
			s.strip.Z, s.strip.X, s.strip.Y, s.strip.Ldz = &zeros[0], &x[0], &sum[0], n
			f(&s.strip)
			copy(yc[(i+fullRows)*w:][:remaining*w], sum)
		}
	}
}

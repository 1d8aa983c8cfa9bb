package band

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// form holds the decomposition A = Q B Qᵀ. Q = H₀H₁… overwrites A, as reflectors until formQ is called, and then as Qᵀ.
type form struct {
	b        backend.Backend[float64]
	mem      *run.Arena
	n, width int
	a        backend.Matrix[float64]
	qFormed  bool
	// diag and subdiag are the blocks of B: B_jj, with both triangles, and B_{j+1,j}.
	diag, subdiag []backend.Host[float64]
	norm          float64 // ‖B‖ in the Frobenius norm

	tau []float64                  // scalar factors τ of all reflectors
	ts  []backend.Host[float64]    // T of each group of panels, indexed by its first panel; it is computed at its first use
	t   backend.Matrix[float64]    // wide(width) × wide(width)
	s   [2]backend.Matrix[float64] // width × width
	w   [3]backend.Matrix[float64] // n × wide(width)
}

// stripWidth is the number of columns of a strip, which fits in a cache. The host factors it column by column.
const stripWidth = 8

// newForm reduces the symmetric matrix whose lower triangle is in a. Q overwrites a.
func newForm(b backend.Backend[float64], mem *run.Arena, a backend.Matrix[float64], width int) (*form, error) {
	n, _ := a.Dims()
	f := &form{b: b, mem: mem, n: n, width: width, a: a, tau: make([]float64, n), ts: make([]backend.Host[float64], (n+width-1)/width)}
	var err error
	if f.t, err = mem.New(groupColumns(width), groupColumns(width)); err != nil {
		return nil, err
	}
	for i := range f.s {
		if f.s[i], err = mem.New(width, width); err != nil {
			return nil, err
		}
	}
	for i := range f.w {
		if f.w[i], err = mem.New(n, groupColumns(width)); err != nil {
			return nil, err
		}
	}
	for j := range f.blocks() {
		if err := f.step(j); err != nil {
			return nil, err
		}
	}
	sum := 0.0
	for j := range f.diag {
		sum += squares(f.diag[j])
		if j < len(f.subdiag) {
			sum += 2 * squares(f.subdiag[j])
		}
	}
	f.norm = math.Sqrt(sum)
	return f, nil
}

func squares(h backend.Host[float64]) (sum float64) {
	for i := range h.Rows {
		for _, v := range h.Row(i) {
			sum += v * v
		}
	}
	return sum
}

// blocks returns the number of diagonal blocks of B. Every block column except the last two has reflectors.
func (f *form) blocks() int { return (f.n + f.width - 1) / f.width }

func (f *form) reflections() int { return max(0, f.blocks()-2) }

// rows returns the first row of block j and its number of rows.
func (f *form) rows(j int) (first, count int) {
	return j * f.width, min(f.width, f.n-j*f.width)
}

// step copies the blocks of column j of B from A and reduces this block column of A.
func (f *form) step(j int) error {
	first, count := f.rows(j)
	d := backend.NewHost[float64](count, count)
	if err := f.b.Download(d, f.a.View(first, first, count, count)); err != nil {
		return err
	}
	for i := range count {
		for k := range i {
			d.Row(k)[i] = d.Row(i)[k]
		}
	}
	f.diag = append(f.diag, d)
	m := f.n - first - count
	if m == 0 {
		return nil
	}
	panel := f.a.View(first+count, first, m, count)
	e := backend.NewHost[float64](min(m, f.width), count)
	f.subdiag = append(f.subdiag, e)
	if j >= f.reflections() {
		return f.b.Download(e, panel)
	}
	tau := f.tau[first : first+count]
	if err := f.panel(panel, 0, f.width, tau, e); err != nil {
		return err
	}
	t := f.t.View(0, 0, count, count)
	if err := f.triangle(panel, tau, t); err != nil {
		return err
	}
	// Set the elements above the panel to 0, as in the matrix V of its group.
	numeric.Zero(f.b, f.a.View(first, first, count, count))
	return f.update(f.a.View(first+count, first+count, m, m), panel, t)
}

// panel computes the QR factorization of columns c to c+w−1, from row c on, of the panel p (m × width, m > width). It
// bisects the columns into strips. V, with its zeros and ones, overwrites the columns of p. R is stored in r.
func (f *form) panel(p backend.Matrix[float64], c, w int, tau []float64, r backend.Host[float64]) error {
	m, _ := p.Dims()
	if w <= stripWidth {
		h := backend.NewHost[float64](m, w)
		strip := p.View(0, c, m, w)
		if err := f.b.Download(h, strip); err != nil {
			return err
		}
		reflectors(h, c, tau[c:c+w], r.View(0, c, r.Rows, w))
		return f.b.Upload(strip, h)
	}
	w1 := (w/2 + stripWidth - 1) / stripWidth * stripWidth
	if err := f.panel(p, c, w1, tau, r); err != nil {
		return err
	}
	v, t := p.View(c, c, m-c, w1), f.t.View(0, 0, w1, w1)
	if err := f.triangle(v, tau[c:c+w1], t); err != nil {
		return err
	}
	f.reflect(v, t, backend.Transpose, p.View(c, c+w1, m-c, w-w1), f.s)
	return f.panel(p, c+w1, w-w1, tau, r)
}

// reflect queues X ← (I − V op(T) Vᵀ) X. Each matrix of scratch has at least as many columns as X.
func (f *form) reflect(v, t backend.Matrix[float64], op backend.Trans, x backend.Matrix[float64], scratch [2]backend.Matrix[float64]) {
	_, cols := x.Dims()
	_, w := v.Dims()
	s0, s1 := scratch[0].View(0, 0, w, cols), scratch[1].View(0, 0, w, cols)
	f.b.Gemm(backend.Transpose, backend.NoTrans, 1, v, x, 0, s0)
	f.b.Gemm(op, backend.NoTrans, 1, t, s0, 0, s1)
	f.b.Gemm(backend.NoTrans, backend.NoTrans, -1, v, s1, 1, x)
}

// triangle computes triangleOf(v, tau) and stores it in t.
func (f *form) triangle(v backend.Matrix[float64], tau []float64, t backend.Matrix[float64]) error {
	h, err := f.triangleOf(v, tau, t)
	if err != nil {
		return err
	}
	return f.b.Upload(t, h)
}

// triangleOf returns the upper triangular T of the product I − V T Vᵀ of reflectors. T_kk is τ_k, and the elements
// of column k above T_kk are −τ_k T (VᵀV)_k. The matrix scratch has the shape of T.
func (f *form) triangleOf(v backend.Matrix[float64], tau []float64, scratch backend.Matrix[float64]) (h backend.Host[float64], err error) {
	w := len(tau)
	f.b.Gemm(backend.Transpose, backend.NoTrans, 1, v, v, 0, scratch)
	g := backend.NewHost[float64](w, w)
	if err := f.b.Download(g, scratch); err != nil {
		return h, err
	}
	h = backend.NewHost[float64](w, w)
	for k, scale := range tau {
		column := g.Row(k) // VᵀV is symmetric
		for i := range k {
			row := h.Row(i)
			row[k] = -scale * numeric.Dot(row[i:k], column[i:k])
		}
		h.Row(k)[k] = scale
	}
	return h, nil
}

// update computes A ← HᵀAH for the lower triangle of the unreduced part of A. Syrk computes V Wᵀ + W Vᵀ as
// ½(XXᵀ − YYᵀ) with X = cV + W/c and Y = cV − W/c, where c makes cV and W/c equally large.
func (f *form) update(a, v, t backend.Matrix[float64]) error {
	b := f.b
	m, width := v.Dims()
	plus, minus, y := f.w[0].View(0, 0, m, width), f.w[1].View(0, 0, m, width), f.w[2].View(0, 0, m, width)
	b.Symm(backend.Lower, 1, a, v, 0, plus)
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, plus, t, 0, y)
	b.Gemm(backend.Transpose, backend.NoTrans, 1, v, y, 0, f.s[0])
	b.Gemm(backend.Transpose, backend.NoTrans, 0.5, t, f.s[0], 0, f.s[1])
	b.Gemm(backend.NoTrans, backend.NoTrans, -1, v, f.s[1], 1, y)

	sums := make([]float64, 2*width)
	if err := b.ColDot(sums[:width], y, y); err != nil {
		return err
	}
	if err := b.ColDot(sums[width:], v, v); err != nil {
		return err
	}
	var w2, v2 float64
	for k := range width {
		w2, v2 = w2+sums[k], v2+sums[width+k]
	}
	c := 1.0
	if w2 > 0 && v2 > 0 {
		c = math.Sqrt(math.Sqrt(w2 / v2))
	}
	numeric.Zero(b, plus)
	numeric.Zero(b, minus)
	scale := numeric.Repeated(c, width)
	b.ColAxpy(scale, v, plus)
	b.ColAxpy(scale, v, minus)
	b.ColAxpy(numeric.Repeated(1/c, width), y, plus)
	b.ColAxpy(numeric.Repeated(-1/c, width), y, minus)
	b.Syrk(backend.Lower, backend.NoTrans, -0.5, plus, 1, a)
	b.Syrk(backend.Lower, backend.NoTrans, 0.5, minus, 1, a)
	return b.Sync()
}

// reflectors factors the columns of h, from row first on, by Householder reflections I − τ v vᵀ. The first element
// of v that is not 0 is 1. R, and the rows above R, are stored in r, and v overwrites the column of h. A column
// whose squares underflow counts as zero.
func reflectors(h backend.Host[float64], first int, tau []float64, r backend.Host[float64]) {
	cols := make([][]float64, h.Cols) // each column is contiguous
	for k := range cols {
		cols[k] = make([]float64, h.Rows)
		for i := range h.Rows {
			cols[k][i] = h.Data[i*h.Stride+k]
		}
	}
	for k, col := range cols {
		head, v := col[first+k], col[first+k:]
		tail := numeric.Dot(v[1:], v[1:])
		tau[k] = 0
		if tail > 0 {
			norm := -math.Copysign(math.Sqrt(head*head+tail), head)
			tau[k] = (norm - head) / norm
			scale := 1 / (head - norm)
			for i := 1; i < len(v); i++ {
				v[i] *= scale
			}
			v[0] = 1
			for _, right := range cols[k+1:] {
				x := right[first+k:]
				numeric.Axpy(-tau[k]*numeric.Dot(v, x), v, x)
			}
			head = norm
		}
		for i := range r.Rows {
			switch {
			case i < first+k:
				r.Row(i)[k] = col[i]
			case i == first+k:
				r.Row(i)[k] = head
			default:
				r.Row(i)[k] = 0
			}
		}
		clear(col[:first+k])
		v[0] = 1
	}
	for i := range h.Rows {
		row := h.Row(i)
		for k := range row {
			row[k] = cols[k][i]
		}
	}
}

// A group is a sequence of adjacent panels that are applied together as I − V T Vᵀ.
type group struct{ first, count int } // index of the first panel, and number of panels

// groups divides the panels into groups, starting with the last panel. The group of the first
// panels may have fewer panels than the other groups.
func (f *form) groups() []group {
	var list []group
	for end := f.reflections(); end > 0; {
		count := min(end, groupColumns(f.width)/f.width)
		end -= count
		list = append(list, group{end, count})
	}
	return list
}

// reflector returns V of a group of reflectors, which is a block of A, and the row of A at which V begins.
func (f *form) reflector(g group) (v backend.Matrix[float64], row int) {
	first, row := g.first*f.width, (g.first+1)*f.width
	return f.a.View(row, first, f.n-row, g.count*f.width), row
}

// tOf returns the matrix T of the product I − V T Vᵀ of a group, in f.t on the device.
func (f *form) tOf(g group, v backend.Matrix[float64]) (backend.Matrix[float64], error) {
	_, cols := v.Dims()
	t := f.t.View(0, 0, cols, cols)
	if f.ts[g.first].Data == nil {
		var err error
		if f.ts[g.first], err = f.triangleOf(v, f.tau[g.first*f.width:][:cols], t); err != nil {
			return t, err
		}
	}
	return t, f.b.Upload(t, f.ts[g.first])
}

// apply computes X ← op(Q) X and waits for the device. The matrices of scratch have wide(width)
// rows and at least as many columns as X.
func (f *form) apply(op backend.Trans, x backend.Matrix[float64], scratch [2]backend.Matrix[float64]) error {
	_, cols := x.Dims()
	list := f.groups()
	if op == backend.Transpose { // Qᵀ applies the panels in ascending order
		slices.Reverse(list)
	}
	for _, g := range list {
		v, row := f.reflector(g)
		t, err := f.tOf(g, v)
		if err != nil {
			return err
		}
		f.reflect(v, t, op, x.View(row, 0, f.n-row, cols), scratch)
	}
	return f.b.Sync()
}

// formQ replaces the reflectors by Qᵀ. Starting with the last group, it multiplies by the reflectors of each group g:
//
//	Qᵀ_g = ┌ I          ┐ (I − V_g T_gᵀ V_gᵀ)
//	       └   Qᵀ_{g+1} ┘
//
// Qᵀ overwrites the columns of V_g, so V_g is copied first.
func (f *form) formQ() error {
	if f.qFormed {
		return nil
	}
	b := f.b
	for j := f.blocks() - 1; j > f.reflections(); j-- {
		f.identity(j)
	}
	for _, g := range f.groups() {
		from, row := f.reflector(g)
		m, cols := from.Dims()
		v := f.w[2].View(0, 0, m, cols)
		numeric.Zero(b, v)
		b.ColAxpy(numeric.Repeated(1.0, cols), from, v)
		t, err := f.tOf(g, v)
		if err != nil {
			return err
		}
		for j := g.first + g.count; j > g.first; j-- {
			f.identity(j)
		}
		q := f.a.View(row, row, m, m)
		qv, qvt := f.w[0].View(0, 0, m, cols), f.w[1].View(0, 0, m, cols)
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, q, v, 0, qv)
		b.Gemm(backend.NoTrans, backend.Transpose, 1, qv, t, 0, qvt)
		b.Gemm(backend.NoTrans, backend.Transpose, -1, qvt, v, 1, q)
	}
	f.identity(0)
	f.qFormed = true
	return b.Sync()
}

// identity replaces the rows and columns of block j, from its diagonal block on, by rows and columns of I.
func (f *form) identity(j int) {
	first, count := f.rows(j)
	remaining := f.n - first
	numeric.Zero(f.b, f.a.View(first, first, remaining, count))
	numeric.Zero(f.b, f.a.View(first, first, count, remaining))
	f.b.AddDiag([]float64{1}, f.a.View(first, first, count, count))
}

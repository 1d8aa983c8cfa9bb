package solvers

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/nufft"
)

// A lowModes is the preconditioner of Modes: the Cholesky factor of I + ΦᴴS⁻¹Φ for the modes of lowest
// frequency, and I for the others. If the block of the other modes is at most (1+g)I, the condition number
// is at most about 4(1+g), because the Schur complement is at least I.
type lowModes struct {
	m      *modal
	list   []lowMode
	factor backend.Matrix[float64]
	column backend.Matrix[float64] // unknowns of the factor × right-hand sides
}

// A lowMode is one of a pair of conjugate modes, or the mode 0.
type lowMode struct {
	k         [3]int
	at, other int     // indices of the mode and, on the plane k₃ = 0, of its conjugate, or −1
	scale     float64 // √2D, or D of the mode 0
}

// lowOrder returns the number of real unknowns of the modes with ‖ω‖ ≤ omega.
func (c modesChoice) lowOrder(omega float64) int {
	volume := math.Pow(omega, float64(c.d)) * [...]float64{2, math.Pi, 4 * math.Pi / 3}[c.d-1]
	for a := 3 - c.d; a < 3; a++ {
		volume *= c.period[a] / (2 * math.Pi)
	}
	if volume > 4*lowUnknowns {
		return 4 * lowUnknowns
	}
	return 2*len(c.lowModes(omega, nil)) - 1
}

// lowModes returns the modes with ‖ω‖ ≤ omega, the mode 0 first. scale holds √(S/∏T) of all modes, or is nil.
func (c modesChoice) lowModes(omega float64, scale []float64) []lowMode {
	h := c.inner.Half()
	var limit nufft.Axes
	for a := 3 - c.d; a < 3; a++ {
		limit[a] = min(c.inner[a], int(omega*c.period[a]/(2*math.Pi)))
	}
	list := []lowMode{{}}
	index := func(k [3]int) int {
		return ((k[0]+c.inner[0])*h[1]+k[1]+c.inner[1])*h[2] + k[2]
	}
	list[0].at, list[0].other = index([3]int{}), -1
	for i := -limit[0]; i <= limit[0]; i++ {
		for j := -limit[1]; j <= limit[1]; j++ {
			for l := 0; l <= limit[2]; l++ {
				k := [3]int{i, j, l}
				if l == 0 && (i < 0 || i == 0 && j <= 0) || c.frequency(k) > omega {
					continue
				}
				mode := lowMode{k: k, at: index(k), other: -1}
				if l == 0 {
					mode.other = index([3]int{-i, -j, 0})
				}
				list = append(list, mode)
			}
		}
	}
	if scale != nil {
		for i := range list {
			list[i].scale = scale[list[i].at]
			if i > 0 {
				list[i].scale *= math.Sqrt2
			}
		}
	}
	return list
}

// frequency returns ‖ω‖ of a mode.
func (c modesChoice) frequency(k [3]int) (omega float64) {
	for a := 3 - c.d; a < 3; a++ {
		omega = math.Hypot(omega, 2*math.Pi*float64(k[a])/c.period[a])
	}
	return omega
}

// newLowModes factors the block of the low modes. entries holds Σ_j s_j exp(−2πi k·x_j) for |k_a| at most
// double[a], and scale is √(S/∏T). The unknowns of a mode k are the coefficients of √2D cos 2πk·x and of
// −√2D sin 2πk·x.
func (m *modal) newLowModes(entries []complex128, double nufft.Axes, scale []float64) (*lowModes, error) {
	w := m.w
	p := &lowModes{m: m, list: m.c.lowModes(m.c.low, scale)}
	order := 2*len(p.list) - 1
	h := double.Half()
	entry := func(k, l [3]int, sign int) (re, im float64) {
		s := [3]int{k[0] + sign*l[0], k[1] + sign*l[1], k[2] + sign*l[2]}
		flip := s[2] < 0
		if flip {
			s = [3]int{-s[0], -s[1], -s[2]}
		}
		f := entries[((s[0]+double[0])*h[1]+s[1]+double[1])*h[2]+s[2]]
		if flip {
			return real(f), -imag(f)
		}
		return real(f), imag(f)
	}
	var err error
	if p.factor, err = w.Mem.New(order, order); err != nil {
		return nil, err
	}
	if p.column, err = w.Mem.New(order, w.s.columns()); err != nil {
		return nil, err
	}
	two := backend.NewHost[float64](2, order)
	for i, a := range p.list {
		clear(two.Data)
		cosine, sine := two.Row(0), two.Row(1)
		for j, b := range p.list[:i+1] {
			f := a.scale * b.scale / 2
			re, im := entry(a.k, b.k, -1)
			re2, im2 := entry(a.k, b.k, 1)
			at := 2*j - 1
			if j == 0 {
				cosine[0], sine[0] = f*(re+re2), f*(im+im2)
				continue
			}
			cosine[at], cosine[at+1] = f*(re+re2), f*(im2-im)
			sine[at], sine[at+1] = f*(im2+im), f*(re-re2)
		}
		from, rows := max(2*i-1, 0), min(i+1, 2)
		cosine[from]++
		if rows == 2 {
			sine[from+1]++
		}
		if err := w.B.Upload(p.factor.View(from, 0, rows, order), two.View(0, 0, rows, order)); err != nil {
			return nil, err
		}
	}
	return p, w.B.Potrf(backend.Lower, p.factor)
}

// Apply computes z = M⁻¹r.
func (p *lowModes) Apply(z, r backend.Matrix[float64]) error {
	w := p.m.w
	rows, columns := r.Dims()
	h, low := backend.NewHost[float64](rows, columns), backend.NewHost[float64](2*len(p.list)-1, columns)
	if err := w.B.Download(h, r); err != nil {
		return err
	}
	// A pair on the plane k₃ = 0 has its unknowns twice, each without the factor √2.
	eachLow(p.list, func(mode lowMode, from, to int, sign float64) {
		v, dst := h.Row(from), low.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.other >= 0 {
				dst[j] = (v[j] + sign*h.Row(from + 2*(mode.other-mode.at))[j]) / math.Sqrt2
			}
		}
	})
	column := p.column.View(0, 0, low.Rows, columns)
	if err := w.B.Upload(column, low); err != nil {
		return err
	}
	w.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, p.factor, column)
	w.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, p.factor, column)
	if err := w.B.Download(low, column); err != nil {
		return err
	}
	eachLow(p.list, func(mode lowMode, to, from int, sign float64) {
		v, dst := low.Row(from), h.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.other >= 0 {
				dst[j] = v[j] / math.Sqrt2
				h.Row(to + 2*(mode.other-mode.at))[j] = sign * dst[j]
			}
		}
	})
	return w.B.Upload(z, h)
}

// eachLow calls f for the real and the imaginary part of each mode: with their rows among all unknowns and
// among those of the factor, and with the sign of the conjugate's part.
func eachLow(list []lowMode, f func(mode lowMode, all, low int, sign float64)) {
	for i, mode := range list {
		f(mode, 2*mode.at, max(2*i-1, 0), 1)
		if i > 0 {
			f(mode, 2*mode.at+1, 2*i, -1)
		}
	}
}

func (p *lowModes) release() {
	p.m.w.Mem.Free(p.factor)
	p.m.w.Mem.Free(p.column)
}

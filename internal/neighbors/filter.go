package neighbors

import (
	"context"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// A filter excludes samples z that cannot be neighbors of x. It computes s = xᵀz − zᵀz/2 in float32 as the inner
// product of (x, 1) and (z, −zᵀz/2). The sample with the largest s is the nearest; the key of Nearest is −2s. For d
// features, m = d + 4 and γ = m·2⁻²⁴/(1 − m·2⁻²⁴), the error of s in any order of summation is at most
//
//	γ (‖x‖‖z‖ + zᵀz/2) + 2⁻¹⁴⁹ (d + ‖x‖₁ + ‖z‖₁)
//
// The last term bounds the underflow (Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 2.2 and
// 3.1).
type filter struct {
	Samples
	k                 int
	z                 backend.Host[float32] // (z, −zᵀz/2)
	norm, abs, square float64               // the largest ‖z‖, ‖z‖₁ and zᵀz
	below             func(values []float32, bound float32) int
}

// maxNorm is the largest ‖x‖ for which no float32 product overflows.
const maxNorm = 0x1p60

// filter returns a filter for the rows of x. ok is false if a filter is not possible or saves no time.
func (s Samples) filter(x numeric.Points, k int) (*filter, bool) {
	if _, linear := s.Kernel.(kernels.Linear); !linear || x.Sparse != nil || s.Points.Sparse != nil || x.Rows < 256 || s.Points.Rows < 4096 {
		return nil, false
	}
	f := &filter{Samples: s, k: k, z: toSingle(s.Points.Dense, func(i int) float64 { return -s.Own[i] / 2 })}
	for i, v := range s.Own {
		norm, abs := norms(s.Points.Dense.Row(i))
		f.norm, f.abs, f.square = max(f.norm, norm), max(f.abs, abs), max(f.square, v)
	}
	for i := range x.Rows {
		if norm, _ := norms(x.Dense.Row(i)); !(norm < maxNorm) {
			return nil, false
		}
	}
	return f, f.norm < maxNorm
}

// margin returns a bound on the error of s for the row x.
func (f *filter) margin(x []float64) float64 {
	norm, abs := norms(x)
	d := float64(len(x))
	rounding := (d + 4) * 0x1p-24 / (1 - (d+4)*0x1p-24)
	// The factor 1.001 covers the rounding errors of the bound itself and of the keys in float64.
	return (rounding*(norm*f.norm+f.square/2) + 0x1p-149*(d+abs+f.abs)) * 1.001
}

// search calls g for the rows of x in order, as Nearest calls f, and returns the number of these rows. It stops before
// the last row if the filter excludes fewer than 15/16 of the samples. Nearest then continues without the filter.
func (f *filter) search(ctx context.Context, dev backend.Device, x numeric.Points, rows []nearest, g func(i int, list []int, keys []float64)) (int, error) {
	b := dev.F32()
	f.below = below
	if s, ok := b.(backend.Searcher[float32]); ok {
		f.below = s.PrefixBelow
	}
	z, err := backend.Place(b, f.z)
	if err != nil {
		return 0, err
	}
	defer z.Free()
	var values grid[float32]
	if err := values.alloc(b.With(ctx, nil), x.Rows, f.z.Rows); err != nil {
		return 0, err
	}
	defer values.out.Free()
	product := func(out, x, z backend.Matrix[float32]) {
		values.b.Gemm(backend.NoTrans, backend.Transpose, 1, x, z, 0, out)
	}
	margins, looked := make([]float64, len(rows)), make([]int, len(rows))
	for first := 0; first < x.Rows; first += tileRows {
		part := x.Slice(first, min(tileRows, x.Rows-first)).Dense
		placed, err := backend.Place(b, toSingle(part, func(int) float64 { return 1 }))
		if err != nil {
			return 0, err
		}
		for i := range part.Rows {
			rows[i].start(f.k)
			margins[i], looked[i] = f.margin(part.Row(i)), 0
		}
		err = values.forEachTile(product, placed, z, func(i, column int, tile []float32) {
			looked[i] += f.add(&rows[i], part.Row(i), margins[i], column, tile)
		})
		placed.Free()
		if err != nil {
			return 0, err
		}
		sum := 0
		for i := range part.Rows {
			g(first+i, rows[i].list, rows[i].keys)
			sum += looked[i]
		}
		if sum > part.Rows*f.z.Rows/16 {
			return first + part.Rows, nil
		}
	}
	return x.Rows, nil
}

// add adds the samples first, first+1, … to r, the nearest samples of x. The argument values holds xᵀz − zᵀz/2 for
// these samples in float32. add returns the number of inner products that it has evaluated in float64.
func (f *filter) add(r *nearest, x []float64, margin float64, first int, values []float32) (looked int) {
	limit := floor(-r.limit/2 - margin)
	for z := 0; ; z++ {
		if z += f.below(values[z:], limit); z == len(values) {
			return looked
		}
		product := numeric.Dot(x, f.Points.Dense.Row(first+z))
		looked++
		r.insert(f.Weight, first+z, f.Own[first+z]-2*product)
		limit = floor(-r.limit/2 - margin)
	}
}

// below implements backend.Searcher's PrefixBelow for other backends.
func below(values []float32, bound float32) int {
	for i, v := range values {
		if !(v < bound) {
			return i
		}
	}
	return len(values)
}

// floor returns the largest float32 that is ≤ v.
func floor(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		return math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return f
}

// norms returns ‖x‖₂ and ‖x‖₁.
func norms(x []float64) (euclidean, absolute float64) {
	for _, v := range x {
		euclidean, absolute = euclidean+v*v, absolute+math.Abs(v)
	}
	return math.Sqrt(euclidean), absolute
}

// toSingle returns h, rounded to float32, with an additional last column of the numbers last(i).
func toSingle(h backend.Host[float64], last func(i int) float64) backend.Host[float32] {
	s := backend.NewHost[float32](h.Rows, h.Cols+1)
	for i := range h.Rows {
		row := s.Row(i)
		for j, v := range h.Row(i) {
			row[j] = float32(v)
		}
		row[h.Cols] = float32(last(i))
	}
	return s
}

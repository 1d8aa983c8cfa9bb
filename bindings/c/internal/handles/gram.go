package handles

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Gram writes k(X, Z), n×m, to out. If v has rows, it writes the n×t product k(X, Z)·V and does not
// store k(X, Z). If z has no rows, Z is X. A sparse x requires a sparse z.
func Gram(ctx context.Context, d *Device, kernel string, x, z, v Matrix, out []float64) error {
	return d.use(ctx, func(dev backend.Device) error {
		k, err := kernels.Parse(kernel)
		if err != nil {
			return err
		}
		if precomputed, err := kernels.IsPrecomputed(k); err != nil {
			return err
		} else if precomputed {
			return errors.New("libmercer: gram: the values of precomputed() are already a Gram matrix: name another kernel")
		}
		px, err := checkedPoints("x", k, x)
		if err != nil {
			return err
		}
		pz := px
		if rows, _ := z.Dims(); rows > 0 {
			if pz, err = checkedPoints("z", k, z); err != nil {
				return err
			}
		}
		if px.Cols != pz.Cols || (px.Sparse == nil) != (pz.Sparse == nil) {
			return fmt.Errorf("libmercer: gram: x and z must have the same number of columns, and be both dense or both sparse; x has %s and z has %d", count.Of(px.Cols, "column"), pz.Cols)
		}
		factor, err := v.host("v")
		if err != nil {
			return err
		}
		if factor.Rows > 0 && factor.Rows != pz.Rows {
			return fmt.Errorf("libmercer: gram: v has %s, but z has %d", count.Of(factor.Rows, "row"), pz.Rows)
		}
		cols := pz.Rows
		if factor.Rows > 0 {
			cols = factor.Cols
		}
		if len(out) != px.Rows*cols {
			return fmt.Errorf("libmercer: gram: the result is %d×%d, but the given memory holds only %s", px.Rows, cols, count.Of(len(out), "number"))
		}
		to := backend.Host[float64]{Rows: px.Rows, Cols: cols, Stride: cols, Data: out}
		return gramTo(dev.F64().With(ctx, nil), k, px, pz, factor, to, z.empty() || samePoints(px, pz))
	})
}

// TextGram writes the values of a kernel of texts or trees, k(a_i, b_j), to out. A nil b means a.
func TextGram(ctx context.Context, kernel string, a, b []string, out []float64) error {
	k, err := objects.Parse(kernel)
	if err != nil {
		return err
	}
	var values host.Matrix[float64]
	if b == nil {
		values, err = k.Gram(ctx, a, objects.Options{})
	} else {
		values, err = k.Cross(ctx, a, b, objects.Options{})
	}
	if err != nil {
		return err
	}
	return store("gram", out, denseOf(values))
}

// samePoints reports whether x and z have the same memory.
func samePoints(x, z numeric.Points) bool {
	if x.Rows != z.Rows || x.Rows == 0 {
		return false
	}
	if x.Sparse != nil || z.Sparse != nil {
		return x.Sparse != nil && z.Sparse != nil && &x.Sparse.Indptr[0] == &z.Sparse.Indptr[0]
	}
	return x.Cols > 0 && x.Dense.Stride == z.Dense.Stride && &x.Dense.Data[0] == &z.Dense.Data[0]
}

func (m Matrix) empty() bool {
	rows, _ := m.Dims()
	return rows == 0
}

// checkedPoints returns the points of m, or an error if the kernel or backend.CheckPoints rejects them.
func checkedPoints(name string, k kernels.Kernel, m Matrix) (numeric.Points, error) {
	points, _, err := m.points(k)
	if err == nil {
		err = k.Check(points.Cols)
	}
	if err != nil {
		return points, err
	}
	return points, points.CheckRule(k, "libmercer: "+name)
}

// gramTo computes the result of Gram. samePoints states whether z is x.
func gramTo(b backend.Backend[float64], k kernels.Kernel, x, z numeric.Points, v, out backend.Host[float64], samePoints bool) error {
	list := []numeric.Points{x}
	if !samePoints {
		list = append(list, z)
	}
	placed, err := numeric.PlaceAll(b, list...)
	if err != nil {
		return err
	}
	defer numeric.FreeAll(placed)
	dst, shared := backend.Matrix[float64](nil), false
	if w, ok := b.(backend.Wrapper[float64]); ok {
		dst, shared = w.Wrap(out), true
	} else if dst, err = b.New(out.Rows, out.Cols); err != nil {
		return err
	}
	defer dst.Free()
	if v.Rows > 0 {
		factor, err := backend.Place(b, v)
		if err != nil {
			return err
		}
		defer factor.Free()
		if err := gramMul(b, dst, k, placed[0], placed[len(placed)-1], factor); err != nil {
			return err
		}
	} else {
		b.Gram(dst, k, placed[0], placed[len(placed)-1])
	}
	if shared {
		err = b.Sync()
	} else {
		err = b.Download(out, dst)
	}
	if err == nil && samePoints && v.Rows == 0 {
		mirror(out)
	}
	return err
}

// gramMul computes dst ← k(X, Z)·V. If V has many columns, it computes k(X, Z) in blocks of rows that fit in a
// cache and multiplies each block by V, which is faster than GramMul.
func gramMul(b backend.Backend[float64], dst backend.Matrix[float64], k kernels.Kernel, x, z, v backend.Matrix[float64]) error {
	const columns, blockBytes = 16, 4 << 20
	n, d := x.Dims()
	m, t := v.Dims()
	if t <= columns {
		b.GramMul(dst, k, x, z, v)
		return nil
	}
	rows := min(n, max(64, blockBytes/(8*m)))
	if x == z && rows == n { // use two blocks, because Gram of x with itself would compute only the lower triangle
		rows = (n + 1) / 2
	}
	values, err := b.New(rows, m)
	if err != nil {
		return err
	}
	defer values.Free()
	for i := 0; i < n; i += rows {
		r := min(rows, n-i)
		block := values.View(0, 0, r, m)
		b.Gram(block, k, x.View(i, 0, r, d), z)
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, block, v, 0, dst.View(i, 0, r, t))
	}
	return nil
}

// mirror copies the lower triangle of h to the upper triangle, in blocks that fit in a cache.
func mirror(h backend.Host[float64]) {
	const block = 32
	run.Parallel((h.Rows+block-1)/block, func(first, last int) {
		for i0 := first * block; i0 < min(last*block, h.Rows); i0 += block {
			for j0 := 0; j0 <= i0; j0 += block {
				for i := i0; i < min(i0+block, h.Rows); i++ {
					for j := j0; j < min(j0+block, i); j++ {
						h.Data[j*h.Stride+i] = h.Data[i*h.Stride+j]
					}
				}
			}
		}
	})
}

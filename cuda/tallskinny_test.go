package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/cudatest"
)

// TestThin checks products with a small number of columns or rows, exactly, on integers. The numbers of rows and
// columns are near multiples of the sizes of a block of threads and of a share. The unused triangle contains NaN.
func TestThin(t *testing.T) {
	Need(t)
	dev, err := openAt(cudatest.DriverOnly, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	previous := cuts
	cuts.minThin = 1
	defer func() { cuts = previous }()
	testThin(t, dev.F64())
	cuts.squares = 2 // each of the squares that a symmetric matrix is divided into then has several tiles
	testThin(t, dev.F32())
}

func testThin[T backend.Float](t *testing.T, b backend.Backend[T]) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	// toDevice returns a device matrix with the elements of h inside a larger matrix of NaN.
	toDevice := func(h backend.Host[T]) backend.Matrix[T] {
		padded := backend.NewHost[T](h.Rows+2, h.Cols+3)
		for i := range padded.Data {
			padded.Data[i] = T(math.NaN())
		}
		for i := range h.Rows {
			copy(padded.Row(i + 1)[2:], h.Row(i))
		}
		m, err := b.New(padded.Rows, padded.Cols)
		if err == nil {
			err = b.Upload(m, padded)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Free)
		return m.View(1, 2, h.Rows, h.Cols)
	}
	numbers := func(rows, cols int) backend.Host[T] {
		h := backend.NewHost[T](rows, cols)
		for i := range h.Data {
			h.Data[i] = T(rng.IntN(9) - 4)
		}
		return h
	}
	transposed := func(h backend.Host[T], trans backend.Trans) backend.Host[T] {
		if trans == backend.NoTrans {
			return h
		}
		out := backend.NewHost[T](h.Cols, h.Rows)
		for i := range h.Rows {
			for j, v := range h.Row(i) {
				out.Row(j)[i] = v
			}
		}
		return out
	}
	// check compares the product that f computes on the device with the definition of the product.
	check := func(name string, left, right, c backend.Host[T], alpha, beta T, f func(c backend.Matrix[T])) {
		t.Helper()
		to := toDevice(c)
		f(to)
		got := backend.NewHost[T](c.Rows, c.Cols)
		if err := b.Download(got, to); err != nil {
			t.Fatal(err)
		}
		for i := range c.Rows {
			for j := range c.Cols {
				sum := T(0)
				for p, v := range left.Row(i) {
					sum += v * right.Row(p)[j]
				}
				want := alpha * sum
				if beta != 0 {
					want += beta * c.Row(i)[j]
				}
				if got.Row(i)[j] != want {
					t.Fatalf("%T %s: element (%d, %d) is %v, want %v", want, name, i, j, got.Row(i)[j], want)
				}
			}
		}
	}
	const noTrans, trans = backend.NoTrans, backend.Transpose
	for _, s := range [][3]int{{1, 1, 1}, {31, 1, 33}, {33, 4, 31}, {128, 2, 8}, {129, 3, 257}, {3, 1, 3000}, {10, 3, 2100}, {2100, 1, 10}, {200, 4, 600}, {2, 70, 300}} {
		m, n, k := s[0], s[1], s[2]
		for _, tA := range []backend.Trans{noTrans, trans} {
			for _, tB := range []backend.Trans{noTrans, trans} {
				a, right, c := numbers(m, k), numbers(k, n), numbers(m, n)
				alpha, beta := T(rng.IntN(3)-1), T(rng.IntN(3)-1)
				if beta == 0 {
					c.Data[0] = T(math.NaN())
				}
				name := fmt.Sprintf("Gemm %v %v m=%d n=%d k=%d alpha=%v beta=%v", tA, tB, m, n, k, alpha, beta)
				A, B := toDevice(transposed(a, tA)), toDevice(transposed(right, tB))
				check(name, a, right, c, alpha, beta, func(C backend.Matrix[T]) { b.Gemm(tA, tB, alpha, A, B, beta, C) })
			}
		}
	}
	for _, n := range []int{1, 2, 31, 32, 65, 130, 700} {
		for _, ul := range []backend.Uplo{backend.Lower, backend.Upper} {
			cols := 1 + rng.IntN(4)
			a := numbers(n, n)
			stored := backend.NewHost[T](n, n)
			for i := range n {
				for j := range i + 1 {
					a.Row(j)[i] = a.Row(i)[j]
					stored.Row(i)[j], stored.Row(j)[i] = a.Row(i)[j], T(math.NaN())
				}
				stored.Row(i)[i] = a.Row(i)[i]
			}
			if ul == backend.Upper {
				stored = transposed(stored, trans)
			}
			right := numbers(n, cols)
			A, B := toDevice(stored), toDevice(right)
			check(fmt.Sprintf("Symm %v n=%d columns=%d", ul, n, cols), a, right, numbers(n, cols), 2, 1, func(C backend.Matrix[T]) { b.Symm(ul, 2, A, B, 1, C) })
		}
	}
}

// TestThinShape checks that, for every shape, the shares contain every column exactly once, and that the sums of a
// block of threads fit in its shared memory.
func TestThinShape(t *testing.T) {
	for _, m := range []int{1, 3, 4, 5, 31, 64, 1000, 190_000, 270_000, math.MaxInt32} {
		for _, k := range []int{1, 3, 4, 5, 33, 1000, 190_000, 270_000, math.MaxInt32} {
			for _, columns := range []bool{false, true} {
				s := tallSkinnyOf(m, k, columns)
				if s.shareCols < 1 || s.shares < 1 || s.shares > 65535 || s.shareCols*s.shares < k || s.shareCols*(s.shares-1) >= k || s.shareCols > math.MaxInt32 {
					t.Errorf("%d×%d, columns %v: %+v", m, k, columns, s)
				}
				if columns && s.rows*(threads/s.lanes) > threads*thinRowsPerThread || !columns && s.rows*(s.lanes+1) > threads*(thinRowsPerThread+1) || threads%s.lanes != 0 {
					t.Errorf("%d×%d, columns %v: %+v does not fit a block", m, k, columns, s)
				}
			}
		}
	}
}

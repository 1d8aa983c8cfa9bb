package cuda

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestPotrfPreservesTriangle checks that Potrf changes no bit of the other triangle of the matrix, for several
// orders, by which cuSOLVER chooses its algorithm. On the simulated GPU the orders are small.
func TestPotrfPreservesTriangle(t *testing.T) {
	Need(t)
	const seed = 3
	t.Logf("seed %d", seed)
	dev, err := openAt(cudatest.WithSolver, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	orders := []int{1000, 16384, 20000}
	if isSimulated(dev) {
		SmallCuts(t)
		orders = []int{10, 97, 100, 130}
	}
	q := dev.F64().(*queue[float64])
	for _, n := range orders {
		h := backend.NewHost[float64](n, n)
		var fill sync.WaitGroup
		for i := range n {
			fill.Go(func() {
				row, rng := h.Row(i), rand.New(rand.NewPCG(seed, uint64(i)))
				for j := range row {
					row[j] = rng.Float64()
				}
				row[i] += float64(n)
			})
		}
		fill.Wait()
		a, err := q.New(n, n)
		if err == nil {
			err = q.Upload(a, h)
		}
		if err == nil {
			err = q.PotrfPreserve(a)
		}
		got := backend.NewHost[float64](n, n)
		if err == nil {
			err = q.Download(got, a)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range i {
				if got.Row(i)[j] != h.Row(i)[j] {
					t.Fatalf("order %d: element %d, %d is %v, and was %v", n, i, j, got.Row(i)[j], h.Row(i)[j])
				}
			}
		}
		a.Free()
	}
}

// TestWorkOfSolver checks that cuSOLVER gets smaller triangles if there is no memory for its workspace, and that
// the factor is the same up to rounding.
func TestWorkOfSolver(t *testing.T) {
	Need(t)
	SmallCuts(t)
	cuts.maxInPlace, cuts.maxCopied = 300, 300
	const n, largest = 400, 150
	h := backend.NewHost[float64](n, n)
	for i := range n {
		for j := range n {
			h.Row(i)[j] = 1 / float64(1+max(i-j, j-i))
		}
		h.Row(i)[i] += 4
	}
	for _, ul := range []backend.Uplo{backend.Lower, backend.Upper} {
		dev, err := openAt(cudatest.WithSolver, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d, orders := dev.(*device), []int{}
		q, original := d.F64().(*queue[float64]), d.libraries.Solver.Call
		factor := func() backend.Host[float64] {
			a, err := q.New(n, n)
			if err == nil {
				err = q.Upload(a, h)
			}
			if err == nil {
				err = q.Potrf(ul, a)
			}
			got := backend.NewHost[float64](n, n)
			if err == nil {
				err = q.Download(got, a)
			}
			if err != nil {
				t.Fatal(err)
			}
			a.Free()
			return got
		}
		want := factor()
		d.libraries.Solver.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			r := original(s, args...)
			switch s.Name {
			case "cusolverDnXpotrf_bufferSize":
				if args[3] > largest {
					p := args[8]
					**(**uint64)(unsafe.Pointer(&p)) = 1 << 50
				}
			case "cusolverDnXpotrf":
				orders = append(orders, int(args[3]))
			}
			return r
		}
		got := factor()
		if len(orders) == 0 || slices.Max(orders) > largest {
			t.Errorf("cuSOLVER was given triangles of the orders %v", orders)
		}
		for i, v := range got.Data {
			// The condition number of the matrix is below 4.
			if diff := math.Abs(v - want.Data[i]); !(diff <= n*0x1p-50) {
				t.Fatalf("%v: element %d is %v, in one triangle %v", ul, i, v, want.Data[i])
			}
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFailuresOfSolver checks that a failed factorization of a lower triangle gives the exact index and value of
// the pivot and the exact leading factor, whatever cuSOLVER writes to the rest of the factor. For an upper
// triangle, only the index is checked.
func TestFailuresOfSolver(t *testing.T) {
	Need(t)
	if !isSimulated(backendtest.Device(t, "cuda/0")) {
		t.Skip("the simulated library is changed")
	}
	SmallCuts(t)
	const n, invalidRow, pivot = 60, 45, -3
	low, h := backend.NewHost[float64](n, n), backend.NewHost[float64](n, n)
	for i := range n {
		for j := range i {
			low.Row(i)[j] = float64((i*7 + j*3) % 5 % 3)
		}
		low.Row(i)[i] = float64(1 + i%4)
	}
	for i := range n {
		for j := range n {
			for p := range min(i, j) + 1 {
				h.Row(i)[j] += low.Row(i)[p] * low.Row(j)[p]
			}
		}
	}
	h.Row(invalidRow)[invalidRow] += pivot - low.Row(invalidRow)[invalidRow]*low.Row(invalidRow)[invalidRow]
	for _, leaves := range []string{"NaN", "zeros", "the old block"} {
		for _, ul := range []backend.Uplo{backend.Lower, backend.Upper} {
			dev, err := openAt(cudatest.WithSolver, backend.Config{})
			dev = backendtest.Closed(t, dev, err)
			d, calls := dev.(*device), 0
			q, original := d.F64().(*queue[float64]), d.libraries.Solver.Call
			d.libraries.Solver.Call = func(s *driver.Symbol, args ...uintptr) int32 {
				if s.Name != "cusolverDnXpotrf" {
					return original(s, args...)
				}
				calls++
				order, address, lda, info := int(args[3]), args[5], int(args[6]), args[len(args)-1]
				if err := d.api.Wait(d.stream); err != nil {
					t.Fatal(err)
				}
				// The memory of the simulated device is memory of this process.
				a := unsafe.Slice(*(**float64)(unsafe.Pointer(&address)), order*lda)
				previous := slices.Clone(a)
				r := original(s, args...)
				if err := d.api.Wait(d.stream); err != nil {
					t.Fatal(err)
				}
				failedRow := int(**(**int32)(unsafe.Pointer(&info))) - 1
				for j := 0; failedRow >= 0 && j < order; j++ {
					for i := j; i < order; i++ { // column j of the lower triangle, in column-major order
						switch {
						case leaves == "zeros" && math.IsNaN(a[i+j*lda]):
							a[i+j*lda] = 0
						case leaves == "the old block" && i >= failedRow/32*32:
							a[i+j*lda] = previous[i+j*lda]
						}
					}
				}
				return r
			}
			a := hostMatrix(t, q, h)
			var e *backend.PivotError
			if err := q.Potrf(ul, a); !errors.As(err, &e) || e.Index != invalidRow || ul == backend.Lower && e.Value != pivot {
				t.Errorf("%v, cuSOLVER leaves %s: %v", ul, leaves, err)
			}
			if calls == 0 {
				t.Fatal("cuSOLVER was not called")
			}
			got := backend.NewHost[float64](n, n)
			if err := q.Download(got, a); err != nil {
				t.Fatal(err)
			}
			for i := 0; i < invalidRow && ul == backend.Lower; i++ {
				if !slices.Equal(got.Row(i)[:i+1], low.Row(i)[:i+1]) {
					t.Fatalf("cuSOLVER leaves %s: row %d of the factor is %v, want %v", leaves, i, got.Row(i)[:i+1], low.Row(i)[:i+1])
				}
			}
			a.Free()
		}
	}
}

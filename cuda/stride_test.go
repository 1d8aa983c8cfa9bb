//go:build linux

package cuda

import (
	"errors"
	"math"
	"syscall"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// TestBeyond32Bits checks that no index is limited to 32 bits. It compares operations with contiguous matrices and
// with matrices whose last rows begin after element 2³¹. The results of the device functions must be equal, and
// those of NVIDIA's libraries must agree up to rounding.
func TestBeyond32Bits(t *testing.T) {
	Need(t)
	for level, name := range []string{"driver", "blas", "solver"} {
		t.Run(name, func(t *testing.T) {
			previous := cuts.minThin
			cuts.minThin = 1
			defer func() { cuts.minThin = previous }()
			if level > int(cudatest.DriverOnly) {
				SmallCuts(t)
			}
			dev, err := openAt(cudatest.Level(level), backend.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			t.Run("float64", func(t *testing.T) { testBeyond32Bits(t, dev.F64().(*queue[float64]), level, 0x1p-53) })
			t.Run("float32", func(t *testing.T) { testBeyond32Bits(t, dev.F32().(*queue[float32]), level, 0x1p-24) })
		})
	}
}

func testBeyond32Bits[T backend.Float](t *testing.T, q *queue[T], level int, unit float64) {
	const n, farStride = 70, 1 << 25
	newContiguous := func(rows, cols int) *matrix[T] {
		m, err := q.New(rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Free)
		return m.(*matrix[T])
	}
	// All matrices are ranges of columns of one matrix, of which the simulated GPU stores only the accessed pages.
	const bytes = n * farStride
	var backing *matrix[T]
	if required.Names("cuda") {
		m, err := q.New(n, farStride)
		if errors.Is(err, backend.ErrMemory) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Free)
		backing = m.(*matrix[T])
	} else {
		memory, err := syscall.Mmap(-1, 0, bytes*sizeOf[T](), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
		if err != nil {
			t.Skipf("%d bytes of addresses: %v", bytes*sizeOf[T](), err)
		}
		t.Cleanup(func() { syscall.Munmap(memory) })
		backing = &matrix[T]{device: q.engine.device, ptr: driver.DevicePtr(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), rows: n, cols: farStride, stride: farStride}
	}
	column := 0
	takeColumns := func(rows, cols int) *matrix[T] {
		m := backing.window(0, column, rows, cols)
		column += cols + 3 // the operations must not write to the gap of 3 columns
		return m
	}
	work := func(newMatrix func(rows, cols int) *matrix[T]) [][]T {
		var results [][]T
		record := func(m *matrix[T]) {
			to := newContiguous(m.rows, m.cols)
			q.run("test", func() error { return q.copy(m.view(), to.view(), whole) })
			h := backend.NewHost[T](m.rows, m.cols)
			if err := q.Download(h, to); err != nil {
				t.Fatal(err)
			}
			results = append(results, h.Data)
		}
		fill := func(m *matrix[T]) *matrix[T] {
			h, from := backend.NewHost[T](m.rows, m.cols), newContiguous(m.rows, m.cols)
			for i := range h.Data {
				h.Data[i] = T(i*7919%1000) / 1000
			}
			if err := q.Upload(from, h); err != nil {
				t.Fatal(err)
			}
			q.run("test", func() error { return q.copy(from.view(), m.view(), whole) })
			return m
		}
		x, y, v := fill(newMatrix(n, 3)), fill(newMatrix(n, 6)), fill(newMatrix(n, 1))
		k, out, column := newMatrix(n, n), newMatrix(n, 6), newMatrix(n, 1)
		const noTrans, trans, low = backend.NoTrans, backend.Transpose, backend.Lower
		gaussian := kernels.Gaussian{Sigma: 1}
		q.Gram(k, gaussian, x, y.window(0, 0, n, 3))
		record(k)
		for _, g := range []kernels.Kernel{gaussian, kernels.Laplacian{Sigma: 1}, kernels.Sum{gaussian, kernels.Linear{}}} {
			q.GramMul(column, g, x, x, v)
			record(column)
			q.GramMul(out, g, x, x, y)
			record(out)
		}
		q.Gemm(noTrans, noTrans, 1, k, y, 0, out)
		record(out)
		q.Gemm(trans, noTrans, 1, k, y, 1, out)
		record(out)
		q.Gemm(noTrans, noTrans, 1, k, v, 0, column)
		record(column)
		q.Gemm(trans, noTrans, 1, k, v, 1, column)
		record(column)
		q.Symm(low, 1, k, v, 0, column)
		record(column)
		q.Syrk(low, noTrans, 1, x, 0, k)
		q.AddDiag([]T{n}, k)
		q.Symm(low, 1, k, y, 0, out)
		record(out)
		if err := q.Potrf(low, k); err != nil {
			t.Fatal(err)
		}
		q.Trsm(backend.Left, low, noTrans, 1, k, out)
		q.Trsm(backend.Left, low, trans, 2, k, out)
		record(out)
		alpha := make([]T, 6)
		for i := range alpha {
			alpha[i] = T(i)
		}
		q.ColAxpy(alpha, out, y)
		record(y)
		dots := make([]T, 6)
		if err := q.ColDot(dots, out, y); err != nil {
			t.Fatal(err)
		}
		return append(results, dots)
	}
	want, got := work(newContiguous), work(takeColumns)
	for i := range want {
		largest := 0.0
		for _, v := range want[i] {
			largest = max(largest, math.Abs(float64(v)))
		}
		// The bound is for sums of n terms, and for solves with a matrix whose condition number is below 2.
		bound := 32 * n * unit * largest
		if level == int(cudatest.DriverOnly) {
			bound = 0
		}
		for j, v := range want[i] {
			if diff := math.Abs(float64(got[i][j]) - float64(v)); !(diff <= bound) {
				t.Fatalf("result %d, element %d: %v, with contiguous rows %v, bound %.3g", i, j, got[i][j], v, bound)
			}
		}
	}
}

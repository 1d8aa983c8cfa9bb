package backendtest

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// The tests of this file repeat the tests of full storage in packed storage.

func (r *rig[T]) packedBackend() backend.PackedBackend[T] {
	r.Helper()
	b, ok := r.b.(backend.PackedBackend[T])
	if !ok {
		r.Fatal("RequirePacked: the backend has no packed storage")
	}
	if _, ok := r.b.With(r.Context(), nil).(backend.PackedBackend[T]); !ok {
		r.Fatal("the backend has packed storage, but the queue that With returns has none")
	}
	return b
}

// forRowBlocks divides the rows 0 … n−1 into random blocks, and calls f with each block's first row, its number of
// rows, and a host matrix of sentinels. It stops at the first error of f.
func (r *rig[T]) forRowBlocks(n int, f func(first, rows int, h backend.Host[T]) error) error {
	for first := 0; first < n; {
		rows := n - first
		if r.rng.IntN(3) == 0 {
			rows = 1 + r.rng.IntN(rows)
		}
		stride := first + rows + r.rng.IntN(3)
		h := backend.Host[T]{Rows: rows, Cols: first + rows, Stride: stride, Data: make([]T, rows*stride)}
		for i := range h.Data {
			h.Data[i] = T(sentinel)
		}
		if err := f(first, rows, h); err != nil {
			return err
		}
		first += rows
	}
	return nil
}

// load returns a packed matrix with the elements of the lower triangle of low.
func (r *rig[T]) load(b backend.PackedBackend[T], low backend.Host[T]) (backend.Packed[T], error) {
	a, err := b.NewPacked(low.Rows)
	if err != nil {
		return nil, err
	}
	return a, r.forRowBlocks(low.Rows, func(first, rows int, h backend.Host[T]) error {
		for i := range rows {
			copy(h.Row(i), low.Row(first + i)[:first+i+1])
		}
		return b.UploadPacked(a, first, h)
	})
}

// save copies the packed matrix to the lower triangle of low, or returns an error if the upper triangle changed.
func (r *rig[T]) save(b backend.PackedBackend[T], low backend.Host[T], a backend.Packed[T]) error {
	return r.forRowBlocks(low.Rows, func(first, rows int, h backend.Host[T]) error {
		if err := b.DownloadPacked(h, a, first); err != nil {
			return err
		}
		for index, v := range h.Data {
			i, j := index/h.Stride, index%h.Stride
			if j <= first+i {
				low.Row(first + i)[j] = v
			} else if bits(float64(v)) != bits(sentinel) {
				return fmt.Errorf("DownloadPacked from row %d on wrote %g at (%d, %d) of a %d×%d matrix", first, v, i, j, rows, first+rows)
			}
		}
		return nil
	})
}

// packedCall passes m[operand] to f in packed storage, and copies it back if it is the output.
func packedCall[T backend.Float](r *rig[T], operand int, f func(b backend.PackedBackend[T], a backend.Packed[T], m []backend.Matrix[T]) error) call[T] {
	return func(q backend.Backend[T], m []backend.Matrix[T]) error {
		b := q.(backend.PackedBackend[T])
		input := Download(r, q, m[operand])
		a, err := r.load(b, input)
		if err != nil {
			return err
		}
		defer a.Free()
		failure := f(b, a, m)
		result := backend.NewHost[T](input.Rows, input.Cols)
		for i := range input.Rows {
			copy(result.Row(i), input.Row(i))
		}
		if err := r.save(b, result, a); err != nil {
			return err
		}
		if operand == len(m)-1 {
			return errors.Join(q.Upload(m[operand], result), failure)
		}
		requireBits(r, "a packed matrix that is an input", result, input)
		return failure
	}
}

func (r *rig[T]) potrfPacked() call[T] {
	return packedCall(r, 0, func(b backend.PackedBackend[T], a backend.Packed[T], _ []backend.Matrix[T]) error {
		return b.PotrfPacked(a)
	})
}

func (r *rig[T]) symmPacked(alpha, beta float64) call[T] {
	return packedCall(r, 0, func(b backend.PackedBackend[T], a backend.Packed[T], m []backend.Matrix[T]) error {
		b.SymmPacked(T(alpha), a, m[1], T(beta), m[2])
		return b.Sync()
	})
}

func (r *rig[T]) trsmPacked(t backend.Trans) call[T] {
	return packedCall(r, 0, func(b backend.PackedBackend[T], a backend.Packed[T], m []backend.Matrix[T]) error {
		b.TrsmPacked(t, a, m[1])
		return b.Sync()
	})
}

func (r *rig[T]) gramPacked(k kernels.Kernel) call[T] {
	return packedCall(r, 1, func(b backend.PackedBackend[T], a backend.Packed[T], m []backend.Matrix[T]) error {
		b.GramPacked(a, k, m[0])
		return b.Sync()
	})
}

// packedOrders returns small orders, and orders near the block sizes and near twice the block sizes.
func (r *rig[T]) packedOrders() []int {
	var orders []int
	for n := range 40 {
		if n < 10 || r.included() {
			orders = append(orders, n)
		}
	}
	for _, n := range r.upToLarge(blockSizes...) {
		if r.included() {
			orders = append(orders, n)
		}
	}
	if !short() {
		orders = append(orders, r.upToLarge(383, 384, 385, 386, 511, 512, 513, 514)...)
	}
	return orders
}

func testPackedExact[T backend.Float](r *rig[T]) {
	r.packedBackend()
	for _, n := range r.packedOrders() {
		low := r.exactTriangle(n, 12, true)
		label := fmt.Sprintf("PotrfPacked n=%d", n)
		r.requireEqual(label, r.mustCall(label, r.potrfPacked(), potrfOperand(backend.Lower, mulSparse(low, transpose(low)))), potrfOperand(backend.Lower, low))

		low = r.exactTriangle(n, 12, false)
		for _, t := range bothTrans {
			x := r.integers(n, pick(r, []int{0, 1, 2, 3, 4, 5, 8, 17, 33}), 3)
			label := fmt.Sprintf("TrsmPacked %v n=%d rhs=%d", t, n, x.Cols)
			r.requireEqual(label, r.mustCall(label, r.trsmPacked(t), potrfOperand(backend.Lower, low), mulSparse(op(t, low), x)), x)
		}

		for _, cols := range []int{pick(r, []int{0, 1}), 1 + r.rng.IntN(5), 1 + r.rng.IntN(40)} {
			alpha, beta := pick(r, alphas), pick(r, betas)
			a, x, c := r.integers(n, n, 8), r.integers(n, cols, 8), r.integers(n, cols, 8)
			if beta == 0 {
				c = filled(n, cols, sentinel)
			}
			label := fmt.Sprintf("SymmPacked n=%d cols=%d alpha=%v beta=%v", n, cols, alpha, beta)
			got := r.mustCall(label, r.symmPacked(alpha, beta), triangle(backend.Lower, a), x, c)
			r.requireEqual(label, got, combine(alpha, mul(mirror(backend.Lower, a), x), beta, c))
		}
	}
}

func testPackedDiagonal[T backend.Float](r *rig[T]) {
	r.packedBackend()
	for _, n := range r.packedOrders() {
		for _, length := range []int{1, n} {
			if length == 0 {
				continue
			}
			a, d := triangle(backend.Lower, r.integers(n, n, 8)), round[T](r.integers(1, length, 8)).Data
			label := fmt.Sprintf("AddDiagPacked n=%d len(d)=%d", n, length)
			diagonal := make([]T, n)
			got := r.mustCall(label, packedCall(r, 0, func(b backend.PackedBackend[T], a backend.Packed[T], _ []backend.Matrix[T]) error {
				dCopy := append([]T(nil), d...)
				b.AddDiagPacked(dCopy, a)
				fillSentinels(dCopy)
				return b.DiagPacked(diagonal, a)
			}), a)
			for i := range n {
				a.Row(i)[i] += float64(d[min(i, length-1)])
				if float64(diagonal[i]) != a.Row(i)[i] {
					r.Fatalf("%s: DiagPacked: element %d is %v, want %v", label, i, diagonal[i], a.Row(i)[i])
				}
			}
			r.requireEqual(label, got, a)
		}
	}
}

// testPackedRounding repeats the checks of testPotrfResidual, testTrsmResidual and testSymmRounding.
func testPackedRounding[T backend.Float](r *rig[T]) {
	r.packedBackend()
	for range r.reduced(30) {
		n, cols := 1+r.rng.IntN(200), 1+r.rng.IntN(40)
		g := r.normals(n, n)
		a := mul(g, transpose(g))
		a = fromFunc(n, n, func(i, j int) float64 {
			if i == j {
				return float64(T(a.Row(i)[j] + float64(n)/2))
			}
			return float64(T(a.Row(i)[j]))
		})
		label := fmt.Sprintf("PotrfPacked n=%d", n)
		factor := r.mustCall(label, r.potrfPacked(), triangle(backend.Lower, a))
		low := fromFunc(n, n, func(i, j int) float64 {
			if j > i {
				return 0
			}
			return factor.Row(i)[j]
		})
		relative := gamma[T](n+2) + gamma[float64](n+1)
		r.requireWithin(label, mul(low, transpose(low)), a, scale(relative, mul(abs(low), transpose(abs(low)))))

		rhs := r.normals(n, cols)
		for _, t := range bothTrans {
			label := fmt.Sprintf("TrsmPacked %v n=%d rhs=%d", t, n, cols)
			x := r.mustCall(label, r.trsmPacked(t), factor, rhs)
			size := combine(1, mul(op(t, abs(low)), abs(x)), 1, abs(rhs))
			r.requireWithin(label, mul(op(t, low), x), rhs, scale(gamma[T](n+2)+gamma[float64](n+2), size))
		}

		alpha, beta := float64(T(r.rng.NormFloat64())), float64(T(r.rng.NormFloat64()))
		sym, c := r.normals(n, n), r.normals(n, cols)
		label = fmt.Sprintf("SymmPacked n=%d cols=%d alpha=%v beta=%v", n, cols, alpha, beta)
		in := []host{triangle(backend.Lower, sym), rhs, c}
		got, want := r.mustCall(label, r.symmPacked(alpha, beta), in...), r.callOracle(label, r.symmPacked(alpha, beta), in...)
		full := mirror(backend.Lower, sym)
		size := combine(abs1(alpha), mul(abs(full), abs(rhs)), abs1(beta), abs(c))
		r.requireNear(label, got, want, combine(alpha, mul(full, rhs), beta, c), scale(product[T](n), size))
	}
	r.report()
}

// testPackedFailure makes one element of a matrix with an exact factor invalid, and checks the PivotError. A packed
// matrix that is split in the middle has two triangles and a square, and the test covers elements in each.
func testPackedFailure[T backend.Float](r *rig[T]) {
	r.packedBackend()
	for _, n := range r.upToLarge(1, 2, 3, 9, 34, 65, 130, 259) {
		if n > 130 && short() {
			break
		}
		low := r.exactTriangle(n, 12, true)
		valid := mulSparse(low, transpose(low))
		for _, p := range []int{0, 1, (n - 1) / 2, n / 2, (n + 1) / 2, n/2 + 2, n - 1} {
			if p >= n {
				continue
			}
			q := r.rng.IntN(p + 1)
			for _, c := range []struct {
				col          int
				value, pivot float64
			}{
				{p, valid.Row(p)[p] - low.Row(p)[p]*low.Row(p)[p] - 3, -3},
				{q, math.NaN(), math.NaN()},
				{p, math.Inf(1), math.Inf(1)},
			} {
				bad := triangle(backend.Lower, valid)
				bad.Row(p)[c.col] = c.value
				label := fmt.Sprintf("PotrfPacked n=%d, %v at (%d, %d)", n, c.value, p, c.col)
				out, err := r.tryCall(label, r.potrfPacked(), bad)
				r.requirePivotError(label, err, p, c.pivot)
				r.requireEqual(label+": leading factor", out.View(0, 0, p, p), triangle(backend.Lower, low.View(0, 0, p, p)))
				r.requireUntouched(label, out)
			}
		}
	}
}

// testPackedGram compares GramPacked into a matrix of NaN with the oracle, as testGramSymmetric does for Gram.
func testPackedGram[T backend.Float](r *rig[T]) {
	r.packedBackend()
	gram := func(k kernels.Kernel, x host) {
		n, d := x.Rows, x.Cols
		label := fmt.Sprintf("GramPacked %v n=%d d=%d", k, n, d)
		dst := filled(n, n, sentinel)
		got := r.mustCall(label, r.gramPacked(k), x, dst)
		r.requireUntouched(label, got)
		if n == 0 {
			return
		}
		r.requireWithin(label, got, r.callOracle(label, r.gramPacked(k), x, dst), kernelBounds[T](k, x, x))
		program := kernels.Compile(k)
		if len(program.Stats) != 1 || program.Stats[0].Kind != kernels.SqDist && program.Stats[0].Kind != kernels.L1 {
			return
		}
		atZero := float64(T(program.Run([]float64{0})))
		for i := range n {
			for j := range i + 1 {
				if sameRow(x, i, j) && got.Row(i)[j] != atZero {
					r.Fatalf("%s: rows %d and %d are equal: k is %v, want exactly %v", label, i, j, got.Row(i)[j], atZero)
				}
			}
		}
	}
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range everyKernel(d) {
			if !r.included() {
				continue
			}
			x := r.normals(r.rng.IntN(50), d)
			for range x.Rows / 4 {
				copy(x.Row(r.rng.IntN(x.Rows)), x.Row(r.rng.IntN(x.Rows)))
			}
			gram(k, x)
		}
	}
	for _, n := range r.packedOrders() {
		d := pick(r, featureCounts)
		offset := pick(r, []float64{0, 1e6})
		x := fromFunc(n, d, func(int, int) float64 { return float64(T(offset + r.rng.NormFloat64())) })
		gram(pick(r, distanceKernels(d, 1)), x)
	}
	for _, k := range everyKernel(0) {
		gram(k, r.normals(5, 0))
	}
	r.report()
}

// testPackedLarge repeats testLargePotrf, testLargeSolves, testLargeProducts and testLargeGram in packed storage.
func testPackedLarge[T backend.Float](r *rig[T]) {
	r.packedBackend()
	n := r.LargeN + 1
	low := r.exactTriangle(n, 12, true)
	label := fmt.Sprintf("PotrfPacked n=%d", n)
	r.requireEqual(label, r.mustCall(label, r.potrfPacked(), potrfOperand(backend.Lower, mulSparse(low, transpose(low)))), potrfOperand(backend.Lower, low))
	for _, t := range bothTrans {
		for _, cols := range []int{1, 70} {
			x := r.integers(n, cols, 3)
			label := fmt.Sprintf("TrsmPacked %v n=%d rhs=%d", t, n, cols)
			r.requireEqual(label, r.mustCall(label, r.trsmPacked(t), potrfOperand(backend.Lower, low), mulSparse(op(t, low), x)), x)
		}
	}
	a := r.integers(n, n, 2)
	for _, cols := range []int{1, 3, 70} {
		x := r.integers(n, cols, 2)
		label := fmt.Sprintf("SymmPacked n=%d cols=%d", n, cols)
		got := r.mustCall(label, r.symmPacked(2, 0), triangle(backend.Lower, a), x, filled(n, cols, sentinel))
		r.requireEqual(label, got, scale(2, mul(mirror(backend.Lower, a), x)))
	}
	for _, k := range distanceKernels(33, 1) {
		x := r.normals(n, 33)
		label := fmt.Sprintf("GramPacked %v n=%d d=33", k, n)
		got := r.mustCall(label, r.gramPacked(k), x, filled(n, n, sentinel))
		r.sample(label, k, got, x, x, func(i, j int) bool { return j <= i })
		r.requireUntouched(label, got)
	}
	r.report()
}

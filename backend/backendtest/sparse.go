package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// These tests cover the matrices of a backend.SparseBackend, or the dense copies that PlaceSparse makes.

// rowsOf returns the view of m with rows i … k−1.
func rowsOf[T backend.Float](m backend.Matrix[T], i, k int) backend.Matrix[T] {
	_, cols := m.Dims()
	return m.View(i, 0, k-i, cols)
}

var densities = []float64{0, 0.05, 0.3, 1}

// sparseNormals returns an n×d matrix of normal numbers and zeros with zero rows and equal rows. The fraction of
// nonzeros is about density, but differs greatly between columns.
func (r *rig[T]) sparseNormals(n, d int, density float64) host {
	h := r.normals(n, d)
	for i := range n {
		row := h.Row(i)
		for j := range row {
			fraction := density
			if density > 0 && density < 1 { // some columns are nearly dense, others nearly empty
				fraction = math.Pow(density, 2*float64(j%5)/4)
			}
			if !(r.rng.Float64() < fraction) {
				row[j] = 0
			}
		}
		if density < 1 && r.rng.IntN(8) == 0 {
			clear(row)
		}
	}
	for range n / 6 {
		copy(h.Row(r.rng.IntN(n)), h.Row(r.rng.IntN(n)))
	}
	return h
}

// randomCSR returns a CSR matrix that contains h, with some stored zeros, in the rows beginning with `first`.
func (r *rig[T]) randomCSR(h host) (csr backend.CSR[T], first int) {
	rowsBefore, rowsAfter := r.rng.IntN(3), r.rng.IntN(3)
	csr = backend.CSR[T]{Rows: rowsBefore + h.Rows + rowsAfter, Cols: h.Cols, Indptr: []int{0}}
	for i := range csr.Rows {
		for j := range h.Cols {
			v, inside := sentinel, i >= rowsBefore && i < rowsBefore+h.Rows
			if inside {
				v = h.Row(i - rowsBefore)[j]
			}
			if v != 0 || r.rng.IntN(50) == 0 {
				csr.Indices, csr.Data = append(csr.Indices, int32(j)), append(csr.Data, T(v))
			}
		}
		csr.Indptr = append(csr.Indptr, len(csr.Data))
	}
	return csr, rowsBefore
}

// placeSparse copies h to the device, as a part of a larger matrix that is sliced before or after the copy.
func (r *rig[T]) placeSparse(h host) (x backend.Matrix[T], free func()) {
	r.Helper()
	csr, first := r.randomCSR(h)
	sliceFirst := r.rng.IntN(2) == 0
	if sliceFirst {
		csr = csr.SliceRows(first, first+h.Rows)
	}
	x, err := backend.PlaceSparse(r.b, csr)
	if err != nil {
		r.Fatal(err)
	}
	free = x.Free
	if !sliceFirst {
		x = rowsOf(x, first, first+h.Rows)
	}
	if rows, cols := x.Dims(); rows != h.Rows || cols != h.Cols {
		r.Fatalf("Dims() = %d, %d of a %d×%d matrix", rows, cols, h.Rows, h.Cols)
	}
	return x, free
}

// sparseGram compares k(X, Z), k(X, X), and k(X, X) in packed storage with the oracle's values for dense points.
func (r *rig[T]) sparseGram(label string, k kernels.Kernel, x, z host) {
	r.Helper()
	sx, freeX := r.placeSparse(x)
	defer freeX()
	sz, freeZ := r.placeSparse(z)
	defer freeZ()
	n, m := x.Rows, z.Rows
	dst := filled(n, m, sentinel)
	got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error { b.Gram(op[0], k, sx, sz); return nil }, dst)
	if n == 0 || m == 0 {
		return
	}
	r.requireWithin(label, got, r.callOracle(label, gramCall[T](k), x, z, dst), sparseBounds[T](k, x, z))
	if x.Cols == 0 {
		return // without columns, the oracle cannot detect z == x: the dense matrices have no memory
	}

	label += ", z == x"
	dst = filled(n, n, sentinel)
	sxView := sx
	if r.rng.IntN(2) == 0 {
		sxView = rowsOf(sx, 0, n)
	}
	want, bound := r.callOracle(label, symmetricCall[T](k, false), x, dst), sparseBounds[T](k, x, x)
	got = r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error { b.Gram(op[0], k, sx, sxView); return nil }, dst)
	r.requireUntouched(label, got)
	r.requireWithin(label, got, want, bound)

	p, ok := r.b.(backend.PackedBackend[T])
	if !ok {
		return
	}
	label += ", packed"
	a, err := p.NewPacked(n)
	if err != nil {
		r.Fatal(err)
	}
	defer a.Free()
	low := backend.NewHost[T](n, n)
	p.GramPacked(a, k, sx)
	if err := r.save(p, low, a); err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			low.Row(i)[j] = T(sentinel)
		}
	}
	r.requireWithin(label, widen(low), want, bound)
}

func testSparseGram[T backend.Float](r *rig[T]) {
	for _, d := range []int{1, 3, 17, 60} {
		for _, k := range everyKernel(d) {
			if !r.included() {
				continue
			}
			density := pick(r, densities)
			n, m := r.rng.IntN(40), r.rng.IntN(40)
			r.sparseGram(fmt.Sprintf("sparse Gram %v n=%d m=%d d=%d density=%g", k, n, m, d, density), k, r.sparseNormals(n, d, density), r.sparseNormals(m, d, pick(r, densities)))
		}
	}
	for _, density := range required.Subset(2, densities) {
		for _, k := range append(distanceKernels(40, 1), kernels.Linear{}, kernels.CosineSimilarity{}, kernels.Polynomial{Degree: 2, C: 1}) {
			for range r.reduced(3) {
				n, m, d := r.block(), r.block(), 40
				r.sparseGram(fmt.Sprintf("sparse Gram %v n=%d m=%d d=%d density=%g", k, n, m, d, density), k, r.sparseNormals(n, d, density), r.sparseNormals(m, d, density))
			}
		}
	}
	for _, k := range everyKernel(0) {
		r.sparseGram(fmt.Sprintf("sparse Gram %v d=0", k), k, r.normals(5, 0), r.normals(3, 0))
	}
	r.report()
}

// testSparseGramPoints tests kernels of nonnegative features and of rows of a Gram matrix.
func testSparseGramPoints[T backend.Float](r *rig[T]) {
	for _, d := range []int{1, 5, 40} {
		chi2 := kernels.ChiSquared{Gamma: 1 / float64(d)}
		for _, k := range []kernels.Kernel{chi2, kernels.Gradient(chi2)[0], kernels.Normalized{Kernel: kernels.Sum{chi2, kernels.Linear{}}}} {
			for _, density := range required.Subset(2, densities) {
				x, z := abs(r.sparseNormals(1+r.rng.IntN(40), d, density)), abs(r.sparseNormals(1+r.rng.IntN(40), d, density))
				r.sparseGram(fmt.Sprintf("sparse Gram %v density=%g", k, density), k, x, z)
			}
		}
	}
	values := fromFunc(20, 22, func(i, j int) float64 {
		switch {
		case j == 0:
			return float64(i)
		case j == 1 || (i+j)%3 == 0:
			return float64(1 + i*(j-2))
		}
		return 0
	})
	k := kernels.Precomputed{}
	x, free := r.placeSparse(values)
	defer free()
	dst := filled(20, 20, sentinel)
	got := r.mustCall("precomputed", func(b backend.Backend[T], op []backend.Matrix[T]) error {
		b.Gram(op[0], k, x, x)
		return nil
	}, dst)
	r.requireEqual("precomputed", got, r.callOracle("precomputed", symmetricCall[T](k, false), values, dst))
	r.report()
}

// testSparseDuplicates checks that equal rows have distance 0, and tests nearly equal rows.
func testSparseDuplicates[T backend.Float](r *rig[T]) {
	relDiff := 0x1p-30
	if unit[T]() == unit[float32]() {
		relDiff = 0x1p-13
	}
	const n, d = 40, 50
	for _, density := range required.Subset(2, densities) {
		for _, k := range distanceKernels(d, 1/relDiff) {
			x := r.sparseNormals(n, d, density)
			z := fromFunc(n, d, func(i, j int) float64 {
				if i%2 == 0 {
					return x.Row(i)[j]
				}
				return float64(T(x.Row(i)[j] * (1 + relDiff*r.rng.NormFloat64())))
			})
			label := fmt.Sprintf("sparse Gram %v density=%g, near duplicates", k, density)
			r.sparseGram(label, k, x, z)

			sx, freeX := r.placeSparse(x)
			sz, freeZ := r.placeSparse(z)
			got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error { b.Gram(op[0], k, sx, sz); return nil }, filled(n, n, sentinel))
			atZero := float64(T(kernels.Compile(k).Run([]float64{0})))
			for i := 0; i < n; i += 2 {
				if got.Row(i)[i] != atZero {
					r.Fatalf("%s: rows %d of X and Z are equal: k is %v, want exactly %v", label, i, got.Row(i)[i], atZero)
				}
			}
			freeX()
			freeZ()
		}
	}
	r.report()
}

// testSparseNaN checks that NaN and infinite features have the same effect as in dense points, also in pairs with
// zeros that are not stored.
func testSparseNaN[T backend.Float](r *rig[T]) {
	const d = 20
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 3}, kernels.Laplacian{Sigma: 9}, kernels.Matern{Nu: 0.5, Sigma: 3}, kernels.ChiSquared{Gamma: 0.1}, kernels.CosineSimilarity{}} {
		for _, density := range required.Subset(2, densities) {
			for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
				n, m := 1+r.rng.IntN(40), 1+r.rng.IntN(40)
				x, z := r.sparseNormals(n, d, density), r.sparseNormals(m, d, density)
				if _, ok := k.(kernels.ChiSquared); ok {
					x, z = abs(x), abs(z)
				} else if v == -1 {
					continue
				}
				bound := sparseBounds[T](k, x, z)
				ofX := r.rng.IntN(2) == 0
				spoiled := z
				if ofX {
					spoiled = x
				}
				row, _ := r.poison(spoiled, v)
				label := fmt.Sprintf("sparse Gram %v n=%d m=%d density=%g, %v in row %d", k, n, m, density, v, row)
				for i := range n {
					for j := range m {
						if ofX && i == row || !ofX && j == row {
							bound.Row(i)[j] = 0
						}
					}
				}
				sx, freeX := r.placeSparse(x)
				sz, freeZ := r.placeSparse(z)
				dst := filled(n, m, sentinel)
				got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error { b.Gram(op[0], k, sx, sz); return nil }, dst)
				r.requireWithinOrNaN(label, got, r.callOracle(label, gramCall[T](k), x, z, dst), bound)
				freeX()
				freeZ()
			}
		}
	}
}

func testSparseGramMul[T backend.Float](r *rig[T]) {
	compare := func(k kernels.Kernel, n, m, d, t int, density float64) {
		symmetric := r.rng.IntN(2) == 0
		x, z := r.sparseNormals(n, d, density), r.sparseNormals(m, d, density)
		sx, freeX := r.placeSparse(x)
		defer freeX()
		sz := sx
		if symmetric {
			z, m = x, n
		} else {
			var freeZ func()
			sz, freeZ = r.placeSparse(z)
			defer freeZ()
		}
		v, dst := r.normals(m, t), filled(n, t, sentinel)
		label := fmt.Sprintf("sparse GramMul %v n=%d m=%d d=%d t=%d density=%g", k, n, m, d, t, density)
		got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
			b.GramMul(op[1], k, sx, sz, op[0])
			return nil
		}, v, dst)
		if n == 0 || m == 0 {
			r.requireEqual(label, got, filled(n, t, 0))
			return
		}
		want := r.callOracle(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
			b.GramMul(op[3], k, op[0], op[1], op[2])
			return nil
		}, x, z, v, dst)
		r.requireWithin(label, got, want, r.productBound(label, k, x, z, v, sparseBounds[T](k, x, z)))
	}
	for _, k := range everyKernel(30) {
		if r.included() {
			compare(k, r.rng.IntN(50), r.rng.IntN(50), 30, 1+r.rng.IntN(20), pick(r, densities))
		}
	}
	for range r.reduced(12) {
		compare(pick(r, distanceKernels(30, 1)), r.block(), r.block(), 30, pick(r, []int{1, 2, 3, 16, 17}), pick(r, densities))
	}
	r.report()
}

// testSparseGemm multiplies matrices of small integers exactly. Some operands have a NaN or infinite element.
func testSparseGemm[T backend.Float](r *rig[T]) {
	for range r.reduced(200) {
		t, m, k, n := pick(r, bothTrans), r.rng.IntN(40), r.rng.IntN(40), pick(r, []int{0, 1, 2, 7, 8, 9, 33})
		if r.rng.IntN(4) == 0 {
			m = r.block()
		}
		alpha, beta := pick(r, []float64{1, 0, -2}), pick(r, []float64{0, 1, 2})
		density := pick(r, densities)
		a, x, c := r.integers(m, k, 3), r.integers(k, n, 3), r.integers(m, n, 3)
		for i, v := range a.Data {
			if v == 0 || !(r.rng.Float64() < density) {
				a.Data[i] = 0
			}
		}
		if beta == 0 {
			c = filled(m, n, sentinel)
		}
		label := fmt.Sprintf("sparse Gemm %v m=%d n=%d k=%d alpha=%g beta=%g density=%g", t, m, n, k, alpha, beta, density)
		if spoiled := pick(r, []host{{}, a, x, x}); spoiled.Rows > 0 && spoiled.Cols > 0 {
			v := pick(r, []float64{math.NaN(), math.Inf(1), math.Inf(-1)})
			r.poison(spoiled, v)
			label += fmt.Sprintf(", %v", v)
		}
		sa, free := r.placeSparse(op(t, a))
		got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
			b.Gemm(t, backend.NoTrans, T(alpha), sa, op[0], T(beta), op[1])
			return nil
		}, x, c)
		r.requireWithinOrNaN(label, got, combine(alpha, mul(a, x), beta, c), filled(m, n, 0))
		free()
	}
}

// testSparseThreads checks that 1, 2, 3 and 8 workers give results with the same bits.
func testSparseThreads[T backend.Float](r *rig[T]) {
	const n, d, t = 700, 60, 3
	x, z := r.sparseNormals(n, d, 0.1), r.sparseNormals(65, d, 0.1)
	wx, _ := r.randomCSR(x)
	wz, _ := r.randomCSR(z)
	v, w := round[T](r.normals(wx.Rows, t)), round[T](r.normals(d, t))
	var first []backend.Host[T]
	for _, threads := range []int{1, 2, 3, 8} {
		b := r.queue(r.Open(r, backend.Config{Threads: threads}))
		var results []backend.Host[T]
		sx, errX := backend.PlaceSparse(b, wx)
		sz, errZ := backend.PlaceSparse(b, wz)
		if err := errors.Join(errX, errZ); err != nil {
			r.Fatal(err)
		}
		V, W := Upload(r, b, v), Upload(r, b, w)
		record := func(rows, cols int, f func(out backend.Matrix[T])) {
			out := r.alloc(b, rows, cols)
			defer out.Free()
			f(out)
			results = append(results, Download(r, b, out))
		}
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 3}, kernels.Laplacian{Sigma: 9}, kernels.CosineSimilarity{}} {
			record(wx.Rows, wx.Rows, func(out backend.Matrix[T]) { b.Gram(out, k, sx, sx) })
			record(wz.Rows, wx.Rows, func(out backend.Matrix[T]) { b.Gram(out, k, sz, sx) })
			record(wx.Rows, t, func(out backend.Matrix[T]) { b.GramMul(out, k, sx, sx, V) })
			record(wz.Rows, t, func(out backend.Matrix[T]) { b.GramMul(out, k, sz, sx, V) })
		}
		record(wx.Rows, t, func(out backend.Matrix[T]) { b.Gemm(backend.NoTrans, backend.NoTrans, 1, sx, W, 0, out) })
		record(d, t, func(out backend.Matrix[T]) { b.Gemm(backend.Transpose, backend.NoTrans, 1, sx, V, 0, out) })
		for _, f := range []interface{ Free() }{sx, sz, V, W} {
			f.Free()
		}
		if first == nil {
			first = results
		}
		for i, got := range results {
			requireBits(r, fmt.Sprintf("result %d with %d workers, against 1", i, threads), got, first[i])
		}
	}
}

// testSparseMemory checks that NewSparse takes SparseBytes bytes, and fails if memory is too small.
func testSparseMemory[T backend.Float](r *rig[T]) {
	b, ok := r.b.(backend.SparseBackend[T])
	if !ok {
		return // PlaceSparse makes a dense copy
	}
	for _, n := range []int{0, 1, 50, 1100} {
		x, _ := r.randomCSR(r.sparseNormals(n, 30, 0.1))
		initial, _ := r.dev.InUse()
		s, err := b.NewSparse(x)
		if err != nil {
			r.Fatal(err)
		}
		if inUse, _ := r.dev.InUse(); inUse-initial != b.SparseBytes(x.Rows, x.Cols, x.NNZ()) {
			r.Errorf("n=%d: NewSparse took %d bytes, SparseBytes is %d", n, inUse-initial, b.SparseBytes(x.Rows, x.Cols, x.NNZ()))
		}
		rowsOf(s, 0, n/2).Free()
		s.Free()
		s.Free()
	}
	x, _ := r.randomCSR(r.sparseNormals(100, 30, 1))
	smallDevice := r.queue(r.Open(r.T, backend.Config{Memory: 1000})).(backend.SparseBackend[T])
	if _, err := smallDevice.NewSparse(x); !errors.Is(err, backend.ErrMemory) {
		r.Errorf("NewSparse beyond the memory limit returned %v, want ErrMemory", err)
	}
}

// testSparseFaults tests misuse of sparse matrices, and calls with a canceled context.
func testSparseFaults[T backend.Float](r *rig[T]) {
	x, freeX := r.placeSparse(r.sparseNormals(6, 4, 1))
	defer freeX()
	threeCols, freeThreeCols := r.placeSparse(r.sparseNormals(6, 3, 1))
	defer freeThreeCols()
	foreign, err := backend.PlaceSparse(r.oracle, backend.CSR[T]{Rows: 6, Cols: 4, Indptr: make([]int, 7)})
	if err != nil {
		r.Fatal(err)
	}
	dst, v := r.alloc(r.b, 6, 6), r.alloc(r.b, 6, 2)
	defer dst.Free()
	defer v.Free()
	b, linear := r.b, kernels.Linear{}
	noTrans := backend.NoTrans
	type misuse struct {
		op string
		f  func()
	}
	misuses := []misuse{
		{"Gram", func() { b.Gram(dst, linear, x, threeCols) }},
		{"Gram", func() { b.Gram(dst, nil, x, x) }},
		{"Gram", func() { b.Gram(dst, kernels.Gaussian{}, x, x) }},
		{"Gram", func() { b.Gram(v, linear, x, x) }},
		{"Gram", func() { b.Gram(dst, linear, x, foreign) }},
		{"GramMul", func() { b.GramMul(v, linear, x, x, dst) }},
		{"GramMul", func() { b.GramMul(v, linear, x, foreign, v) }},
		{"Gemm", func() { b.Gemm(noTrans, noTrans, 1, x, v, 0, v) }},
		{"Gemm", func() { b.Gemm(noTrans, noTrans, 1, foreign, v.View(0, 0, 4, 2), 0, v) }},
	}
	malformed := backend.CSR[T]{Rows: 1, Cols: 1, Indptr: []int{0, 1}, Indices: []int32{1}, Data: []T{1}}
	if s, ok := b.(backend.SparseBackend[T]); ok {
		dense := r.alloc(b, 6, 4)
		defer dense.Free()
		misuses = append(misuses,
			misuse{"NewSparse", func() { _, _ = s.NewSparse(malformed) }},
			misuse{"Matrix.View", func() { x.View(0, 0, 6, 3) }},
			misuse{"Matrix.View", func() { x.View(0, 0, 7, 4) }},
			misuse{"Gram", func() { b.Gram(dst, linear, x, dense) }},
			misuse{"Gram", func() { b.Gram(dst, linear, dense, x) }},
			misuse{"GramMul", func() { b.GramMul(v, linear, dense, x, v) }},
			misuse{"GramMul", func() { b.GramMul(v, linear, x, x, threeCols) }},
			misuse{"Gemm", func() { b.Gemm(noTrans, backend.Transpose, 1, x, v.View(0, 0, 2, 2), 0, v) }},
			misuse{"Gemm", func() { b.Gemm(noTrans, backend.Transpose, 1, x, dense, 0, dst) }},
			misuse{"Gemm", func() { b.Gemm(noTrans, noTrans, 1, dst, x, 0, dense) }},
			misuse{"Syrk", func() { b.Syrk(backend.Lower, noTrans, 1, x, 0, dst) }},
		)
	} else {
		misuses = append(misuses, misuse{"PlaceSparse", func() { _, _ = backend.PlaceSparse(b, malformed) }})
	}
	for _, c := range misuses {
		r.requirePanic(c.op, c.f)
	}
	if err := b.Sync(); err != nil {
		r.Errorf("Sync after misuse: %v", err)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	cause := errors.New("reason")
	cancel(cause)
	canceled := b.With(ctx, nil)
	for name, f := range map[string]func(){
		"Gram":    func() { canceled.Gram(dst, linear, x, x) },
		"GramMul": func() { canceled.GramMul(v, linear, x, x, dst.View(0, 0, 6, 2)) },
		"Gemm":    func() { canceled.Gemm(noTrans, noTrans, 1, x, v.View(0, 0, 4, 2), 0, v) },
	} {
		f()
		if err := canceled.Sync(); !errors.Is(err, cause) {
			r.Errorf("%s with a canceled context returned %v, want the cause", name, err)
		}
	}
}

// testLargeSparse tests matrices with more rows than a backend processes at a time, and views of them.
func testLargeSparse[T backend.Float](r *rig[T]) {
	const d = 30
	n := min(max(r.LargeN, 520), 600)
	for _, density := range []float64{0.02, 0.3} {
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 3}, kernels.Laplacian{Sigma: 9}} {
			x := r.sparseNormals(n, d, density)
			r.sparseGram(fmt.Sprintf("sparse Gram %v n=%d density=%g", k, n, density), k, x, r.sparseNormals(n+1, d, density))
			sx, free := r.placeSparse(x)
			for range 3 {
				i, j := r.rng.IntN(n), r.rng.IntN(n)
				rows, cols := min(1+r.rng.IntN(30), n-i), min(1+r.rng.IntN(n), n-j)
				xRows, zRows := x.View(i, 0, rows, d), x.View(j, 0, cols, d)
				label := fmt.Sprintf("sparse Gram %v n=%d, rows from %d on against %d from %d on", k, n, i, cols, j)
				dst := filled(rows, cols, sentinel)
				got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
					b.Gram(op[0], k, rowsOf(sx, i, i+rows), rowsOf(sx, j, j+cols))
					return nil
				}, dst)
				if i == j && rows == cols {
					continue
				}
				r.requireWithin(label, got, r.callOracle(label, gramCall[T](k), xRows, zRows, dst), sparseBounds[T](k, xRows, zRows))
			}
			free()
		}
	}
	// Test the transposed product with a random range of rows.
	a := r.integers(n, d, 1)
	sa, free := r.placeSparse(a)
	defer free()
	i := r.rng.IntN(n / 2)
	k := i + r.rng.IntN(n-i)
	v := r.integers(k-i, 2, 3)
	got := r.mustCall("sparse Gemm of a slice", func(b backend.Backend[T], op []backend.Matrix[T]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, rowsOf(sa, i, k), op[0], 0, op[1])
		return nil
	}, v, filled(d, 2, sentinel))
	r.requireEqual("sparse Gemm of a slice", got, mul(transpose(a.View(i, 0, k-i, d)), v))
	r.report()
}

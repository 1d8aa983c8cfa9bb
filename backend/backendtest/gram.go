package backendtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

func gramCall[T backend.Float](k kernels.Kernel) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		b.Gram(m[2], k, m[0], m[1])
		return nil
	}
}

// symmetricCall returns a call of Gram with z = x, or another view of the same matrix if anotherView is set.
func symmetricCall[T backend.Float](k kernels.Kernel, anotherView bool) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		z := m[0]
		if anotherView {
			rows, cols := z.Dims()
			z = z.View(0, 0, rows, cols)
		}
		b.Gram(m[1], k, m[0], z)
		return nil
	}
}

// distanceKernels returns kernels of a distance for points that differ by about 1/spread in each feature.
func distanceKernels(d int, spread float64) []kernels.Kernel {
	length := math.Sqrt(float64(max(d, 1))) / spread
	sigmas := make([]float64, d)
	for p := range sigmas {
		sigmas[p] = length * (0.5 + float64(p%7)/4)
	}
	ard := kernels.Gaussian{Sigmas: sigmas}
	if d == 0 { // a kernel must have at least one length scale
		ard = kernels.Gaussian{Sigma: length / 2}
	}
	return []kernels.Kernel{
		kernels.Gaussian{Sigma: length},
		ard,
		kernels.Laplacian{Sigma: float64(max(d, 1)) / spread},
		kernels.Matern{Nu: 0.5, Sigma: length},
		kernels.Matern{Nu: 1.5, Sigma: length},
		kernels.Matern{Nu: 2.5, Sigma: length},
		kernels.Scaled{Weight: 0.3, Kernel: kernels.Gaussian{Sigma: length}},
		kernels.RationalQuadratic{A: 1.5, Sigma: length},
		kernels.RationalQuadratic{A: 300, Sigma: length},
	}
}

// everyKernel returns kernels of every type for d features of size about 1: the examples of the catalogue, and
// compositions with shared statistics or with deeply nested operations.
func everyKernel(d int) []kernels.Kernel {
	length := math.Sqrt(float64(max(d, 1)))
	distances := distanceKernels(d, 1)
	gaussian, ard, laplacian, matern := distances[0], distances[1], distances[2], distances[5]
	// A small weight keeps exp and powers of xᵀz in range.
	smallLinear := kernels.Scaled{Weight: 0.25 / length, Kernel: kernels.Linear{}}
	// The derivatives of the following kernels have additional statistics or operations.
	for _, k := range []kernels.Kernel{
		ard, matern, distances[7],
		kernels.Cosine{Theta: 0.7},
		kernels.Normalized{Kernel: kernels.Product{gaussian, kernels.Polynomial{Degree: 2, C: 1}}},
	} {
		distances = append(distances, kernels.Gradient(k)[0])
	}
	// Gradients with respect to points use derivatives with respect to a statistic, such as these.
	for _, k := range []kernels.Kernel{
		matern, distances[7],
		kernels.Normalized{Kernel: kernels.Product{gaussian, kernels.Polynomial{Degree: 2, C: 1}}},
	} {
		distances = append(distances, kernels.StatDerivatives(k)[0])
	}
	for _, e := range kernels.Catalogue() {
		k, err := kernels.Parse(e.Example)
		if err != nil || k.Check(d) != nil {
			continue
		}
		// testGramPoints tests kernels that reject negative coordinates.
		if rule := kernels.PointRule(k); rule == nil || rule(slices.Repeat([]float64{-0.5}, d)) == nil {
			distances = append(distances, k)
		}
	}
	if d > 2 {
		onColumns := func(k kernels.Kernel, columns ...int) kernels.Kernel {
			return kernels.Columns{Indices: columns, Kernel: k}
		}
		groups := kernels.Sum{
			kernels.Scaled{Weight: 0.5, Kernel: onColumns(kernels.Periodic{Period: 2, Sigma: 1}, 1)},
			kernels.Product{onColumns(gaussian, 0, d-1), onColumns(matern, 1), onColumns(kernels.Polynomial{Degree: 2, C: 1}, d-1, 1)},
		}
		distances = append(distances, onColumns(laplacian, d-1, 0), onColumns(matern, d-2, d-1), groups, kernels.Gradient(groups)[1], kernels.StatDerivatives(groups)[1])
	}
	return append(distances,
		kernels.Linear{},
		kernels.Polynomial{Degree: 1, C: 0.5},
		kernels.Polynomial{Degree: 2},
		kernels.Polynomial{Degree: 3, C: 1},
		kernels.Polynomial{Degree: 7, C: 2},
		kernels.Sigmoid{A: 0.1},
		kernels.Sigmoid{A: 1 / length, C: -0.5},
		kernels.Constant{Value: 0.7},
		kernels.Cosine{Theta: 1.5},
		kernels.CosineSeries{L: 3},
		kernels.SincLimit{},
		kernels.CosineSimilarity{},
		kernels.Normalized{Kernel: kernels.Sum{gaussian, kernels.Polynomial{Degree: 3, C: 1}}},
		kernels.Product{kernels.Cosine{Theta: 0.2}, kernels.Normalized{Kernel: kernels.Cosine{Theta: 0.1}}, gaussian},
		smallLinear,
		kernels.ExpOf{Kernel: smallLinear},
		kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 3}},
		kernels.Sum{gaussian, ard, laplacian, smallLinear},
		kernels.Product{gaussian, kernels.Polynomial{Degree: 2, C: 1}},
		kernels.Product{matern, kernels.Sum{gaussian, kernels.Scaled{Weight: 2, Kernel: laplacian}}},
		kernels.Sum{gaussian, kernels.Product{matern, kernels.Sum{laplacian, kernels.Product{ard, smallLinear}}}},
		kernels.Sum{kernels.RationalQuadratic{A: 0.7, Sigma: length}, kernels.Product{gaussian, kernels.Sigmoid{A: 0.2, C: 1}}},
		kernels.ExpOf{Kernel: kernels.Sum{kernels.Scaled{Weight: 0.1, Kernel: gaussian}, smallLinear}},
	)
}

// gram compares the device's k(X, Z) with the oracle, and the oracle with the scalar definition.
func (r *rig[T]) gram(label string, k kernels.Kernel, x, z host) {
	r.Helper()
	dst := filled(x.Rows, z.Rows, sentinel)
	want := r.callOracle(label, gramCall[T](k), x, z, dst)
	if x.Rows == 0 || z.Rows == 0 {
		r.mustCall(label, gramCall[T](k), x, z, dst)
		return
	}
	bound := kernelBounds[T](k, x, z)
	// Compare one random element of the oracle with the scalar definition.
	i, j := r.rng.IntN(x.Rows), r.rng.IntN(z.Rows)
	if e := math.Abs(want.Row(i)[j] - kernels.Eval(k, x.Row(i), z.Row(j))); !(e <= bound.Row(i)[j]) {
		r.Fatalf("%s: the oracle is %g off the definition at (%d, %d), bound %g", label, e, i, j, bound.Row(i)[j])
	}
	r.requireWithin(label, r.mustCall(label, gramCall[T](k), x, z, dst), want, bound)
}

// featureCounts are the tested numbers of features; 17, 50 and 100 exceed the unrolling of most loops.
var featureCounts = []int{1, 2, 3, 5, 17, 50, 100}

func testGramKernels[T backend.Float](r *rig[T]) {
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range everyKernel(d) {
			for range r.reduced(4) {
				n, m := r.rng.IntN(40), r.rng.IntN(40)
				r.gram(fmt.Sprintf("Gram %v n=%d m=%d d=%d", k, n, m, d), k, r.normals(n, d), r.normals(m, d))
			}
		}
	}
	for range r.reduced(30) {
		n, m, d := r.block(), r.block(), pick(r, featureCounts)
		k := pick(r, everyKernel(d))
		r.gram(fmt.Sprintf("Gram %v n=%d m=%d d=%d", k, n, m, d), k, r.normals(n, d), r.normals(m, d))
	}
	// With d = 0 every distance and product is 0.
	for _, k := range everyKernel(0) {
		r.gram(fmt.Sprintf("Gram %v d=0", k), k, r.normals(5, 0), r.normals(3, 0))
	}
	r.report()
}

// testGramSymmetric tests z == x. The strict upper triangle must not be written, and the distances on the diagonal
// and of duplicate rows must be exactly 0.
func testGramSymmetric[T backend.Float](r *rig[T]) {
	for _, d := range required.Subset(3, featureCounts) {
		numDistances := len(distanceKernels(d, 1))
		for ki, k := range everyKernel(d) {
			if ki >= numDistances && !r.included() {
				continue
			}
			n := r.rng.IntN(40)
			if r.rng.IntN(4) == 0 {
				n = r.block()
			}
			label := fmt.Sprintf("Gram %v n=%d d=%d, z == x", k, n, d)
			x := r.normals(n, d)
			for range n / 4 {
				copy(x.Row(r.rng.IntN(n)), x.Row(r.rng.IntN(n)))
			}
			dst := filled(n, n, sentinel)
			anotherView := r.rng.IntN(2) == 0
			got := r.mustCall(label, symmetricCall[T](k, anotherView), x, dst)
			r.requireUntouched(label, got)
			if n == 0 {
				continue
			}
			want := r.callOracle(label, symmetricCall[T](k, anotherView), x, dst)
			r.requireWithin(label, got, want, kernelBounds[T](k, x, x))
			if ki >= numDistances {
				continue
			}
			atZero := float64(T(kernels.Compile(k).Run([]float64{0})))
			for i := range n {
				for j := range i + 1 {
					if sameRow(x, i, j) && got.Row(i)[j] != atZero {
						r.Fatalf("%s: rows %d and %d are equal: k is %v, want exactly %v", label, i, j, got.Row(i)[j], atZero)
					}
				}
			}
		}
	}
	r.report()
}

// testGramDuplicates requires distance 0 of points of X and their copies in Z, also with an offset of all points.
func testGramDuplicates[T backend.Float](r *rig[T]) {
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range distanceKernels(d, 1) {
			for _, offset := range []float64{0, 1e6} {
				x := fromFunc(1+r.rng.IntN(60), d, func(int, int) float64 { return float64(T(offset + r.rng.NormFloat64())) })
				z := fromFunc(1+r.rng.IntN(60), d, func(int, int) float64 { return float64(T(offset + r.rng.NormFloat64())) })
				label := fmt.Sprintf("Gram %v n=%d m=%d d=%d, duplicates, offset %g", k, x.Rows, z.Rows, d, offset)
				atZero := float64(T(kernels.Compile(k).Run([]float64{0})))
				sourceRow := make([]int, z.Rows) // the row of X that is copied to row j of Z if j is even
				for j := range sourceRow {
					sourceRow[j] = r.rng.IntN(x.Rows)
					if j%2 == 0 {
						copy(z.Row(j), x.Row(sourceRow[j]))
					}
				}
				got := r.mustCall(label, gramCall[T](k), x, z, filled(x.Rows, z.Rows, sentinel))
				for j := 0; j < z.Rows; j += 2 {
					if g := got.Row(sourceRow[j])[j]; g != atZero {
						r.Fatalf("%s: rows %d and %d are equal: k is %v, want exactly %v", label, sourceRow[j], j, g, atZero)
					}
				}
			}
		}
	}
}

func sameRow(x host, i, j int) bool {
	for p, v := range x.Row(i) {
		if x.Row(j)[p] != v {
			return false
		}
	}
	return true
}

// testGramPoints tests kernels that allow only some points: nonnegative features, or rows of a Gram matrix.
func testGramPoints[T backend.Float](r *rig[T]) {
	check := func(k kernels.Kernel, x, z host) {
		n, m, d := x.Rows, z.Rows, x.Cols
		label := fmt.Sprintf("Gram %v n=%d m=%d d=%d", k, n, m, d)
		r.gram(label, k, x, z)
		label += ", z == x"
		dst := filled(n, n, sentinel)
		got := r.mustCall(label, symmetricCall[T](k, false), x, dst)
		r.requireUntouched(label, got)
		r.requireWithin(label, got, r.callOracle(label, symmetricCall[T](k, false), x, dst), kernelBounds[T](k, x, x))
	}
	for _, d := range required.Subset(3, featureCounts) {
		histogram := func(n int) host {
			h := r.normals(n, d)
			return fromFunc(n, d, func(i, j int) float64 { return max(0, h.Row(i)[j]) })
		}
		chi2 := kernels.ChiSquared{Gamma: 1 / float64(d)}
		for _, k := range []kernels.Kernel{
			chi2,
			kernels.Gradient(chi2)[0],
			kernels.Sum{chi2, kernels.Normalized{Kernel: kernels.Product{chi2, kernels.Polynomial{Degree: 2, C: 1}}}},
		} {
			check(k, histogram(1+r.rng.IntN(40)), histogram(1+r.rng.IntN(40)))
		}
		// For kernels.Precomputed, training object i is the row i, k(i, i), k(i, 0), k(i, 1), … of training.
		values := r.normals(d, d)
		training := fromFunc(d, d+2, func(i, j int) float64 {
			if j == 0 {
				return float64(i)
			}
			q := j - 2
			if j == 1 {
				q = i
			}
			return values.Row(max(i, q))[min(i, q)]
		})
		otherPoints := r.normals(1+r.rng.IntN(40), d+2)
		for i := range otherPoints.Rows {
			otherPoints.Row(i)[0] = -1
		}
		for _, k := range []kernels.Kernel{kernels.Precomputed{}, kernels.Sum{kernels.Precomputed{}, kernels.Constant{Value: 1}}} {
			if d > 1 {
				check(k, training, training)
			}
			r.gram(fmt.Sprintf("Gram %v, others", k), k, otherPoints, training)
			r.gram(fmt.Sprintf("Gram %v, others behind", k), k, training, otherPoints)
		}
	}
	r.report()
}

// testGramOffset adds 10⁶ to every feature. The bounds are relative to the distances of the rounded points.
func testGramOffset[T backend.Float](r *rig[T]) {
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range distanceKernels(d, 1) {
			n, m := 20+r.rng.IntN(30), 20+r.rng.IntN(30)
			shift := func(int, int) float64 { return float64(T(1e6 + r.rng.NormFloat64())) }
			x, z := fromFunc(n, d, shift), fromFunc(m, d, shift)
			r.gram(fmt.Sprintf("Gram %v n=%d m=%d d=%d, offset 1e6", k, n, m, d), k, x, z)
			label := fmt.Sprintf("Gram %v n=%d d=%d, offset 1e6, z == x", k, n, d)
			dst := filled(n, n, sentinel)
			got := r.mustCall(label, symmetricCall[T](k, false), x, dst)
			r.requireWithin(label, got, r.callOracle(label, symmetricCall[T](k, false), x, dst), kernelBounds[T](k, x, x))
		}
	}
	r.report()
}

// testGramNearDuplicates tests pairs of rows with relative differences of 2⁻³⁰ (2⁻¹³ in float32) and length scales
// equal to the differences, for which ‖x‖² + ‖z‖² − 2xᵀz would give no correct digit.
func testGramNearDuplicates[T backend.Float](r *rig[T]) {
	relDiff := 0x1p-30
	if unit[T]() == unit[float32]() {
		relDiff = 0x1p-13
	}
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range distanceKernels(d, 1/relDiff) {
			n := 30
			x := r.normals(n, d)
			z := fromFunc(n, d, func(i, j int) float64 {
				return float64(T(x.Row(i)[j] * (1 + relDiff*r.rng.NormFloat64())))
			})
			r.gram(fmt.Sprintf("Gram %v d=%d, near duplicates", k, d), k, x, z)

			stacked := fromFunc(2*n, d, func(i, j int) float64 {
				if i < n {
					return x.Row(i)[j]
				}
				return z.Row(i - n)[j]
			})
			label := fmt.Sprintf("Gram %v d=%d, near duplicates, z == x", k, d)
			dst := filled(2*n, 2*n, sentinel)
			got := r.mustCall(label, symmetricCall[T](k, false), stacked, dst)
			r.requireWithin(label, got, r.callOracle(label, symmetricCall[T](k, false), stacked, dst), kernelBounds[T](k, stacked, stacked))
		}
	}
	r.report()
}

// gramMulBound bounds the error of each sum Σ_j k_ij v_j of m terms. Errors e_ij of k_ij cause an error of at most
// Σ_j e_ij|v_j|. Adding the terms and rounding each k_ij once cause at most γ_{m+1} Σ_j |k_ij||v_j| (see gamma).
func (r *rig[T]) gramMulBound(label string, k kernels.Kernel, x, z, v host) host {
	r.Helper()
	return r.productBound(label, k, x, z, v, kernelBounds[T](k, x, z))
}

// productBound is gramMulBound for given bounds on the errors of k_ij.
func (r *rig[T]) productBound(label string, k kernels.Kernel, x, z, v, bound host) host {
	r.Helper()
	n, m := x.Rows, z.Rows
	gram := r.callOracle(label, gramCall[T](k), x, z, filled(n, m, sentinel))
	relative := gamma[T](m+1) + gamma[float64](m+1) + unit[T]()
	size := fromFunc(n, m, func(i, j int) float64 {
		return bound.Row(i)[j] + relative*(math.Abs(gram.Row(i)[j])+bound.Row(i)[j])
	})
	return mul(size, abs(v))
}

// testGramMulRoundings checks that the relative error of a sum in GramMul is at most γ_r (see gamma) for the number r
// of roundings that the backend reports. One term is 1, and adding one of the other terms to it gives 1 after rounding.
func testGramMulRoundings[T backend.Float](r *rig[T]) {
	device, ok := r.b.(backend.RoundingBackend[T])
	if !ok {
		r.Skip("the device does not implement backend.RoundingBackend")
	}
	term := unit[T]() * (1 - 0x1p-10)
	for _, m := range []int{1, 7, 33, 100, 256, 257, 400, r.LargeN} {
		for _, t := range []int{1, 2, 3, 17} {
			roundings, exact := device.GramMulRoundings(m, t), 1+float64(m-1)*term
			maxError := (gamma[T](roundings) + unit[float64]()) * exact
			for _, index := range []int{0, m / 2, m - 1} {
				z := filled(m, 1, term)
				z.Row(index)[0] = 1
				label := fmt.Sprintf("GramMul m=%d t=%d, term %d is 1", m, t, index)
				got := r.mustCall(label, func(b backend.Backend[T], op []backend.Matrix[T]) error {
					b.GramMul(op[3], kernels.Linear{}, op[0], op[1], op[2])
					return nil
				}, filled(7, 1, 1), z, filled(m, t, 1), filled(7, t, sentinel))
				for i := range got.Rows {
					for c, v := range got.Row(i) {
						if diff := math.Abs(v - exact); !(diff <= maxError) {
							r.Fatalf("%s: element (%d, %d) has the error %.3g; %d roundings allow %.3g", label, i, c, diff, roundings, maxError)
						}
					}
				}
			}
		}
	}
}

// testGramMul compares GramMul with the oracle within gramMulBound, also with z == x, and with points far from the
// origin for a translation-invariant kernel.
func testGramMul[T backend.Float](r *rig[T]) {
	calls := 0
	compare := func(d int, k kernels.Kernel, n, m, t int, symmetric bool) {
		if symmetric {
			m = n
		}
		label := fmt.Sprintf("GramMul %v n=%d m=%d d=%d t=%d, z == x: %v", k, n, m, d, t, symmetric)
		x, z, v := r.normals(n, d), r.normals(m, d), r.normals(m, t)
		if calls%4 < 2 && len(kernels.Compile(k).Stats) == 1 && kernels.Compile(k).Stats[0].Kind.TranslationInvariant() {
			label += ", offset 1e6"
			shift := func(h host) host {
				return fromFunc(h.Rows, d, func(i, j int) float64 { return float64(T(1e6 + h.Row(i)[j])) })
			}
			x, z = shift(x), shift(z)
		}
		if symmetric {
			z = x
		}
		mulCall := func(b backend.Backend[T], op []backend.Matrix[T]) error {
			if symmetric {
				op[1] = op[0]
			}
			b.GramMul(op[3], k, op[0], op[1], op[2])
			return nil
		}
		dst := filled(n, t, sentinel)
		got, want := r.mustCall(label, mulCall, x, z, v, dst), r.callOracle(label, mulCall, x, z, v, dst)
		if n == 0 || m == 0 {
			r.requireEqual(label, got, filled(n, t, 0))
			return
		}
		r.requireWithin(label, got, want, r.gramMulBound(label, k, x, z, v))
	}
	multiply := func(d int, k kernels.Kernel, n, m, t int) {
		calls++
		compare(d, k, n, m, t, calls%2 == 0)
	}
	for _, d := range required.Subset(3, featureCounts) {
		for _, k := range everyKernel(d) {
			if !r.included() {
				continue
			}
			multiply(d, k, r.rng.IntN(40), r.rng.IntN(40), 1+r.rng.IntN(4))
		}
	}
	for range r.reduced(16) {
		d := pick(r, featureCounts)
		multiply(d, pick(r, everyKernel(d)), r.block(), r.block(), pick(r, []int{1, 2, 3, 7, 16, 33}))
	}
	for _, t := range required.Subset(1, []int{2, 5, 16}) { // columns for one strip and for several; 601 rows make several groups
		compare(3, kernels.Gaussian{Sigma: 2}, min(r.LargeN, 601), 0, t, true)
	}
	for _, long := range required.Subset(1, []int{1025, 2049}) {
		multiply(3, kernels.Gaussian{Sigma: 2}, long, 5, 2)
		multiply(3, kernels.Gaussian{Sigma: 2}, 5, long, 2)
	}
	r.report()
}

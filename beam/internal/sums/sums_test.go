package sums

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

const unit = 0x1p-53

// gamma is γ_r of Higham (2002), § 3.1.
func gamma(r float64) float64 { return r * unit / (1 - r*unit) }

// TestTwoFloat compares sums of two pairs of float64 with sums in arithmetic of 300 bits.
func TestTwoFloat(t *testing.T) {
	const seed = 20261122
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	exact := func(h, l float64) *big.Float {
		x := new(big.Float).SetPrec(300).SetFloat64(h)
		return x.Add(x, new(big.Float).SetFloat64(l))
	}
	number := func() (h, l float64) {
		h = r.NormFloat64() * math.Ldexp(1, r.IntN(80)-40)
		return quickTwoSum(h, h*unit*(r.Float64()-0.5))
	}
	checkNear := func(name string, h, l float64, want *big.Float, bound float64) {
		t.Helper()
		difference := new(big.Float).Sub(exact(h, l), want)
		limit := new(big.Float).Mul(new(big.Float).Abs(want), big.NewFloat(bound))
		if difference.Abs(difference).Cmp(limit) > 0 {
			t.Fatalf("%s: off by %v of %v", name, difference, want)
		}
		if h+l != h {
			t.Fatalf("%s: (%v, %v) is not normalized", name, h, l)
		}
	}
	for range 20000 {
		ah, al := number()
		bh, bl := number()
		h, l := add(ah, al, bh, bl)
		want := exact(ah, al)
		checkNear("add", h, l, want.Add(want, exact(bh, bl)), 3*0x1p-106*(1+0x1p-40))
		h, l = addOne(ah, al, bh)
		want = exact(ah, al)
		checkNear("addOne", h, l, want.Add(want, new(big.Float).SetFloat64(bh)), 2*0x1p-106*(1+0x1p-40))
	}
}

// samples returns n rows of d features around offset, and two targets.
func samples(seed uint64, n, d int, offset float64) (x, y backend.Host[float64]) {
	r := rand.New(rand.NewPCG(seed, 7))
	x, y = backend.NewHost[float64](n, d), backend.NewHost[float64](n, 2)
	for i := range n {
		s := 0.0
		for j := range d {
			v := r.NormFloat64()
			s += v / float64(j+1)
			x.Row(i)[j] = v + offset
		}
		y.Row(i)[0] = math.Sin(2*s) + 0.1*r.NormFloat64() + offset
		y.Row(i)[1] = s + 0.1*r.NormFloat64()
	}
	return x, y
}

// rowsOf returns a copy of the given rows of h.
func rowsOf(h backend.Host[float64], rows []int) backend.Host[float64] {
	out := backend.NewHost[float64](len(rows), h.Cols)
	for i, r := range rows {
		copy(out.Row(i), h.Row(r))
	}
	return out
}

// gather returns the sums of each part of the rows.
func gather(t testing.TB, dev backend.Device, p Problem, x, y backend.Host[float64], parts [][]int) []*Sums {
	t.Helper()
	g, err := NewGatherer(dev, p.Basis, p.Targets, p.TargetShift)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Free()
	return takeAll(t, g, x, y, parts)
}

// takeAll adds the parts of the rows to g one after the other, and returns the result of g.Take after each part.
func takeAll(t testing.TB, g interface {
	Add(x, y backend.Host[float64]) error
	Take() (*Sums, error)
}, x, y backend.Host[float64], parts [][]int) (list []*Sums) {
	t.Helper()
	for _, part := range parts {
		if err := g.Add(rowsOf(x, part), rowsOf(y, part)); err != nil {
			t.Fatal(err)
		}
		s, err := g.Take()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// merged merges the elements of list in the order of a tree: pairs, pairs of pairs, and so on.
func merged(t testing.TB, list []*Sums) *Sums {
	t.Helper()
	list = slices.Clone(list)
	for i := range list {
		list[i] = list[i].Clone()
	}
	for len(list) > 1 {
		var next []*Sums
		for i := 0; i < len(list); i += 2 {
			if i+1 < len(list) {
				if err := list[i].Merge(list[i+1]); err != nil {
					t.Fatal(err)
				}
			}
			next = append(next, list[i])
		}
		list = next
	}
	return list[0]
}

// shards divides the rows, in their order or shuffled, into the given number of parts of random sizes.
func shards(r *rand.Rand, n, count int, shuffled bool) [][]int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	if shuffled {
		r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	cuts := []int{0, n}
	for range count - 1 {
		cuts = append(cuts, r.IntN(n+1))
	}
	slices.Sort(cuts)
	var parts [][]int
	for i := range cuts[1:] {
		parts = append(parts, rows[cuts[i]:cuts[i+1]])
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return parts
}

// TestGathererBound compares the sums with sums in arithmetic of 200 bits, by the bound in the package's comment.
func TestGathererBound(t *testing.T) {
	const seed, n, d = 20261123, 9000, 4
	t.Logf("seed %d", seed)
	x, y := samples(seed, n, d, 3)
	for _, name := range []string{"ref", "cpu"} {
		dev := backendtest.Device(t, name, backend.Config{})
		p := Problem{Basis: LinearBasis(d, []float64{3, 3, 3, 3}), Targets: 2, TargetShift: []float64{3, 0}, Intercept: true}
		parts := shards(rand.New(rand.NewPCG(seed, 1)), n, 5, true)
		s := merged(t, gather(t, dev, p, x, y, parts))
		if s.Rows != n {
			t.Fatalf("%d rows, want %d", s.Rows, n)
		}
		q := d + 3
		z := make([]float64, q)
		exact, size := make([]*big.Float, Triangle(q)), make([]float64, Triangle(q))
		for i := range exact {
			exact[i] = new(big.Float).SetPrec(200)
		}
		product := new(big.Float).SetPrec(200)
		for i := range n {
			for j, v := range x.Row(i) {
				z[j] = v - 3
			}
			z[d], z[d+1], z[d+2] = y.Row(i)[0]-3, y.Row(i)[1], 1
			for a := range q {
				for b := range a + 1 {
					product.Mul(big.NewFloat(z[a]), new(big.Float).SetPrec(200).SetFloat64(z[b]))
					exact[packedIndex(a, b)].Add(exact[packedIndex(a, b)], product)
					size[packedIndex(a, b)] += math.Abs(z[a] * z[b])
				}
			}
		}
		maxError := 0.0
		for i, want := range exact {
			w, _ := want.Float64()
			difference := math.Abs(s.Value(i) - w)
			maxError = max(maxError, difference/size[i])
			// The limit is the bound γ_4096 of the sums plus the rounding to one float64.
			if limit := gamma(PlainRows)*size[i] + unit*math.Abs(w); !(difference <= limit) {
				t.Errorf("%s: sum %d is %v, want %v: off by %.3g, more than %.3g", name, i, s.Value(i), w, difference, limit)
			}
		}
		t.Logf("%s: at most %.2g of |Z|ᵀ|Z|; the bound is %.2g, typical is %.2g", name, maxError, gamma(PlainRows), math.Sqrt(PlainRows)*unit)
	}
}

// bases returns a problem of each kind of basis, with the solution of package solvers on one machine.
func bases(t *testing.T, dev backend.Device, x, y backend.Host[float64], intercept bool) map[string]struct {
	p         Problem
	beta      backend.Host[float64]
	intercept []float64
} {
	t.Helper()
	type reference = struct {
		p         Problem
		beta      backend.Host[float64]
		intercept []float64
	}
	const lambda = 2.0
	data := solvers.InMemory(x, y, nil, nil)
	// The relative error of the coefficients is Tol times the condition number, which is at least about 100.
	par := solvers.StreamParams{Method: solvers.Normal, Tol: 1e-14}
	problem := func(b Basis) Problem {
		p := Problem{Basis: b, Targets: y.Cols, Lambda: lambda, Intercept: intercept}
		if intercept {
			p.TargetShift = slices.Clone(y.Row(0))
		}
		return p
	}
	list := map[string]reference{}

	centers := rowsOf(x, shards(rand.New(rand.NewPCG(1, 1)), x.Rows, 1, true)[0][:60])
	k := kernels.Gaussian{Sigma: 0.6}
	ny, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: k, Data: data, Centers: centers, Lambda: lambda, Intercept: intercept}, par)
	if err != nil {
		t.Fatal(err)
	}
	list["nystrom"] = reference{problem(CentersBasis(k, centers)), ny.Beta, ny.Intercept}

	k = kernels.Gaussian{Sigma: 2}
	fo, err := solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{Kernel: k, Data: data, Count: 80, Seed: 5, Lambda: lambda, Intercept: intercept}, par)
	if err != nil {
		t.Fatal(err)
	}
	basis, err := FourierBasis(t.Context(), k, x.Cols, 80, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range fo.Beta.Data {
		fo.Beta.Data[i] /= basis.Scale
	}
	list["fourier"] = reference{problem(basis), fo.Beta, fo.Intercept}

	pr, err := solvers.Solve(t.Context(), dev, solvers.Problem{Kernel: kernels.Linear{}, X: x, Y: y, Lambda: lambda, Intercept: intercept}, solvers.Params{Method: solvers.Primal, Tol: 1e-12})
	if err != nil {
		t.Fatal(err)
	}
	var shift []float64
	if intercept {
		shift = slices.Clone(x.Row(0))
	}
	list["primal"] = reference{problem(LinearBasis(x.Cols, shift)), pr.Coef, pr.Intercept}
	return list
}

// TestAnySharding checks that the model agrees with the model of one machine to 1e-10 for any shards in any order.
func TestAnySharding(t *testing.T) {
	const seed, n, d = 20261124, 12000, 3
	t.Logf("seed %d", seed)
	for _, intercept := range []bool{false, true} {
		offset := 0.0
		if intercept {
			offset = 5
		}
		x, y := samples(seed, n, d, offset)
		dev := backendtest.Device(t, "cpu", backend.Config{})
		r := rand.New(rand.NewPCG(seed, 2))
		for name, want := range bases(t, dev, x, y, intercept) {
			maxError := 0.0
			for _, count := range []int{1, 2, 7, 64, 1000} {
				for _, shuffled := range []bool{false, true} {
					s := merged(t, gather(t, dev, want.p, x, y, shards(r, n, count, shuffled)))
					sol, err := want.p.Solve(t.Context(), dev, s, solvers.StreamParams{Tol: 1e-12})
					if err != nil {
						t.Fatal(err)
					}
					maxError = max(maxError, checkSolution(t, fmt.Sprintf("%s, %d shards, shuffled %v, intercept %v", name, count, shuffled, intercept), sol, want.beta, want.intercept, 1e-10))
				}
			}
			t.Logf("%s, intercept %v: at most %.2g", name, intercept, maxError)
		}
	}
}

// checkSolution fails the test if a coefficient differs by more than tol times the largest, and returns the largest
// relative difference.
func checkSolution(t *testing.T, name string, sol *Solution, beta backend.Host[float64], intercept []float64, tol float64) (maxError float64) {
	t.Helper()
	maxAbs := 0.0
	for i, v := range beta.Data {
		maxAbs = max(maxAbs, math.Abs(v))
		maxError = max(maxError, math.Abs(v-sol.Beta.Data[i]))
	}
	for j, v := range intercept {
		maxAbs = max(maxAbs, math.Abs(v))
		maxError = max(maxError, math.Abs(v-sol.Intercept[j]))
	}
	if maxError /= maxAbs; !(maxError <= tol) {
		t.Errorf("%s: the coefficients are %.3g apart, relative, more than %.3g", name, maxError, tol)
	}
	return maxError
}

// TestSameBits checks that the high parts of the sums do not depend on the order of merging, and that the low parts
// are reproducible if the order is the same.
func TestSameBits(t *testing.T) {
	const seed, n, d = 20261125, 20000, 3
	t.Logf("seed %d", seed)
	x, y := samples(seed, n, d, 0)
	dev := backendtest.Device(t, "cpu", backend.Config{})
	r := rand.New(rand.NewPCG(seed, 3))
	basis, err := FourierBasis(t.Context(), kernels.Gaussian{Sigma: 1}, d, 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := Problem{Basis: basis, Targets: 2, Lambda: 1}
	parts := shards(r, n, 50, false)
	list := gather(t, dev, p, x, y, parts)
	want := merged(t, list)
	for range 20 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		got := list[0].Clone() // merge the sums one after the other, not by a tree
		for _, s := range list[1:] {
			if err := got.Merge(s); err != nil {
				t.Fatal(err)
			}
		}
		// Low parts may depend on the order. The probability that it changes any of the 2000 high parts is about 1e-13.
		if !slices.Equal(got.high, want.high) {
			t.Fatal("the order of merging changes the bits")
		}
	}
	regathered := gather(t, dev, p, x, y, parts)
	if !slices.Equal(merged(t, regathered).low, want.low) {
		t.Error("the same parts, gathered again, have other bits")
	}
}

func TestEncoding(t *testing.T) {
	s := NewSums(3)
	s.Rows = 7
	s.Add(1, 1e300)
	s.Add(1, 1e-300)
	s.Add(2, -0.5)
	b, err := s.MarshalBinary()
	if err != nil || int64(len(b)) != Bytes(3) {
		t.Fatalf("%d bytes, error %v; want %d", len(b), err, Bytes(3))
	}
	var decoded Sums
	if err := decoded.UnmarshalBinary(b); err != nil || decoded.Rows != 7 || !slices.Equal(decoded.high, s.high) || !slices.Equal(decoded.low, s.low) {
		t.Errorf("%v, error %v; want %v", decoded, err, s)
	}
	for length := range b {
		if err := decoded.UnmarshalBinary(b[:length]); err == nil {
			t.Errorf("%d of %d bytes are taken", length, len(b))
		}
	}
	x, _ := samples(1, 5, 2, 0)
	for _, basis := range []Basis{
		LinearBasis(2, nil), LinearBasis(2, []float64{1, math.Pi}),
		CentersBasis(kernels.Scaled{Weight: 0.5, Kernel: kernels.Gaussian{Sigma: 1.0 / 3}}, x),
		{Kind: Fourier, Features: 2, Kernel: kernels.Laplacian{Sigma: 2}, Points: x, Scale: math.Sqrt(0.2)},
	} {
		b, err := basis.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var decoded Basis
		if err := decoded.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(decoded.Kernel) != fmt.Sprint(basis.Kernel) || decoded.Scale != basis.Scale || decoded.Size() != basis.Size() ||
			!slices.Equal(decoded.Points.Data, basis.Points.Data) || !slices.Equal(decoded.Shift, basis.Shift) {
			t.Errorf("%+v came back as %+v", basis, decoded)
		}
		for length := range b {
			if err := decoded.UnmarshalBinary(b[:length]); err == nil {
				t.Errorf("%s: %d of %d bytes are taken", basis.Kind, length, len(b))
			}
		}
	}
}

// TestMeasure checks that the residual of a solution is as small as rounding errors, that perturbing the
// coefficients raises it, and that Correct removes the perturbation.
func TestMeasure(t *testing.T) {
	const seed, n, d = 20261126, 5000, 3
	t.Logf("seed %d", seed)
	x, y := samples(seed, n, d, 4)
	dev := backendtest.Device(t, "cpu", backend.Config{})
	for name, want := range bases(t, dev, x, y, true) {
		parts := shards(rand.New(rand.NewPCG(seed, 4)), n, 6, true)
		s := merged(t, gather(t, dev, want.p, x, y, parts))
		sol, err := want.p.Solve(t.Context(), dev, s, solvers.StreamParams{})
		if err != nil {
			t.Fatal(err)
		}
		measure := func(sol *Solution) *Measured {
			g, err := NewMeasurer(dev, want.p, sol)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Free()
			merged := &Sums{}
			for _, s := range takeAll(t, g, x, y, parts) {
				if err := merged.Merge(s); err != nil {
					t.Fatal(err)
				}
			}
			m, err := want.p.Measure(t.Context(), dev, s, merged, sol, 1e-8)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		accurate := measure(sol)
		if accurate.Residual > 1e-10 {
			t.Errorf("%s: the residual is %.3g", name, accurate.Residual)
		}
		for j, v := range sol.Squares {
			// The limit is the rounding error of a sum of n squares of targets of about 1.
			if limit := 1e-9 * n; math.Abs(v-accurate.Squares[j]) > limit {
				t.Errorf("%s: squares %v from the sums, %v from the samples", name, v, accurate.Squares[j])
			}
		}
		for i := range sol.Beta.Data {
			sol.Beta.Data[i] *= 1 + 1e-4
		}
		inaccurate := measure(sol)
		if inaccurate.Residual < 1e-7 {
			t.Errorf("%s: the residual of a spoilt solution is %.3g", name, inaccurate.Residual)
		}
		corrected, err := want.p.Correct(t.Context(), dev, s, sol, inaccurate)
		if err != nil {
			t.Fatal(err)
		}
		checkSolution(t, name+" corrected", corrected, want.beta, want.intercept, 1e-10)
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("%s: %d bytes are left on the device", name, now)
		}
	}
}

// TestMeasureOrthogonalTarget checks that the residual is small for the target x² on points on both sides of 0, for
// which Φᵀy consists only of rounding errors.
func TestMeasureOrthogonalTarget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, n := range []int{3, 20, 1000, 5000} {
		x, y := backend.NewHost[float64](2*n+1, 1), backend.NewHost[float64](2*n+1, 1)
		for i := -n; i <= n; i++ {
			x.Data[n+i], y.Data[n+i] = float64(i)/7, float64(i*i)/49
		}
		p := Problem{Basis: LinearBasis(1, nil), Targets: 1, TargetShift: []float64{y.Data[0]}, Lambda: 0.1, Intercept: true}
		parts := shards(nil, x.Rows, 1, false)
		s := merged(t, gather(t, dev, p, x, y, parts))
		sol, err := p.Solve(t.Context(), dev, s, solvers.StreamParams{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewMeasurer(dev, p, sol)
		if err != nil {
			t.Fatal(err)
		}
		merged := &Sums{}
		for _, part := range takeAll(t, g, x, y, parts) {
			if err := merged.Merge(part); err != nil {
				t.Fatal(err)
			}
		}
		g.Free()
		for _, tol := range []float64{1e-6, 1e-12} {
			m, err := p.Measure(t.Context(), dev, s, merged, sol, tol)
			if err != nil {
				t.Fatal(err)
			}
			if !(m.Residual <= tol) {
				t.Errorf("%d rows: residual %.3g, tolerance %g", x.Rows, m.Residual, tol)
			}
		}
	}
}

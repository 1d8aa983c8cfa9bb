// Package kerneltest holds the tests that every kernel function must pass.
package kerneltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

const seed = 20 // seed of all random points, printed with each failure

// Run checks that k obeys the contract of kernels.Kernel: the rules, the text, the program, the derivatives, the
// feature map if k has one, symmetry, the diagonal, and, for kernels of x − z, translation invariance. If k.IsPSD,
// it checks the Cauchy–Schwarz inequality and that Gram matrices are positive semi-definite. It uses random points
// of d features, for each d from 1 to 12 that k.Check accepts, or for the first four if required.FewCases.
func Run(t *testing.T, k kernels.Kernel) {
	t.Run(k.String(), func(t *testing.T) {
		if err := k.Check(-1); err != nil {
			t.Fatalf("Check(-1): %v", err)
		}
		t.Run("text", func(t *testing.T) { checkText(t, k) })
		t.Run("program", func(t *testing.T) { checkProgram(t, k) })
		accepted := 0
		for d := 1; d <= 12; d++ {
			if k.Check(d) != nil || accepted == 4 && required.FewCases() {
				continue
			}
			accepted++
			points := samplePoints(k, d)
			t.Run("values", func(t *testing.T) { checkValues(t, k, points) })
			if accepted <= 3 {
				t.Run("features", func(t *testing.T) { checkFeatureMap(t, k, points) })
			}
			if accepted <= 2 {
				t.Run("derivatives", func(t *testing.T) { checkPointGradient(t, k, points) })
			}
			if accepted <= 2 || !testing.Short() && d%5 == 0 {
				t.Run("gradient", func(t *testing.T) { checkGradient(t, k, points) })
			}
			t.Run("translation", func(t *testing.T) { checkTranslation(t, k, d) })
			if k.IsPSD() {
				t.Run("psd", func(t *testing.T) { checkPSD(t, k, points) })
			}
		}
		if accepted == 0 {
			t.Errorf("Check accepts no number of features up to 12: %v", k.Check(1))
		}
	})
}

// samplePoints returns points of d features: the origin, random points near and far, and duplicates. If k rejects
// negative features, all features are ≥ 0; for precomputed kernels the points are rows of a Gram matrix.
func samplePoints(k kernels.Kernel, d int) [][]float64 {
	r := rand.New(rand.NewPCG(seed, uint64(d)))
	points := [][]float64{make([]float64, d)}
	for _, scale := range []float64{0.1, 1, 3} {
		for range 6 {
			x := make([]float64, d)
			for p := range x {
				x[p] = scale * r.NormFloat64()
			}
			points = append(points, x)
		}
	}
	if usesEntry(k) {
		return precomputedPoints(r, d)
	}
	if rule := kernels.PointRule(k); rule != nil && slices.ContainsFunc(points, func(x []float64) bool { return rule(x) != nil }) {
		for _, x := range points {
			for p, v := range x {
				x[p] = math.Abs(v)
			}
		}
	}
	return append(points, points[0], points[1], points[1], points[8])
}

func usesEntry(k kernels.Kernel) bool {
	return slices.ContainsFunc(kernels.Compile(k).Stats, func(s kernels.Stat) bool { return s.Kind == kernels.Entry })
}

// precomputedPoints returns the points of d−2 training objects, and the first point twice.
func precomputedPoints(r *rand.Rand, d int) [][]float64 {
	n := d - 2
	gram := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			gram[i*n+j] = r.NormFloat64()
			gram[j*n+i] = gram[i*n+j]
		}
	}
	remaining, err := kernels.TrainingPoints(n, gram)
	if err != nil {
		panic(err)
	}
	points := [][]float64{remaining[:d]}
	for ; len(remaining) > 0; remaining = remaining[d:] {
		points = append(points, remaining[:d])
	}
	return points
}

// checkText checks that the text parses to the canonical form of the kernel, and that the canonical
// form has the same text.
func checkText(t *testing.T, k kernels.Kernel) {
	parsed, err := kernels.Parse(k.String())
	if err != nil {
		t.Fatalf("Parse(%q): %v", k, err)
	}
	if c := kernels.Canonical(k); !kernels.Equal(parsed, c) {
		t.Errorf("Parse(%q) is %#v, want %#v", k, parsed, c)
	}
	reparsed, err := kernels.Parse(parsed.String())
	if err != nil || !kernels.Equal(reparsed, parsed) {
		t.Errorf("%q parses, but the text of the result, %q, parses to another kernel: %v, %v", k, parsed, reparsed, err)
	}
}

// checkProgram checks that every operation of the code has its operands on the stack, that Depth is
// the maximum stack depth, that one value remains on the stack, and that every statistic is used.
func checkProgram(t *testing.T, k kernels.Kernel) {
	p := kernels.Compile(k)
	depth, deepest := 0, 0
	used := make([]bool, len(p.Stats))
	for i, in := range p.Code {
		pops, pushes := 1, 1
		switch in.Op {
		case kernels.Load:
			pops = 0
			if in.Arg < 0 || in.Arg >= len(p.Stats) {
				t.Fatalf("instruction %d loads statistic %d of %d", i, in.Arg, len(p.Stats))
			}
			used[in.Arg] = true
		case kernels.Const:
			pops = 0
		case kernels.Add, kernels.Mul:
			pops = 2
		case kernels.PowInt:
			if in.Arg < 1 {
				t.Errorf("instruction %d raises to the power %d", i, in.Arg)
			}
		case kernels.Affine, kernels.Sqrt, kernels.Exp, kernels.Pow, kernels.Tanh, kernels.Cos, kernels.Sin, kernels.Log:
		default:
			t.Fatalf("instruction %d has the unknown operation %d", i, in.Op)
		}
		if depth < pops {
			t.Fatalf("instruction %d needs %d values, the stack holds %d", i, pops, depth)
		}
		depth += pushes - pops
		deepest = max(deepest, depth)
	}
	if depth != 1 {
		t.Errorf("the code leaves %d values on the stack, want 1", depth)
	}
	if deepest != p.Depth {
		t.Errorf("Depth is %d, the code needs %d", p.Depth, deepest)
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("statistic %d is never loaded", i)
		}
		for j := range i {
			if p.Stats[i].Equal(p.Stats[j]) {
				t.Errorf("statistics %d and %d are equal", j, i)
			}
		}
	}
}

// checkValues checks that k(x, z) and k(z, x) are bitwise equal, that Diag is k(x, x), and that all values are finite.
func checkValues(t *testing.T, k kernels.Kernel, points [][]float64) {
	for i, x := range points {
		if a, b := kernels.Diag(k, x), kernels.Eval(k, x, x); a != b {
			t.Errorf("seed %d: Diag of point %d is %v, k(x, x) is %v", seed, i, a, b)
		}
		for j, z := range points[:i+1] {
			a, b := kernels.Eval(k, x, z), kernels.Eval(k, z, x)
			if a != b || math.IsNaN(a) || math.IsInf(a, 0) {
				t.Errorf("seed %d, d = %d: k of points %d and %d is %v, but k of points %d and %d is %v", seed, len(x), i, j, a, j, i, b)
			}
		}
	}
}

// checkTranslation checks for kernels that depend only on x − z that an integer shift of integer points does not change
// k(x, z), and that k(x, x) is constant. Statistics with a Scale are excluded, because they are rounded.
func checkTranslation(t *testing.T, k kernels.Kernel, d int) {
	for _, s := range kernels.Compile(k).Stats {
		if !s.Kind.TranslationInvariant() || s.Scale != nil {
			return
		}
	}
	r := rand.New(rand.NewPCG(seed, uint64(d)))
	integers := func() []float64 {
		x := make([]float64, d)
		for p := range x {
			x[p] = float64(r.IntN(9) - 4)
		}
		return x
	}
	shifted := func(x []float64) []float64 {
		y := make([]float64, d)
		for p := range y {
			y[p] = x[p] + float64(1000*(p+1))
		}
		return y
	}
	for range 20 {
		x, z := integers(), integers()
		if a, b := kernels.Eval(k, x, z), kernels.Eval(k, shifted(x), shifted(z)); a != b {
			t.Errorf("seed %d: k(%v, %v) is %v, shifted it is %v", seed, x, z, a, b)
		}
		if a, b := kernels.Diag(k, x), kernels.Diag(k, z); a != b {
			t.Errorf("seed %d: k(x, x) is %v at %v and %v at %v", seed, a, x, b, z)
		}
	}
}

// checkPSD checks that |k(x, z)|² ≤ k(x, x) k(z, z), and that no eigenvalue of the Gram matrix
// is below zero by more than the bound of its rounding error.
func checkPSD(t *testing.T, k kernels.Kernel, points [][]float64) {
	n := len(points)
	gram := mat.NewSymDense(n, nil)
	var rounding float64 // bound on the rounding error of any entry
	for i, x := range points {
		for j := range i + 1 {
			v := kernels.Eval(k, x, points[j])
			gram.SetSym(i, j, v)
			rounding = max(rounding, Rounding(k, x, points[j]))
		}
	}
	for i := range n {
		for j := range i {
			bound := math.Sqrt(gram.At(i, i)) * math.Sqrt(gram.At(j, j))
			// The variable rounding bounds the errors of k(x, z), k(x, x) and k(z, z); the roots and their product add
			// three roundings.
			if !(math.Abs(gram.At(i, j)) <= bound+2*rounding+3*unit*bound) {
				t.Errorf("seed %d: |k| of points %d and %d is %v, more than √(k(x, x) k(z, z)) = %v", seed, i, j, gram.At(i, j), bound)
			}
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, false) {
		t.Fatalf("seed %d: the eigenvalues do not converge", seed)
	}
	smallest := eigen.Values(nil)[0]
	// Errors of the entries move eigenvalues by at most n times the largest error (Weyl). The QR algorithm moves them
	// by a small multiple of n·unit times the norm (Golub and Van Loan, section 8.3.5), which is at most the trace.
	tol := float64(n)*rounding + 10*float64(n)*unit*mat.Trace(gram)
	if !(smallest >= -tol) {
		t.Errorf("seed %d, d = %d: the smallest eigenvalue is %g, allowed −%g", seed, len(points[0]), smallest, tol)
	}
}

// Package backendtest is the test suite that every backend must pass. The entire test of a backend is
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(t testing.TB, c backend.Config) backend.Device {
//			dev, err := backend.Open("cpu/avx2", c)
//			…
//			return dev
//		})
//	}
//
// A call of Bench with the same function runs its benchmarks.
//
// There are three kinds of tests:
//
//   - exact: small integers and powers of two make every intermediate result exact for any order of the
//     operations, and the test compares with ==;
//   - closed: a property that needs no second implementation, such as the residual LLᵀ − A, with the bound
//     that the theory gives;
//   - differential: random numbers against package ref, with a bound derived from the number of roundings
//     (bounds.go).
//
// Every operand is a view into a larger matrix whose other elements are NaN with a known bit pattern, which shows
// whether a method reads or writes them. Every test logs the seed, which determines all random choices. With
// -short, the suite runs only part of the cases and omits the large sizes.
package backendtest

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref" // registers the oracle
)

// Open opens the device under test with the settings c, and registers its Close with t.Cleanup.
type Open func(t testing.TB, c backend.Config) backend.Device

// Run tests the device that open opens, in both precisions.
func Run(t *testing.T, open Open) { Suite{Open: open}.Run(t) }

// Suite configures the suite. A fast backend needs only Open.
type Suite struct {
	Open Open
	// LargeN is the size of the large tests, several of the backend's blocks; 0 means 1100.
	LargeN int
	// Leave reports whether to omit the named test. nil omits no test.
	Leave func(test string) bool
	// Fewer runs only a quarter of the combinations and random cases, as -short does, but all edges of tiles and
	// all large sizes. With Fewer and -short, only float64 is tested.
	Fewer bool
	// RequirePacked means that a backend without packed storage fails.
	RequirePacked bool
	// Seed is the seed of every random choice; 0 means 1.
	Seed uint64
}

// Run tests the device that s.Open opens, in both precisions. With s.Fewer and -short it tests only float64.
func (s Suite) Run(t *testing.T) {
	if s.LargeN == 0 {
		s.LargeN = 1100
	}
	if s.Seed == 0 {
		s.Seed = 1
	}
	t.Run("device", func(t *testing.T) { testDevice(t, s) })
	t.Run("float64", func(t *testing.T) { runPrecision(t, s, backend.Device.F64) })
	if !s.Fewer || !testing.Short() {
		t.Run("float32", func(t *testing.T) { runPrecision(t, s, backend.Device.F32) })
	}
}

// runPrecision runs every test on a separate device, and requires that the test frees all memory.
func runPrecision[T backend.Float](t *testing.T, s Suite, queue func(backend.Device) backend.Backend[T]) {
	b := queue(s.Open(t, backend.Config{}))
	_, hasPacked := b.(backend.PackedBackend[T])
	_, hasExpander := b.(backend.Expander[T])
	_, hasFixed := b.(backend.FixedBackend[T])
	for _, test := range []struct {
		name string
		run  func(*rig[T])
	}{
		{"GemmExact", testGemmExact[T]},
		{"GemmRounding", testGemmRounding[T]},
		{"SyrkExact", testSyrkExact[T]},
		{"SyrkRounding", testSyrkRounding[T]},
		{"SymmExact", testSymmExact[T]},
		{"SymmRounding", testSymmRounding[T]},
		{"TrsmExact", testTrsmExact[T]},
		{"TrsmResidual", testTrsmResidual[T]},
		{"PotrfExact", testPotrfExact[T]},
		{"PotrfResidual", testPotrfResidual[T]},
		{"PotrfFailure", testPotrfFailure[T]},
		{"GramKernels", testGramKernels[T]},
		{"GramSymmetric", testGramSymmetric[T]},
		{"GramDuplicates", testGramDuplicates[T]},
		{"GramPoints", testGramPoints[T]},
		{"GramOffset", testGramOffset[T]},
		{"GramNearDuplicates", testGramNearDuplicates[T]},
		{"GramMul", testGramMul[T]},
		{"GramMulRoundings", testGramMulRoundings[T]},
		{"Expansion", testExpansion[T]},
		{"ExpansionFaults", testExpansionFaults[T]},
		{"AddDiag", testAddDiag[T]},
		{"ColAxpy", testColAxpy[T]},
		{"ColDot", testColDot[T]},
		{"NaNGemm", testNaNGemm[T]},
		{"NaNSyrkSymm", testNaNSyrkSymm[T]},
		{"NaNTrsm", testNaNTrsm[T]},
		{"NaNGram", testNaNGram[T]},
		{"NaNGramMul", testNaNGramMul[T]},
		{"Views", testViews[T]},
		{"SharedInputs", testSharedInputs[T]},
		{"PackedExact", testPackedExact[T]},
		{"PackedDiagonal", testPackedDiagonal[T]},
		{"PackedRounding", testPackedRounding[T]},
		{"PackedFailure", testPackedFailure[T]},
		{"PackedGram", testPackedGram[T]},
		{"PackedMemory", testPackedMemory[T]},
		{"PackedLeading", testPackedLeading[T]},
		{"PackedMisuse", testPackedMisuse[T]},
		{"PackedLarge", testPackedLarge[T]},
		{"FixedGram", testFixedGram[T]},
		{"FixedSymm", testFixedSymm[T]},
		{"FixedFaults", testFixedFaults[T]},
		{"FixedMemory", testFixedMemory[T]},
		{"SparseGram", testSparseGram[T]},
		{"SparseGramPoints", testSparseGramPoints[T]},
		{"SparseDuplicates", testSparseDuplicates[T]},
		{"SparseNaN", testSparseNaN[T]},
		{"SparseGramMul", testSparseGramMul[T]},
		{"SparseGemm", testSparseGemm[T]},
		{"SparseThreads", testSparseThreads[T]},
		{"SparseMemory", testSparseMemory[T]},
		{"SparseFaults", testSparseFaults[T]},
		{"LargeSparse", testLargeSparse[T]},
		{"Memory", testMemory[T]},
		{"Transfer", testTransfer[T]},
		{"Budget", testBudget[T]},
		{"Wrap", testWrap[T]},
		{"Exp", testExp[T]},
		{"PrefixBelow", testPrefixBelow[T]},
		{"Misuse", testMisuse[T]},
		{"Foreign", testForeign[T]},
		{"Progress", testProgress[T]},
		{"Cancel", testCancel[T]},
		{"Deadline", testDeadline[T]},
		{"Concurrent", testConcurrent[T]},
		{"Threads", testThreads[T]},
		{"LargeProducts", testLargeProducts[T]},
		{"LargeSolves", testLargeSolves[T]},
		{"LargePotrf", testLargePotrf[T]},
		{"LargeGram", testLargeGram[T]},
	} {
		if s.omits(test.name, hasPacked, hasExpander) || strings.HasPrefix(test.name, "Fixed") && !hasFixed {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, s, queue)
			test.run(r)
			if t.Failed() {
				return
			}
			if inUse, _ := r.dev.InUse(); inUse != 0 {
				t.Errorf("InUse: %d bytes after every matrix was freed", inUse)
			}
		})
	}
}

// omits reports whether the suite omits the named test.
func (s Suite) omits(test string, hasPacked, hasExpander bool) bool {
	switch {
	case strings.HasPrefix(test, "Packed") && !hasPacked && !s.RequirePacked, strings.HasPrefix(test, "Expansion") && !hasExpander:
		return true
	case testing.Short() && strings.Contains(test, "Large"):
		return true
	}
	return s.Leave != nil && s.Leave(test)
}

// rig holds the state of one test.
type rig[T backend.Float] struct {
	*testing.T
	Suite
	dev      backend.Device
	b        backend.Backend[T]
	oracle   backend.Backend[T]
	queue    func(backend.Device) backend.Backend[T]
	rng      *rand.Rand
	maxRatio float64 // largest ratio of an error to its bound
}

func newRig[T backend.Float](t *testing.T, s Suite, queue func(backend.Device) backend.Backend[T]) *rig[T] {
	hash := fnv.New64a()
	hash.Write([]byte(t.Name()))
	t.Logf("seed %d", s.Seed)
	oracle, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dev := s.Open(t, backend.Config{})
	return &rig[T]{
		T: t, Suite: s, queue: queue,
		dev: dev, b: queue(dev), oracle: queue(oracle),
		rng: rand.New(rand.NewPCG(s.Seed, hash.Sum64())),
	}
}

// host is a float64 matrix of the tests, with elements rounded to the precision under test.
type host = backend.Host[float64]

// call calls one method. m holds the matrices; the last is the output.
type call[T backend.Float] func(b backend.Backend[T], m []backend.Matrix[T]) error

// sentinel is a NaN that fills memory that a method must neither read nor write.
var sentinel = float64(math.Float32frombits(0x7fc0beef))

// frame is an operand: a view into a larger matrix whose other elements are sentinels.
type frame[T backend.Float] struct {
	parent, view backend.Matrix[T]
	initial      backend.Host[T] // the elements of parent before the call
	top, left    int
}

// newFrame copies h into a larger matrix of sentinels on the device under test. One operand in four has no borders,
// and some have a stride of thousands.
func (r *rig[T]) newFrame(h host) frame[T] {
	r.Helper()
	var top, bottom, left, right int
	if r.rng.IntN(4) > 0 {
		top, bottom, left, right = r.rng.IntN(3), r.rng.IntN(3), r.rng.IntN(5), r.rng.IntN(5)
	}
	if h.Rows < 40 && r.rng.IntN(100) == 0 {
		right += 4000
	}
	f := frame[T]{initial: backend.NewHost[T](top+h.Rows+bottom, left+h.Cols+right), top: top, left: left}
	for i := range f.initial.Data {
		f.initial.Data[i] = T(sentinel)
	}
	for i := range h.Rows {
		row := f.initial.Row(top + i)[left:]
		for j, v := range h.Row(i) {
			row[j] = T(v)
		}
	}
	var err error
	if f.parent, err = r.b.New(f.initial.Rows, f.initial.Cols); err != nil {
		r.Fatal(err)
	}
	if err := r.b.Upload(f.parent, f.initial); err != nil {
		r.Fatal(err)
	}
	f.view = f.parent.View(top, left, h.Rows, h.Cols)
	return f
}

// read returns the elements of the view, and an error if a sentinel was overwritten.
func (f frame[T]) read(b backend.Backend[T]) (host, error) {
	current := backend.NewHost[T](f.initial.Rows, f.initial.Cols)
	if err := b.Download(current, f.parent); err != nil {
		return host{}, err
	}
	rows, cols := f.view.Dims()
	h := backend.NewHost[float64](rows, cols)
	for i := range current.Rows {
		for j := range current.Cols {
			v := float64(current.Data[i*current.Stride+j])
			vi, vj := i-f.top, j-f.left
			if 0 <= vi && vi < rows && 0 <= vj && vj < cols {
				h.Data[vi*h.Stride+vj] = v
			} else if bits(v) != bits(sentinel) {
				return host{}, fmt.Errorf("the call wrote %g outside the %d×%d matrix, at (%d, %d)", v, rows, cols, vi, vj)
			}
		}
	}
	return h, nil
}

// unchanged returns an error if the view or a sentinel of an input was written.
func (f frame[T]) unchanged(b backend.Backend[T]) error {
	current := backend.NewHost[T](f.initial.Rows, f.initial.Cols)
	if err := b.Download(current, f.parent); err != nil {
		return err
	}
	for i, v := range current.Data {
		if bits(float64(v)) != bits(float64(f.initial.Data[i])) {
			return fmt.Errorf("the call changed an element of an input from %g to %g", f.initial.Data[i], v)
		}
	}
	return nil
}

// tryCall performs the call on operands in frames of sentinels. It returns the output and the call's error.
func (r *rig[T]) tryCall(label string, f call[T], in ...host) (host, error) {
	r.Helper()
	frames := make([]frame[T], len(in))
	views := make([]backend.Matrix[T], len(in))
	for i, h := range in {
		frames[i] = r.newFrame(h)
		views[i] = frames[i].view
		defer frames[i].parent.Free()
	}
	failure := f(r.b, views)
	if err := r.b.Sync(); err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	last := len(in) - 1
	out, err := frames[last].read(r.b)
	if err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	for _, f := range frames[:last] {
		if err := f.unchanged(r.b); err != nil {
			r.Fatalf("%s: %v", label, err)
		}
	}
	return out, failure
}

// mustCall is tryCall, but an error of the call ends the test.
func (r *rig[T]) mustCall(label string, f call[T], in ...host) host {
	r.Helper()
	out, err := r.tryCall(label, f, in...)
	if err != nil {
		r.Fatalf("%s: %v", label, err)
	}
	return out
}

// callOracle performs the call on the oracle and returns the output.
func (r *rig[T]) callOracle(label string, f call[T], in ...host) host {
	r.Helper()
	m := make([]backend.Matrix[T], len(in))
	operands := make([]backend.Host[T], len(in))
	for i, h := range in {
		operands[i] = round[T](h)
		m[i] = r.oracle.(backend.Wrapper[T]).Wrap(operands[i])
	}
	if err := f(r.oracle, m); err != nil {
		r.Fatalf("%s: on the oracle: %v", label, err)
	}
	return widen(operands[len(in)-1])
}

// requireEqual requires got = want. A NaN must have the bits of the expected NaN.
func (r *rig[T]) requireEqual(label string, got, want host) {
	r.Helper()
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			if g := got.Row(i)[j]; g != w && bits(g) != bits(w) {
				r.Fatalf("%s: element (%d, %d) is %v, want exactly %v", label, i, j, g, w)
			}
		}
	}
}

// requireWithin requires |got − want| ≤ bound for each element, and a NaN with the same bits where want is NaN.
func (r *rig[T]) requireWithin(label string, got, want, bound host) {
	r.Helper()
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			g, limit := got.Row(i)[j], bound.Row(i)[j]
			if g == w || math.IsNaN(w) && bits(g) == bits(w) {
				continue
			}
			diff := math.Abs(g - w)
			if !(diff <= limit) {
				r.Fatalf("%s: element (%d, %d) is %v, want %v: error %.3g, bound %.3g", label, i, j, g, w, diff, limit)
			}
			r.maxRatio = max(r.maxRatio, diff/limit)
		}
	}
}

// requireNear requires that got differs from the oracle's result by at most bound, and that the oracle's result
// differs from reference, the suite's own result in float64, by at most bound.
func (r *rig[T]) requireNear(label string, got, oracle, reference, bound host) {
	r.Helper()
	r.requireWithin(label+", the oracle's result", oracle, reference, bound)
	r.requireWithin(label, got, oracle, bound)
}

// requireUntouched requires that the sentinels above the diagonal of a result are unchanged.
func (r *rig[T]) requireUntouched(label string, got host) {
	r.Helper()
	for i := range got.Rows {
		for j := i + 1; j < got.Cols; j++ {
			if bits(got.Row(i)[j]) != bits(sentinel) {
				r.Fatalf("%s: wrote above the diagonal at (%d, %d)", label, i, j)
			}
		}
	}
}

func (r *rig[T]) report() { r.Logf("the largest error is %.2g times its bound", r.maxRatio) }

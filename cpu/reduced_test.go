package cpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// SmallReducedBlocks makes the factorization use small blocks during a test.
func SmallReducedBlocks(t testing.TB) {
	previous := reducedBlock
	reducedBlock = 16
	t.Cleanup(func() { reducedBlock = previous })
}

// NeedReduced skips a test if the best tier has no products of reduced precision.
func NeedReduced(t testing.TB) {
	if tier := bestDevice().tier; tier.Pairs == 0 {
		t.Skipf("%s has no products of 16-bit integers that are faster than those of float32", tier.Name)
	}
}

// forEachReducedTier runs f on every tier that has products of reduced precision.
func forEachReducedTier(t *testing.T, f func(t *testing.T, q *queue[float32])) {
	for _, tier := range ukr.Tiers() {
		if tier.Missing() != "" || tier.Pairs == 0 {
			continue
		}
		t.Run(tier.Name, func(t *testing.T) {
			dev, err := driver{}.Open(tier.Name, backend.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			if unit := dev.F64().(*queue[float64]).ReducedUnit(); unit != 0 {
				t.Errorf("float64 has products of reduced precision: %g", unit)
			}
			f(t, dev.F32().(*queue[float32]))
		})
	}
}

// TestReducedFactor compares LLᵀ with A. Let l_i be row i of L and nb the width of a block column. Rounding L to 16
// bits changes element (i, j) of LLᵀ by at most √nb·2⁻¹⁶‖l_i‖‖l_j‖. The root mean square of these changes is at most
// 2⁻¹⁵‖l_i‖‖l_j‖/√12 if the rounding errors are independent. Both limits also allow for rounding to float32.
func TestReducedFactor(t *testing.T) {
	forEachReducedTier(t, func(t *testing.T, q *queue[float32]) {
		for _, block := range []int{16, 256} {
			if block == 16 {
				SmallReducedBlocks(t)
			} else {
				reducedBlock = block
			}
			for _, n := range []int{2*block + 1, 3*block + 7} {
				for name, a := range reducedCases(n) {
					if block > 16 && (testing.Short() || name != "gaussian" && name != "clusters") {
						continue
					}
					t.Run(fmt.Sprintf("%s, n=%d, blocks of %d", name, n, block), func(t *testing.T) {
						testReducedFactor(t, q, a(), name == "gaussian")
					})
				}
			}
		}
	})
}

// reducedCases returns functions that make symmetric positive definite matrices.
func reducedCases(n int) map[string]func() backend.Host[float32] {
	const d, seed = 30, 11
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	x := backend.NewHost[float64](n, d)
	for i := range x.Data {
		x.Data[i] = rng.NormFloat64()
	}
	k := kernels.Gaussian{Sigma: 5}
	fromFunc := func(value func(i, j int) float64) func() backend.Host[float32] {
		return func() backend.Host[float32] {
			a := backend.NewHost[float32](n, n)
			for i := range n {
				for j := range i + 1 {
					a.Row(i)[j] = float32(value(i, j))
				}
			}
			return a
		}
	}
	gaussian := func(i, j int) float64 {
		v := kernels.Eval(k, x.Row(i), x.Row(j))
		if i == j {
			v += 0.01
		}
		return v
	}
	clusters := func(i, j int) float64 {
		switch {
		case i == j:
			return 1.01
		case i/40 == j/40:
			return 1
		}
		return 0
	}
	rowScale := func(i int) float64 {
		if i == n/2 {
			return 0x1p-62
		}
		return 1
	}
	size := func(i int) float64 { return math.Ldexp(1, i%41-20) }
	return map[string]func() backend.Host[float32]{
		"gaussian":               fromFunc(gaussian),
		"clusters":               fromFunc(clusters),
		"rows of different size": fromFunc(func(i, j int) float64 { return gaussian(i, j) * size(i) * size(j) }),
		"a small row":            fromFunc(func(i, j int) float64 { return gaussian(i, j) * rowScale(i) * rowScale(j) }),
		"smallest":               fromFunc(func(i, j int) float64 { return math.Ldexp(gaussian(i, j), -117) }),
		"small":                  fromFunc(func(i, j int) float64 { return math.Ldexp(gaussian(i, j), -90) }),
		"large":                  fromFunc(func(i, j int) float64 { return math.Ldexp(gaussian(i, j), 90) }),
		"repeated rows": fromFunc(func(i, j int) float64 {
			v := kernels.Eval(k, x.Row(i/2), x.Row(j/2))
			if i == j {
				v += 0.01
			}
			return v
		}),
		"zeros": fromFunc(func(i, j int) float64 {
			if i == j {
				return float64(i + 1)
			}
			return 0
		}),
	}
}

func testReducedFactor(t *testing.T, q *queue[float32], a backend.Host[float32], rounds bool) {
	n := a.Rows
	p, err := q.NewPacked(n)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free()
	factor := func(potrf func(q *queue[float32]) error) backend.Host[float32] {
		flops := 0.0
		counting := q.With(t.Context(), func(f float64) { flops += f }).(*queue[float32])
		if err := errors.Join(q.UploadPacked(p, 0, a), potrf(counting)); err != nil {
			t.Fatal(err)
		}
		if want := flop.Potrf(n); !(math.Abs(flops-want) <= 1e-9*want) {
			t.Errorf("%g operations were counted, want %g", flops, want)
		}
		l := backend.NewHost[float32](n, n)
		if err := q.DownloadPacked(l, p, 0); err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := factor(func(q *queue[float32]) error { return q.PotrfPackedReduced(p) })
	if equal := slices.Equal(l.Data, factor(func(q *queue[float32]) error { return q.PotrfPacked(p) }).Data); rounds && equal {
		t.Error("the factor equals that of float32: nothing was rounded to 16 bits")
	}
	if !slices.Equal(l.Data, factor(func(q *queue[float32]) error { return q.serial().PotrfPackedReduced(p) }).Data) {
		t.Error("one worker and two workers give different factors")
	}
	norms := make([]float64, n)
	for i := range norms {
		for _, v := range l.Row(i)[:i+1] {
			norms[i] += float64(v) * float64(v)
		}
		norms[i] = math.Sqrt(norms[i])
	}
	floatError := float64(n+8) * 0x1p-24
	limit := 1.01*math.Sqrt(float64(reducedBlock))*0x1p-16 + floatError
	squares, elements := 0.0, 0.0
	for i := range n {
		for j := range i + 1 {
			e := -float64(a.Row(i)[j])
			for k, v := range l.Row(j)[:j+1] {
				e += float64(v) * float64(l.Row(i)[k])
			}
			e = math.Abs(e) / (norms[i] * norms[j])
			if !(e <= limit) {
				t.Fatalf("element (%d, %d) is off by %g of the norms of the rows, %g is allowed", i, j, e, limit)
			}
			squares, elements = squares+e*e, elements+1
		}
	}
	if size := math.Sqrt(squares / elements); !(size <= 1.1*0x1p-15/math.Sqrt(12)+floatError) {
		t.Errorf("the errors are %g of the norms of the rows", size)
	}
}

// TestReducedFactorFaults checks that the factorization fails at the same pivot as PotrfPacked,
// unless the pivot depends on rounding, and that it detects NaN and Inf.
func TestReducedFactorFaults(t *testing.T) {
	SmallReducedBlocks(t)
	const n = 150
	spd := reducedCases(n)["gaussian"]()
	forEachReducedTier(t, func(t *testing.T, q *queue[float32]) {
		for _, v := range []float64{-1, 0, math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, i := range []int{0, 7, 8, 9, 60, 74, 75, 76, 149} {
				for _, j := range []int{i, i / 2} {
					if j < i && v <= 0 && v >= -1 {
						continue // a valid matrix
					}
					a := spd.View(0, 0, n, n)
					a.Data = slices.Clone(a.Data)
					if a.Row(i)[j] = float32(v); v == 0 {
						clear(a.Row(i)) // a row of zeros
						for k := i; k < n; k++ {
							a.Row(k)[i] = 0
						}
					}
					p, err := q.NewPacked(n)
					if err != nil {
						t.Fatal(err)
					}
					index := func(factor func(backend.Packed[float32]) error) int {
						if err := q.UploadPacked(p, 0, a); err != nil {
							t.Fatal(err)
						}
						pivot := new(backend.PivotError)
						if err := factor(p); !errors.As(err, &pivot) {
							t.Fatalf("%g at (%d, %d): the error is %v, want a *PivotError", v, i, j, err)
						}
						return pivot.Index
					}
					if got, want := index(q.PotrfPackedReduced), index(q.PotrfPacked); got != want || v == 0 && got != i {
						t.Errorf("%g at (%d, %d): pivot %d fails, want %d as in float32", v, i, j, got, want)
					}
					p.Free()
				}
			}
		}
	})
}

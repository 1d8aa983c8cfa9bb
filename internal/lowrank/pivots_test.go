package lowrank

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// pivotsOf selects pivots by a rule on dev, and returns the pivots, F, and the trace of K − FFᵀ.
func pivotsOf(t *testing.T, dev backend.Device, rule func(*pivoting[float64]) error, k kernels.Kernel, x backend.Host[float64], rank int, seed uint64, stop float64) ([]int, *mat.Dense, float64) {
	t.Helper()
	b := dev.F64()
	mem := run.NewArena(dev, b)
	defer mem.FreeAll()
	mx, err := mem.Place(x)
	if err != nil {
		t.Fatal(err)
	}
	f, err := mem.New(x.Rows, rank)
	if err != nil {
		t.Fatal(err)
	}
	bytesBefore, _ := dev.InUse()
	p, err := newPivoting(Task[float64]{Ctx: context.Background(), B: b, Mem: mem, Kernel: k, X: mx, Seed: seed, Stop: stop}, f)
	if err == nil {
		err = rule(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if inUse, _ := dev.InUse(); inUse != bytesBefore {
		t.Errorf("%d bytes beside F are left", inUse-bytesBefore)
	}
	h := backend.NewHost[float64](x.Rows, rank)
	if err := b.Download(h, f); err != nil {
		t.Fatal(err)
	}
	if len(p.pivots) == 0 {
		return nil, nil, p.trace
	}
	return p.pivots, mat.DenseCopyOf(mat.NewDense(x.Rows, rank, h.Data).Slice(0, x.Rows, 0, len(p.pivots))), p.trace
}

var pivotRules = map[string]func(*pivoting[float64]) error{"rpcholesky": (*pivoting[float64]).random, "greedy": (*pivoting[float64]).greedy}

// TestPivotedFactor checks for both rules of pivots that FFᵀ equals K_nS K_SS⁻¹ K_Sn for the pivots S.
func TestPivotedFactor(t *testing.T) {
	const seed = 5
	t.Log("seed", seed)
	x := backendtest.Normal(seed, 60, 3)
	for i := range 10 {
		copy(x.Row(50+i), x.Row(i)) // at most one of two equal rows is a pivot
	}
	k := kernels.Sum{kernels.Gaussian{Sigma: 1.5}, kernels.Scaled{Weight: 0.25, Kernel: kernels.Laplacian{Sigma: 2}}}
	gram := denseGram(k, x, x)
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for name, rule := range pivotRules {
			for _, rank := range []int{1, 7, 30, 60} {
				pivots, f, residualTrace := pivotsOf(t, dev, rule, k, x, rank, seed, 0)
				if want := min(rank, 50); len(pivots) != want {
					t.Fatalf("%s: %d pivots of %d asked for, want %d", name, len(pivots), rank, want)
				}
				var residual mat.Dense
				residual.Mul(f, f.T())
				residual.Sub(gram, &residual)
				trace := 0.0
				for i := range 60 {
					trace += residual.At(i, i)
				}
				// The computed factors are exact for a matrix within (k+1)ε tr K of K (Higham 2002, theorem 10.3).
				bound := numeric.Epsilon * 8 * float64(rank+1) * mat.Trace(gram)
				if math.Abs(trace-residualTrace) > bound {
					t.Errorf("%s, rank %d: the trace of K − FFᵀ is %v, the host finds %v", name, rank, residualTrace, trace)
				}
				for _, i := range pivots {
					for j := range 60 {
						if v := math.Abs(residual.At(i, j)); v > bound {
							t.Fatalf("%s, rank %d: row %d of K is a pivot and missed by %.3g", name, rank, i, v)
						}
					}
				}
				var eigen mat.EigenSym
				symmetric := mat.NewSymDense(60, nil)
				for i := range 60 {
					for j := range i + 1 {
						symmetric.SetSym(i, j, residual.At(i, j))
					}
				}
				if !eigen.Factorize(symmetric, false) {
					t.Fatal("no eigenvalues")
				}
				if smallest := slices.Min(eigen.Values(nil)); smallest < -bound {
					t.Errorf("%s, rank %d: K − FFᵀ has the eigenvalue %.3g", name, rank, smallest)
				}
			}
		}
	})
}

// TestGreedyPivots compares the pivots with pivots that are computed one at a time from the definition.
func TestGreedyPivots(t *testing.T) {
	const seed, n, rank = 7, 200, 40
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 2)
	k := kernels.Sum{kernels.Gaussian{Sigma: 0.5}, kernels.Linear{}}
	gram := denseGram(k, x, x)
	residual := mat.DenseCopyOf(gram)
	var want []int
	for range rank {
		best := 0
		for i := range n {
			if residual.At(i, i) > residual.At(best, best) {
				best = i
			}
		}
		want = append(want, best)
		column := mat.Col(nil, best, residual)
		for i := range n {
			for j := range n {
				residual.Set(i, j, residual.At(i, j)-column[i]*column[j]/column[best])
			}
		}
	}
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		got, _, _ := pivotsOf(t, dev, (*pivoting[float64]).greedy, k, x, rank, 0, 0)
		if !slices.Equal(got, want) {
			t.Errorf("pivots %v, want %v", got, want)
		}
	})
}

// TestRandomPivotsLaw checks that rejection does not change the distribution of the pivots: each pair of first
// pivots must have the same frequency as if pivots were drawn one at a time.
func TestRandomPivotsLaw(t *testing.T) {
	const n, draws = 5, 4000
	x := backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: []float64{0, 0.3, 0.5, 2, 3}}
	k := kernels.Product{kernels.Gaussian{Sigma: 1}, kernels.Sum{kernels.Constant{Value: 1}, kernels.Linear{}}}
	gram := denseGram(k, x, x)
	var want [n][n]float64
	for i := range n {
		first := gram.At(i, i) / mat.Trace(gram)
		var diag [n]float64
		sum := 0.0
		for j := range n {
			diag[j] = gram.At(j, j) - gram.At(i, j)*gram.At(i, j)/gram.At(i, i)
			sum += diag[j]
		}
		for j := range n {
			want[i][j] = first * diag[j] / sum
		}
	}
	dev := backendtest.Device(t, "ref")
	var got [n][n]int
	for seed := range uint64(draws) {
		p, _, _ := pivotsOf(t, dev, (*pivoting[float64]).random, k, x, 2, seed, 0)
		got[p[0]][p[1]]++
	}
	for i := range n {
		for j := range n {
			// The tolerance is five standard deviations of a binomial count.
			mean := draws * want[i][j]
			if d := math.Abs(float64(got[i][j]) - mean); d > 5*math.Sqrt(mean)+1e-6*draws {
				t.Errorf("pivots %d, %d came up %d times of %d, want %.1f", i, j, got[i][j], draws, mean)
			}
		}
	}
}

// TestPivotedRepeats checks that the same seed gives the same bits for every number of workers,
// another seed gives other pivots, and the factorization stops once the remaining trace is small.
func TestPivotedRepeats(t *testing.T) {
	x := backendtest.Normal(3, 300, 4)
	k := kernels.Gaussian{Sigma: 2}
	var first *mat.Dense
	var pivots []int
	for _, threads := range []int{1, 3} {
		dev, err := backend.Open("cpu", backend.Config{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		p, f, _ := pivotsOf(t, dev, (*pivoting[float64]).random, k, x, 50, 9, 0)
		if first != nil && (!mat.Equal(f, first) || !slices.Equal(p, pivots)) {
			t.Errorf("with %d workers F has other bits", threads)
		}
		first, pivots = f, p
		if q, _, _ := pivotsOf(t, dev, (*pivoting[float64]).random, k, x, 50, 10, 0); slices.Equal(p, q) {
			t.Error("another seed gives the same pivots")
		}
		// The factorization stops once the trace of K − FFᵀ is at most 30.
		q, _, trace := pivotsOf(t, dev, (*pivoting[float64]).random, k, x, 200, 9, 30)
		if trace > 30 || len(q) == 200 {
			t.Errorf("%d pivots leave %v, stop was 30", len(q), trace)
		}
		dev.Close()
	}
}

// denseGram returns k(X, Z) by kernels.Eval.
func denseGram(k kernels.Kernel, x, z backend.Host[float64]) *mat.Dense {
	g := backendtest.GramOf(k, x, z)
	return mat.NewDense(g.Rows, g.Cols, g.Data)
}

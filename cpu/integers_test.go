package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// TestCommonStep checks commonStep for features with a common step and for features without one.
func TestCommonStep(t *testing.T) {
	t.Run("float64", func(t *testing.T) { testCommonStep(t, bestDevice().F64().(*queue[float64])) })
	t.Run("float32", func(t *testing.T) { testCommonStep(t, bestDevice().F32().(*queue[float32])) })
}

func testCommonStep[T backend.Float](t *testing.T, q *queue[T]) {
	const rows, cols = 70, 20
	spoiled := func(step float64, lastValue T) func(i, j int) T {
		return func(i, j int) T {
			if i == rows-1 && j == cols-1 {
				return lastValue
			}
			return T(float64((i*7+j*3)%256) * step)
		}
	}
	minNormal := 0x1p-1022
	maxMultiple, maxMultipleStep := math.Sqrt(math.MaxInt32/cols), 1.0 // cols·maxMultiple² is the largest sum that fits in 32 bits
	if unsafe.Sizeof(T(0)) == 4 {
		minNormal = 0x1p-126
		maxMultipleStep = 0 // in float32, commonStep finds no step for so many multiples
	}
	for _, c := range []struct {
		name    string
		element func(i, j int) T
		want    float64
	}{
		{"integers", func(i, j int) T { return T((i*7+j*3)%256 - 100) }, 1},
		{"pixels", spoiled(1.0/255, 0), 1.0 / 255},
		{"even numbers", spoiled(2, 0), 2},
		{"cents", spoiled(0.01, 0), 0.01},
		{"a small step", spoiled(0x1p-60, 0), 0x1p-60},
		{"a step too small", spoiled(math.Pow(minNormal, 0.6), 0), 0},
		{"a step too large", spoiled(math.Pow(minNormal, -0.5), 0), 0},
		{"indicators", func(i, j int) T { return T(1 - min((i+j)%3, 1)) }, 1},
		{"equal", func(i, j int) T { return -7 }, 7},
		{"6, 10 and 15", func(i, j int) T { return []T{6, 10, 15}[(i+j)%3] }, 1},
		{"zeros", func(i, j int) T { return 0 }, 0},
		{"another number", spoiled(1, math.Pi), 0},
		{"a small fraction", spoiled(1, 1+0x1p-18), 0},
		{"NaN", spoiled(1, T(math.NaN())), 0},
		{"Inf", spoiled(1, T(math.Inf(1))), 0},
		{"more than 16 bits", spoiled(1, 32768), 0},
		{"no overflow", func(i, j int) T { return T(int(maxMultiple) - i%2) }, maxMultipleStep},
		{"overflow", func(i, j int) T { return T(int(maxMultiple) + 1 - i%2) }, 0},
		{"normal", func(i, j int) T { return T(math.Sin(float64(i*cols + j + 1))) }, 0},
	} {
		m := &matrix[T]{device: bestDevice(), rows: rows, cols: cols, stride: cols, data: make([]T, rows*cols)}
		for i := range rows {
			for j := range cols {
				m.row(i)[j] = c.element(i, j)
			}
		}
		if got := float64(q.commonStep(m, m)); !(math.Abs(got-c.want) <= 0x1p-22*c.want) {
			t.Errorf("%s: the step is %g, want %g", c.name, got, c.want)
		}
	}
}

// TestGramOfIntegers checks that sums over KC pairs of integers are exact. The errors of inner products and Gaussian
// kernels must be at most those of adding these sums in floating point.
func TestGramOfIntegers(t *testing.T) {
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
			t.Run("float64", func(t *testing.T) { testGramOfIntegers(t, dev.F64().(*queue[float64]), 0x1p-53) })
			t.Run("float32", func(t *testing.T) { testGramOfIntegers(t, dev.F32().(*queue[float32]), 0x1p-24) })
		})
	}
}

func testGramOfIntegers[T backend.Float](t *testing.T, q *queue[T], u float64) {
	const seed = 61
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	orders := []int{17, 785, 1100}
	if underRace {
		orders = orders[:1]
	}
	for _, d := range required.Subset(2, orders) {
		for _, step := range []float64{1, 1.0 / 255} {
			n, m := minIntegerPoints+rng.IntN(70), minIntegerPoints+rng.IntN(70)
			points := func(n int) (*matrix[T], [][]int64) {
				p := &matrix[T]{device: q.engine.device, rows: n, cols: d, stride: d + 3, data: make([]T, n*(d+3))}
				k := make([][]int64, n)
				for i := range k {
					k[i] = make([]int64, d)
					for j := range k[i] {
						k[i][j] = int64(rng.IntN(511) - 255)
						p.row(i)[j] = T(float64(k[i][j]) * step)
					}
				}
				return p, k
			}
			x, kx := points(n)
			z, kz := points(m)
			if got := float64(q.commonStep(x, z)); math.Abs(got-step) > 2*u*step {
				t.Fatalf("d=%d: the step is %g, want %g", d, got, step)
			}
			sum := func(a, b []int64) (s int64) {
				for j, v := range a {
					s += v * b[j]
				}
				return s
			}
			const sigma = 900
			gaussian := kernels.Gaussian{Sigma: sigma * step}
			for name, c := range map[string]struct {
				kernel kernels.Kernel
				want   func(dot, xx, zz float64) (value, tol float64)
			}{
				// There are rounding errors of the step, its square, the product, and one addition for each KC pairs.
				"linear": {kernels.Linear{}, func(dot, xx, zz float64) (float64, float64) {
					return dot * step * step, (8 + float64(d/1024)) * u * step * step * math.Sqrt(xx*zz)
				}},
				"gaussian": {gaussian, func(dot, xx, zz float64) (float64, float64) {
					v := math.Exp(-(xx + zz - 2*dot) / (2 * sigma * sigma))
					return v, v * u * (8 + 16*(xx+zz)/(2*sigma*sigma))
				}},
			} {
				for _, symmetric := range []bool{false, true} {
					b, kb := z, kz
					if symmetric {
						b, kb = x, kx
					}
					out := &matrix[T]{device: q.engine.device, rows: n, cols: b.rows, stride: b.rows, data: make([]T, n*b.rows)}
					q.Gram(out, c.kernel, x, b)
					if err := q.Sync(); err != nil {
						t.Fatal(err)
					}
					sums := &matrix[T]{device: q.engine.device, rows: n, cols: 1, stride: 1, data: make([]T, n)}
					ones := &matrix[T]{device: q.engine.device, rows: b.rows, cols: 1, stride: 1, data: make([]T, b.rows)}
					for j := range ones.data {
						ones.data[j] = 1
					}
					q.GramMul(sums, c.kernel, x, b, ones)
					if err := q.Sync(); err != nil {
						t.Fatal(err)
					}
					for i := range n {
						total, slack := 0.0, 0.0
						for j := range b.rows {
							want, tol := c.want(float64(sum(kx[i], kb[j])), float64(sum(kx[i], kx[i])), float64(sum(kb[j], kb[j])))
							total, slack = total+want, slack+tol+float64(b.rows)*u*math.Abs(want)
						}
						if got := float64(sums.data[i]); !(math.Abs(got-total) <= slack) {
							t.Fatalf("%s, d=%d, step %g, same %v: row %d sums to %v, want %v within %g", name, d, step, symmetric, i, got, total, slack)
						}
						for j := range b.rows {
							if symmetric && j > i {
								break
							}
							want, tol := c.want(float64(sum(kx[i], kb[j])), float64(sum(kx[i], kx[i])), float64(sum(kb[j], kb[j])))
							if got := float64(out.row(i)[j]); !(math.Abs(got-want) <= tol) {
								t.Fatalf("%s, d=%d, step %g, same %v: element (%d, %d) is %v, want %v within %g", name, d, step, symmetric, i, j, got, want, tol)
							}
						}
					}
				}
			}
		}
	}
}

// TestIntegersAreUsed checks that a Gram matrix of integer points uses integer products, unless the
// points have so many zeros that omitting the zeros is faster.
func TestIntegersAreUsed(t *testing.T) {
	q := bestDevice().F64().(*queue[float64])
	if bestDevice().tier.Pairs == 0 {
		return // on this tier products of integers are not faster than products of floats
	}
	for period, want := range map[int]bool{1: true, 2: true, 20: false} {
		t.Run(fmt.Sprintf("one of %d is not 0", period), func(t *testing.T) {
			const n, d = 400, 100
			m := &matrix[float64]{device: bestDevice(), rows: n, cols: d, stride: d, data: make([]float64, n*d)}
			for i := range m.data {
				if m.data[i] = float64(i % 13); i/d/4%period != i%d%period {
					m.data[i] = 0
				}
			}
			g := q.newGram(kernels.Gaussian{Sigma: 10}, m, m).useIntegers()
			if got := g.packs[0].step != 0; got != want {
				t.Errorf("integers are used: %v, want %v", got, want)
			}
		})
	}
}

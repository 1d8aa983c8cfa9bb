package dataset

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestDecimal checks which texts the function decimal accepts, and compares the results with strconv bit by bit.
func TestDecimal(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	read := 0
	const trials = 200_000
	for range trials {
		v := math.Ldexp(rng.NormFloat64(), rng.IntN(120)-60)
		text := strconv.FormatFloat(v, "efg"[rng.IntN(3)], rng.IntN(21)-1, 64)
		if rng.IntN(4) == 0 { // a midpoint of two adjacent float64, or a number next to it
			text = fmt.Sprintf("%de%d", 1<<53+rng.Uint64N(1<<53)|1, rng.IntN(55)-27)
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := decimal([]byte(text))
		if ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s is read as %v, want %v", text, got, want)
		}
		if ok {
			read++
		}
	}
	t.Logf("%d of %d are read", read, trials)
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"0", 0, true}, {"-0", math.Copysign(0, -1), true}, {"5.", 5, true}, {"+.5", 0.5, true}, {"1e22", 1e22, true}, {"007", 7, true}, {"9007199254740992", 1 << 53, true},
		{"", 0, false}, {"-", 0, false}, {".", 0, false}, {"e5", 0, false}, {"1e", 0, false}, {"1e+", 0, false}, {"1e23", 1e23, true}, {"1e28", 0, false}, {"9007199254740993", 1 << 53, true}, {"9007199254740993.001", 1<<53 + 2, true}, {"18014398509481985e27", 18014398509481985e27, true},
		{"9999999999999999999", 1e19, true}, {"0.0000000001234567890123456", 0.0000000001234567890123456, true}, {"00000000000000000000000012", 12, true}, {"-0.000000000000000000000000", math.Copysign(0, -1), true}, {"12345678901234567890", 0, false},
		{"1 ", 0, false}, {" 1", 0, false}, {"0x1", 0, false}, {"1_0", 0, false}, {"nan", 0, false}, {"1e99999", 0, false}, {"1234567890123456789", 1234567890123456789, true}, {"1.5.2", 0, false},
	} {
		if v, ok := decimal([]byte(c.text)); ok != c.ok || math.Float64bits(v) != math.Float64bits(c.want) {
			t.Errorf("%q is read as %v, %v", c.text, v, ok)
		}
	}
}

// TestMedianOfMany compares the median of many values with the middle of the sorted values. In some cases the median is
// outside the interval that aroundMedian derives from a sample.
func TestMedianOfMany(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1 << 14, 1<<14 + 1, 100_000, 100_001} {
		step := n / (1 << 12)
		for shape, value := range map[string]func(i int) float64{
			"random":  func(int) float64 { return rng.NormFloat64() },
			"few":     func(int) float64 { return float64(rng.IntN(3)) },
			"two":     func(i int) float64 { return float64(i % 2) },
			"rising":  func(i int) float64 { return float64(i) },
			"sampled": func(i int) float64 { return float64(boolToInt(i%step == 0))*1e6 + rng.Float64() },
			"missing": func(i int) float64 {
				if i%3 == 0 {
					return math.NaN()
				}
				return rng.ExpFloat64()
			},
			"mostly missing": func(i int) float64 {
				if i%50 != 7 {
					return math.NaN()
				}
				return rng.ExpFloat64()
			},
		} {
			values := make([]float64, n)
			for i := range values {
				values[i] = value(i)
			}
			sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
			slices.Sort(sorted)
			m := len(sorted)
			want := (sorted[(m-1)/2] + sorted[m/2]) / 2
			if got, ok := median(values, m); !ok || got != want {
				t.Errorf("%s, n %d: %v, want %v", shape, n, got, want)
			}
		}
	}
}

// FuzzDecimal compares the function decimal with strconv. Its seeds are midpoints of two adjacent float64 and
// numbers next to them.
func FuzzDecimal(f *testing.F) {
	f.Add("-12.5e3")
	f.Add("9007199254740993")
	for _, v := range []float64{0.1, 1.7, 123456.78, 9.5e15, 3e-9} {
		midpoint := new(big.Float).SetPrec(200).SetFloat64(math.Nextafter(v, 9))
		midpoint.Add(midpoint, big.NewFloat(v)).Quo(midpoint, big.NewFloat(2))
		for digits := 16; digits <= 19; digits++ {
			f.Add(midpoint.Text('g', digits))
			f.Add(midpoint.Text('e', digits-1))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := decimal([]byte(text))
		if !ok {
			return
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q is read as %v, want %v, %v", text, got, want, err)
		}
	})
}

func BenchmarkDecimal(b *testing.B) {
	for _, text := range []string{"7", "-0.31415", "37.8812345", "1.2345678e-05", "-0.12345678901234567"} {
		cell := []byte(text)
		b.Run(fmt.Sprint("decimal/", text), func(b *testing.B) {
			for b.Loop() {
				decimal(cell)
			}
		})
		b.Run(fmt.Sprint("parseCell/", text), func(b *testing.B) {
			for b.Loop() {
				parseCell(text)
			}
		})
	}
}

package dataset_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// constantCases lists columns and says which of them are constant. The answers marked "sk" are from StandardScaler of
// scikit-learn 1.2.1. The others follow from the rule that a column of n numbers is constant if its standard deviation
// is at most min(n, 1000)·2⁻⁵²·|mean|.
func constantCases() []constantCase {
	column := func(n int, value func(i float64) float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = value(float64(i))
		}
		return v
	}
	alternate := func(a, b float64) func(float64) float64 {
		return func(i float64) float64 { return a + math.Mod(i, 2)*(b-a) }
	}
	const ulp = 0x1p-52
	return []constantCase{
		// These cases are from scikit-learn #17794, #19527 and #19726.
		{"0.3 and 0.1 + 0.2, sk", column(10, func(i float64) float64 { return 0.3 + math.Trunc(math.Mod(i, 3)/2)*ulp/4 }), true},
		{"sums of n shares of 1/n, sk", column(100, func(i float64) float64 {
			sum := 0.0
			for range int(i) + 1 {
				sum += 1 / (i + 1)
			}
			return sum
		}), true},
		{"degrees to Fahrenheit and back, sk", column(12, func(i float64) float64 {
			if math.Mod(i, 2) == 0 {
				return 20.1
			}
			f := 20.1 * 9
			f = f/5 + 32
			return (f - 32) * 5 / 9
		}), true},
		{"negative", column(20, alternate(-7.1, -7.1*(1+2*ulp))), true},
		{"1e-200 and its neighbor", column(20, alternate(1e-200, math.Nextafter(1e-200, 1))), true},
		{"1e300 and its neighbor", column(20, alternate(1e300, math.Nextafter(1e300, 0))), true},
		{"1 and 1 + 4 ulp, two rows, sk", column(2, alternate(1, 1+4*ulp)), true},
		{"many rows", column(20000, alternate(1, 1+200*ulp)), true}, // the SD is 100 ε

		{"1e8 + k, sk", column(10, func(i float64) float64 { return 1e8 + i }), false},
		{"1e8 + k, many rows", column(20000, func(i float64) float64 { return 1e8 + math.Mod(i, 10) }), false},
		{"1e8 + 1 in one row of many", column(20000, func(i float64) float64 { return 1e8 + math.Trunc(i/19999) }), false}, // the SD is 7e-3 and ε·1000·mean is 2.2e-5
		{"1e15 + k, sk", column(513, func(i float64) float64 { return 1e15 + i }), false},
		{"nanoseconds of a day", column(2000, func(i float64) float64 { return 1.7e18 + i*4.32e10 }), false},
		{"1 + 1e-12 k, sk", column(100, func(i float64) float64 { return 1 + 1e-12*i }), false},
		{"1 + 4 ulp k, five rows, sk", column(5, func(i float64) float64 { return 1 + 4*ulp*i }), false},
		{"1e-200 k", column(10, func(i float64) float64 { return 1e-200 * i }), false}, // not an answer of scikit-learn, where the square underflows
		{"1e-300 k", column(10, func(i float64) float64 { return 1e-300 * i }), false},
		{"1e-310 k", column(10, func(i float64) float64 { return 1e-310 * i }), false},
		{"the smallest numbers", column(10, func(i float64) float64 { return 5e-324 * i }), false},
		{"0 and the smallest number", column(10, alternate(0, 5e-324)), false},
		{"0 and the smallest number in one row of many", column(2000, func(i float64) float64 { return 5e-324 * math.Trunc(i/1999) }), false},
		{"1e300 k", column(10, func(i float64) float64 { return 1e300 * i }), false},
		{"around 0", column(10, alternate(-1e-17, 1e-17)), false},
	}
}

type constantCase struct {
	name     string
	values   []float64
	constant bool
}

// TestConstantUpToRounding checks the encoding of each column, learned from a table and in passes over a file.
func TestConstantUpToRounding(t *testing.T) {
	for _, c := range constantCases() {
		path := filepath.Join(t.TempDir(), "t.csv")
		text := bytes.NewBufferString("c,y\n")
		for i, v := range c.values {
			fmt.Fprintf(text, "%s,%d\n", strconv.FormatFloat(v, 'g', -1, 64), i)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		table := read(t, text.String())
		r := dataset.Rules{Targets: []string{"y"}, Standardize: true}
		e := learn(t, table, r)
		x := features(t, e, table)
		streamed, xs, _ := stream(t, dataset.File{Path: path}, r, 100)
		for _, got := range []struct {
			from string
			e    *dataset.Encoder
			x    *mat.Dense
		}{{"table", e, x}, {"stream", streamed, xs}} {
			n := got.e.Inputs[0].Number
			largest := 0.0
			for i := range c.values {
				largest = max(largest, math.Abs(got.x.At(i, 0)))
			}
			mean, sd := exactMoments(c.values)
			switch {
			case c.constant && (n.Scale != 1 || !(n.Rounding > 0) || largest != 0):
				t.Errorf("%s, %s: scale %v, rounding %v, largest feature %v; want 1, > 0, 0", c.name, got.from, n.Scale, n.Rounding, largest)
			case !c.constant && n.Rounding != 0:
				t.Errorf("%s, %s: rounding %v, want 0", c.name, got.from, n.Rounding)
			// The tolerance covers the rounding of the deviations, of sums of n terms, and of a subnormal result.
			case !c.constant && math.Abs(n.Scale-sd) > float64(len(c.values)+8)*0x1p-53*sd+0x1p-52*math.Abs(mean)+0x1p-1074:
				t.Errorf("%s, %s: scale %v, want %v", c.name, got.from, n.Scale, sd)
			}
		}
	}
}

// TestOutOfRange checks that only rows far outside the training range are counted.
func TestOutOfRange(t *testing.T) {
	train := read(t, "a,b,c,z\n0,5,0.3,0\n10,5,0.30000000000000004,0\n4,5,0.3,0\n")
	for _, r := range []dataset.Rules{{}, {Standardize: true}} {
		e := learn(t, train, r)
		// In the training table, a ranges from 0 to 10, b is constant, c is constant up to rounding, and z is 0.
		x := features(t, e, read(t, "a,b,c,z\n-99,5,0.3,7\n109,5,0.3000000000000001,0\n-101,5,0.31,0\n1e9,4,0.3,1\n,,,\n"))
		list := e.OutOfRange(e.OutOfRange(nil, x), x)
		for j, want := range []dataset.OutOfRange{{"a", 4, 1e9, 0, 10}, {"b", 2, 4, 5, 5}, {"c", 2, 0.31, 0.3, 0.30000000000000004}, {}} {
			got := list[j]
			if got.Rows != want.Rows || want.Rows > 0 && (got.Column != want.Column || got.Low != want.Low || got.High != want.High || math.Abs(got.Example-want.Example) > 4*0x1p-52*math.Abs(want.Example)) {
				t.Errorf("%+v: column %d: %+v, want %+v", r, j, got, want)
			}
		}
	}
}

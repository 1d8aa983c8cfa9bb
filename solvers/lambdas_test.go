package solvers_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/mercer-go/mercer/solvers"
)

// TestLambdasAreAsMeant checks the grid of Lambdas: exact powers of ten, and geometric means to 12 digits.
func TestLambdasAreAsMeant(t *testing.T) {
	for _, c := range []struct {
		low, high int // exponents of ten
		step      int // numbers per decade
	}{{-8, 3, 2}, {-3, 3, 1}, {-10, 2, 5}, {-300, 300, 1}, {0, 6, 4}, {-307, -300, 3}} {
		low, high := power(c.low), power(c.high)
		list := solvers.Lambdas(low, high, (c.high-c.low)*c.step+1)
		for i, got := range list {
			if want := power(c.low + i/c.step); i%c.step == 0 && got != want {
				t.Errorf("from %v to %v: number %d is %v, want %v", low, high, i, got, want)
			}
			exact := float64(c.low)*math.Ln10 + float64(i)/float64(c.step)*math.Ln10
			// The error is at most half a unit of the 12th digit plus the rounding error of the logarithm.
			if deviation := math.Abs(math.Log(got) - exact); deviation > 5e-12+4*0x1p-52*math.Abs(exact) {
				t.Errorf("from %v to %v: number %d is %v, off by %v", low, high, i, got, deviation)
			}
		}
	}
	const odd, end = 0.1234567890123456, 7.000000000000001
	if list := solvers.Lambdas(odd, end, 3); list[0] != odd || list[2] != end {
		t.Errorf("the ends are %v", list)
	}
	if list := solvers.Lambdas(odd, end, 1); len(list) != 1 || list[0] != odd {
		t.Errorf("one number: %v", list)
	}
	if list := solvers.Lambdas(odd, end, 0); len(list) != 0 {
		t.Errorf("no number: %v", list)
	}
}

func power(n int) float64 {
	v, _ := strconv.ParseFloat("1e"+strconv.Itoa(n), 64)
	return v
}

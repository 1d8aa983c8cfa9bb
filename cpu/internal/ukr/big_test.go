package ukr

import (
	"math"
	"math/big"
	"sync"
)

// This file computes references for the elementary functions by power series in numbers of 192
// bits, of which about 160 are correct after all roundings.
const bigBits = 192

func newBig(x float64) *big.Float { return new(big.Float).SetPrec(bigBits).SetFloat64(x) }

// series returns Σ t_n with t_0 = first and t_n = factor(t_{n−1}, n), up to negligible terms.
func series(first *big.Float, factor func(term *big.Float, n int)) *big.Float {
	sum, term := new(big.Float).Set(first), new(big.Float).Set(first)
	for n := 1; term.Sign() != 0; n++ {
		factor(term, n)
		if term.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-int(sum.Prec()) {
			break
		}
		sum.Add(sum, term)
	}
	return sum
}

// oddSeries returns Σ signⁿ x^(2n+1)/(2n+1)!, and evenSeries returns Σ signⁿ x^(2n)/(2n)!. With
// sign = −1 these are sin x and cos x, and with sign = 1 they are sinh x and cosh x.
func oddSeries(x *big.Float, sign float64) *big.Float {
	return series(x, func(term *big.Float, n int) { nextTerm(term, x, sign, 2*n) })
}

func evenSeries(x *big.Float, sign float64) *big.Float {
	return series(newBig(1), func(term *big.Float, n int) { nextTerm(term, x, sign, 2*n-1) })
}

// nextTerm multiplies term by sign·x²/(n(n+1)).
func nextTerm(term, x *big.Float, sign float64, n int) {
	term.Mul(term, x).Mul(term, x).Mul(term, inverse(n)).Mul(term, inverse(n+1))
	if sign < 0 {
		term.Neg(term)
	}
}

// inverses caches 1/n.
var inverses []*big.Float

func inverse(n int) *big.Float {
	for i := len(inverses); i <= n; i++ {
		inverses = append(inverses, new(big.Float).Quo(newBig(1), newBig(float64(max(i, 1)))))
	}
	return inverses[n]
}

// artanh returns Σ x^(2n+1)/(2n+1).
func artanh(x *big.Float) *big.Float {
	sq := new(big.Float).Mul(x, x)
	power := new(big.Float).Set(x)
	sum := new(big.Float).Set(x)
	for n := 1; power.Sign() != 0; n++ {
		power.Mul(power, sq)
		if power.Sign() == 0 || power.MantExp(nil) < sum.MantExp(nil)-bigBits {
			break
		}
		sum.Add(sum, new(big.Float).Mul(power, inverse(2*n+1)))
	}
	return sum
}

var bigLn2 = sync.OnceValue(func() *big.Float {
	third := new(big.Float).Quo(newBig(1), newBig(3))
	return third.Mul(newBig(2), artanh(third))
})

// bigLog returns ln x for x > 0, computed as 2 artanh((m−1)/(m+1)) + k ln 2.
func bigLog(x *big.Float) *big.Float {
	m := new(big.Float).SetPrec(bigBits)
	k := x.MantExp(m)
	if m.Cmp(newBig(0.7)) < 0 {
		m.SetMantExp(m, 1)
		k--
	}
	s := new(big.Float).Quo(new(big.Float).Sub(m, newBig(1)), new(big.Float).Add(m, newBig(1)))
	l := artanh(s)
	l.Mul(l, newBig(2))
	return l.Add(l, new(big.Float).Mul(newBig(float64(k)), bigLn2()))
}

// bigPow returns x^a for x > 0, computed as 2ⁿ exp(a ln x − n ln 2).
func bigPow(x *big.Float, a float64) *big.Float {
	y := new(big.Float).Mul(bigLog(x), newBig(a))
	estimate, _ := y.Float64()
	if estimate = math.Round(estimate / math.Ln2); math.Abs(estimate) > 1e6 {
		estimate = math.Copysign(1e6, estimate) // the result is far outside of the range of float64
		y.SetInt64(0)
	} else {
		y.Sub(y, new(big.Float).Mul(newBig(estimate), bigLn2()))
	}
	sum := series(newBig(1), func(term *big.Float, n int) { term.Mul(term, y).Mul(term, inverse(n)) })
	return sum.SetMantExp(sum, int(estimate))
}

// bigTanh returns sinh x / cosh x; it treats arguments from 30 on as Inf.
func bigTanh(x float64) *big.Float {
	y := newBig(max(min(x, 90), -90))
	return y.Quo(oddSeries(y, 1), evenSeries(y, 1))
}

// bigPi computes π by Machin's formula π/4 = 4 arctan 1/5 − arctan 1/239. It has so many digits
// that arguments up to 2¹⁰²⁴ can be reduced.
var bigPi = sync.OnceValue(func() *big.Float {
	const bits = 1024 + 200 + bigBits
	arctan := func(n float64) *big.Float {
		newFloat := func(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }
		power := newFloat(1)
		power.Quo(power, newFloat(n))
		sum := new(big.Float).Set(power)
		for k := 3; power.MantExp(nil) > -bits; k += 2 {
			power.Quo(power, newFloat(-n*n))
			sum.Add(sum, new(big.Float).Quo(power, newFloat(float64(k))))
		}
		return sum
	}
	four := big.NewFloat(4).SetPrec(bits)
	pi := new(big.Float).Mul(four, arctan(5))
	pi.Sub(pi, arctan(239))
	return pi.Mul(pi, four)
})

// bigSin returns sin(x + phase·½π). It subtracts the nearest multiple of ½π from x and sums the series.
func bigSin(x float64, phase int64) *big.Float {
	halfPi := new(big.Float).SetMantExp(bigPi(), -1)
	y := new(big.Float).SetPrec(halfPi.Prec()).SetFloat64(x)
	q := new(big.Float).Quo(y, halfPi)
	q.Add(q, big.NewFloat(math.Copysign(0.5, x)))
	n, _ := q.Int(nil) // Int rounds toward 0, so that n is the integer nearest to x/½π
	y.Sub(y, halfPi.Mul(halfPi, new(big.Float).SetPrec(halfPi.Prec()).SetInt(n)))
	y.SetPrec(bigBits)
	n.Add(n, big.NewInt(phase))
	quadrant := new(big.Int).And(n, big.NewInt(3)).Int64()
	var r *big.Float
	if quadrant&1 == 0 {
		r = oddSeries(y, -1)
	} else {
		r = evenSeries(y, -1)
	}
	if quadrant&2 != 0 {
		r.Neg(r)
	}
	return r
}

// ulps returns the error of got in units in the last place of want in T. If got is Inf, it counts
// as the power of two after the largest finite number, and its error is 0 if want is larger.
func ulps[T Float](got T, want *big.Float) float64 {
	bits, minExp, maxExp := digits[T](), -1074, 1024
	if bits == 24 {
		minExp, maxExp = -149, 128
	}
	g := newBig(0)
	switch {
	case got != got:
		return math.Inf(1)
	case math.IsInf(float64(got), 0):
		g.SetMantExp(newBig(math.Copysign(1, float64(got))), maxExp)
		if want.Sign() == g.Sign() && want.MantExp(nil) > maxExp {
			return 0
		}
	default:
		g.SetFloat64(float64(got))
	}
	ulp := minExp // also if want is 0
	if want.Sign() != 0 {
		ulp = min(max(want.MantExp(nil)-bits, minExp), maxExp-bits)
	}
	diff := g.Sub(g, want)
	e, _ := diff.SetMantExp(diff, -ulp).Float64()
	return math.Abs(e)
}

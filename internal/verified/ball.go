package verified

import "math"

// A Ball is the set of all numbers within Radius of the center Hi + Lo. Hi is the center rounded to
// float64. A ball whose radius is not finite contains every number.
type Ball struct{ Hi, Lo, Radius float64 }

const (
	sumError     = 0x1p-104  // relative error of the sum of two centers; proven: 3u² + O(u³), u = 2⁻⁵³
	productError = 0x1p-103  // relative error of the product of two centers; proven: 5u²
	underflow    = 0x1p-1000 // exceeds the absolute error of every operation whose result underflows
)

var unbounded = Ball{Radius: math.Inf(1)}

// Exact returns the ball that contains only v.
func Exact(v float64) Ball { return Ball{Hi: v} }

// up returns an upper bound on an exact value, where r is the result of at most 16 operations on nonnegative
// numbers. Each operation has a relative error of at most 2⁻⁵³ or underflows. up(NaN) is +Inf.
func up(r float64) float64 {
	switch {
	case r == 0:
		return 0
	case math.IsNaN(r): // the result of 0·∞ or ∞ − ∞
		return math.Inf(1)
	}
	return r*(1+0x1p-48) + underflow
}

// Magnitude returns a bound on the absolute values of the numbers of b.
func (b Ball) Magnitude() float64 { return up(math.Abs(b.Hi) + math.Abs(b.Lo) + b.Radius) }

// Rounded returns the center rounded to float64, and a bound on the distance of this value from the numbers of b.
func (b Ball) Rounded() (value, bound float64) { return b.Hi, up(math.Abs(b.Lo) + b.Radius) }

func (b Ball) finite() bool { return b.Radius-b.Radius == 0 && b.Hi-b.Hi == 0 }

// center returns the center of b as a ball of radius 0.
func (b Ball) center() Ball { return Ball{Hi: b.Hi, Lo: b.Lo} }

func (b Ball) neg() Ball { return Ball{-b.Hi, -b.Lo, b.Radius} }

// plus returns b with its radius increased by radius.
func (b Ball) plus(radius float64) Ball {
	b.Radius = up(b.Radius + radius)
	return b
}

// scale returns b·2^e. The result must not overflow. An underflow causes an error below the constant underflow.
func (b Ball) scale(e int) Ball {
	f := math.Float64frombits(uint64(e+1023) << 52)
	return Ball{b.Hi * f, b.Lo * f, up(b.Radius * f)}
}

// twoSum returns a + b as the unevaluated sum s + e (Knuth).
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	t := s - a
	return s, (a - (s - t)) + (b - t)
}

// fastTwoSum returns the same as twoSum, but requires |a| ≥ |b| or a = 0 (Dekker).
func fastTwoSum(a, b float64) (s, e float64) {
	s = a + b
	return s, b - (s - a)
}

// twoProduct returns a·b as the unevaluated sum p + e.
func twoProduct(a, b float64) (p, e float64) {
	p = a * b
	return p, math.FMA(a, b, -p)
}

// difference returns a − b.
func difference(a, b float64) Ball {
	s, e := twoSum(a, -b)
	return Ball{Hi: s, Lo: e}
}

// Add returns a + b, computed by algorithm 6 of Joldes, Muller and Popescu.
func Add(a, b Ball) Ball {
	s, c := twoSum(a.Hi, b.Hi)
	t, d := twoSum(a.Lo, b.Lo)
	s, c = fastTwoSum(s, c+t)
	s, c = fastTwoSum(s, c+d)
	return Ball{s, c, up(a.Radius + b.Radius + sumError*math.Abs(s))}
}

// Sub returns a − b.
func Sub(a, b Ball) Ball { return Add(a, b.neg()) }

// Mul returns a·b, computed by algorithm 12 of Joldes, Muller and Popescu.
func Mul(a, b Ball) Ball {
	if a == (Ball{}) || b == (Ball{}) {
		return Ball{}
	}
	p, e := twoProduct(a.Hi, b.Hi)
	e += math.FMA(a.Lo, b.Hi, math.FMA(a.Hi, b.Lo, a.Lo*b.Lo))
	s, c := fastTwoSum(p, e)
	x, y := math.Abs(a.Hi)+math.Abs(a.Lo), math.Abs(b.Hi)+math.Abs(b.Lo)
	return Ball{s, c, up(x*b.Radius+y*a.Radius+a.Radius*b.Radius+productError*math.Abs(s)) + underflow}
}

// Div returns a/b. The error of the center q of the quotient is |a − qb|/|b|.
func Div(a, b Ball) Ball {
	if !(math.Abs(b.Hi) > 2*(math.Abs(b.Lo)+b.Radius)) {
		return unbounded
	}
	bc := b.center()
	q := a.Hi / b.Hi
	residual := Sub(a.center(), Mul(Exact(q), bc))
	s, c := fastTwoSum(q, residual.Hi/b.Hi)
	quotient := Ball{Hi: s, Lo: c}
	residual = Sub(a.center(), Mul(quotient, bc))
	minDivisor := (math.Abs(b.Hi) - math.Abs(b.Lo) - b.Radius) * (1 - 0x1p-50)
	return quotient.plus((residual.Magnitude() + a.Radius + quotient.Magnitude()*b.Radius) / minDivisor)
}

// Sqrt returns √max(a, 0). For a of center c and radius r, the error of the computed root s is at most |c − s²|/s,
// and √(c+r) − √c ≤ min(r/√c, √r).
func Sqrt(a Ball) Ball {
	if !(a.Hi > 0x1p-900) {
		return Ball{Radius: up(math.Sqrt(up(math.Max(a.Hi, 0) + math.Abs(a.Lo) + a.Radius)))}
	}
	c := a.center()
	root := math.Sqrt(a.Hi)
	residual := Sub(c, Mul(Exact(root), Exact(root)))
	s, e := fastTwoSum(root, residual.Hi/(2*root))
	r := Ball{Hi: s, Lo: e}
	residual = Sub(c, Mul(r, r))
	minRoot := s * (1 - 0x1p-50)
	r.Radius = up(residual.Magnitude()/minRoot + min(a.Radius/minRoot, math.Sqrt(a.Radius)))
	return r
}

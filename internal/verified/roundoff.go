package verified

import (
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// A Roundoff bounds the errors of the kernel values k(x, x_j) that a device computes in float64,
// for the points x_j of an expansion:
//
//	|computed k(x, x_j) − k(x, x_j)| ≤ ε √(k(x, x) k(x_j, x_j)) + 2⁻⁶⁰⁰.
//
// The errors of elementary functions must be at most functionUlps, and the errors of statistics as assumed in
// statError. Package backendtest checks both for every device.
type Roundoff struct {
	kernel kernels.Kernel
	points numeric.Points
	direct bool
	origin []float64 // the origin for r.measures: the first point; nil for sparse points, whose origin is 0
	roots  []float64 // upper bounds on √k(x_j, x_j)
	// functions holds the kernel of f, or the kernels of NewWaves. It is empty if f is linear in the coordinates.
	functions   []kernels.Kernel
	waves       bool // whether NewWaves made the Roundoff
	constant    bool // whether k(x, x) is the same number for all x
	stats       []kernels.Stat
	maxMeasures []float64 // for each of stats, the largest value that measures computes for a point x_j

	mu     sync.Mutex
	errors map[int]float64 // errors[key] is ε for points x whose measures are at most 4^key times maxMeasures
}

const (
	unit         = 0x1p-53
	functionUlps = 4        // largest error of an elementary function, in units of the last place
	tiny         = 0x1p-600 // exceeds the effect of underflow on a kernel value
	largestValue = 0x1p300  // largest kernel value for which the bound holds
	directLimit  = 16       // largest number of features for which devices sum squared differences, if direct is set
	perOctave    = 4        // number of intervals in which propagate treats each octave of the range of a statistic
	octaves      = 100      // number of octaves; the first interval of a range ends at 2⁻¹⁰⁰ times the end of the range
)

// gamma returns an upper bound on γ_n = nu/(1 − nu), where u is the constant unit.
func gamma(n int) float64 { return up(float64(n) * unit * (1 + float64(n)*0x1p-50)) }

// NewRoundoff returns a Roundoff for the points x_j. The argument direct reports whether the device computes ‖x−z‖²
// for at most 16 features without scales as a sum of squared differences, like devices of package cpu.
func NewRoundoff(k kernels.Kernel, points numeric.Points, direct bool) *Roundoff {
	varies := func(s kernels.Stat) bool { return !s.Kind.TranslationInvariant() }
	r := &Roundoff{kernel: k, points: points, direct: direct, functions: []kernels.Kernel{k}, errors: map[int]float64{}, constant: !slices.ContainsFunc(kernels.Compile(k).Stats, varies)}
	if points.Sparse == nil && points.Rows > 0 {
		r.origin = points.Dense.Row(0)
	}
	r.collect(k)
	r.maxMeasures = make([]float64, len(r.stats))
	for s := range r.stats {
		r.measures(&r.stats[s], &points, 0, points.Rows, func(_ int, m float64) { r.maxMeasures[s] = max(r.maxMeasures[s], m) })
	}
	for s, maxMeasure := range r.maxMeasures {
		if maxMeasure == 0 { // all points are equal: any positive number is an upper bound
			r.maxMeasures[s] = 1
		}
	}
	r.roots = points.Diagonal(k)
	for i, v := range r.roots {
		r.roots[i] = r.root(v, points, i)
	}
	return r
}

// collect appends the statistics in k whose errors depend on the magnitude of the points.
func (r *Roundoff) collect(k kernels.Kernel) {
	for _, s := range kernels.Compile(k).Stats {
		if s.Of != nil {
			r.collect(s.Of)
		} else if s.Kind != kernels.Dot && !slices.ContainsFunc(r.stats, s.Equal) {
			r.stats = append(r.stats, s)
		}
	}
}

// measures calls use(i, m) for the points i = first, …, last−1 of x. For a statistic of kind SqDist, m is the
// number ‖x_i − origin‖² with the scales of s. For other kinds, m is Σ_p |x_ip| + |x_ip − origin_p|.
func (r *Roundoff) measures(s *kernels.Stat, x *numeric.Points, first, last int, use func(i int, m float64)) {
	inflation := 1 + float64(x.Cols+4)*0x1p-50
	if s.Kind == kernels.SqDist && r.origin != nil && s.Scale == nil {
		for i := first; i < last; i++ {
			use(i, squaredDistance(x.Dense.Row(i), r.origin)*inflation)
		}
		return
	}
	for i := first; i < last; i++ {
		sum := 0.0
		for p, v := range x.Stored(i) {
			centered := v
			if r.origin != nil {
				centered -= r.origin[p]
			}
			if s.Kind != kernels.SqDist {
				sum += math.Abs(v) + math.Abs(centered)
				continue
			}
			if s.Scale != nil && r.origin != nil {
				centered *= s.ScaleAt(p)
			}
			sum += centered * centered
		}
		use(i, sum*inflation)
	}
}

// squaredDistance returns ‖x − z‖² as the sum of two independent sums, which takes less time than one sum.
func squaredDistance(x, z []float64) float64 {
	var even, odd float64
	for len(x) >= 4 && len(z) >= 4 {
		a, b, c, d := x[0]-z[0], x[1]-z[1], x[2]-z[2], x[3]-z[3]
		even += a*a + b*b
		odd += c*c + d*d
		x, z = x[4:], z[4:]
	}
	for p, v := range x {
		even += (v - z[p]) * (v - z[p])
	}
	return even + odd
}

// setRatios sets ratios[i] to max(1, q), where q is the largest quotient, over all statistics, of the measure of
// point first+i of x and r.maxMeasures.
func (r *Roundoff) setRatios(ratios []float64, x *numeric.Points, first int) {
	for i := range ratios {
		ratios[i] = 1
	}
	for s := range r.stats {
		maxMeasure := r.maxMeasures[s]
		if s := &r.stats[s]; s.Kind == kernels.SqDist && r.origin != nil && s.Scale == nil { // as in measures, without a function call for each point
			limit := maxMeasure / (1 + float64(x.Cols+4)*0x1p-50) * (1 - 0x1p-50)
			for i := range ratios {
				if v := squaredDistance(x.Dense.Row(first+i), r.origin); !(v <= limit) {
					ratios[i] = max(ratios[i], v*(1+float64(x.Cols+4)*0x1p-50)/maxMeasure)
				}
			}
			continue
		}
		r.measures(&r.stats[s], x, first, first+len(ratios), func(i int, m float64) {
			if m > maxMeasure {
				ratios[i-first] = max(ratios[i-first], m/maxMeasure)
			}
		})
	}
}

// relative returns the ε of Roundoff, or +Inf, for points whose measures are at most ratio times r.maxMeasures.
func (r *Roundoff) relative(ratio float64) float64 {
	if !(ratio <= 0x1p200) {
		return math.Inf(1)
	}
	key := 0
	for ; ratio > math.Ldexp(1, 2*key); key++ {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.errors[key]; !ok {
		e := 0.0
		if r.waves {
			e = up(gamma(r.points.Cols+6)*math.Ldexp(1, key) + 24*unit)
		} else {
			e = up(r.kernelError(r.kernel, math.Ldexp(1, 2*key)))
		}
		if !(e < 0x1p-22) { // the method root needs a small ε
			e = math.Inf(1)
		}
		r.errors[key] = e
	}
	return r.errors[key]
}

// root returns an upper bound on √k(x, x) for row i of x, where v is the computed k(x, x) with a relative error of
// at most ε. The bound is at least √(2⁻⁵⁴⁰), because of the effect of underflow on a kernel value.
func (r *Roundoff) root(v float64, x numeric.Points, i int) float64 {
	if r.waves {
		return 1
	}
	if !(v >= 0 && v <= largestValue) || r.vanishes(r.kernel, x, i) {
		return math.Inf(1)
	}
	return up(math.Sqrt(v*(1+0x1p-20) + tiny*0x1p60))
}

// vanishes reports whether k(x, x) in the denominator of a Normalized kernel may have underflowed.
func (r *Roundoff) vanishes(k kernels.Kernel, x numeric.Points, i int) bool {
	switch k := k.(type) {
	case kernels.Normalized:
		v := x.Diag(k.Kernel, i)
		return !(v > 0x1p-500 && v <= largestValue) && slices.ContainsFunc(x.Stored(i), func(v float64) bool { return v != 0 })
	case kernels.CosineSimilarity:
		return r.vanishes(kernels.Normalized{Kernel: kernels.Linear{}}, x, i)
	case kernels.Scaled:
		return r.vanishes(k.Kernel, x, i)
	case kernels.ExpOf:
		return r.vanishes(k.Kernel, x, i)
	case kernels.Sum:
		return slices.ContainsFunc(k, func(k kernels.Kernel) bool { return r.vanishes(k, x, i) })
	case kernels.Product:
		return slices.ContainsFunc(k, func(k kernels.Kernel) bool { return r.vanishes(k, x, i) })
	}
	return false
}

// kernelError returns the ε of Roundoff for the kernel k, from the ε of the kernels of which k consists. For each of
// these kernels, let a be its value for (x, x) and b for (z, z). If their errors are at most ε√ab, so is that of k:
//
//   - For a sum, √a₁b₁ + √a₂b₂ ≤ √((a₁+a₂)(b₁+b₂)).
//   - For a product, |k₁k₂| ≤ √(a₁a₂b₁b₂).
//   - For exp, exp(k) ≤ √(exp(a)exp(b)), because k ≤ √ab ≤ (a+b)/2.
func (r *Roundoff) kernelError(k kernels.Kernel, ratio float64) float64 {
	switch k := k.(type) {
	case kernels.Constant:
		return 0
	case kernels.Linear:
		return 2 * gamma(r.points.Cols+3)
	case kernels.Polynomial:
		base := (1 + 2*gamma(r.points.Cols+3)) * (1 + gamma(4))
		return 2 * (math.Pow(base*(1+gamma(4)), float64(k.Degree)) - 1) * (1 + 0x1p-20)
	case kernels.Scaled:
		if k.Weight > largestValue {
			return math.Inf(1)
		}
		return up(r.kernelError(k.Kernel, ratio) + gamma(4))
	case kernels.Sum:
		e := 0.0
		for _, term := range k {
			e = max(e, r.kernelError(term, ratio))
		}
		return up(e + (1+e)*gamma(2*len(k)))
	case kernels.Product:
		e := gamma(2 * len(k))
		for _, factor := range k {
			f := r.kernelError(factor, ratio)
			e = up(e + f + e*f)
		}
		return e
	case kernels.ExpOf:
		low, high, ok := kernels.Bounds(k.Kernel, r.points.Cols)
		if m := max(-low, high); ok && m <= 100 {
			return up(math.Expm1(up(r.kernelError(k.Kernel, ratio)*m))*(1+0x1p-20) + 2*gamma(2*functionUlps))
		}
		return math.Inf(1)
	case kernels.Normalized: // the errors of √k(x, x), of √k(z, z) and of the products with k add up
		e := r.kernelError(k.Kernel, ratio)
		if !(e < 0x1p-10) {
			return math.Inf(1)
		}
		return up(2*e*(1+4*e) + gamma(16))
	case kernels.Columns:
		switch k.Kernel.(type) {
		case kernels.Linear, kernels.Polynomial: // features that are not selected add 0 to xᵀz
			return r.kernelError(k.Kernel, ratio)
		}
	case kernels.CosineSimilarity:
		return r.kernelError(kernels.Normalized{Kernel: kernels.Linear{}}, ratio)
	}
	return r.statError(k, ratio)
}

// statError returns the ε of Roundoff for a kernel that is a function of one statistic. It returns +Inf if the
// statistic of the pair (x, x) depends on x.
func (r *Roundoff) statError(k kernels.Kernel, ratio float64) float64 {
	p, d := kernels.Compile(k), r.points.Cols
	if len(p.Stats) != 1 {
		return math.Inf(1)
	}
	s := p.Stats[0]
	index := slices.IndexFunc(r.stats, s.Equal)
	if index < 0 || r.points.Sparse != nil && (s.Kind != kernels.SqDist || s.Scale != nil) {
		return math.Inf(1)
	}
	features := 0 // number of features with a term in the statistic
	for p := range d {
		if s.ScaleAt(p) != 0 {
			features++
		}
	}
	maxMeasure, terms := r.maxMeasures[index]*ratio, float64(features*max(1, len(s.Freqs)))
	var selfStat, maxError float64
	coverRange := func(end float64, err func(v float64) float64) {
		from := 0.0
		for i := 0; i <= perOctave*octaves; i++ {
			to := up(end * math.Exp2(float64(i)/perOctave-octaves))
			maxError = max(maxError, propagate(p, interval{from, to, up(err(to) + 0x1p-1000)}))
			from = to * (1 - 0x1p-40)
		}
	}
	switch s.Kind {
	case kernels.SqDist:
		// All points are within √maxMeasure of the origin, so that ‖x−z‖² is at most 4·maxMeasure.
		coverRange(4*maxMeasure, func(v float64) float64 {
			if r.direct && r.points.Sparse == nil && s.Scale == nil && d <= directLimit {
				return gamma(d+3) * v
			}
			return min(16*gamma(d+6)*maxMeasure, 0x1p12*gamma(d+6)*v)
		})
	case kernels.L1, kernels.Chi2: // the distance χ² is at most Σ x_p + z_p, like ‖x−z‖₁
		coverRange(2*maxMeasure, func(v float64) float64 { return gamma(2*d+8) * v })
	case kernels.CosSum:
		angles := 0.0
		for _, w := range s.Freqs {
			angles += math.Abs(w) * maxMeasure
		}
		selfStat = terms
		maxError = propagate(p, interval{-terms, terms, up(unit * (2*terms*(2*terms+4) + 12*angles + 16*functionUlps*terms))})
	case kernels.Sinc:
		selfStat = 2 * math.Pi * terms
		maxError = propagate(p, interval{-up(selfStat), up(selfStat), up(unit * selfStat * (2*terms + 4 + 3 + 2*functionUlps))})
	default:
		return math.Inf(1)
	}
	// A device may use another formula with the same number of roundings: allow twice the error.
	return up(2 * maxError / (p.Run([]float64{selfStat}) * (1 - 0x1p-40)))
}

// interval is a range of exact numbers with a bound on the errors of the computed numbers.
type interval struct{ low, high, err float64 }

func (a interval) size() float64 { return max(math.Abs(a.low), math.Abs(a.high)) }

// rounded adds to a.err the rounding errors of n operations with results in the range of a. It also extends the range,
// whose ends have rounding errors, too.
func (a interval) rounded(n float64) interval {
	a.err = up(a.err + n*unit*(a.size()+a.err))
	a.low -= up(math.Abs(a.low) * 0x1p-45)
	a.high += up(math.Abs(a.high) * 0x1p-45)
	return a
}

// propagate bounds the error of a program for all statistics in the given range, by a running error
// analysis (Higham 2002, section 3.3). The result is +Inf or NaN if no bound is known.
func propagate(p *kernels.Program, statistic interval) float64 {
	stack := make([]interval, 0, p.Depth)
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, statistic)
			continue
		case kernels.Const:
			stack = append(stack, interval{in.A, in.A, 0})
			continue
		}
		last := len(stack) - 1
		t := stack[last]
		switch in.Op {
		case kernels.Affine:
			ends := []float64{in.A*t.low + in.B, in.A*t.high + in.B}
			slack := unit * (math.Abs(in.A)*(t.size()+t.err) + math.Abs(in.B))
			t = interval{slices.Min(ends) - 2*slack, slices.Max(ends) + 2*slack, math.Abs(in.A)*t.err + 4*slack}.rounded(1)
		case kernels.PowInt:
			n := float64(in.Arg)
			m := t.size() + t.err
			high, low := math.Pow(t.size(), n), math.Pow(t.low, n)
			if t.low < 0 {
				low = -high
			}
			t = interval{low, high, n * t.err * math.Pow(m, n-1) * (1 + 0x1p-20)}.rounded(2 * n)
		case kernels.Sqrt: // |√(v±e) − √v| ≤ e/√v and ≤ √e
			low, high := math.Sqrt(max(t.low, 0)), math.Sqrt(max(t.high, 0))
			change := math.Sqrt(t.err)
			if low > 0 {
				change = min(change, t.err/low)
			}
			t = interval{low, high, up(change)}.rounded(1)
		case kernels.Exp:
			high := math.Exp(t.high)
			t = interval{math.Exp(t.low), high, up(high*math.Expm1(t.err)) + 0x1p-1000}.rounded(2 * functionUlps)
		case kernels.Pow:
			if !(t.low > 2*t.err) {
				return math.Inf(1)
			}
			a, b := math.Pow(t.low, in.A), math.Pow(t.high, in.A)
			log := max(math.Abs(math.Log(t.low)), math.Abs(math.Log(t.high)))
			change := math.Abs(in.A) * (-math.Log1p(-t.err/t.low) + (2+2*functionUlps)*unit*log)
			t = interval{min(a, b), max(a, b), up(max(a, b)*math.Expm1(up(change))) + 0x1p-1000}.rounded(2 * functionUlps)
		case kernels.Add:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			t = interval{s.low + t.low, s.high + t.high, up(s.err + t.err)}.rounded(1)
		case kernels.Mul:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			ends := []float64{s.low * t.low, s.low * t.high, s.high * t.low, s.high * t.high}
			t = interval{slices.Min(ends), slices.Max(ends), up(s.size()*t.err + t.size()*s.err + s.err*t.err)}.rounded(1)
		default:
			return math.Inf(1)
		}
		stack[last] = t
	}
	return stack[0].err
}

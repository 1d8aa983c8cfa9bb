package kernels

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// A StatKind names a statistic of a pair of points (x, z).
type StatKind uint8

const (
	Dot    StatKind = iota // xᵀz
	SqDist                 // ‖x−z‖² = Σ (x_p−z_p)²; on every device this is ≥ 0, and 0 for equal points
	L1                     // ‖x−z‖₁ = Σ |x_p−z_p|
	// CosSum is Σ_p Σ_w cos(w(x_p−z_p)) over the features p and the frequencies w in Stat.Freqs.
	CosSum
	SinSum // Σ_p Σ_w w(x_p−z_p) sin(w(x_p−z_p))
	Sinc   // Σ_p sin(2πΔ)/Δ with Δ = x_p−z_p, and 2π where Δ is 0
	Chi2   // Σ_p (x_p−z_p)²/(x_p+z_p), with 0/0 taken as 0; NaN if a feature is < 0
	Entry  // an entry of a precomputed Gram matrix: see Precomputed
	// These statistics depend on one point. A backend evaluates them once per point instead of once
	// per pair. If k is the kernel Stat.Of, SelfX is k(x, x), and RootX is 1/√k(x, x), or 0 if k(x,
	// x) is 0. SelfZ and RootZ are the same functions of z.
	SelfX
	SelfZ
	RootX
	RootZ
)

var statNames = []string{"dot", "sqdist", "l1", "cossum", "sinsum", "sinc", "chi2", "entry", "selfx", "selfz", "rootx", "rootz"}

func (k StatKind) String() string {
	if int(k) < len(statNames) {
		return statNames[k]
	}
	return fmt.Sprintf("StatKind(%d)", uint8(k))
}

// TranslationInvariant reports whether adding a vector to both points does not change the
// statistic, so that a backend may center the points.
func (k StatKind) TranslationInvariant() bool {
	switch k {
	case SqDist, L1, CosSum, SinSum, Sinc:
		return true
	}
	return false
}

// OnePoint reports whether the statistic depends on only one of the points.
func (k StatKind) OnePoint() bool { return k >= SelfX }

// A Stat is one statistic of a pair of points.
type Stat struct {
	Kind StatKind
	// Scale applies to sums over the features. For Dot, SqDist and L1, feature p of both points is
	// first multiplied by Scale[p]. For the other sums Scale[p] is 1, or 0 for a feature without a
	// term. Nil means all ones; features after the end of a shorter Scale have the scale 0.
	Scale []float64
	Freqs []float64 // the frequencies of CosSum and SinSum
	Of    Kernel    // the kernel k of SelfX, SelfZ, RootX and RootZ
}

// Eval returns the statistic of (x, z), computed from the definition in float64. It panics if the
// lengths of x and z differ or Scale is longer.
func (s Stat) Eval(x, z []float64) float64 {
	if len(x) != len(z) || len(s.Scale) > len(x) {
		panic(fmt.Sprintf("kernels: Stat.Eval: lengths differ: x %d, z %d, scale %d", len(x), len(z), len(s.Scale)))
	}
	switch s.Kind {
	case Entry:
		return entry(x, z)
	case SelfX:
		return Diag(s.Of, x)
	case SelfZ:
		return Diag(s.Of, z)
	case RootX:
		return inverseRoot(Diag(s.Of, x))
	case RootZ:
		return inverseRoot(Diag(s.Of, z))
	}
	var sum float64
	switch { // The common statistics are computed by loops without a switch.
	case s.Scale == nil && s.Kind == Dot:
		for p, v := range x {
			sum += v * z[p]
		}
		return sum
	case s.Scale == nil && s.Kind == SqDist:
		for p, v := range x {
			sum += (v - z[p]) * (v - z[p])
		}
		return sum
	case s.Kind == SqDist:
		for p, c := range s.Scale {
			if c != 0 {
				sum += float64((x[p] - z[p]) * c * ((x[p] - z[p]) * c))
			}
		}
		return sum
	}
	for p := range x {
		sum += s.term(p, x[p], z[p])
	}
	return sum
}

// ScaleAt returns the scale of feature p.
func (s Stat) ScaleAt(p int) float64 {
	switch {
	case s.Scale == nil:
		return 1
	case p < len(s.Scale):
		return s.Scale[p]
	}
	return 0
}

// term returns the term of feature p in a statistic that is a sum over the features.
func (s Stat) term(p int, x, z float64) float64 {
	scale := s.ScaleAt(p)
	if scale == 0 {
		return 0
	}
	// Scale the difference, not the features. Far from the origin, scaled features may have rounding errors that are
	// larger than their difference.
	switch diff := x - z; s.Kind {
	case Dot:
		return (x * scale) * (z * scale)
	case SqDist:
		return diff * scale * (diff * scale)
	case L1:
		return math.Abs(diff * scale)
	case CosSum:
		sum := 0.0
		for _, w := range s.Freqs {
			sum += math.Cos(w * diff)
		}
		return sum
	case SinSum:
		sum := 0.0
		for _, w := range s.Freqs {
			sum += w * diff * math.Sin(w*diff)
		}
		return sum
	case Sinc:
		if diff == 0 {
			return 2 * math.Pi
		}
		return math.Sin(2*math.Pi*diff) / diff
	case Chi2:
		switch {
		case x < 0 || z < 0:
			return math.NaN()
		case x == 0 && z == 0:
			return 0
		}
		// Divide first, because (x − z)² may overflow.
		return diff / (x + z) * diff
	}
	panic(fmt.Sprintf("kernels: Stat.Eval: unknown statistic %d", s.Kind))
}

// inverseRoot returns 1/√v, 0 for v = 0, and NaN for v < 0.
func inverseRoot(v float64) float64 {
	if v == 0 {
		return 0
	}
	return 1 / math.Sqrt(v)
}

// Equal reports whether s and t are equal statistics.
func (s Stat) Equal(t Stat) bool {
	return s.Kind == t.Kind && slices.Equal(s.Scale, t.Scale) && slices.Equal(s.Freqs, t.Freqs) && reflect.DeepEqual(s.Of, t.Of)
}

// A SparsePoint is a point given by a list of columns in ascending order and the features in these
// columns. All other features are 0.
type SparsePoint[T float32 | float64] struct {
	Columns []int32
	Values  []T
}

// EvalSparse is like Eval for two sparse points of d features. It merges their lists of columns.
func EvalSparse[T float32 | float64](s Stat, d int, x, z SparsePoint[T]) float64 {
	switch s.Kind {
	case Entry:
		return entry(x.dense(d), z.dense(d))
	case SelfX:
		return DiagSparse(s.Of, d, x)
	case SelfZ:
		return DiagSparse(s.Of, d, z)
	case RootX:
		return inverseRoot(DiagSparse(s.Of, d, x))
	case RootZ:
		return inverseRoot(DiagSparse(s.Of, d, z))
	}
	sum := 0.0
	zeros := d // number of terms whose feature is 0 in both points
	if s.Scale != nil {
		zeros = s.terms(d)
	}
	for p, q := 0, 0; p < len(x.Columns) || q < len(z.Columns); {
		var column int32
		var a, b float64
		switch {
		case q == len(z.Columns) || p < len(x.Columns) && x.Columns[p] < z.Columns[q]:
			column, a = x.Columns[p], float64(x.Values[p])
			p++
		case p == len(x.Columns) || z.Columns[q] < x.Columns[p]:
			column, b = z.Columns[q], float64(z.Values[q])
			q++
		default:
			column, a, b = x.Columns[p], float64(x.Values[p]), float64(z.Values[q])
			p, q = p+1, q+1
		}
		if s.ScaleAt(int(column)) != 0 {
			zeros--
		}
		sum += s.term(int(column), a, b)
	}
	if zeros > 0 {
		sum += float64(zeros) * Stat{Kind: s.Kind, Freqs: s.Freqs}.term(0, 0, 0)
	}
	return sum
}

// dense returns all d features, including the zeros that are not stored.
func (x SparsePoint[T]) dense(d int) []float64 {
	features := make([]float64, d)
	for p, c := range x.Columns {
		features[c] = float64(x.Values[p])
	}
	return features
}

// DiagSparse is like Diag for a sparse point of d features.
func DiagSparse[T float32 | float64](k Kernel, d int, x SparsePoint[T]) float64 {
	p := Compile(k)
	stats := make([]float64, len(p.Stats))
	for i, s := range p.Stats {
		stats[i] = EvalSparse(s, d, x, x)
	}
	return p.Run(stats)
}

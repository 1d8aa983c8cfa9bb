package kernels

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
)

// A FeatureMap is the map φ of a kernel with a finite-dimensional feature space, k(x, z) = φ(x)ᵀφ(z):
//
//	linear                 x: d dimensions
//	polynomial             √(p!/((p−q)! e_1! … e_d!) c^(p−q)) x_1^e_1 … x_d^e_d, for degree p and
//	                       constant c. All exponents of sum q ≤ p occur (q = p if c = 0), in
//	                       ascending order of q and then as x_1 … x_1, x_1 … x_2, …:
//	                       C(d+p, p) dimensions, or C(d+p−1, p) if c = 0
//	cosine, cosine series  cos wx_i and sin wx_i for each feature x_i and frequency w: 2d or 2d(L+1)
//	constant               √value: one dimension
//	normalized             φ/‖φ‖, or 0 if φ = 0
//	sum                    the concatenation of the φ of the terms
//	product                all products of one coordinate from the φ of each factor
//	scaled                 √weight φ
type FeatureMap struct {
	features int
	m        mapping
}

// maxFeatures is the maximum dimension of φ; it bounds the memory of one φ(x).
const maxFeatures = 1 << 24

// NewFeatureMap returns the feature map of k for points of d features. It returns an error if k is
// invalid, or if its feature space has infinite dimension or more than 2²⁴ dimensions.
func NewFeatureMap(k Kernel, d int) (*FeatureMap, error) {
	if k == nil {
		return nil, fmt.Errorf("kernels: feature map: the kernel is nil")
	}
	if d < 0 {
		return nil, fmt.Errorf("kernels: feature map: a point has %s", count.Of(d, "feature"))
	}
	if err := k.Check(d); err != nil {
		return nil, err
	}
	m, err := mapOf(k, d)
	if err != nil {
		return nil, err
	}
	return &FeatureMap{d, m}, nil
}

// Dim returns the number of dimensions of φ, or 0 if f was not made by NewFeatureMap.
func (f *FeatureMap) Dim() int {
	if f == nil || f.m == nil {
		return 0
	}
	return f.m.dim()
}

// Apply sets dst, which must have Dim elements, to the feature vector φ(x). It panics if dst or x has the wrong length.
func (f *FeatureMap) Apply(dst, x []float64) {
	if f == nil || f.m == nil {
		panic("kernels: FeatureMap.Apply: the map was not made by NewFeatureMap")
	}
	if len(dst) != f.Dim() || len(x) != f.features {
		panic(fmt.Sprintf("kernels: FeatureMap.Apply: dst has %s and x has %d; they must have %d and %d", count.Of(len(dst), "element"), len(x), f.Dim(), f.features))
	}
	f.m.apply(dst, x)
}

type mapping interface {
	dim() int
	apply(dst, x []float64)
}

func mapOf(k Kernel, d int) (mapping, error) {
	var m mapping
	switch k := k.(type) {
	case Linear:
		return mapOf(Polynomial{Degree: 1}, d)
	case Polynomial:
		if n := monomials(k, d); n > maxFeatures {
			return nil, fmt.Errorf("kernels: feature map: %v has more than %d dimensions for %s", k, maxFeatures, count.Of(d, "feature"))
		}
		// The squares of all coefficients sum to (C+d)^Degree, which must not overflow.
		if float64(k.Degree)*elementary.Log(float64(d)+max(k.C, 1)) > elementary.Log(math.MaxFloat64) {
			return nil, fmt.Errorf("kernels: feature map: the coefficients of %v for %d features are outside the range of float64", k, d)
		}
		m = newPowers(k, d)
	case Cosine:
		m = fourierMap{[]float64{k.Theta}, d}
	case CosineSeries:
		m = fourierMap{k.frequencies(), d}
	case Constant:
		m = constant(math.Sqrt(k.Value))
	case CosineSimilarity:
		return mapOf(Normalized{Linear{}}, d)
	case Normalized:
		inner, err := mapOf(k.Kernel, d)
		if err != nil {
			return nil, err
		}
		m = unit{inner}
	case Scaled:
		inner, err := mapOf(k.Kernel, d)
		if err != nil {
			return nil, err
		}
		m = scaled{math.Sqrt(k.Weight), inner}
	case Sum:
		maps, err := mapsOf(k, d)
		if err != nil {
			return nil, err
		}
		m = stacked(maps)
	case Product:
		maps, err := mapsOf(k, d)
		if err != nil {
			return nil, err
		}
		m = tensor(maps)
	default:
		return nil, fmt.Errorf("kernels: feature map: the feature space of %v is not finite", k)
	}
	if n := m.dim(); n > maxFeatures {
		return nil, fmt.Errorf("kernels: feature map: %v has more than %d dimensions for %s", k, maxFeatures, count.Of(d, "feature"))
	}
	return m, nil
}

func mapsOf(ks []Kernel, d int) ([]mapping, error) {
	maps := make([]mapping, len(ks))
	for i, k := range ks {
		var err error
		if maps[i], err = mapOf(k, d); err != nil {
			return nil, err
		}
	}
	return maps, nil
}

// powers lists monomials in ascending order of degree. The first monomial is 1. Each other monomial
// is an earlier monomial, its parent, times a feature.
type powers struct {
	list []power
	from int // index of the first monomial that is an element of φ; earlier monomials are only parents
}

type power struct {
	coefficient     float64
	parent, feature int
	degree, run     int     // degree of the monomial, and the exponent of its last feature
	orders          float64 // degree!/(e_1! … e_d!)
}

// monomials returns the number of dimensions of the feature map, or some number above maxFeatures if there are more.
func monomials(k Polynomial, d int) float64 {
	n := d + k.Degree // the number of dimensions is C(n, Degree)
	if k.C == 0 {
		n--
	}
	r, count := min(k.Degree, n-k.Degree), 1.0
	for i := 1; i <= r && count <= maxFeatures; i++ {
		count *= float64(n-r+i) / float64(i)
	}
	return count
}

func newPowers(k Polynomial, d int) powers {
	p := powers{list: []power{{orders: 1}}}
	begin := 0
	for degree := 1; degree <= k.Degree; degree++ {
		end := len(p.list)
		for parent := begin; parent < end; parent++ {
			previous := p.list[parent]
			for feature := previous.feature; feature < d; feature++ {
				next := power{parent: parent, feature: feature, degree: degree, run: 1}
				if degree > 1 && feature == previous.feature {
					next.run = previous.run + 1
				}
				next.orders = previous.orders * float64(degree) / float64(next.run)
				p.list = append(p.list, next)
			}
		}
		begin = end
	}
	if k.C == 0 {
		p.from = begin
	}
	// The square of a coefficient contains choices·orders = p!/((p−q)! e_1! … e_d!), with the symbols of FeatureMap.
	degree, choices := 0, 1.0
	for i := range p.list {
		q := &p.list[i]
		if q.degree != degree {
			choices *= float64(k.Degree-degree) / float64(q.degree)
			degree = q.degree
		}
		q.coefficient = math.Sqrt(choices * q.orders * elementary.Pow(k.C, float64(k.Degree-degree)))
	}
	return p
}

func (p powers) dim() int { return len(p.list) - p.from }

func (p powers) apply(dst, x []float64) {
	values := make([]float64, len(p.list))
	values[0] = 1
	for i, q := range p.list {
		if i > 0 {
			values[i] = values[q.parent] * x[q.feature]
		}
		if i >= p.from {
			dst[i-p.from] = q.coefficient * values[i]
		}
	}
}

// fourierMap is the map to cos wx_p and sin wx_p for each frequency w and each feature x_p.
type fourierMap struct {
	frequencies []float64
	features    int
}

func (w fourierMap) dim() int { return 2 * len(w.frequencies) * w.features }

func (w fourierMap) apply(dst, x []float64) {
	for _, v := range x {
		for _, f := range w.frequencies {
			dst[1], dst[0] = math.Sincos(f * v)
			dst = dst[2:]
		}
	}
}

type constant float64

func (constant) dim() int                 { return 1 }
func (c constant) apply(dst, _ []float64) { dst[0] = float64(c) }

type scaled struct {
	factor float64
	mapping
}

func (s scaled) apply(dst, x []float64) {
	s.mapping.apply(dst, x)
	for i := range dst {
		dst[i] *= s.factor
	}
}

// unit is the map φ/‖φ‖ for a map φ, or 0 where φ is 0.
type unit struct{ mapping }

func (u unit) apply(dst, x []float64) {
	u.mapping.apply(dst, x)
	sum := 0.0
	for _, v := range dst {
		sum += v * v
	}
	factor := inverseRoot(sum)
	for i := range dst {
		dst[i] *= factor
	}
}

// stacked is the concatenation of maps.
type stacked []mapping

func (s stacked) dim() int {
	n := 0
	for _, m := range s {
		n = min(n+m.dim(), math.MaxInt32) // limit n to avoid overflow; the limit is above maxFeatures
	}
	return n
}

func (s stacked) apply(dst, x []float64) {
	for _, m := range s {
		m.apply(dst[:m.dim()], x)
		dst = dst[m.dim():]
	}
}

// tensor is the tensor product of maps: all products of one element from each map.
type tensor []mapping

func (t tensor) dim() int {
	n := 1
	for _, m := range t {
		n = min(n*m.dim(), math.MaxInt32)
	}
	return n
}

func (t tensor) apply(dst, x []float64) {
	products := []float64{1}
	for _, m := range t {
		values := make([]float64, m.dim())
		m.apply(values, x)
		extended := make([]float64, 0, len(products)*len(values))
		for _, a := range products {
			for _, b := range values {
				extended = append(extended, a*b)
			}
		}
		products = extended
	}
	copy(dst, products)
}

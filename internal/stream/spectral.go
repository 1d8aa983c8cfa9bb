package stream

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// By Bochner's theorem, a positive semidefinite kernel k(x − z) is k(0) E cos(ωᵀ(x − z)) for random frequencies ω.
// The functions below draw ω. The distribution for a sum of kernels is a mixture; for a product, ω is the sum of a
// frequency of each factor.

// spectral is the distribution of the frequencies of a kernel.
type spectral struct {
	height float64 // k(x, x), the same for all x
	// draw sets omega to one random frequency. It may use the d standard normal numbers in normal. If byOmega is
	// not nil, draw adds to sums the derivatives of byOmegaᵀω with respect to the logarithms of the length scales
	// of the kernel, in the order of kernels.Params.
	draw func(r *rand.Rand, omega, normal, byOmega, sums []float64)
}

// scaled adds ∂(byOmegaᵀω)/∂ln σ to sums[0], where σ is the length scale of all components of ω.
func scaled(omega, byOmega, sums []float64) {
	for p, v := range byOmega {
		sums[0] -= float64(omega[p] * v)
	}
}

// spectralOf returns the distribution for points of d features, or an error that lists the supported kernels.
func spectralOf(k kernels.Kernel, d int) (spectral, error) {
	switch k := k.(type) {
	case kernels.Gaussian:
		return spectral{1, func(_ *rand.Rand, omega, normal, byOmega, sums []float64) {
			if k.Sigmas == nil {
				for p, v := range normal {
					omega[p] = v / k.Sigma
				}
				scaled(omega, byOmega, sums)
				return
			}
			for p, v := range normal {
				omega[p] = v / k.Sigmas[p]
			}
			for p, v := range byOmega {
				sums[p] -= float64(omega[p] * v)
			}
		}}, nil
	case kernels.Matern:
		// Student's t distribution with 2ν degrees of freedom (Rasmussen and Williams 2006, equation 4.15): a
		// normal number divided by the root mean square of 2ν normal numbers.
		freedom := int(2 * k.Nu)
		return spectral{1, func(r *rand.Rand, omega, normal, byOmega, sums []float64) {
			sum := 0.0
			for range freedom {
				v := elementary.Normal(r)
				sum += v * v
			}
			for p, v := range normal {
				omega[p] = v / k.Sigma * math.Sqrt(2*k.Nu/sum)
			}
			scaled(omega, byOmega, sums)
		}}, nil
	case kernels.RationalQuadratic:
		// Rasmussen and Williams 2006, equation 4.20: Gaussian kernels whose 1/σ² has a Gamma distribution.
		return spectral{1, func(r *rand.Rand, omega, normal, _, _ []float64) {
			factor := math.Sqrt(gamma(r, k.A)/k.A) / k.Sigma
			for p, v := range normal {
				omega[p] = v * factor
			}
		}}, nil
	case kernels.Laplacian:
		// For the product of exp(−|δ_p|/σ) over the features p, each frequency has a Cauchy distribution.
		return spectral{1, func(r *rand.Rand, omega, _, byOmega, sums []float64) {
			for p := range omega {
				omega[p] = math.Tan(math.Pi*(r.Float64()-0.5)) / k.Sigma
			}
			scaled(omega, byOmega, sums)
		}}, nil
	case kernels.Columns:
		m := len(k.Indices)
		s, err := spectralOf(k.Kernel, m)
		if err != nil {
			return s, err
		}
		return spectral{s.height, func(r *rand.Rand, omega, normal, byOmega, sums []float64) {
			subOmega, subNormal := make([]float64, m), make([]float64, m)
			for i, c := range k.Indices {
				subNormal[i] = normal[c]
			}
			var subByOmega []float64
			if byOmega != nil {
				subByOmega = make([]float64, m)
				for i, c := range k.Indices {
					subByOmega[i] = byOmega[c]
				}
			}
			s.draw(r, subOmega, subNormal, subByOmega, sums)
			clear(omega)
			for i, c := range k.Indices {
				omega[c] = subOmega[i]
			}
		}}, nil
	case kernels.Scaled:
		s, err := spectralOf(k.Kernel, d)
		if err != nil {
			return s, err
		}
		return spectral{s.height * k.Weight, s.withOffset(1)}, nil
	case kernels.Product:
		product := spectral{height: 1}
		var factors []spectral
		offset := 0
		for _, factor := range k {
			if c, ok := factor.(kernels.Constant); ok {
				product.height *= c.Value
				offset++
				continue
			}
			s, err := spectralOf(factor, d)
			if err != nil {
				return s, err
			}
			product.height *= s.height
			factors = append(factors, spectral{s.height, s.withOffset(offset)})
			offset += len(kernels.Params(factor))
		}
		if len(factors) == 1 {
			factors[0].height = product.height
			return factors[0], nil
		}
		if len(factors) > 1 {
			product.draw = func(r *rand.Rand, omega, _, byOmega, sums []float64) {
				clear(omega)
				term, normal := make([]float64, len(omega)), make([]float64, len(omega))
				for _, s := range factors {
					for p := range normal {
						normal[p] = elementary.Normal(r)
					}
					s.draw(r, term, normal, byOmega, sums)
					for p, v := range term {
						omega[p] += v
					}
				}
			}
			return product, nil
		}
	case kernels.Sum:
		var terms []spectral
		sum := spectral{}
		for _, term := range k {
			s, err := spectralOf(term, d)
			if err != nil {
				return s, err
			}
			sum.height += s.height
			terms = append(terms, s)
		}
		sum.draw = func(r *rand.Rand, omega, normal, _, _ []float64) {
			target, last := r.Float64()*sum.height, terms[len(terms)-1]
			for _, s := range terms {
				if target < s.height {
					last = s
					break
				}
				target -= s.height
			}
			last.draw(r, omega, normal, nil, nil)
		}
		return sum, nil
	}
	return spectral{}, fmt.Errorf("solvers: no random Fourier features are known for the kernel %v: use gaussian, laplacian, exponential, matern32, matern52, rationalquadratic, their sums or their products", k)
}

// gamma returns a random number from the Gamma distribution of scale 1 (Marsaglia and Tsang 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * elementary.Pow(1-r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := elementary.Normal(r)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if elementary.Log(1-r.Float64()) < x*x/2+d*(1-v+elementary.Log(v)) {
			return d * v
		}
	}
}

// withOffset returns the function draw of s for a kernel whose parameters include those of s from index offset on.
func (s spectral) withOffset(offset int) func(r *rand.Rand, omega, normal, byOmega, sums []float64) {
	return func(r *rand.Rand, omega, normal, byOmega, sums []float64) {
		if byOmega != nil {
			sums = sums[offset:]
		}
		s.draw(r, omega, normal, byOmega, sums)
	}
}

// frequencies draws count frequencies as the rows of a count×d matrix. For frequency i, it passes column i of the
// d×count matrix byOmega to s.draw. Once ctx is done, frequencies returns an error.
func (s spectral) frequencies(ctx context.Context, r *rand.Rand, count, d int, byOmega backend.Host[float64], sums []float64) (backend.Host[float64], error) {
	list, normal := backend.NewHost[float64](count, d), make([]float64, d)
	var column []float64
	if sums != nil {
		column = make([]float64, d)
	}
	for i := range count {
		for p := range normal {
			normal[p] = elementary.Normal(r)
		}
		for p := range column {
			column[p] = byOmega.Row(p)[i]
		}
		s.draw(r, list.Row(i), normal, column, sums)
		if i%1024 == 0 && ctx.Err() != nil {
			return list, context.Cause(ctx)
		}
	}
	return list, nil
}

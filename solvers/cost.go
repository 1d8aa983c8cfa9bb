package solvers

import "github.com/mercer-go/mercer/backend"

// The cost model: the modelled time of a step in operations at the rate of a
// large matrix product in float64. Only ratios matter for a choice; the constants
// are those of the cpu backend with AVX-512 on two cores of a Zen 4, 2026-11,
// n = 10,000. A device that reports its rates (backend.Rated) is taken at its word
// where float32 is weighed against float64; beyond that the choice depends on the
// problem and these only.
const (
	rateProduct = 1.0  // Gemm and Syrk
	ratePotrf   = 0.95 // its panels run below the rate of a product
	rateSingle  = 2.0  // float32 beside float64
	rateThin    = 0.15 // products and solves with few columns: bound by memory

	// An exponential or a power, with what surrounds it.
	kernelValue = 30.0
	// A step of an iteration beside its products: a dozen short operations.
	stepOverhead = 5e7
	// A byte of a large matrix, which the system must clear before its first use.
	freshByte = 45.0
	// A sample's eigenvalues, and what else is done before an iteration.
	lookOverhead = 3e9
)

// gramCost is that of K, or of a product with it that is not stored, which costs
// little more: half of the values serve for both of their places.
func (z *sizes) gramCost(single bool) float64 {
	c := float64(z.n) * float64(z.n) * (float64(z.d) + kernelValue)
	if z.linear {
		c = backend.SyrkFlops(z.n, z.d) + 2*float64(z.n)*float64(z.n)
	}
	if single {
		c /= z.rates().Values
	}
	return c
}

// rates are those of the device, or of the cpu backend.
func (z *sizes) rates() backend.Rates {
	if r, ok := z.dev.(backend.Rated); ok {
		return r.Rates()
	}
	return backend.Rates{Single: rateSingle, Values: 1.5}
}

// gramMulCost is that of K·V, V n×c.
func (z *sizes) gramMulCost(c int, single bool) float64 {
	return z.gramCost(single) + 2*float64(z.n)*float64(z.n)*float64(c)
}

// symmCost is that of a product of a stored K and c columns, or of a solve with a
// triangle and its transpose: K goes through memory, and each column through the
// caches.
func (z *sizes) symmCost(c int, single bool) float64 {
	square := float64(z.n) * float64(z.n)
	if single {
		return square * (5 + 5*float64(c))
	}
	return square * (12 + 4*float64(c))
}

// storedCost is gramCost for a K that is stored.
func (z *sizes) storedCost(single bool) float64 {
	size := 4.0 // bytes for each of n², in packed storage
	if single {
		size = 2
	}
	return z.gramCost(single) + freshByte*size*float64(z.n)*float64(z.n)
}

// potrfCost is that of a factor at a rate of products, 1 in float64.
func (z *sizes) potrfCost(rate float64) float64 {
	return backend.PotrfFlops(z.n) / ratePotrf / rate
}

// residualFlops are those of a residual computed from the data: a product with K
// that is not stored, or with X and its transpose for a linear kernel.
func (z *sizes) residualFlops() float64 {
	if z.linear {
		return 2 * backend.GemmFlops(z.n, z.t, z.d)
	}
	return backend.GramMulFlops(z.n, z.n, z.d, z.t)
}

func (z *sizes) residualCost() float64 {
	if z.linear {
		return z.residualFlops() / rateThin
	}
	return z.gramMulCost(z.t, false)
}

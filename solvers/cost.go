package solvers

import "github.com/mercer-go/mercer/backend"

// The cost model: the modeled time of a step in operations at the rate of a
// large matrix product in float64. Only ratios matter for a choice; the constants
// are those of the cpu backend with AVX-512 on two cores of a Zen 4, 2026-11,
// n = 10,000. A device that reports its rates (backend.Rated) is taken at its word
// where float32 is weighed against float64; where it reports those of its memory and
// of its steps too, as GPUs do, for all the rest.
const (
	rateProduct = 1.0  // Gemm and Syrk
	ratePotrf   = 0.95 // its panels run below the rate of a product
	rateSingle  = 2.0  // float32 beside float64
	rateThin    = 0.15 // products and solves with few columns: bound by memory

	// An exponential or a power, with what surrounds it.
	kernelValue = 30.0
	// A byte of a matrix that is multiplied with one vector: 22 GB/s.
	readByte = 4.5
	// What a pivot's column costs the host, for each element.
	hostElement = 15.0
	// An element of F that is a product of features: by a profile of n = 10,000 with rank
	// 1326, 2.7 ns of one core to compute it and 3 to multiply it by D^-½ (2026-11-24).
	hostMonomial = 300.0
	// A step of an iteration beside its products: a dozen short operations.
	stepOverhead = 5e7
	// A byte of a large matrix, which the system must clear before its first use.
	freshByte = 45.0
	// A float64 from a GPU's memory, 8 bytes at 16 GB/s and some nanoseconds' work.
	hostSeconds = 2.5e-9
	// A sample's eigenvalues, and what else is done before an iteration.
	lookOverhead = 3e9
)

// costs are the constants for a device.
type costs struct {
	feature, value float64    // of an element of a symmetric K, for each feature and for the function
	again          float64    // how many times that is done for a K that is not stored and several columns
	thin           float64    // of an operation of a product with few columns: bound by memory
	symm64, symm32 [2]float64 // of an element of a stored K, and for each column beside it
	symm16         [2]float64 // the same with 16 bits
	solve64        [2]float64 // the same of a solve with a triangle and with its transpose
	solve32        [2]float64
	solveRow       float64 // of such a solve, for each row
	freshByte      float64
	readByte       float64
	monomial       float64 // of an element of F that the host computes and sends
	host, fetch    float64 // of an element that goes to the host and is looked at there, and of a row
	step, look     float64
	small          float64 // what takes less is not worth a look at the spectrum
}

// ofProcessor are measured: a symmetric K is evaluated once for both of its places,
// stored or not.
var ofProcessor = costs{
	feature: 1, value: kernelValue, again: 1, thin: 1 / rateThin,
	symm64: [2]float64{12, 4}, symm32: [2]float64{4.5, 2}, symm16: [2]float64{2, 2.7}, solve64: [2]float64{12, 4}, solve32: [2]float64{5, 5},
	freshByte: freshByte, readByte: readByte, monomial: hostMonomial, host: hostElement, step: stepOverhead, look: lookOverhead, small: smallCost,
}

// costsOf are those of a device. One that reports the rates of its memory and steps
// evaluates a K that is not stored once for both of its places where there is one column,
// and else for each, by 2 instructions for a feature of a pair and some 25 for an
// exponential; it reads a triangle's elements once in a product,
// and once in each of the two solves; and an iteration has a dozen steps that wait for
// each other.
func costsOf(r backend.Rates) costs {
	if r.Products == 0 {
		return ofProcessor
	}
	instruction, b := r.Products/r.Pairs, r.Products/r.Bytes
	return costs{
		feature: instruction, value: 12.5 * instruction, again: 2, thin: 4 * b,
		symm64: [2]float64{4 * b, 4}, symm32: [2]float64{2 * b, 4 / r.Single}, symm16: [2]float64{b, 4 / r.Single},
		solve64: [2]float64{8 * b, 4}, solve32: [2]float64{4 * b, 4 / r.Single}, solveRow: 2 * r.Solve * r.Products,
		freshByte: 2 * b, // once to clear it and once to write
		readByte:  b,
		monomial:  hostMonomial * r.Products / 1e11,
		host:      hostSeconds * r.Products,
		fetch:     4 * r.Step * r.Products, // of X and F, each a copy and a wait
		step:      12 * r.Step * r.Products,
		look:      r.Products * lookOverhead / 1e11, // the eigenvalues of a sample are the processor's work
		small:     r.Products * smallCost / 1e11,
	}
}

// costs are those of the problem's device.
func (z *sizes) costs() costs { return costsOf(z.rates()) }

// rates are those of the device, or of the cpu backend.
func (z *sizes) rates() backend.Rates {
	if r, ok := z.dev.(backend.Rated); ok {
		return r.Rates()
	}
	return backend.Rates{Single: rateSingle, Values: 1.5}
}

// gramCost is that of K.
func (z *sizes) gramCost(single bool) float64 {
	k := z.costs()
	c := float64(z.n) * float64(z.n) * (float64(z.d)*k.feature + k.value)
	if z.linear {
		c = backend.SyrkFlops(z.n, z.d) + 2*float64(z.n)*float64(z.n)
	}
	if single {
		c /= z.rates().Values
	}
	return c
}

// gramMulCost is that of K·V, V n×c, without storing K.
func (z *sizes) gramMulCost(c int, single bool) float64 {
	again := 1.0
	if c > 1 {
		again = z.costs().again
	}
	return again*z.gramCost(single) + 2*float64(z.n)*float64(z.n)*float64(c)
}

// symmCost is that of a product of a stored K and c columns: K goes through memory, and
// each column through the caches.
func (z *sizes) symmCost(c int, o Operator) float64 {
	k := z.costs()
	switch o {
	case Fixed16:
		return z.squareCost(k.symm16, c)
	case Stored32:
		return z.squareCost(k.symm32, c)
	}
	return z.squareCost(k.symm64, c)
}

// solveCost is that of a solve with a triangle and its transpose.
func (z *sizes) solveCost(c int, single bool) float64 {
	k := z.costs()
	if single {
		return z.squareCost(k.solve32, c) + k.solveRow*float64(z.n)
	}
	return z.squareCost(k.solve64, c) + k.solveRow*float64(z.n)
}

func (z *sizes) squareCost(of [2]float64, c int) float64 {
	return float64(z.n) * float64(z.n) * (of[0] + of[1]*float64(c))
}

// storedCost is gramCost for a K that is stored.
func (z *sizes) storedCost(o Operator) float64 {
	size := map[Operator]float64{Stored64: 4, Stored32: 2, Fixed16: 1}[o] // bytes for each of n², in packed storage
	return z.gramCost(o.single()) + z.costs().freshByte*size*float64(z.n)*float64(z.n)
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
		return z.residualFlops() * z.costs().thin
	}
	return z.gramMulCost(z.t, false)
}

package solvers

import "github.com/mercer-go/mercer/internal/flop"

// The cost model estimates the time of a step, in units of the time of one operation of a large matrix product in
// float64. The constants were measured for the cpu backend with AVX-512 on two cores of a Zen 4, 2026-11, n =
// 10,000. If a device reports its rates (flop.Rated), costsOf computes its costs from them.
const (
	rateProduct = 1.0  // rate of Gemm and Syrk
	ratePotrf   = 0.95 // rate of potrf: factoring the panels is slower than matrix products
	rateSingle  = 2.0  // float32 relative to float64
	rateThin    = 0.15 // rate of products and solves with few columns, limited by memory bandwidth

	// kernelValue is the cost of computing an exponential or a power, with its loads and stores.
	kernelValue = 30.0
	// sparseFeature is the cost of one stored feature of a sparse sample in one kernel value: 0.14 s for the Gram
	// matrix of 5,574 texts of 144 features each.
	sparseFeature = 3.0
	// readByte is the cost of reading a byte of a matrix that is multiplied by one vector, at 22 GB/s.
	readByte = 4.5
	// hostElement is the cost on the host of an element of a column in the pivoted Cholesky factorization.
	hostElement = 15.0
	// hostMonomial is the cost of an element of F (lowrank.Preconditioner) on the host: 5.7 ns on one core.
	hostMonomial = 300.0
	// stepOverhead is the cost of an iteration without its products: a dozen short operations.
	stepOverhead = 5e7
	// freshByte is the cost of a byte of newly allocated memory, which the system must clear before its first use.
	freshByte = 45.0
	// hostSeconds is the time to fetch a float64 from a GPU's memory, at 16 GB/s, and to process it.
	hostSeconds = 2.5e-9
	// processorRate is the number of operations of a large product per second.
	processorRate = 1e11
	// If a direct method costs less than smallCost, four times lookOverhead, the spectrum of K is not estimated.
	smallCost = 6e9
	// lookOverhead is the cost of estimating the spectrum of K, and of other work before the first iteration.
	lookOverhead = 1.5e9
)

// costs are the constants of the cost model for a device.
type costs struct {
	listed         float64    // cost of an element of K per stored feature of a sparse sample
	feature, value float64    // feature: cost per feature of an element of a symmetric K; value: cost of the kernel's function
	reevaluation   float64    // factor on the cost of an unstored K if it is multiplied by several columns
	thin           float64    // cost of an operation of a product with few columns, which memory limits
	symm64, symm32 [2]float64 // cost per element of a stored K in a product: a fixed part, and a part per column
	symm16         [2]float64 // symm32 for a K with elements of 16 bits
	solve64        [2]float64 // cost per element of L in a solve with L and Lᵀ: a fixed part, and a part per column
	solve32        [2]float64
	solveRow       float64 // additional cost of a solve per row of the factor
	reducedRow     float64 // solveRow for a factor of reduced precision
	freshByte      float64
	readByte       float64
	monomial       float64 // cost of an element of F (lowrank.Preconditioner) that the host computes and copies to the device
	host, fetch    float64 // host: cost of an element that the host reads and processes; fetch: cost of copying a row from the device
	step, look     float64
	rate           float64 // operations per second
	minEstimated   float64 // total cost below which estimating the spectrum takes longer than it can save
}

// ofProcessor holds the measured costs of the cpu backend, which computes each value of a symmetric K once.
var ofProcessor = costs{
	listed: sparseFeature, feature: 1, value: kernelValue, reevaluation: 1, thin: 1 / rateThin,
	symm64: [2]float64{12, 4}, symm32: [2]float64{4.5, 2}, symm16: [2]float64{2, 2.7}, solve64: [2]float64{12, 4}, solve32: [2]float64{5, 5},
	freshByte: freshByte, readByte: readByte, monomial: hostMonomial, host: hostElement, step: stepOverhead, look: lookOverhead, rate: processorRate, minEstimated: smallCost,
}

// atRate returns the costs of a processor that performs the given number of operations of a large product per second; 0
// means processorRate. Costs are relative to the time of such an operation: if work is limited by the memory or by
// scalar instructions, its cost is proportional to the rate.
func (c costs) atRate(products float64) costs {
	if products == 0 || products == c.rate {
		return c
	}
	scale := products / c.rate
	for _, v := range []*float64{
		&c.thin, &c.symm64[0], &c.symm32[0], &c.symm16[0], &c.solve64[0], &c.solve64[1], &c.solve32[0], &c.solve32[1],
		&c.freshByte, &c.readByte, &c.monomial, &c.host, &c.step, &c.look,
	} {
		*v *= scale
	}
	c.rate = products
	return c
}

// costsOf returns the costs of a device with the given rates. For a device that reports its memory bandwidth, an
// element of K is assumed to take 2 instructions per feature and about 25 for an exponential. To multiply an unstored K
// by several columns, elements are evaluated twice.
func costsOf(r flop.Rates) costs {
	if r.Bytes == 0 {
		return ofProcessor.atRate(r.Products)
	}
	instruction, b := r.Products/r.Pairs, r.Products/r.Bytes
	reducedSolve := r.ReducedSolve
	if reducedSolve == 0 {
		reducedSolve = r.Solve
	}
	return costs{
		listed: sparseFeature * instruction, feature: instruction, value: 12.5 * instruction, reevaluation: 2, thin: 4 * b,
		symm64: [2]float64{4 * b, 4}, symm32: [2]float64{2 * b, 4 / r.Single}, symm16: [2]float64{b, 4 / r.Single},
		solve64: [2]float64{8 * b, 4}, solve32: [2]float64{4 * b, 4 / r.Single}, solveRow: 2 * r.Solve * r.Products, reducedRow: 2 * reducedSolve * r.Products,
		freshByte:    2 * b, // a write that clears the byte, and a write that fills it
		readByte:     b,
		monomial:     hostMonomial * r.Products / processorRate,
		host:         hostSeconds * r.Products,
		fetch:        4 * r.Step * r.Products, // X and F are each copied in one transfer, and the device waits for it
		step:         12 * r.Step * r.Products,
		look:         r.Products * lookOverhead / processorRate, // the host computes the eigenvalues of a sample
		rate:         r.Products,
		minEstimated: 0.2 * r.Products,
	}
}

func (z *sizes) costs() costs { return costsOf(z.rates()) }

// rates returns the rates of the device, or the rates of the cpu backend if the device reports none.
func (z *sizes) rates() flop.Rates {
	if r, ok := z.dev.(flop.Rated); ok {
		return r.Rates()
	}
	return flop.Rates{Single: rateSingle, Values: 1.5}
}

func (z *sizes) gramFlops() float64 { return flop.Gram(z.n, z.n, z.width, true) }

func (z *sizes) gramCost(single bool) float64 {
	k := z.costs()
	c := float64(z.n) * float64(z.n) * (float64(z.width)*k.feature + k.value)
	if z.p.Sparse != nil {
		c = float64(z.n) * float64(z.n) * (float64(z.width)*k.listed + k.value)
	}
	if z.linear {
		c = flop.Syrk(z.n, z.d) + 2*float64(z.n)*float64(z.n)
	}
	if single {
		c /= z.rates().Values
	}
	return c
}

// gramMulCost is the cost of K·V for an unstored K and V of size n×c.
func (z *sizes) gramMulCost(c int, single bool) float64 {
	factor := 1.0
	if c > 1 {
		factor = z.costs().reevaluation
	}
	return factor*z.gramCost(single) + 2*float64(z.n)*float64(z.n)*float64(c)
}

// symmCost is the cost of a product of a stored K and c columns.
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

// solveCost is the cost of solving with an n×n triangular factor and its transpose for c columns.
func (z *sizes) solveCost(c int, single bool) float64 {
	k := z.costs()
	if single {
		return z.squareCost(k.solve32, c) + k.solveRow*float64(z.n)
	}
	return z.squareCost(k.solve64, c) + k.solveRow*float64(z.n)
}

func (z *sizes) squareCost(perElement [2]float64, c int) float64 {
	return float64(z.n) * float64(z.n) * (perElement[0] + perElement[1]*float64(c))
}

func (z *sizes) storedCost(o Operator) float64 {
	size := map[Operator]float64{Stored64: 4, Stored32: 2, Fixed16: 1}[o] // bytes per element of a square matrix; packed storage holds half of the elements
	return z.gramCost(o.single()) + z.costs().freshByte*size*float64(z.n)*float64(z.n)
}

// potrfCost is the cost of a Cholesky factorization, where rate is relative to float64.
func (z *sizes) potrfCost(rate float64) float64 {
	return flop.Potrf(z.n) / ratePotrf / rate
}

// residualFlops is the number of operations for computing a residual from the data.
func (z *sizes) residualFlops() float64 {
	if isLinear(z.kernel) {
		return 2 * flop.Gemm(z.n, z.t, z.width)
	}
	return flop.GramMul(z.n, z.n, z.width, z.t)
}

func (z *sizes) residualCost() float64 {
	if isLinear(z.kernel) {
		return z.residualFlops() * z.costs().thin
	}
	return z.gramMulCost(z.t, false)
}

package backend

import (
	"context"

	"github.com/mercer-go/mercer/kernels"
)

// Expander is a Backend that also has precomputed expansions, for predictions at a small number of points at a
// time. It is an optional ability, found by a type assertion; the Backend that With returns has it, too.
type Expander[T Float] interface {
	Backend[T]
	// NewExpansion computes the expansion of x ↦ k(x, Z) V for the rows of Z, m × d, and V, m × t, and waits for
	// the result. z and v may change afterwards. NewExpansion returns a *MemoryError if the expansion does not fit.
	NewExpansion(k kernels.Kernel, z, v Host[T]) (Expansion[T], error)
}

// RoundingBackend is a Backend that reports the number of roundings of a term in a sum of products, which bounds
// the rounding errors of the sum. It is an optional ability, found by a type assertion.
type RoundingBackend[T Float] interface {
	Backend[T]
	// GramMulRoundings returns the largest number r of roundings of a term k(x, z_j)v_j when GramMul multiplies
	// k(X, Z) by V. Z has m dense points, V has t columns, and X is not Z. The rounding error of the sum is then at
	// most γ_r Σ_j |k(x, z_j)v_j| with γ_r = ru/(1 − ru) and the unit roundoff u (Higham 2002, section 4.2).
	GramMulRoundings(m, t int) int
}

// Expansion is a function f(x) = k(x, Z) V, stored in the form that its device evaluates fastest.
type Expansion[T Float] interface {
	// Dims returns d, the number of features of a point, and t, the number of elements of f(x).
	Dims() (features, outputs int)
	// Apply sets dst, n × t, to k(X, Z) V for the rows of X, n × d, and waits for the result. Several goroutines
	// may call Apply at the same time. Within about 0.1 s after ctx is done, Apply returns an error that wraps
	// context.Cause(ctx); dst is then undefined.
	Apply(ctx context.Context, dst, x Host[T]) error
	// Free releases the memory. No call of Apply may be in progress or follow.
	Free()
}

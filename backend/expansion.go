package backend

import (
	"context"

	"github.com/mercer-go/mercer/kernels"
)

// Expander is a Backend with an optional ability, found by assertion: expansions
// kept ready, for predictions a few points at a time. What With returns has it
// too.
type Expander[T Float] interface {
	Backend[T]
	// NewExpansion waits: x ↦ k(x, Z) V for the rows of Z, m × d, and V, m × t.
	// It keeps what it needs of both, and they may be freed or changed
	// afterwards. It returns a *MemoryError when that does not fit.
	NewExpansion(k kernels.Kernel, z, v Host[T]) (Expansion[T], error)
}

// Expansion is a sum of kernel functions f(x) = k(x, Z) V in the form in which
// the device that made it evaluates it fastest.
type Expansion[T Float] interface {
	// Dims returns d, what a point has, and t, what a value has.
	Dims() (features, outputs int)
	// Apply waits: dst ← k(X, Z) V for the rows of X, n × d; dst is n × t. It is
	// what GramMul gives but for rounding. Several goroutines may call it at
	// once. Once ctx is done it returns within about 0.1 s an error that wraps
	// context.Cause(ctx); dst is undefined then.
	Apply(ctx context.Context, dst, x Host[T]) error
	// Free gives the memory back; no Apply may be under way, and none may follow.
	Free()
}

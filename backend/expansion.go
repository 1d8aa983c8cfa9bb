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

// CheckNewExpansion panics unless Z is m × d, V m × t and the kernel's
// parameters obey their rules.
func CheckNewExpansion[T Float](k kernels.Kernel, z, v Host[T]) (m, d, t int) {
	CheckHost("NewExpansion", z)
	CheckHost("NewExpansion", v)
	if v.Rows != z.Rows {
		misuse("NewExpansion", "V has %d rows, Z has %d", v.Rows, z.Rows)
	}
	if k == nil {
		misuse("NewExpansion", "the kernel is nil")
	}
	if err := k.Check(z.Cols); err != nil {
		misuse("NewExpansion", "%v", err)
	}
	return z.Rows, z.Cols, v.Cols
}

// CheckApply panics unless X is n × d and dst n × t.
func CheckApply[T Float](dst, x Host[T], d, t int) {
	CheckHost("Apply", dst)
	CheckHost("Apply", x)
	if x.Cols != d || dst.Cols != t || dst.Rows != x.Rows {
		misuse("Apply", "X is %d×%d and dst %d×%d; the expansion has %d features and %d outputs", x.Rows, x.Cols, dst.Rows, dst.Cols, d, t)
	}
}
